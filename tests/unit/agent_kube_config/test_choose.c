/* SPDX-License-Identifier: Apache-2.0 */
/* What flags and entries make of the request, and what is refused. */
#include "agent/kube/config/proxy_env.h"
#include "agent/kube/config/write.h"
#include "tests/unit/agent_kube_config/helper.h"

static void flags_stand_above_the_files(void **state)
{
    struct place *p = *state;

    put(p, "ca", CERTIFICATE);
    put_one(p, "{server: 'https://h.test', tls-server-name: nn, insecure-skip-tls-verify: true}",
            "{token: t, as: other, as-groups: [g], as-uid: '1'}");
    p->flags.server = "https://other.test:1/p/?q#f";
    gives(p, "{\"impersonate\":{\"groups\":[\"g\"],\"uid\":\"1\",\"user\":\"other\"},\"insecure\":true,"
             "\"server\":\"https://other.test:1/p\",\"token\":\"t\"}"); /* and the name of TLS goes */
    p->flags = (struct kube_flags){ .token = "f", .as = "me", .as_uid = "2", .no_compression = true };
    p->flags.as_groups = (const char *const[]){ "a", "b", NULL };
    gives(p,
          "{\"impersonate\":{\"groups\":[\"a\",\"b\"],\"uid\":\"2\",\"user\":\"me\"},\"insecure\":true,"
          "\"noCompression\":true,\"server\":\"https://h.test\",\"tlsServerName\":\"nn\",\"token\":\"f\"}");
    p->flags = (struct kube_flags){ .ca = "/nope" };
    is_refused(
        p, "unable to read certificate-authority /nope for c due to open /nope: No such file or directory");
    p->flags = (struct kube_flags){ .context = "nope" };
    is_refused(p, "context \"nope\" does not exist");
    p->flags = (struct kube_flags){ .cluster = "nope" };
    is_refused(p, "cluster \"nope\" does not exist");
    p->flags = (struct kube_flags){ .user = "nope" };
    is_refused(p, "auth info \"nope\" does not exist");
    p->flags = (struct kube_flags){ .username = "n", .password = "p" };
    is_refused(
        p, "more than one authentication method found for u; found [token basicAuth], only one is allowed");
}

static void a_flag_for_trust_takes_the_place_of_the_other_kind(void **state)
{
    struct place *p = *state;

    put_one(p, "{server: 'https://h.test', certificate-authority-data: " CERTIFICATE64 "}", "{token: t}");
    p->flags.insecure = true;
    gives(p, "{\"insecure\":true,\"server\":\"https://h.test\",\"token\":\"t\"}");
    p->flags = (struct kube_flags){ 0 };
    put_one(
        p,
        "{server: 'https://h.test', insecure-skip-tls-verify: yes, certificate-authority-data: " CERTIFICATE64
        "}",
        "{token: t}");
    is_refused(p, "cluster \"c\": specifying a root certificates file with the insecure flag is not allowed "
                  "(certificate-authority and insecure-skip-tls-verify)");
}

