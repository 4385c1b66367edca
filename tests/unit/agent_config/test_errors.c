/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused, and in which words. */
#include "agent/config/internal.h"
#include "tests/unit/agent_config/helper.h"

static void unknown_keys_are_named_with_their_line_and_a_guess(void **state)
{
    struct scratch *s = *state;

    refused(s, "maxPod: 3\n", "",
            "/config.yaml:3: maxPod: unknown key in a KubeletConfiguration; did you mean maxPods?");
    refused(s, "port: 1\nauthentication:\n  anonymous:\n    enable: false\n", "",
            "/config.yaml:6: authentication.anonymous.enable: unknown key in a KubeletConfiguration; did you "
            "mean "
            "authentication.anonymous.enabled?");
    refused(s, "whatEver: 3\n", "",
            "/config.yaml:3: whatEver: unknown key in a KubeletConfiguration; `coracle config --sample` "
            "shows all");
    refused(s, "stateDir: /x\n", "",
            "/config.yaml:3: stateDir: unknown key in a KubeletConfiguration; it belongs in a "
            "CoracleConfiguration (apiVersion "
            "coracle.dev/v1)");
    refused(s, "maxPods: 1\nmaxPods: 2\n", "",
            "/config.yaml: document 1: line 4 column 1: the key \"maxPods\" is given twice");
    refused(s, "authentication: 3\n", "", "/config.yaml:3: authentication: not a mapping");
}

/* 100 bytes of it are told. */
static void a_key_that_is_cut_within_a_character_is_named(void **state)
{
    struct scratch *s = *state;
    char key[256] = "x", text[300], expected[400] = "/config.yaml: x";

    for (int i = 0; i < 100; i++)
        strcat(key, "\xc3\xa9");
    for (int i = 0; i < 49; i++)
        strcat(expected, "\xc3\xa9");
    strcat(expected,
           "\xef\xbf\xbd: unknown key in a KubeletConfiguration; `coracle config --sample` shows all");
    snprintf(text, sizeof(text), "%s: 1\n", key);
    refused(s, text, "", expected);
}

static void documents_have_to_be_of_one_of_the_two_kinds(void **state)
{
    struct scratch *s = *state;

    refused(s, "---\n" KUBELET, "", "/config.yaml: document 2: a second KubeletConfiguration");
    refused(s, "---\napiVersion: v1\nkind: Pod\n", "",
            "apiVersion \"v1\", kind \"Pod\" is neither a KubeletConfiguration "
            "(kubelet.config.k8s.io/v1beta1) nor a "
            "CoracleConfiguration (coracle.dev/v1)");
    refused(s, "---\n- 1\n", "", "/config.yaml: document 2: not a mapping");
    put(s, "config.yaml", "# nothing\n");
    assert_int_equal(parse(s, ""), ERR_INVALID);
    assert_true(str_ends(s->e.text, "/config.yaml: has no document"));
    snprintf(s->file, sizeof(s->file), "/nowhere");
    assert_int_equal(parse(s, ""), ERR_NOT_FOUND);
    assert_string_equal(s->e.text, "--config: open /nowhere: No such file or directory");
}

static void values_of_another_type_or_out_of_range_are_refused(void **state)
{
    struct scratch *s = *state;

    refused(s, "maxPods: many\n", "", ":3: maxPods: \"many\" is not a whole number");
    refused(s, "maxPods: -1\n", "", ":3: maxPods: -1 is not between 0 and 2147483647");
    refused(s, "seccompDefault: 'yes'\n", "", ":3: seccompDefault: \"yes\" is neither true nor false");
    refused(s, "clusterDomain: 3\n", "",
            ":3: clusterDomain: 3 is not a string (numbers and words like \"yes\" need quotes)");
    refused(s, "clusterDNS: 10.0.0.1\n", "", ":3: clusterDNS: \"10.0.0.1\" is not a list");
    refused(s, "clusterDNS: [dns]\n", "", ":3: clusterDNS: \"dns\" is not an IP address");
    refused(s, "syncFrequency: 10\n", "",
            ":3: syncFrequency: 10 is not a duration like \"300ms\", \"10s\" or \"1h30m\"");
    refused(s, "syncFrequency: -1s\n", "", ":3: syncFrequency: \"-1s\" is negative");
    refused(s, "hairpinMode: hairpin\n", "",
            ":3: hairpinMode: \"hairpin\" is not one of promiscuous-bridge, hairpin-veth, none");
    refused(s, "podLogsDir: logs\n", "",
            ":3: podLogsDir: \"logs\" is not an absolute path of at most 200 bytes without \"..\"");
    refused(s, "containerLogMaxSize: 10Mb\n", "", "Ki Mi Gi Ti Pi Ei or an exponent (500m, 1.5Gi, 12e6)");
    refused(s, "memoryThrottlingFactor: 1.5\n", "",
            ":3: memoryThrottlingFactor: 1.5 is not a number above 0 and up to 1");
    refused(s, "featureGates: {A: 'true'}\n", "", ":3: featureGates: A: \"true\" is neither true nor false");
    refused(s, "containerLogMaxFiles: 1\n", "",
            ":3: containerLogMaxFiles: 1 is not between 2 and 2147483647");
    refused(s, "cgroupRoot: /a/../b\n", "",
            ":3: cgroupRoot: \"/a/../b\" is not an absolute path of at most 200 bytes without \"..\"");
}

