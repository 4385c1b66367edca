/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of Services: kubelet's names, order, ports and precedence over a scripted cluster. */
#include "agent/pod/env/service_env.h"
#include "base/scope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct script {
    struct node_cluster cluster;
    const struct node_service *services;
    size_t n;
    bool known;
};

static bool script_services(const char *namespace_, node_service_fn each, void *to, void *arg)
{
    const struct script *s = arg;

    (void)namespace_;
    for (size_t i = 0; i < s->n; i++)
        each(&s->services[i], to);
    return s->known;
}

static const struct node_service_port https[] = { { 443, "https", "TCP" } };
static const struct node_service_port web[] = { { 80, "http", "TCP" },
                                                { 53, "dns-udp", "UDP" },
                                                { 99, "", "SCTP" } };
static const struct node_service all[] = {
    { "default", "kubernetes", "10.0.0.1", https, ARRAY_LEN(https) },
    { "default", "other", "10.0.0.9", https, ARRAY_LEN(https) },
    { "shop", "my-web", "10.0.0.2", web, ARRAY_LEN(web) },
    { "shop", "six", "fd00::1", https, ARRAY_LEN(https) },
    { "else", "not-ours", "10.0.0.3", https, ARRAY_LEN(https) },
    { "else", "kubernetes", "10.0.0.4", https, ARRAY_LEN(https) },
};

static void make(const struct node_service *services, size_t n, const char *namespace_, bool links,
                 struct arena *a, struct service_env *ret)
{
    struct script s = { .services = services, .n = n, .known = true };
    struct err e = { 0 };

    s.cluster = (struct node_cluster){ .services = script_services, .arg = &s };
    assert_int_equal(service_env_make(&s.cluster, namespace_, links, a, ret, &e), ERR_OK);
    assert_true(ret->known);
}

static void assert_all(const struct service_env *env, const char *const (*wanted)[2], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *value = service_env_get(env, wanted[i][0]);

        if (value == NULL)
            fail_msg("%s is missing", wanted[i][0]);
        assert_string_equal(value, wanted[i][1]);
    }
    assert_int_equal(env->n, n);
}

static void names_and_ports_are_kubelets(void **state)
{
    static const char *const wanted[][2] = {
        { "KUBERNETES_SERVICE_HOST", "10.0.0.1" },
        { "KUBERNETES_SERVICE_PORT", "443" },
        { "KUBERNETES_SERVICE_PORT_HTTPS", "443" },
        { "KUBERNETES_PORT", "tcp://10.0.0.1:443" },
        { "KUBERNETES_PORT_443_TCP", "tcp://10.0.0.1:443" },
        { "KUBERNETES_PORT_443_TCP_PROTO", "tcp" },
        { "KUBERNETES_PORT_443_TCP_PORT", "443" },
        { "KUBERNETES_PORT_443_TCP_ADDR", "10.0.0.1" },
        { "MY_WEB_SERVICE_HOST", "10.0.0.2" },
        { "MY_WEB_SERVICE_PORT", "80" },
        { "MY_WEB_SERVICE_PORT_HTTP", "80" },
        { "MY_WEB_SERVICE_PORT_DNS_UDP", "53" },
        { "MY_WEB_PORT", "tcp://10.0.0.2:80" },
        { "MY_WEB_PORT_80_TCP", "tcp://10.0.0.2:80" },
        { "MY_WEB_PORT_80_TCP_PROTO", "tcp" },
        { "MY_WEB_PORT_80_TCP_PORT", "80" },
        { "MY_WEB_PORT_80_TCP_ADDR", "10.0.0.2" },
        { "MY_WEB_PORT_53_UDP", "udp://10.0.0.2:53" },
        { "MY_WEB_PORT_53_UDP_PROTO", "udp" },
        { "MY_WEB_PORT_53_UDP_PORT", "53" },
        { "MY_WEB_PORT_53_UDP_ADDR", "10.0.0.2" },
        { "MY_WEB_PORT_99_SCTP", "sctp://10.0.0.2:99" },
        { "MY_WEB_PORT_99_SCTP_PROTO", "sctp" },
        { "MY_WEB_PORT_99_SCTP_PORT", "99" },
        { "MY_WEB_PORT_99_SCTP_ADDR", "10.0.0.2" },
        { "SIX_SERVICE_HOST", "fd00::1" },
        { "SIX_SERVICE_PORT", "443" },
        { "SIX_SERVICE_PORT_HTTPS", "443" },
        { "SIX_PORT", "tcp://[fd00::1]:443" },
        { "SIX_PORT_443_TCP", "tcp://[fd00::1]:443" },
        { "SIX_PORT_443_TCP_PROTO", "tcp" },
        { "SIX_PORT_443_TCP_PORT", "443" },
        { "SIX_PORT_443_TCP_ADDR", "fd00::1" },
    };
    struct service_env env;
    struct arena a = { 0 };

    (void)state;
    make(all, ARRAY_LEN(all), "shop", true, &a, &env);
    assert_all(&env, wanted, ARRAY_LEN(wanted));
    arena_done(&a);
}

