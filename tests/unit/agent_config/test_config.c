/* SPDX-License-Identifier: Apache-2.0 */
/* Where settings come from, which one wins, and what is said about them. */
#include "tests/unit/agent_config/helper.h"

static void without_settings_everything_has_its_default_and_nothing_is_said(void **state)
{
    struct scratch *s = *state;

    parses(s, "");
    assert_string_equal(s->c.manifests, "/etc/coracle/manifests");
    assert_string_equal(s->c.root_dir, "/var/lib/kubelet");
    assert_string_equal(s->c.state_dir, "/var/lib/coracle");
    assert_string_equal(s->c.socket, "/run/coracle/coracle.sock");
    assert_string_equal(s->c.pod_logs_dir, "/var/log/pods");
    assert_string_equal(s->c.cgroup_root, "/");
    assert_string_equal(s->c.resolv_conf, "/etc/resolv.conf");
    assert_string_equal(s->c.log_level, "info");
    assert_string_equal(s->c.log_format, "");
    assert_string_equal(s->c.node_name, "");
    assert_string_equal(s->c.cni_bin_dirs.v[1], "/usr/lib/cni");
    assert_null(s->c.cni_bin_dirs.v[2]);
    assert_int_equal(s->c.max_pods_n, 110);
    assert_int_equal(s->c.pod_pids_limit, -1);
    assert_int_equal(s->c.cpu_cfs_period_us, 100000);
    assert_int_equal(s->c.backoff_max_ms, 300000);
    assert_int_equal(s->c.pulls_max, 0);
    assert_true(s->c.cpu_cfs_quota);
    assert_false(s->c.seccomp_default || s->c.fail_swap_on || s->c.fail_cgroup_v1 || s->c.ephemeral);
    assert_int_equal(s->c.shutdown_grace_ms, 0);
    expect_from(s, "maxPods", "default");
    expect_warnings(s, "");
}

static void a_file_sets_a_flag_wins_and_both_are_named(void **state)
{
    struct scratch *s = *state;

    put(s, "config.yaml",
        KUBELET
        "maxPods: 20\nclusterDNS: [10.0.0.10]\nlogging: {verbosity: 5, format: json}\n"
        "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\npodPidsLimit: 500\n"
        "crashLoopBackOff:\n  maxContainerRestartPeriod: 90s\ncpuCFSQuota: false\ncpuCFSQuotaPeriod: 2500us\n"
        "serializeImagePulls: false\nmaxParallelImagePulls: 7\n"
        "---\n" OWN "stateDir: /srv/state/\nnodeLabels: {b: '2', a: ''}\nnodeIP: 192.0.2.1,2001:db8::1\n");
    parses(s, "--max-pods=30 --cluster-dns 10.0.0.11,10.0.0.12 --cluster-dns=10.0.0.13");
    assert_int_equal(s->c.max_pods_n, 30);
    assert_int_equal(s->c.cluster_dns.n, 3);
    assert_string_equal(s->c.cluster_dns.v[2], "10.0.0.13");
    assert_string_equal(s->c.log_level, "debug");
    assert_string_equal(s->c.log_format, "json");
    assert_int_equal(s->c.shutdown_grace_ms, 30000);
    assert_int_equal(s->c.shutdown_critical_ms, 10000);
    assert_int_equal(s->c.pod_pids_limit, 500);
    assert_int_equal(s->c.backoff_max_ms, 90000);
    assert_false(s->c.cpu_cfs_quota);
    assert_int_equal(s->c.cpu_cfs_period_us, 2500);
    assert_int_equal(s->c.pulls_max, 7);
    assert_string_equal(s->c.state_dir, "/srv/state");
    assert_string_equal(s->c.node_ip, "192.0.2.1");
    assert_int_equal(s->c.node_labels.n, 2);
    assert_string_equal(s->c.node_labels.v[0].key, "a");
    assert_string_equal(s->c.node_labels.v[1].value, "2");
    expect_from(s, "maxPods", "--max-pods");
    expect_from(s, "clusterDNS", "--cluster-dns");
    expect_from(s, "logging.verbosity", "config.yaml:5");
    expect_from(s, "crashLoopBackOff.maxContainerRestartPeriod", "config.yaml:10");
    expect_from(s, "stateDir", "config.yaml:18");
    setting_is(s, "crashLoopBackOff.maxContainerRestartPeriod", "\"1m30s\"");
    expect_warnings(s, "");
}

