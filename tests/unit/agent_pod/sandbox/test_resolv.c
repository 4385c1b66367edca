/* SPDX-License-Identifier: Apache-2.0 */
/* resolv.conf texts against kubelet's rules. */
#include "agent/pod/sandbox/resolv.h"
#include "base/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char node_file[] = "# comment\n; nameserver 192.0.2.99\nnameserver 192.0.2.53\r\n"
                                "search old.test\n search example.test lan. .\n"
                                "options timeout:2 rotate\noptions timeout:3\nnameserver\n";
static const char *const cluster_dns[] = { "10.96.0.10", NULL };
static const struct resolv_node in_cluster = { cluster_dns, "cluster.local", node_file, false };
static const struct resolv_node alone = { NULL, "", node_file, false };

struct t {
    struct api_pod pod;
    struct buf out;
    struct resolv_warnings warnings;
};

static int set_up(void **state)
{
    struct t *t = calloc(1, sizeof(*t));

    t->pod.meta.name = (char *)"web";
    t->pod.meta.namespace = (char *)"default";
    buf_init(&t->out, 65536);
    t->warnings = RESOLV_WARNINGS_INIT;
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct t *t = *state;

    buf_done(&t->out);
    buf_done(&t->warnings.servers);
    buf_done(&t->warnings.searches);
    free(t);
    return 0;
}

static const char *text(struct t *t, const char *policy, const struct resolv_node *node)
{
    buf_reset(&t->out);
    buf_reset(&t->warnings.servers);
    buf_reset(&t->warnings.searches);
    t->pod.spec.dns_policy = (char *)policy;
    resolv_text(&t->pod, node, &t->out, &t->warnings);
    assert_false(t->out.failed);
    return t->out.p;
}

static void cluster_first_uses_the_cluster_servers_and_searches(void **state)
{
    struct t *t = *state;
    const char cluster[] =
        "search default.svc.cluster.local svc.cluster.local cluster.local example.test lan\n"
        "nameserver 10.96.0.10\noptions ndots:5\n";
    const char of_node[] = "search example.test lan\nnameserver 192.0.2.53\noptions timeout:3 rotate\n";

    assert_string_equal(text(t, "ClusterFirst", &in_cluster), cluster);
    assert_string_equal(text(t, "Default", &in_cluster), of_node);
    t->pod.spec.host_network = true;
    assert_string_equal(text(t, "ClusterFirst", &in_cluster), of_node);
    assert_string_equal(text(t, "ClusterFirstWithHostNet", &in_cluster), cluster);
    assert_int_equal(t->warnings.servers.n + t->warnings.searches.n, 0);
    assert_false(t->warnings.no_cluster_dns);
}

static void without_cluster_dns_the_node_file_is_used(void **state)
{
    struct t *t = *state;

    assert_string_equal(text(t, "ClusterFirst", &alone),
                        "search example.test lan\nnameserver 192.0.2.53\noptions timeout:3 rotate\n");
    assert_true(t->warnings.no_cluster_dns);
    text(t, "Default", &alone);
    assert_false(t->warnings.no_cluster_dns);
    t->pod.spec.host_network = true;
    text(t, "ClusterFirst", &alone);
    assert_false(t->warnings.no_cluster_dns);
    text(t, "ClusterFirstWithHostNet", &alone);
    assert_true(t->warnings.no_cluster_dns);
}

static void without_a_node_file_the_resolver_is_localhost(void **state)
{
    struct resolv_node none = { NULL, "", NULL, false };

    assert_string_equal(text(*state, "Default", &none), "search .\nnameserver 127.0.0.1\n");
    none.ipv6 = true;
    assert_string_equal(text(*state, "ClusterFirst", &none), "search .\nnameserver ::1\n");
    none.cluster_dns = cluster_dns;
    assert_string_equal(text(*state, "ClusterFirst", &none), "nameserver 10.96.0.10\noptions ndots:5\n");
}

