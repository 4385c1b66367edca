/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation can fail: an ordinary error comes back, nothing is taken by half, nothing leaks. */
#include "tests/unit/agent_config/helper.h"

#include "tests/unit/base/nomem.h"

static void a_configuration_is_taken_whole_or_not_at_all(void **state)
{
    struct scratch *s = *state;
    bool ok = false;

    put(s, "config.yaml",
        KUBELET
        "maxPods: 9\nclusterDNS: [10.0.0.1]\nevictionHard: {memory.available: "
        "1Gi}\nmergeDefaultEvictionSettings: true\n"
        "registerWithTaints: [{key: a, effect: NoExecute}]\nfeatureGates: {A: true}\nsyncFrequency: 3s\n"
        "---\n" OWN "nodeLabels: {a: b}\nnodeIP: 192.0.2.1\nextendedResources: {a.b/c: 1}\n");
    NOMEM_EACH(ok, {
        char *argv[] = { (char *)"run", (char *)"--config", s->file, (char *)"--cluster-dns=10.0.0.2",
                         (char *)"--cluster-dns=10.0.0.3" };
        struct agent_config c = { 0 };
        struct err e = { 0 };
        bool help = false;
        enum err_code code = config_parse(&c, 5, argv, &help, &e);

        if (code != ERR_OK && code != ERR_EXHAUSTED) {
            print_message("%s\n", e.text);
            abort();
        }
        ok = code == ERR_OK;
        if (ok && (c.max_pods_n != 9 || c.cluster_dns.n != 2 || c.node_labels.n != 1 ||
                   c.extended_resources.n != 1 || c.node_ip[0] == '\0' ||
                   json_object_size(config_value(&c, "evictionHard")) != 5 ||
                   json_array_size(config_value(&c, "registerWithTaints")) != 1))
            abort();
        config_done(&c);
    });
}

static void what_is_shown_is_whole_or_not_there(void **state)
{
    struct scratch *s = *state;
    bool ok = false;

    parses(s, "--max-pods=3 --docker=true");
    NOMEM_EACH(ok, {
        json_t *all = config_json(&s->c);
        struct buf text = BUF_INIT(1 << 20);

        ok = all != NULL && json_array_size(json_object_get(all, "warnings")) == 1;
        if (all != NULL)
            config_yaml(all, &text);
        ok = ok && !text.failed;
        buf_done(&text);
        json_decref(all);
    });
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_configuration_is_taken_whole_or_not_at_all),
        TEST(what_is_shown_is_whole_or_not_there),
    };

    return NOMEM_RUN(tests);
}