static void flags_are_taken_as_kubelet_takes_them(void **state)
{
    struct scratch *s = *state;

    parses(s, "--seccomp-default --cpu-cfs-quota=false --max_pods 9 -v 4 --node-labels=a=b,c= --node-labels "
              "d=e --fail-swap-on=1");
    assert_true(s->c.seccomp_default && s->c.fail_swap_on && !s->c.cpu_cfs_quota);
    assert_int_equal(s->c.max_pods_n, 9);
    assert_string_equal(s->c.log_level, "debug");
    assert_int_equal(s->c.node_labels.n, 3);
    parses(
        s,
        "-v=2 --v=10 --log-level warn --eviction-hard memory.available<5%,nodefs.available<1Gi "
        "--register-with-taints=a=b:NoSchedule,c:NoExecute --reserved-memory 0:memory=1Gi;1:memory=2Gi "
        "--kube-reserved cpu=100m,memory=1Gi --enforce-node-allocatable= --manifest-url-header=X-Token:abc");
    assert_string_equal(s->c.log_level, "warn");
    setting_is(s, "evictionHard", "{\"memory.available\":\"5%\",\"nodefs.available\":\"1Gi\"}");
    setting_is(s, "registerWithTaints",
               "[{\"effect\":\"NoSchedule\",\"key\":\"a\",\"value\":\"b\"},{\"effect\":\"NoExecute\","
               "\"key\":\"c\"}]");
    setting_is(s, "reservedMemory",
               "[{\"limits\":{\"memory\":\"1Gi\"},\"numaNode\":0},{\"limits\":{\"memory\":\"2Gi\"},"
               "\"numaNode\":1}]");
    expect_warnings(s, "staticPodURLHeader\n");
    parses(s, "--help --nonsense");
    assert_true(s->help);
}

static void a_value_that_nobody_may_see_is_masked(void **state)
{
    struct scratch *s = *state;
    json_auto_t *all = NULL;
    mem_auto char *text = NULL;

    parses(s, "--manifest-url-header=Authorization:sesame --storage-driver-password sesame");
    all = config_json(&s->c);
    text = json_dumps(all, 0);
    assert_null(strstr(text, "sesame"));
    assert_non_null(strstr(text, "<masked>"));
}