static void dns_config_is_merged(void **state)
{
    struct t *t = *state;
    char *servers[] = { (char *)"192.0.2.53", (char *)"192.0.2.1" };
    char *searches[] = { (char *)"lan", (char *)"more.test" };
    struct api_dns_option options[] = { { (char *)"ndots", (char *)"2" },
                                        { (char *)"edns0", NULL },
                                        { (char *)"ndots", (char *)"3" },
                                        { (char *)"timeout", (char *)"" } };

    t->pod.spec.dns_nameservers = (struct api_strs){ servers, 2 };
    t->pod.spec.dns_searches = (struct api_strs){ searches, 2 };
    t->pod.spec.dns_options = options;
    t->pod.spec.n_dns_options = 4;
    assert_string_equal(text(t, "Default", &alone),
                        "search example.test lan more.test\nnameserver 192.0.2.53\nnameserver 192.0.2.1\n"
                        "options timeout rotate ndots:3 edns0\n");
    assert_string_equal(text(t, "None", &alone),
                        "search lan more.test\nnameserver 192.0.2.53\nnameserver 192.0.2.1\n"
                        "options ndots:3 edns0 timeout\n");
}

static void servers_beyond_three_are_left_out_and_named(void **state)
{
    struct t *t = *state;
    char *servers[] = { (char *)"192.0.2.1", (char *)"192.0.2.2", (char *)"192.0.2.3", (char *)"192.0.2.4" };

    t->pod.spec.dns_nameservers = (struct api_strs){ servers, 4 };
    assert_string_equal(text(t, "None", &alone),
                        "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n");
    assert_string_equal(t->warnings.servers.p,
                        "Nameserver limits were exceeded, some nameservers have been omitted, the applied "
                        "nameserver line is: 192.0.2.1 192.0.2.2 192.0.2.3");
    assert_int_equal(t->warnings.searches.n, 0);
}

static void searches_are_limited_by_number_and_by_length(void **state)
{
    struct t *t = *state;
    char *searches[40], *longer[40];
    const char *out;

    for (size_t i = 0; i < 40; i++) {
        searches[i] = str_printf("s%zu", i);
        longer[i] = str_printf("a%02zu.%0200d", i, 0);
    }
    t->pod.spec.dns_searches = (struct api_strs){ searches, 40 };
    out = text(t, "None", &alone);
    assert_true(str_ends(out, " s31\n"));
    assert_true(str_starts(t->warnings.searches.p,
                           "Search Line limits were exceeded, some search paths have been omitted, the "
                           "applied search line is: s0 s1 s2 "));
    assert_true(str_ends(t->warnings.searches.p, " s31"));
    t->pod.spec.dns_searches = (struct api_strs){ longer, 11 };
    out = text(t, "None", &alone); /* ten times 204 bytes and nine spaces are 2049 */
    assert_int_equal(strlen(out), strlen("search \n") + 9 * 204 + 8);
    assert_int_not_equal(t->warnings.searches.n, 0);
    t->pod.spec.dns_searches = (struct api_strs){ longer, 9 };
    text(t, "None", &alone);
    assert_int_equal(t->warnings.searches.n, 0);
    for (size_t i = 0; i < 40; i++) {
        free(searches[i]);
        free(longer[i]);
    }
}

static void a_search_domain_that_breaks_resolvers_is_left_out(void **state)
{
    struct t *t = *state;
    str_auto file = str_printf("search good.test %0254d also.test\nnameserver 192.0.2.53\n", 0);
    struct resolv_node node = { NULL, "", file, false };

    assert_string_equal(text(t, "Default", &node), "search good.test also.test\nnameserver 192.0.2.53\n");
    assert_true(str_ends(t->warnings.searches.p, "line is: good.test also.test"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(cluster_first_uses_the_cluster_servers_and_searches),
        T(without_cluster_dns_the_node_file_is_used),
        T(without_a_node_file_the_resolver_is_localhost),
        T(dns_config_is_merged),
        T(servers_beyond_three_are_left_out_and_named),
        T(searches_are_limited_by_number_and_by_length),
        T(a_search_domain_that_breaks_resolvers_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
