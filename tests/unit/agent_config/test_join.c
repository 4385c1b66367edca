/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a node that joins a cluster. */
#include "tests/unit/agent_config/helper.h"

#include "base/codec/json.h"

static void without_a_kubeconfig_the_settings_of_a_cluster_are_idle_and_say_so(void **state)
{
    struct scratch *s = *state;
    json_auto_t *all = NULL;
    const json_t *without;

    put(s, "config.yaml", KUBELET "rotateCertificates: true\nport: 10251\nnodeLeaseDurationSeconds: 40\n");
    parses(s, "--bootstrap-kubeconfig=/b.conf");
    assert_string_equal(s->c.kube.kubeconfig, "");
    expect_warnings(s, "port\nrotateCertificates\nbootstrapKubeconfig\n");
    all = config_json(&s->c);
    without = json_object_get(all, "withoutEffect");
    assert_string_equal(json_str(without, "port"),
                        "it applies only to a node that joins a cluster (--kubeconfig)");
    assert_non_null(json_str(without, "registerNode"));
    assert_null(json_object_get(without, "kubeconfig"));
}

static void with_a_kubeconfig_they_act(void **state)
{
    struct scratch *s = *state;
    const struct config_kube *k = &s->c.kube;
    json_auto_t *all = NULL;

    put(s, "config.yaml",
        KUBELET
        "rotateCertificates: true\nserverTLSBootstrap: true\nregisterNode: false\nport: 10251\n"
        "nodeStatusUpdateFrequency: 4s\nnodeLeaseDurationSeconds: 20\nnodeStatusMaxImages: -1\n"
        "providerID: a://b\neventRecordQPS: 0\neventBurst: 7\nkubeAPIQPS: 0\nkubeAPIBurst: "
        "8\nstreamingConnectionIdleTimeout: 1m30s\nreadOnlyPort: "
        "10255\naddress: 192.0.2.1\n"
        "tlsCertFile: /c.crt\ntlsPrivateKeyFile: /c.key\ntlsCipherSuites: [TLS_AES_128_GCM_SHA256]\n"
        "tlsMinVersion: VersionTLS13\n"
        "authentication: {anonymous: {enabled: true}, webhook: {enabled: false, cacheTTL: 3s}, "
        "x509: {clientCAFile: /ca.crt}}\n"
        "authorization: {mode: AlwaysAllow, webhook: {cacheAuthorizedTTL: 4s, cacheUnauthorizedTTL: 5s}}\n"
        "enableDebuggingHandlers: false\n");
    parses(s, "--kubeconfig=/etc/kubernetes/kubelet.conf --bootstrap-kubeconfig=/b.conf --root-dir=/r "
              "--register-schedulable=false");
    expect_warnings(s, "");
    all = config_json(&s->c);
    assert_null(json_object_get(json_object_get(all, "withoutEffect"), "port"));
    assert_string_equal(k->kubeconfig, "/etc/kubernetes/kubelet.conf");
    assert_string_equal(k->bootstrap_kubeconfig, "/b.conf");
    assert_string_equal(k->cert_dir, "/r/pki");
    assert_true(k->rotate_client && k->rotate_server && !k->register_node && !k->register_schedulable);
    assert_int_equal(k->update_ms, 4000);
    assert_int_equal(k->report_ms, 4000); /* as in kubelet, an explicit update frequency is its default */
    assert_int_equal(k->lease_seconds, 20);
    assert_int_equal(k->max_images, -1);
    assert_string_equal(k->provider_id, "a://b");
    assert_int_equal(k->event_qps, 0);
    assert_int_equal(k->event_burst, 7);
    assert_int_equal(k->api_qps, 0);
    assert_int_equal(k->api_burst, 8);
    assert_int_equal(k->server.stream_idle_ms, 90000);
    assert_true(k->server.enabled && k->server.anonymous);
    assert_false(k->server.token_webhook || k->server.debugging);
    assert_string_equal(k->server.address, "192.0.2.1");
    assert_int_equal(k->server.port, 10251);
    assert_int_equal(k->server.read_only_port, 10255);
    assert_string_equal(k->server.cert_file, "/c.crt");
    assert_string_equal(k->server.key_file, "/c.key");
    assert_string_equal(k->server.ciphers.v[0], "TLS_AES_128_GCM_SHA256");
    assert_string_equal(k->server.min_version, "VersionTLS13");
    assert_string_equal(k->server.client_ca_file, "/ca.crt");
    assert_string_equal(k->server.authorization, "AlwaysAllow");
    assert_int_equal(k->server.token_ttl_ms, 3000);
    assert_int_equal(k->server.allowed_ttl_ms, 4000);
    assert_int_equal(k->server.denied_ttl_ms, 5000);
}

static void the_defaults_are_kubelets(void **state)
{
    struct scratch *s = *state;
    const struct config_kube *k = &s->c.kube;

    parses(s, "--kubeconfig=/k --cert-dir=/pki");
    assert_string_equal(k->cert_dir, "/pki");
    assert_true(k->register_node && k->register_schedulable);
    assert_false(k->rotate_client || k->rotate_server);
    assert_int_equal(k->update_ms, 10000);
    assert_int_equal(k->report_ms, 300000);
    assert_int_equal(k->lease_seconds, 40);
    assert_int_equal(k->max_images, 50);
    assert_int_equal(k->event_qps, 50);
    assert_int_equal(k->event_burst, 100);
    assert_int_equal(k->api_qps, 50);
    assert_int_equal(k->api_burst, 100);
    assert_int_equal(k->server.stream_idle_ms, 4 * 3600 * 1000);
    assert_string_equal(k->server.address, "0.0.0.0");
    assert_int_equal(k->server.port, 10250);
    assert_int_equal(k->server.read_only_port, 0);
    assert_true(k->server.enabled && k->server.token_webhook && k->server.debugging);
    assert_false(k->server.anonymous);
    assert_string_equal(k->server.authorization, "Webhook");
    assert_int_equal(k->server.token_ttl_ms, 120000);
    assert_int_equal(k->server.allowed_ttl_ms, 300000);
    assert_int_equal(k->server.denied_ttl_ms, 30000);
}

static void a_path_that_depends_on_the_working_directory_is_refused(void **state)
{
    refused(*state, "", "--kubeconfig=k",
            "--kubeconfig: \"k\" is not an absolute path of at most 200 bytes without \"..\"");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_a_kubeconfig_the_settings_of_a_cluster_are_idle_and_say_so),
        TEST(with_a_kubeconfig_they_act),
        TEST(the_defaults_are_kubelets),
        TEST(a_path_that_depends_on_the_working_directory_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