static void without_links_only_the_master_service_is_there(void **state)
{
    struct service_env env;
    struct arena a = { 0 };

    (void)state;
    make(all, ARRAY_LEN(all), "shop", false, &a, &env);
    assert_int_equal(env.n, 8);
    assert_string_equal(service_env_get(&env, "KUBERNETES_SERVICE_HOST"), "10.0.0.1");
    make(all, ARRAY_LEN(all), "default", true, &a, &env);
    assert_int_equal(env.n, 16);
    assert_string_equal(service_env_get(&env, "OTHER_SERVICE_HOST"), "10.0.0.9");
    arena_done(&a);
}

static void the_namespaces_own_kubernetes_wins_with_links(void **state)
{
    struct service_env env;
    struct arena a = { 0 };

    (void)state;
    make(all, ARRAY_LEN(all), "else", true, &a, &env);
    assert_string_equal(service_env_get(&env, "KUBERNETES_SERVICE_HOST"), "10.0.0.4");
    assert_string_equal(service_env_get(&env, "NOT_OURS_PORT"), "tcp://10.0.0.3:443");
    assert_int_equal(env.n, 16);
    make(all, ARRAY_LEN(all), "else", false, &a, &env);
    assert_string_equal(service_env_get(&env, "KUBERNETES_SERVICE_HOST"), "10.0.0.1");
    arena_done(&a);
}

static void a_name_that_two_services_make_is_there_once(void **state)
{
    static const struct node_service_port b[] = { { 1, "", "TCP" } };
    /* a-port-1-tcp's host variable is no link of a; its A_PORT_1_TCP_PORT is */
    static const struct node_service two[] = { { "n", "a", "10.0.0.1", b, 1 },
                                               { "n", "a-port-1-tcp", "10.0.0.2", b, 1 } };
    static const struct node_service turned[] = { { "n", "a-port-1-tcp", "10.0.0.2", b, 1 },
                                                  { "n", "a", "10.0.0.1", b, 1 } };
    struct service_env x, y;
    struct arena a = { 0 };

    (void)state;
    make(two, 2, "n", true, &a, &x);
    make(turned, 2, "n", true, &a, &y);
    assert_int_equal(x.n, 13); /* seven of each, one name in common */
    assert_int_equal(y.n, x.n);
    for (size_t i = 0; i < x.n; i++) {
        assert_string_equal(x.v[i].name, y.v[i].name);
        assert_string_equal(x.v[i].value, y.v[i].value);
        assert_true(i == 0 || strcmp(x.v[i - 1].name, x.v[i].name) < 0);
    }
    arena_done(&a);
}

static void no_cluster_is_no_variables(void **state)
{
    struct service_env env = { .known = true };
    struct arena a = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(service_env_make(NULL, "default", true, &a, &env, &e), ERR_OK);
    assert_int_equal(env.n, 0);
    assert_false(env.known);
    assert_null(service_env_get(&env, "KUBERNETES_SERVICE_HOST"));
    arena_done(&a);
}

static void too_many_variables_are_refused(void **state)
{
    static const struct node_service_port one[] = { { 1, "", "TCP" } };
    struct node_service *many = calloc(ENV_MAX / 7 + 1, sizeof(*many));
    struct script s = { .services = many, .known = true };
    struct service_env env = { .n = 77 };
    struct arena a = { 0 };
    struct err e = { 0 };

    (void)state;
    s.cluster = (struct node_cluster){ .services = script_services, .arg = &s };
    for (; s.n < ENV_MAX / 7 + 1; s.n++)
        many[s.n] = (struct node_service){ "n", arena_printf(&a, "s%zu", s.n), "10.0.0.1", one, 1 };
    assert_int_equal(service_env_make(&s.cluster, "n", true, &a, &env, &e), ERR_INVALID);
    assert_string_equal(e.text,
                        "the environment is too large, allowed are 20000 variables and 4194304 bytes");
    assert_int_equal(env.n, 77);
    arena_done(&a);
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_ports_are_kubelets),
        cmocka_unit_test(without_links_only_the_master_service_is_there),
        cmocka_unit_test(the_namespaces_own_kubernetes_wins_with_links),
        cmocka_unit_test(a_name_that_two_services_make_is_there_once),
        cmocka_unit_test(no_cluster_is_no_variables),
        cmocka_unit_test(too_many_variables_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