static void drop_ins_are_merged_in_the_order_of_their_names(void **state)
{
    struct scratch *s = *state;
    str_auto deep = str_printf("%s/d/15-deep", s->dir);
    str_auto dir = str_printf("%s/d", s->dir);
    str_auto flags = str_printf("--config-dir %s", dir);

    assert_int_equal(mkdir(dir, 0755), 0);
    assert_int_equal(mkdir(deep, 0755), 0);
    put(s, "config.yaml",
        KUBELET "maxPods: 10\nclusterDNS: [10.0.0.1, 10.0.0.2]\nclusterDomain: a.example\nhealthzPort: 1\n"
                "kubeReserved: {cpu: 1, memory: 1Gi}\nauthentication: {x509: {clientCAFile: /ca}}\n");
    refused(
        s, "kubeReserved: {cpu: 1}\n", flags,
        "config.yaml:3: kubeReserved: cpu: 1 is not a string (numbers and words like \"yes\" need quotes)");
    put(s, "config.yaml",
        KUBELET "maxPods: 10\nclusterDNS: [10.0.0.1, 10.0.0.2]\nclusterDomain: a.example\nhealthzPort: 1\n"
                "kubeReserved: {cpu: '1', memory: 1Gi}\nauthentication: {x509: {clientCAFile: /ca}}\n");
    put(s, "d/20-b.conf",
        KUBELET "maxPods: 30\nkubeReserved: {memory: null, pid: '100'}\nclusterDomain: null\n");
    put(s, "d/10-a.conf", KUBELET "maxPods: 20\nclusterDNS: [10.0.0.3]\nauthentication: null\n");
    put(s, "d/15-deep/x.conf",
        "{\"apiVersion\":\"kubelet.config.k8s.io/"
        "v1beta1\",\"kind\":\"KubeletConfiguration\",\"healthzPort\":2}");
    put(s, "d/90-not.yaml", "nonsense");
    parses(s, flags);
    assert_int_equal(s->c.max_pods_n, 30);
    setting_is(s, "clusterDNS", "[\"10.0.0.3\"]");
    setting_is(s, "kubeReserved", "{\"cpu\":\"1\",\"pid\":\"100\"}");
    setting_is(s, "healthzPort", "2");
    setting_is(s, "authentication.x509.clientCAFile", NULL);
    assert_string_equal(s->c.cluster_domain, "");
    expect_from(s, "maxPods", "d/20-b.conf:3");
    expect_from(s, "kubeReserved", "config.yaml:7, d/20-b.conf:4");
    put(s, "d/30-bad.conf", "maxPods: 3\n");
    assert_int_equal(parse(s, flags), ERR_INVALID);
    assert_non_null(
        strstr(s->e.text, "/d/30-bad.conf: apiVersion \"\", kind \"\" is neither a KubeletConfiguration "));
    assert_int_equal(parse(s, "--config-dir /nowhere"), ERR_NOT_FOUND);
    assert_string_equal(s->e.text, "--config-dir: /nowhere: No such file or directory");
}

static void zeros_mean_defaults_where_kubelet_cannot_tell_them_from_nothing(void **state)
{
    struct scratch *s = *state;

    put(s, "config.yaml",
        KUBELET "maxPods: 0\nsyncFrequency: 0s\nstaticPodPath: ''\nresolvConf: ''\nhealthzPort: 0\nlogging: "
                "{flushFrequency: 0}\n");
    parses(s, "");
    assert_int_equal(s->c.max_pods_n, 110);
    assert_string_equal(s->c.manifests, "/etc/coracle/manifests");
    assert_string_equal(s->c.resolv_conf, "");
    expect_warnings(s, "healthzPort\n");
}

static void what_is_not_acted_on_is_said_once_and_only_where_it_matters(void **state)
{
    struct scratch *s = *state;

    put(s, "config.yaml",
        KUBELET
        "syncFrequency: 1m\nfileCheckFrequency: 5s\nimageGCHighThresholdPercent: "
        "85\nnodeStatusMaxImages: 60\n"
        "containerLogMaxSize: 10Mi\nprotectKernelDefaults: false\nevictionHard: {memory.available: 100Mi}\n"
        "featureGates: {SidecarContainers: true, MemoryQoS: true, GracefulNodeShutdown: false, Unheard: "
        "true}\n");
    parses(s, "--rotate-certificates --v=2 --node-labels=a=b");
    expect_warnings(s, "rotateCertificates\nfileCheckFrequency\nnodeStatusMaxImages\n"
                       "featureGates.GracefulNodeShutdown\nfeatureGates.Unheard\n");
}

static void feature_gates_of_flags_are_merged_into_those_of_files(void **state)
{
    struct scratch *s = *state;

    put(s, "config.yaml", KUBELET "featureGates: {MemoryQoS: false, NodeSwap: true}\n");
    parses(s, "--feature-gates=MemoryQoS=true");
    setting_is(s, "featureGates", "{\"MemoryQoS\":true,\"NodeSwap\":true}");
    expect_from(s, "featureGates", "config.yaml:3, --feature-gates");
}

