/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle config`, the sample, durations, and taking over what was read anew. */
#include "agent/config/internal.h"
#include "base/codec/json.h"
#include "tests/unit/agent_config/helper.h"

#define SAMPLE "systemd/config.yaml"

static void yaml_says_each_value_with_its_origin(void **state)
{
    struct scratch *s = *state;
    buf_auto text = BUF_INIT(1 << 20);
    json_auto_t *all = NULL;

    put(s, "config.yaml",
        KUBELET "authentication:\n  x509:\n    clientCAFile: /ca.crt\nclusterDNS:\n- 10.0.0.10\n");
    parses(s, "--max-pods=7");
    all = config_json(&s->c);
    config_yaml(all, &text);
    assert_non_null(
        strstr(text.p, "\nmaxPods: 7                                                # --max-pods\n"));
    assert_non_null(strstr(text.p, "\nclusterDNS: [\"10.0.0.10\"]"));
    assert_non_null(strstr(text.p, "/config.yaml:6\n"));
    assert_non_null(strstr(text.p, "\nauthentication:\n  x509:\n    clientCAFile: \"/ca.crt\""));
    assert_non_null(strstr(text.p, "\n---\napiVersion: coracle.dev/v1\nkind: CoracleConfiguration\n"));
    assert_non_null(strstr(
        text.p, "# Accepted, but without effect:\n#   authentication.x509.clientCAFile: \"/ca.crt\" ("));
}

static void check_effect(const json_t *without, const char *text, const struct config_row *r)
{
    const char *why = json_str(without, r->key), *line;
    char start[120], *end;

    if ((r->effect == WORKS && !(r->marks & JOINED)) != (why == NULL))
        fail_msg("%s: %s", r->key, why != NULL ? why : "not marked");
    if (why == NULL || strchr(r->key, '.') != NULL)
        return;
    snprintf(start, sizeof(start), "\n%s: ", r->key);
    line = strstr(text, start);
    assert_non_null(line);
    end = strchr(line + 1, '\n');
    if (strstr(line, "  # default; no effect: ") == NULL || strstr(line, "  # default; no effect: ") > end)
        fail_msg("%.*s", (int)(end - line), line);
}

static void each_key_that_is_not_acted_on_is_marked(void **state)
{
    struct scratch *s = *state;
    buf_auto text = BUF_INIT(1 << 20);
    json_auto_t *all = NULL;
    size_t n = 0;

    parses(s, "");
    all = config_json(&s->c);
    config_yaml(all, &text);
    for (size_t i = 0; i < config_n_rows(); i++) {
        const struct config_row *r = config_row(i, NULL);

        if (r->key == NULL || config_effective(s->c.state, i) == NULL)
            continue;
        check_effect(json_object_get(all, "withoutEffect"), text.p, r);
        n += r->effect != WORKS;
    }
    assert_true(n > 30);
    assert_non_null(strstr(text.p, "  webhook:\n    enabled: true                                         # "
                                   "default; no effect: "));
}

/* What is printed may be used as a configuration, and is the same then. */
static void yaml_that_was_printed_can_be_read(void **state)
{
    struct scratch *s = *state;
    buf_auto text = BUF_INIT(1 << 20);
    json_auto_t *first = NULL, *second = NULL;

    put(s, "config.yaml",
        KUBELET "maxPods: 9\nevictionHard: {memory.available: 1Gi}\nregisterWithTaints: [{key: a, effect: "
                "NoExecute}]\n"
                "---\n" OWN "nodeLabels: {a: b}\n");
    parses(s, "--seccomp-default");
    first = config_json(&s->c);
    config_yaml(first, &text);
    put(s, "config.yaml", text.p);
    parses(s, "");
    second = config_json(&s->c);
    assert_true(
        json_equal(json_object_get(first, "kubeletconfig"), json_object_get(second, "kubeletconfig")));
    assert_true(
        json_equal(json_object_get(first, "coracleconfig"), json_object_get(second, "coracleconfig")));
}

static void the_sample_is_up_to_date(void **state)
{
    buf_auto text = BUF_INIT(1 << 20);
    struct err e = { 0 };
    str_auto have = NULL;

    (void)state;
    config_sample(&text);
    if (getenv("WRITE_SAMPLES") != NULL) {
        FILE *f = fopen(SAMPLE, "w");
        assert_non_null(f);
        assert_true(fputs(text.p, f) >= 0);
        assert_int_equal(fclose(f), 0);
    }
    if (fs_read_at(AT_FDCWD, SAMPLE, 1 << 20, &have, NULL, &e) != ERR_OK || strcmp(have, text.p) != 0)
        fail_msg("%s is out of date; `make samples` writes it again", SAMPLE);
}

/* Takes the first "#" of the lines with keys away. */
static void uncomment(const char *text, struct buf *out)
{
    for (const char *line = text, *end; *line != '\0'; line = end + 1) {
        bool comment = line[0] == '#' && line[1] == ' ' && line[2] != ' ';

        end = strchr(line, '\n');
        buf_addf(out, "%.*s\n", (int)(end - line) - (line[0] == '#' && !comment),
                 line + (line[0] == '#' && !comment));
    }
}

static void the_sample_holds_every_key_with_its_default(void **state)
{
    struct scratch *s = *state;
    buf_auto text = BUF_INIT(1 << 20), open = BUF_INIT(1 << 20);
    json_auto_t *defaults = NULL;
    size_t n = config_n_rows();

    parses(s, "");
    defaults = config_json(&s->c);
    config_sample(&text);
    put(s, "config.yaml", text.p);
    parses(s, "");
    expect_warnings(s, "");
    uncomment(text.p, &open);
    put(s, "config.yaml", open.p);
    parses(s, "");
    expect_warnings(s, "");
    for (size_t i = 0; i < n; i++) {
        const struct config_row *r = config_row(i, NULL);
        const json_t *v = config_effective(s->c.state, i);

        if (r->key == NULL)
            continue;
        if (strstr(open.p, strrchr(r->key, '.') != NULL ? strrchr(r->key, '.') + 1 : r->key) == NULL)
            fail_msg("%s is not in the sample", r->key);
        if (strncmp(r->key, "shutdownGracePeriod", strlen("shutdownGracePeriod")) ==
            0) /* two are set: a node that is installed ends its pods in order */
            continue;
        if (s->c.state->defaults[i] != NULL ? !json_equal(v, s->c.state->defaults[i])
                                            : v != NULL && !config_is_zero(v))
            fail_msg("%s has another default in the sample", r->key);
    }
}

/* ---- read anew --------------------------------------------------------------------------------------------
 */

static void note(const char *setting, bool live, void *arg)
{
    buf_addf(arg, "%s%s\n", setting, live ? "" : " (restart)");
}

static void what_may_change_is_taken_over_and_the_rest_named(void **state)
{
    struct scratch *s = *state, next = *s;
    buf_auto said = BUF_INIT(4096);

    put(s, "config.yaml",
        KUBELET "maxPods: 5\nclusterDNS: [10.0.0.1]\nstaticPodPath: /a\nsyncFrequency: 1m\n---\n" OWN
                "nodeLabels: {a: b}\n");
    parses(s, "");
    next.c = (struct agent_config){ 0 };
    put(s, "config.yaml",
        KUBELET "maxPods: 6\nclusterDNS: [10.0.0.2, 10.0.0.3]\nstaticPodPath: /b\nsyncFrequency: 2m\n"
                "logging: {verbosity: 4}\n---\n" OWN "nodeLabels: {a: c}\nstateDir: /elsewhere\n");
    parses(&next, "");
    config_take(&s->c, &next.c, note, &said);
    assert_string_equal(
        said.p,
        "logging.verbosity\nstaticPodPath (restart)\nclusterDNS\nmaxPods\nnodeLabels\nstateDir (restart)\n");
    config_done(&next.c);
    assert_int_equal(s->c.max_pods_n, 6);
    assert_string_equal(s->c.cluster_dns.v[1], "10.0.0.3");
    assert_string_equal(s->c.manifests, "/a");
    assert_string_equal(s->c.state_dir, "/var/lib/coracle");
    assert_string_equal(s->c.node_labels.v[0].value, "c");
    assert_string_equal(s->c.log_level, "debug");
    setting_is(s, "staticPodPath", "\"/a\"");
    setting_is(s, "maxPods", "6");
    expect_warnings(s, "syncFrequency\n");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(yaml_says_each_value_with_its_origin),
        TEST(each_key_that_is_not_acted_on_is_marked),
        TEST(yaml_that_was_printed_can_be_read),
        cmocka_unit_test(the_sample_is_up_to_date),
        TEST(the_sample_holds_every_key_with_its_default),
        TEST(what_may_change_is_taken_over_and_the_rest_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
