/* SPDX-License-Identifier: Apache-2.0 */
/* Exec credential plugins: what they get, and what they may answer. */
#include "agent/kube/config/exec.h"
#include "tests/unit/agent_kube_config/helper.h"

#define V1 "client.authentication.k8s.io/v1"
#define EXEC "apiVersion: " V1 ", interactiveMode: Never"

static const char *env_of(const struct place *p, const char *name)
{
    return kube_env(strs_list(&p->message.exec.env), name);
}

static void a_plugin_gets_its_arguments_and_the_environment(void **state)
{
    struct place *p = *state;

    p->env[0] = "OUTER=kept";
    p->env[1] = "B=outer";
    p->env[2] = "NOTIFY_SOCKET=/run/x";
    put_one(p, SERVER,
            "{exec: {" EXEC ", command: ./bin/p, args: [one, 'two $A'], env: [{name: A, value: '1'}, "
            "{name: B, value: file}, {name: A, value: again}]}}");
    gives(p, "{\"anew\":true,\"server\":\"https://h.test\"}");
    assert_int_equal(p->message.exec.argv.n, 3);
    assert_true(str_ends(p->message.exec.argv.v[0], "/bin/p"));
    assert_string_equal(p->message.exec.argv.v[2], "two $A");
    assert_string_equal(env_of(p, "A"), "again");
    assert_string_equal(env_of(p, "B"), "file");
    assert_string_equal(env_of(p, "OUTER"), "kept");
    assert_null(env_of(p, "NOTIFY_SOCKET"));
    assert_string_equal(env_of(p, "KUBERNETES_EXEC_INFO"), "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                                                           "\",\"spec\":{\"interactive\":false}}\n");
}

static void it_gets_the_cluster_where_it_asks_for_it(void **state)
{
    struct place *p = *state;

    put(p, "ca", CERTIFICATE);
    put_one(p,
            "{server: 'https://h.test', certificate-authority: ca, disable-compression: true, "
            "tls-server-name: nn, "
            "extensions: [{name: " KUBE_EXEC_EXTENSION ", extension: {n: 1, audience: me}}]}",
            "{exec: {" EXEC ", command: /p, provideClusterInfo: true}}");
    assert_int_equal(take(p), ERR_OK);
    assert_string_equal(env_of(p, "KUBERNETES_EXEC_INFO"),
                        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
                        "\",\"spec\":{\"cluster\":{\"server\":\"https://h.test\",\"tls-server-name\":\"nn\","
                        "\"certificate-authority-data\":\"" CERTIFICATE64
                        "\",\"disable-compression\":true,\"config\":{\"audience\":\"me\",\"false\":1}},"
                        "\"interactive\":false}}\n");
}

static void what_is_static_takes_the_plugins_place(void **state)
{
    struct place *p = *state;

    put_one(p, SERVER, "{exec: {" EXEC ", command: nowhere}, token: t}");
    gives(p, "{\"server\":\"https://h.test\",\"token\":\"t\"}");
}

static void a_plugin_that_cannot_run_is_refused(void **state)
{
    static const struct {
        const char *exec, *error;
    } rows[] = {
        { EXEC, "command must be specified for u to use exec authentication plugin" },
        { "command: x", "apiVersion must be specified for u to use exec authentication plugin" },
        { "command: x, apiVersion: " V1,
          "interactiveMode must be specified for u to use exec authentication plugin" },
        { "command: x, interactiveMode: Never, apiVersion: " V1 "alpha1",
          "exec plugin of u: invalid apiVersion \"" V1 "alpha1\", supported are " V1 " and " V1 "beta1" },
        { "command: x, interactiveMode: Some, apiVersion: " V1, "invalid interactiveMode for u: \"Some\"" },
        { "command: x, interactiveMode: Always, apiVersion: " V1,
          "exec plugin of u cannot support interactive mode: interactiveMode is Always, and an agent has no "
          "terminal" },
        { EXEC ", command: x, env: [{value: v}]",
          "env variable name must be specified for u to use exec authentication plugin" },
        { EXEC ", command: no-such-plugin, installHint: \"get\\nit\"",
          "user \"u\": exec: executable no-such-plugin not found in PATH; get it" },
    };
    struct place *p = *state;

    p->env[0] = "PATH=/usr/bin:relative";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        str_auto user = str_printf("{exec: {%s}}", rows[i].exec);
        put_one(p, SERVER, user);
        is_refused(p, rows[i].error);
    }
    put_one(p, SERVER, "{exec: {apiVersion: " V1 "beta1, command: env}}"); /* IfAvailable, found in PATH */
    assert_int_equal(take(p), ERR_OK);
    assert_string_equal(p->message.exec.argv.v[0], "/usr/bin/env");
}