static void rules_of_single_settings_are_kept(void **state)
{
    struct scratch *s = *state;

    refused(s, "evictionHard: {mem: 1Gi}\n", "",
            "evictionHard: unknown eviction signal \"mem\"; there are memory.available, nodefs.available, "
            "nodefs.inodesFree, "
            "imagefs.available, imagefs.inodesFree, containerfs.available, containerfs.inodesFree, "
            "pid.available");
    refused(s, "evictionHard: {memory.available: 101%}\n", "",
            "memory.available: \"101%\" is not a percentage from 0% to 100%");
    refused(s, "evictionSoft: {memory.available: 1Gi}\n", "",
            "evictionSoft: memory.available needs a grace period in evictionSoftGracePeriod");
    refused(s, "kubeReserved: {gpu: '1'}\n", "",
            "kubeReserved: cannot reserve \"gpu\"; there are cpu, memory, ephemeral-storage, pid");
    refused(
        s, "registerWithTaints: [{key: a, effect: Never}]\n", "",
        "registerWithTaints: [0]: effect: \"Never\" is not one of NoSchedule, PreferNoSchedule, NoExecute");
    refused(s, "registerWithTaints: [{key: a, effect: NoExecute, when: 1}]\n", "",
            "registerWithTaints: [0]: unknown key \"when\"");
    refused(s, "reservedSystemCPUs: 3-1\n", "",
            "reservedSystemCPUs: \"3-1\" is not a list of CPUs like \"0-1,4\"");
    refused(s, "userNamespaces: {idsPerPod: 1000}\n", "",
            "userNamespaces.idsPerPod: 1000 is not a multiple of 65536 below 4294967296");
    refused(s, "allowedUnsafeSysctls: [vm.swappiness]\n", "",
            "allowedUnsafeSysctls: the sysctl \"vm.swappiness\" are not known to be namespaced");
    refused(s,
            "shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 1}, {priority: 1, "
            "shutdownGracePeriodSeconds: 2}]\n",
            "", "shutdownGracePeriodByPodPriority: [1]: priority: 1 is given twice");
    refused(s, "", "--node-labels=a..b/c=d", "--node-labels: \"a..b/c\" is not a label key");
    refused(s, "", "--node-ip=192.0.2.1,192.0.2.2", "--node-ip: more than one address of a family");
}

static void rules_between_settings_are_kept(void **state)
{
    struct scratch *s = *state;

    refused(s, "imageGCLowThresholdPercent: 90\n", "",
            "imageGCLowThresholdPercent: 90 is not less than imageGCHighThresholdPercent, which is 85");
    refused(s, "imageMaximumGCAge: 1m\n", "",
            "imageMaximumGCAge: 1m0s is not more than imageMinimumGCAge, which is 2m0s");
    refused(s,
            "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
            "preloadedImagesVerificationAllowlist: [r.io/team/*, r.io/app, localhost/x, busybox]\n",
            "",
            "preloadedImagesVerificationAllowlist: \"busybox\" does not begin with a registry, as in "
            "docker.io/library/busybox");
    refused(s,
            "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
            "preloadedImagesVerificationAllowlist: [\"r.io:5000/te*m/x\"]\n",
            "",
            "preloadedImagesVerificationAllowlist: \"r.io:5000/te*m/x\" is neither a repository nor the "
            "beginning of one with \"/*\" at its end");
    refused(s,
            "imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
            "preloadedImagesVerificationAllowlist: [\"r.io:5000/x:1\"]\n",
            "", "preloadedImagesVerificationAllowlist: \"r.io:5000/x:1\" has a tag or a digest");
    refused(s, "serializeImagePulls: true\nmaxParallelImagePulls: 2\n", "",
            "maxParallelImagePulls: more than 1 needs serializeImagePulls: false");
    refused(s, "shutdownGracePeriod: 1s\nshutdownGracePeriodCriticalPods: 2s\n", "",
            "shutdownGracePeriodCriticalPods: 2s is more than shutdownGracePeriod, which is 1s");
    refused(s, "shutdownGracePeriod: 500ms\n", "",
            "shutdownGracePeriod: 500ms is neither 0s nor at least 1s");
    refused(s,
            "shutdownGracePeriod: 9s\nshutdownGracePeriodByPodPriority: [{priority: 1, "
            "shutdownGracePeriodSeconds: 1}]\n",
            "", "shutdownGracePeriodByPodPriority: cannot be given together with shutdownGracePeriod");
    refused(s, "enforceNodeAllocatable: [pods, kube-reserved]\n", "",
            "enforceNodeAllocatable: \"kube-reserved\" needs kubeReservedCgroup");
    refused(s, "enforceNodeAllocatable: [system-reserved-compressible]\n", "",
            "enforceNodeAllocatable: \"system-reserved-compressible\" needs systemReservedCgroup");
    refused(s,
            "kubeReservedCgroup: /k\nenforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]\n",
            "",
            "enforceNodeAllocatable: \"kube-reserved\" and \"kube-reserved-compressible\" cannot be given "
            "together");
    refused(s, "cgroupsPerQOS: false\n", "", "cgroupsPerQOS: false needs enforceNodeAllocatable: [\"none\"]");
    refused(s, "cpuCFSQuotaPeriod: 2s\n", "", "cpuCFSQuotaPeriod: 2s is not between 1ms and 1s");
    refused(s, "crashLoopBackOff: {maxContainerRestartPeriod: 10m}\n", "",
            "crashLoopBackOff.maxContainerRestartPeriod: 10m0s is not between 1s and 5m");
    refused(s, "runOnce: true\n", "", "runOnce: kubelet no longer supports it, so it cannot be set");
}