static void each_way_to_authenticate_has_its_rule(void **state)
{
    static const struct {
        const char *user, *gives, *error;
    } rows[] = {
        { "{username: nn}", "\"username\":\"nn\"", NULL },
        { "{username: nn, password: 'p:1'}", "\"username\":\"nn\"", NULL },
        { "{password: p}", NULL, "user \"u\" in @a has a password, but no username" },
        { "{}", NULL,
          "user \"u\" in @a has no credentials: token, tokenFile, client-certificate, username or exec is "
          "needed" },
        { "{as: jane}", NULL,
          "user \"u\" in @a has no credentials: token, tokenFile, client-certificate, username or "
          "exec is needed" },
        { "{token: a, as-uid: x}", NULL,
          "requesting uid, groups or user-extra for u without impersonating a user" },
        { "{token: inline, tokenFile: nope}", "\"token\":\"inline\"", NULL },
        { "{token: inline, tokenFile: tok}", "\"token\":\"filed\"", NULL },
        { "{tokenFile: nope}", NULL, "user \"u\": tokenFile: open @nope: No such file or directory" },
        { "{tokenFile: empty}", NULL, "user \"u\": tokenFile: read empty token from file \"@empty\"" },
        { "{tokenFile: tok, username: nn}", NULL,
          "user \"u\": username/password or bearer token (tokenFile) may be set, but not both" },
        { "{client-certificate: c.pem}", NULL,
          "client-key-data or client-key must be specified for u to use the clientCert authentication "
          "method" },
        { "{client-key: c.pem}", NULL, "user \"u\" in @a has a client key, but no certificate" },
        { "{client-certificate: c.pem, client-key: c.pem, token: t}", "\"token\":\"t\"", NULL },
        { "{client-certificate: tok, client-key: c.pem}", NULL,
          "user \"u\": client-certificate: failed to find any PEM data of a certificate in it" },
        { "{client-certificate: c.pem, client-certificate-data: " CERTIFICATE64 ", client-key: c.pem}", NULL,
          "client-certificate-data and client-certificate are both specified for u: only one is allowed" },
        { "{auth-provider: {name: azure}}", NULL,
          "user \"u\": the azure auth plugin has been removed; use the \"kubelogin\" credential plugin "
          "(exec) "
          "instead" },
        { "{auth-provider: {name: nope}}", NULL, "user \"u\": no Auth Provider found for name \"nope\"" },
    };
    struct place *p = *state;

    put(p, "tok", "filed\n");
    put(p, "empty", " \n");
    put(p, "c.pem", CERTIFICATE KEY);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        mem_auto char *text = NULL;
        put_one(p, SERVER, rows[i].user);
        if (rows[i].error != NULL) {
            is_refused(p, rows[i].error);
            continue;
        }
        if (take(p) != ERR_OK)
            fail_msg("%s: %s", rows[i].user, p->e.text);
        text = json_dumps(p->message.json, JSON_COMPACT | JSON_SORT_KEYS);
        if (strstr(text, rows[i].gives) == NULL)
            fail_msg("%s: %s", rows[i].user, text);
    }
}

static void servers_are_read_as_by_go(void **state)
{
    static const struct {
        const char *server, *gives, *error;
    } rows[] = {
        { "HTTPS://h.test/", "https://h.test", NULL },
        { "https://h.test/a/b//?x=1#y", "https://h.test/a/b", NULL },
        { "'https://[::1]:6443'", "https://[::1]:6443", NULL },
        { "localhost:6443", "http://localhost:6443", NULL },
        { "h.test", "http://h.test", NULL },
        { "'https://h:abc'", NULL,
          "cluster \"c\": server: host must be a URL or a host:port pair: \"https://h:abc\"" },
        { "h.test/path", NULL,
          "cluster \"c\": server: host must be a URL or a host:port pair: \"h.test/path\"" },
        { "'ftp://h.test'", NULL,
          "cluster \"c\": server: unsupported protocol scheme \"ftp\", must be http or https" },
        { "''", NULL, "cluster \"c\" in @a has no server" },
    };
    struct place *p = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        str_auto cluster = str_printf("{server: %s}", rows[i].server);
        put_one(p, cluster, "{token: t}");
        if (rows[i].error != NULL) {
            is_refused(p, rows[i].error);
            continue;
        }
        if (take(p) != ERR_OK)
            fail_msg("%s: %s", rows[i].server, p->e.text);
        assert_string_equal(json_str(p->message.json, "server"), rows[i].gives);
        assert_int_equal(json_str(p->message.json, "token") != NULL, str_starts(rows[i].gives, "https"));
    }
    put_one(p, "{server: 'https://us%25er:p%2Fw@h.test'}", "{token: t}");
    gives(p, "{\"password\":\"p/w\",\"server\":\"https://h.test\",\"username\":\"us%er\"}");
}

static void a_proxy_of_the_cluster_wins_over_that_of_the_environment(void **state)
{
    struct place *p = *state;

    p->env[0] = "HTTPS_PROXY=proxy.test:3128";
    put_one(p, SERVER, "{token: t}");
    gives(p, "{\"proxyURL\":\"http://proxy.test:3128\",\"server\":\"https://h.test\",\"token\":\"t\"}");
    put_one(p, "{server: 'https://127.0.0.1', proxy-url: 'socks5://s.test'}", "{token: t}");
    gives(p, "{\"proxyURL\":\"socks5h://s.test\",\"server\":\"https://127.0.0.1\",\"token\":\"t\"}");
    put_one(p, "{server: 'https://h.test', proxy-url: 'socks5h://s.test'}", "{token: t}");
    is_refused(
        p,
        "cluster \"c\": invalid 'proxy-url': unsupported scheme \"socks5h\", must be http, https, or socks5");
    put_one(p, "{server: 'https://h.test', proxy-url: '127.0.0.1:3128'}", "{token: t}");
    is_refused(p, "cluster \"c\": invalid 'proxy-url' \"127.0.0.1:3128\": it has no scheme");
}

