/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts and hostname texts against kubelet's rules; what is said of name servers. */
#include "agent/pod/core/events.h"
#include "agent/pod/sandbox/files.h"
#include "agent/pod/sandbox/internal.h"
#include "base/codec/json.h"
#include "tests/unit/agent_pod/world.h"

static struct api_pod *make_pod(const char *name, const char *policy)
{
    struct api_pod *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    p->refs = 1;
    p->meta.name = arena_strdup(&p->arena, name);
    p->meta.namespace = arena_strdup(&p->arena, "default");
    p->spec.dns_policy = arena_strdup(&p->arena, policy);
    return p;
}

static void hostname_is_cut_to_63_and_trimmed(void **state)
{
    struct api_pod *p =
        make_pod("a-name-that-is-much-longer-than-the-sixty-three-characters-tha--ends", "Default");
    char name[65];

    (void)state;
    files_hostname_text(p, name);
    assert_string_equal(name, "a-name-that-is-much-longer-than-the-sixty-three-characters-tha");
    api_pod_unref(p);
}

static void hosts_has_the_pod_ip_with_and_without_domain(void **state)
{
    struct api_pod *p = make_pod("web", "ClusterFirst");
    const char *ips[] = { "10.1.2.3", "fd00::3" };
    buf_auto out = BUF_INIT(65536);

    (void)state;
    files_hosts_text(p, "web", "cluster.local", ips, 2, NULL, &out);
    assert_string_equal(
        out.p, "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost "
               "ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\n"
               "fe00::2\tip6-allrouters\n10.1.2.3\tweb\nfd00::3\tweb\n");
    buf_reset(&out);
    p->spec.subdomain = arena_strdup(&p->arena, "sub");
    files_hosts_text(p, "web", "cluster.local", ips, 1, NULL, &out);
    assert_non_null(strstr(out.p, "10.1.2.3\tweb.sub.default.svc.cluster.local\tweb\n"));
    api_pod_unref(p);
}

static void host_aliases_come_after_a_blank_line(void **state)
{
    struct api_pod *p = make_pod("web", "Default");
    char *names[] = { (char *)"one.example", (char *)"one" };
    struct api_host_alias alias = { .ip = (char *)"192.0.2.9", .hostnames = { names, 2 } };
    buf_auto out = BUF_INIT(65536);

    (void)state;
    p->spec.host_aliases = &alias;
    p->spec.n_host_aliases = 1;
    files_hosts_text(p, "web", "", NULL, 0, NULL, &out);
    assert_true(
        str_ends(out.p, "ip6-allrouters\n\n# Entries added by HostAliases.\n192.0.2.9\tone.example\tone\n"));
    api_pod_unref(p);
}

static unsigned told(struct world *w, const char *of)
{
    json_t *events = events_json(&w->node), *v;
    unsigned n = 0;
    size_t i;

    json_array_foreach (events, i, v) {
        assert_string_equal(json_str(v, "reason"), "MissingClusterDNS");
        if (str_eq(json_str(json_object_get(v, "involvedObject"), "name"), of))
            n += (unsigned)json_int(v, "count", 0);
    }
    json_decref(events);
    return n;
}

static void no_name_servers_of_the_cluster_are_told_once_and_to_who_asked_for_them(void **state)
{
    struct world *w = *state;
    const char *const servers[] = { "10.96.0.10", NULL };
    const char *const specs[] = { "", "dnsPolicy: Default, ", "dnsPolicy: ClusterFirstWithHostNet, ", "" };
    struct err e = { 0 };

    w->node.o.cluster_domain = "";
    w->node.o.resolv_conf = "";
    for (size_t i = 0; i < 4; i++) {
        str_auto name = str_printf("p%zu", i);
        str_auto spec = str_printf("%scontainers: [{name: c, image: x}]", specs[i]);
        struct pod *p = world_pod(w, name, spec);

        assert_int_equal(files_write_static(p, &e), ERR_OK);
        assert_int_equal(told(w, "node-a"), 1);
        assert_int_equal(told(w, name), i == 2);
    }
    sandbox_node(&w->node)->told_no_cluster_dns = false;
    w->node.o.cluster_dns = servers;
    assert_int_equal(files_write_static(world_pod(w, "q", "containers: [{name: c, image: x}]"), &e), ERR_OK);
    assert_int_equal(told(w, "node-a"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostname_is_cut_to_63_and_trimmed),
        cmocka_unit_test(hosts_has_the_pod_ip_with_and_without_domain),
        cmocka_unit_test(host_aliases_come_after_a_blank_line),
        WORLD_TEST(no_name_servers_of_the_cluster_are_told_once_and_to_who_asked_for_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