/* ---- answers ---- */

#define ANSWER(status) "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":" status "}"

static void an_answer_may_have_a_token_a_pair_or_both(void **state)
{
    static const char text[] =
        ANSWER("{\"token\":\"t\",\"clientCertificateData\":\"-----BEGIN CERTIFICATE-----\\nA"
               "\\n-----END CERTIFICATE-----\\n\",\"clientKeyData\":\"-----BEGIN PRIVATE "
               "KEY-----\\nB\\n-----END PRIVATE KEY-----\\n\",\"expirationTimestamp\":"
               "\"2030-01-01T00:00:00Z\"}");
    static const char yaml[] =
        "apiVersion: " V1 "\nkind: ExecCredential\nstatus: {token: t, expirationTimestamp: "
        "null}\n---\nx";
    static const struct {
        const char *time;
        bool never;
    } odd[] = { { "9999-12-31T23:59:59Z", true },
                { "0001-01-01T00:00:00Z", true },
                { "1500-01-01T00:00:00Z", false },
                { "1970-01-01T00:00:00Z", false } };
    struct kube_exec_answer a = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(kube_exec_read(&a, text, strlen(text), V1, &e), ERR_OK);
    assert_string_equal(a.token, "t");
    assert_true(str_starts(a.certificate, "-----BEGIN CERTIFICATE") &&
                str_starts(a.key, "-----BEGIN PRIVATE"));
    assert_true(a.expires_ns == INT64_C(1893456000) * 1000000000);
    assert_int_equal(kube_exec_read(&a, yaml, strlen(yaml), V1, &e), ERR_OK);
    assert_string_equal(a.token, "t");
    assert_null(a.certificate);
    assert_true(a.expires_ns == 0);
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        str_auto far = str_printf(ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"%s\"}"), odd[i].time);
        if (kube_exec_read(&a, far, strlen(far), V1, &e) != ERR_OK)
            fail_msg("%s: %s", odd[i].time, e.text);
        assert_int_equal(a.expires_ns == 0, odd[i].never);
    }
    kube_exec_answer_done(&a);
}

static void other_answers_are_refused_without_their_secrets(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        { "", "decoding stdout: the plugin has no output" },
        { "hello {", "decoding stdout: it is a text, where an ExecCredential is needed" },
        { "{hush",
          "decoding stdout: document 1: line 2 column 1: did not find expected ',' or '}' (while parsing a "
          "flow mapping that began in line 1)" },
        { "{\"kind\":\"ExecCredential\"}",
          "exec plugin is configured to use API version " V1 ", plugin returned version none" },
        { "{\"apiVersion\":\"" V1 "\",\"kind\":\"X\"}",
          "decoding stdout: no kind \"X\" is registered for version \"" V1
          "\", an ExecCredential is needed" },
        { ANSWER("null"), "exec plugin didn't return a status field" },
        { ANSWER("[]"), "decoding stdout: status: a list, where a mapping is needed" },
        { ANSWER("{}"), "exec plugin didn't return a token or cert/key pair" },
        { ANSWER("{\"token\":1}"), "decoding stdout: token: a number, where a text is needed" },
        { ANSWER("{\"token\":\"hush\",\"expirationTimestamp\":\"soon\"}"),
          "decoding stdout: expirationTimestamp: \"soon\" is not an RFC 3339 time" },
        { ANSWER("{\"clientKeyData\":\"hush\"}"), "exec plugin returned only certificate or key, not both" },
        { ANSWER("{\"clientKeyData\":\"hush\",\"clientCertificateData\":\"hush\"}"),
          "failed parsing client key/certificate: failed to find any PEM data in certificate input" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct kube_exec_answer a = { 0 };
        struct err e = { 0 };
        assert_int_not_equal(kube_exec_read(&a, rows[i].text, strlen(rows[i].text), V1, &e), ERR_OK);
        assert_string_equal(e.text, rows[i].error);
        assert_null(a.token);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_plugin_gets_its_arguments_and_the_environment),
        TEST(it_gets_the_cluster_where_it_asks_for_it),
        TEST(what_is_static_takes_the_plugins_place),
        TEST(a_plugin_that_cannot_run_is_refused),
        cmocka_unit_test(an_answer_may_have_a_token_a_pair_or_both),
        cmocka_unit_test(other_answers_are_refused_without_their_secrets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