static void default_thresholds_join_in_only_when_asked(void **state)
{
    struct scratch *s = *state;

    put(s, "config.yaml", KUBELET "evictionHard: {memory.available: 1Gi}\n");
    parses(s, "");
    setting_is(s, "evictionHard", "{\"memory.available\":\"1Gi\"}");
    put(s, "config.yaml",
        KUBELET "evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true\n");
    parses(s, "");
    setting_is(s, "evictionHard",
               "{\"imagefs.available\":\"15%\",\"imagefs.inodesFree\":\"5%\",\"memory.available\":\"1Gi\","
               "\"nodefs.available\":\"10%\","
               "\"nodefs.inodesFree\":\"5%\"}");
}

static void counts_that_are_too_large_are_cut_and_said(void **state)
{
    struct scratch *s = *state;

    put(s, "config.yaml", KUBELET "maxPods: 5000\n");
    parses(s, "");
    assert_int_equal(s->c.max_pods_n, 1000);
    expect_warnings(s, "maxPods\n");
    put(s, "config.yaml", KUBELET "maxPods: 900000\npodsPerCore: 1\n");
    parses(s, "");
    assert_int_equal(s->c.max_pods_n,
                     sysconf(_SC_NPROCESSORS_ONLN) < 1000 ? sysconf(_SC_NPROCESSORS_ONLN) : 1000);
}

static void priorities_of_a_shutdown_are_sorted(void **state)
{
    struct scratch *s = *state;

    put(s, "config.yaml",
        KUBELET
        "shutdownGracePeriodByPodPriority:\n- {priority: 2000000000, shutdownGracePeriodSeconds: 10}\n"
        "- {priority: -5, shutdownGracePeriodSeconds: 60}\n- {priority: 0, shutdownGracePeriodSeconds: "
        "30}\n");
    parses(s, "");
    assert_int_equal(s->c.n_shutdown_priorities, 3);
    assert_int_equal(s->c.shutdown_priorities[0].priority, -5);
    assert_int_equal(s->c.shutdown_priorities[0].grace_ms, 60000);
    assert_int_equal(s->c.shutdown_priorities[2].priority, 2000000000);
}

/* ---- what real nodes have ---------------------------------------------------------------------------------
 */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void collect(const struct config_warning *w, void *arg)
{
    json_array_append_new(arg, json_string(w->setting));
}

static void expect_sorted_warnings(struct scratch *s, const char *path)
{
    json_auto_t *names = json_array();
    buf_auto text = BUF_INIT(65536);
    str_auto wanted = NULL;
    struct err e = { 0 };
    const char *v[100];
    size_t n;

    config_warnings(&s->c, collect, names);
    n = json_array_size(names);
    assert_true(n <= ARRAY_LEN(v));
    for (size_t i = 0; i < n; i++)
        v[i] = json_string_value(json_array_get(names, i));
    qsort(v, n, sizeof(v[0]), by_text);
    for (size_t i = 0; i < n; i++)
        buf_addf(&text, "%s\n", v[i]);
    assert_int_equal(fs_read_at(AT_FDCWD, path, 65536, &wanted, NULL, &e), ERR_OK);
    assert_string_equal(text.p, wanted);
}

static char *words_of(const char *path)
{
    struct err e = { 0 };
    char *text = NULL;

    assert_int_equal(fs_read_at(AT_FDCWD, path, 65536, &text, NULL, &e), ERR_OK);
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    return text;
}