static void the_environment_excludes_servers_as_gos_does(void **state)
{
    static const struct {
        const char *none, *server;
        bool asked;
    } rows[] = {
        { "", "https://h.test", true },
        { "*", "https://h.test", false },
        { "h.test", "https://h.test", false },
        { "test", "https://h.test", false },
        { ".test", "https://h.test", false },
        { "*.test", "https://h.test", false },
        { ".h.test", "https://h.test", true },
        { "xh.test", "https://h.test", true },
        { "H.TEST", "https://h.test", false },
        { " a , h.test:443 ", "https://h.test", false },
        { "h.test:6443", "https://h.test", true },
        { "10.0.0.0/8", "https://10.1.2.3", false },
        { "10.0.0.0/8", "https://11.1.2.3", true },
        { "fd00::/8", "https://[fd01::1]:6443", false },
        { "10.1.2.3", "https://10.1.2.3:6443", false },
        { "[fd01::1]:6443", "https://[fd01::1]:6443", false },
        { "", "https://127.0.0.2", true /* see below */ },
        { "", "https://localhost", true /* see below */ },
    };
    struct place *p = *state;

    (void)p;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        str_auto none = str_printf("no_proxy=%s", rows[i].none);
        const char *const env[] = { "HTTPS_PROXY=http://p.test", none, NULL };
        str_auto proxy = kube_proxy_of(env, rows[i].server);
        bool local = strstr(rows[i].server, "127.") != NULL || strstr(rows[i].server, "localhost") != NULL;

        if ((proxy != NULL) != (rows[i].asked && !local))
            fail_msg("%s with NO_PROXY=%s: %s", rows[i].server, rows[i].none, proxy != NULL ? proxy : "none");
    }
}

static void bootstrap_leaves_kubelets_file(void **state)
{
    struct place *p = *state;
    str_auto text = NULL;
    str_auto wanted = NULL;

    put(p, "ca.crt", CERTIFICATE);
    put_one(p, "{server: 'https://h.test:6443', certificate-authority: ca.crt}", "{token: t}");
    assert_int_equal(take(p), ERR_OK);
    text = kube_config_written(&p->choice, "/pki/kubelet-client-current.pem");
    wanted = at_place(p, "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority: @ca.crt\n"
                         "    server: https://h.test:6443\n  name: default-cluster\ncontexts:\n- context:\n"
                         "    cluster: default-cluster\n    namespace: default\n    user: default-auth\n"
                         "  name: default-context\ncurrent-context: default-context\nkind: Config\nusers:\n"
                         "- name: default-auth\n  user:\n"
                         "    client-certificate: /pki/kubelet-client-current.pem\n"
                         "    client-key: /pki/kubelet-client-current.pem\n");
    assert_string_equal(text, wanted);
}

static void what_is_shown_has_no_secret(void **state)
{
    struct place *p = *state;
    json_auto_t *shown = NULL;
    mem_auto char *text = NULL;

    put_one(p, "{server: 'https://u:hush1@h.test', proxy-url: 'http://u:hush2@p.test'}",
            "{token: hush3, exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: "
            "Never, "
            "env: [{name: A, value: hush4}]}, auth-provider: {name: oidc, config: {client-secret: hush5}}, "
            "client-key-data: aHVzaDY=, password: hush7}");
    ERR_IGNORE(take(p));
    shown = kube_config_show(&p->choice, &p->all);
    text = json_dumps(shown, JSON_SORT_KEYS);
    assert_null(strstr(text, "hush"));
    assert_null(strstr(text, "aHVz"));
    assert_non_null(strstr(text, "\"token\": {\"from\": "));
    assert_non_null(strstr(text, "{\"bytes\": 5, \"secret\": true}"));
    assert_non_null(strstr(text, "https://u:***@h.test"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(flags_stand_above_the_files),
        TEST(a_flag_for_trust_takes_the_place_of_the_other_kind),
        TEST(each_way_to_authenticate_has_its_rule),
        TEST(servers_are_read_as_by_go),
        TEST(a_proxy_of_the_cluster_wins_over_that_of_the_environment),
        TEST(the_environment_excludes_servers_as_gos_does),
        TEST(bootstrap_leaves_kubelets_file),
        TEST(what_is_shown_has_no_secret),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