static void flags_that_are_wrong_are_refused(void **state)
{
    struct scratch *s = *state;

    refused(s, "", "--max-podz 3", "unknown flag --max-podz; did you mean --max-pods?");
    refused(s, "", "--frobnicate", "unknown flag --frobnicate; see coracle run --help");
    refused(s, "", "web", "unexpected argument \"web\"; see coracle run --help");
    refused(s, "", "--max-pods", "--max-pods needs a value");
    refused(s, "", "--max-pods=x", "--max-pods: \"x\" is not a whole number");
    refused(s, "", "--ephemeral=maybe", "--ephemeral: \"maybe\" is neither true nor false");
    refused(s, "", "--seccomp-default false", "unexpected argument \"false\"; see coracle run --help");
    refused(s, "", "--eviction-hard memory.available=1Gi",
            "--eviction-hard: \"memory.available=1Gi\" is not key<value");
    refused(s, "", "--feature-gates B=True,A=on", "--feature-gates: A: \"on\" is neither true nor false");
    refused(s, "", "--register-with-taints a", "--register-with-taints: \"a\" is not key=value:effect");
    refused(s, "", "--hostname-override=\xff", "--hostname-override: it is not valid UTF-8");
    refused(s, "", "--log-level loud", "--log-level: \"loud\" is not one of debug, info, warn, error");
}

static const char *plausible(const struct config_row *r)
{
    if (r->otherwise != NULL)
        return r->otherwise;
    switch (r->type) {
    case T_BOOL:
        return "true";
    case T_INT:
        return "1";
    case T_DURATION:
        return "1m";
    case T_WORD:
        return "NoSwap";
    default:
        return "";
    }
}

/* A flag that kubelet has had may stand in any unit file. */
static void every_flag_of_the_tables_is_taken(void **state)
{
    struct scratch *s = *state;
    size_t n = config_n_rows();

    for (size_t i = 0; i < n; i++) {
        const struct config_row *r = config_row(i, NULL);
        str_auto flag = r->flag != NULL
                            ? str_printf("--%s=%s", r->flag,
                                         r->type == T_WORD && r->otherwise == NULL ? "" : plausible(r))
                            : NULL;

        if (flag == NULL || strcmp(r->flag, "config") == 0)
            continue;
        parses(s, flag);
        assert_int_equal(config_find_flag(r->flag, strlen(r->flag)), i); /* and stands there once */
    }
}

static void rows_are_whole(void **state)
{
    size_t n = config_n_rows();
    enum config_doc doc;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        const struct config_row *r = config_row(i, &doc);

        assert_true(r->key != NULL || r->flag != NULL);
        assert_true((r->key == NULL) == (doc == DOC_FLAG));
        assert_true(r->help != NULL || r->effect != WORKS);
        assert_true((r->why != NULL) == (r->effect != WORKS));
        assert_true((r->allowed != NULL) == (r->type == T_WORD || r->type == T_INT) || doc == DOC_FLAG);
        if (r->key != NULL)
            assert_int_equal(config_find_key(doc, r->key), i);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(unknown_keys_are_named_with_their_line_and_a_guess),
        TEST(a_key_that_is_cut_within_a_character_is_named),
        TEST(documents_have_to_be_of_one_of_the_two_kinds),
        TEST(values_of_another_type_or_out_of_range_are_refused),
        TEST(rules_of_single_settings_are_kept),
        TEST(rules_between_settings_are_kept),
        TEST(flags_that_are_wrong_are_refused),
        TEST(every_flag_of_the_tables_is_taken),
        cmocka_unit_test(rows_are_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