static void a_kubeadm_nodes_files_are_taken_with_the_warnings_they_need(void **state)
{
    struct scratch *s = *state;
    str_auto flags = words_of("tests/fixtures/config/kubeadm/flags");
    str_auto env = words_of("tests/fixtures/config/kubeadm/kubeadm-flags.env");
    str_auto all = NULL;

    env[strrchr(env, '"') - env] = '\0';
    all = str_printf("%s %s", strchr(env, '"') + 1, flags);
    snprintf(s->file, sizeof(s->file), "tests/fixtures/config/kubeadm/config.yaml");
    parses(s, all);
    assert_string_equal(s->c.manifests, "/etc/kubernetes/manifests");
    assert_string_equal(s->c.resolv_conf, "/run/systemd/resolve/resolv.conf");
    assert_string_equal(s->c.cluster_dns.v[0], "10.96.0.10");
    assert_string_equal(s->c.cluster_domain, "cluster.local");
    assert_string_equal(s->c.node_name, "node-1");
    assert_string_equal(s->c.node_labels.v[0].value, "r7");
    expect_sorted_warnings(s, "tests/fixtures/config/kubeadm/warnings");
}

static void a_k3s_nodes_files_are_taken_with_the_warnings_they_need(void **state)
{
    struct scratch *s = *state;
    str_auto words = words_of("tests/fixtures/config/k3s/flags");
    str_auto flags = str_printf("--config-dir=tests/fixtures/config/k3s/kubelet.conf.d %s", words);

    parses(s, flags);
    assert_string_equal(s->c.manifests, "/var/lib/rancher/k3s/agent/pod-manifests");
    assert_string_equal(s->c.node_ip, "192.0.2.10");
    assert_string_equal(s->c.allowed_unsafe_sysctls.v[0], "net.ipv4.ip_forward");
    expect_sorted_warnings(s, "tests/fixtures/config/k3s/warnings");
}

static void runtime_handlers_are_programs_with_options(void **state)
{
    struct scratch *s = *state;
    const json_t *all;

    parses(s, "--runtime-handlers=kata=/opt/kata,kata=--debug,runc=/opt/runc");
    all = config_value(&s->c, "runtimeHandlers");
    assert_int_equal(json_object_size(all), 2);
    assert_int_equal(json_array_size(json_object_get(all, "kata")), 2);
    parses(s, "--runtime-handlers=");
    refused(s, "---\n" OWN "runtimeHandlers: {kata: [kata]}\n", "",
            ": runtimeHandlers: kata: \"kata\" is not the absolute path of a program");
    refused(s, "---\n" OWN "runtimeHandlers: {Kata: [/opt/kata]}\n", "",
            ": runtimeHandlers: \"Kata\" is not the name of a handler, a DNS label");
    refused(s, "---\n" OWN "runtimeHandlers: {kata: [/opt/kata, '--root=/x']}\n", "",
            ": runtimeHandlers: kata: [1]: \"--root=/x\" is set by the agent");
    refused(s, "---\n" OWN "runtimeHandlers: {kata: [/opt/kata, '']}\n", "",
            ": runtimeHandlers: kata: [1]: empty, or longer than 200 bytes");
    refused(s, "---\n" OWN "runtimeHandlers: {kata: /opt/kata}\n", "", ": runtimeHandlers: kata: not a list");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_settings_everything_has_its_default_and_nothing_is_said),
        TEST(runtime_handlers_are_programs_with_options),
        TEST(a_file_sets_a_flag_wins_and_both_are_named),
        TEST(flags_are_taken_as_kubelet_takes_them),
        TEST(a_value_that_nobody_may_see_is_masked),
        TEST(drop_ins_are_merged_in_the_order_of_their_names),
        TEST(zeros_mean_defaults_where_kubelet_cannot_tell_them_from_nothing),
        TEST(what_is_not_acted_on_is_said_once_and_only_where_it_matters),
        TEST(feature_gates_of_flags_are_merged_into_those_of_files),
        TEST(default_thresholds_join_in_only_when_asked),
        TEST(counts_that_are_too_large_are_cut_and_said),
        TEST(priorities_of_a_shutdown_are_sorted),
        TEST(a_kubeadm_nodes_files_are_taken_with_the_warnings_they_need),
        TEST(a_k3s_nodes_files_are_taken_with_the_warnings_they_need),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
