/* SPDX-License-Identifier: Apache-2.0 */
/* Security contexts, sysctls and the old annotations. */
#include "helper.h"

static void ids_have_a_range(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_bad(
        "securityContext: {runAsUser: -1, runAsGroup: 2147483648}",
        "securityContext: {runAsUser: a, fsGroup: -5, supplementalGroups: [1, -1]}",
        "spec.containers[0].securityContext.runAsUser: -1 is out of range, allowed are 0 to 2147483647",
        "spec.containers[0].securityContext.runAsGroup: 2147483648 is out of range, allowed are 0 to "
        "2147483647",
        "spec.securityContext.runAsUser: expected a whole number, got a string",
        "spec.securityContext.fsGroup: -5 is out of range, allowed are 0 to 2147483647",
        "spec.securityContext.supplementalGroups[1]: -1 is out of range, allowed are 0 to 2147483647");
    decode_pod(
        &d, "securityContext: {runAsUser: 0, runAsNonRoot: false}",
        "securityContext: {runAsGroup: 5, supplementalGroups: [7, 8], supplementalGroupsPolicy: Strict}");
    assert_true(the_pod(&d)->spec.containers[0].security.has_run_as_user);
    assert_true(the_pod(&d)->spec.containers[0].security.has_run_as_non_root);
    assert_false(the_pod(&d)->spec.containers[0].security.has_privileged);
    assert_int_equal(the_pod(&d)->spec.security.supplemental_groups[1], 8);
    assert_string_equal(the_pod(&d)->spec.security.supplemental_groups_policy, "Strict");
    decoded_done(&d);
}

static void policies_are_words(void **state)
{
    (void)state;
    pod_is_bad(
        "",
        "securityContext: {fsGroupChangePolicy: Never, supplementalGroupsPolicy: x, seLinuxChangePolicy: ''}",
        "spec.securityContext.fsGroupChangePolicy: \"Never\" is not supported, allowed are Always and "
        "OnRootMismatch",
        "spec.securityContext.supplementalGroupsPolicy: \"x\" is not supported, allowed are Merge and Strict",
        "spec.securityContext.seLinuxChangePolicy: \"\" is not supported, allowed are Recursive and "
        "MountOption");
}

static void profiles_fit_their_type(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_bad(
        "securityContext: {seccompProfile: {type: Localhost}, appArmorProfile: {type: Localhost, "
        "localhostProfile: ' a'}}",
        "securityContext: {seccompProfile: {type: RuntimeDefault, localhostProfile: a}, appArmorProfile: "
        "{type: "
        "Unconfined, localhostProfile: a}}",
        "spec.containers[0].securityContext.seccompProfile.localhostProfile: required with type Localhost",
        "spec.containers[0].securityContext.appArmorProfile.localhostProfile: must not begin or end with "
        "white "
        "space",
        "spec.securityContext.seccompProfile.localhostProfile: only allowed with type Localhost",
        "spec.securityContext.appArmorProfile.localhostProfile: only allowed with type Localhost");
    pod_is_bad("securityContext: {seccompProfile: {type: Localhost, localhostProfile: ../a}}",
               "securityContext: {seccompProfile: {}, appArmorProfile: {type: x}}",
               "spec.containers[0].securityContext.seccompProfile.localhostProfile: \"../a\" must not "
               "contain \"..\"",
               "spec.securityContext.seccompProfile.type: required",
               "spec.securityContext.appArmorProfile.type: \"x\" is not supported, allowed are Unconfined, "
               "RuntimeDefault and Localhost");
    decode_pod(&d, "securityContext: {seccompProfile: {type: Localhost, localhostProfile: p/a.json}}",
               "securityContext: {seccompProfile: {type: Unconfined}}");
    assert_int_equal(the_pod(&d)->spec.containers[0].security.seccomp.type, API_SECCOMP_LOCALHOST);
    assert_string_equal(the_pod(&d)->spec.containers[0].security.seccomp.localhost_profile, "p/a.json");
    assert_int_equal(the_pod(&d)->spec.security.seccomp.type, API_SECCOMP_UNCONFINED);
    decoded_done(&d);
}

static void privilege_escalation_conflicts_are_found(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_bad("securityContext: {allowPrivilegeEscalation: false, privileged: true, capabilities: {add: "
               "[CAP_SYS_ADMIN]}}",
               "",
               "spec.containers[0].securityContext: allowPrivilegeEscalation cannot be false when privileged "
               "is true",
               "spec.containers[0].securityContext: allowPrivilegeEscalation cannot be false when "
               "capabilities.add has "
               "CAP_SYS_ADMIN");
    decode_pod(
        &d,
        "securityContext: {allowPrivilegeEscalation: false, capabilities: {add: [NET_ADMIN], drop: [ALL]}}",
        "");
    assert_string_equal(the_pod(&d)->spec.containers[0].security.caps_add.v[0], "NET_ADMIN");
    assert_string_equal(the_pod(&d)->spec.containers[0].security.caps_drop.v[0], "ALL");
    decoded_done(&d);
}

static void proc_mounts_need_user_namespaces(void **state)
{
    (void)state;
    pod_is_good("securityContext: {procMount: Default}", "");
    pod_is_bad("securityContext: {procMount: Unmasked}", "",
               "spec.containers[0].securityContext.procMount: \"Unmasked\" needs hostUsers to be false");
    pod_is_good("securityContext: {procMount: Unmasked}", "hostUsers: false");
    pod_is_bad(
        "securityContext: {procMount: Half}", "",
        "spec.containers[0].securityContext.procMount: \"Half\" is not supported, allowed are Default and "
        "Unmasked");
}

static void sysctls_are_checked(void **state)
{
    struct decoded d;

    (void)state;
    pod_is_bad(
        "",
        "hostNetwork: true\nhostIPC: true\nsecurityContext:\n  sysctls:\n  - {name: A.b, value: '1'}\n"
        "  - {value: '1'}\n  - {name: net.core.somaxconn, value: '1'}\n  - {name: kernel.shmmax, value: "
        "'1'}\n"
        "  - {name: kernel/shmmax, value: '1'}\n  - {name: vm.x, value: 5}",
        "spec.securityContext.sysctls[0].name: \"A.b\" must be at most 253 characters: parts of a-z, 0-9, "
        "'-' and "
        "'_' joined by '.' or '/'",
        "spec.securityContext.sysctls[1].name: required",
        "spec.securityContext.sysctls[2].name: \"net.core.somaxconn\" may not be specified when "
        "'hostNetwork' is "
        "true",
        "spec.securityContext.sysctls[3].name: \"kernel.shmmax\" may not be specified when 'hostIPC' is true",
        "spec.securityContext.sysctls[4].name: \"kernel.shmmax\" is given twice",
        "spec.securityContext.sysctls[4].name: \"kernel.shmmax\" may not be specified when 'hostIPC' is true",
        "spec.securityContext.sysctls[5].value: expected a string, got a number: put it in quotes");
    decode_pod(
        &d, "",
        "securityContext: {sysctls: [{name: net/ipv4/conf/eth0.1/x, value: '1'}, {name: kernel.sem, value: "
        "'1 2'}]}");
    assert_int_equal(the_pod(&d)->spec.security.n_sysctls, 2);
    assert_string_equal(the_pod(&d)->spec.security.sysctls[1].value, "1 2");
    decoded_done(&d);
}

static void windows_options_are_refused(void **state)
{
    (void)state;
    pod_is_bad("securityContext: {windowsOptions: {hostProcess: true}}",
               "securityContext: {windowsOptions: {runAsUserName: a, bad: 1}}",
               "spec.containers[0].securityContext.windowsOptions: not supported: this is a Linux node",
               "spec.securityContext.windowsOptions: not supported: this is a Linux node");
}

#define ANNOTATED(annotations, security)                                                                     \
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n" annotations "spec:\n" security       \
    "  containers: [{name: main, image: x}]\n"

static void annotations_of_old_are_compared_with_the_fields(void **state)
{
    struct decoded d;

    (void)state;
    text_is_bad(
        ANNOTATED("    seccomp.security.alpha.kubernetes.io/pod: unconfined\n"
                  "    container.seccomp.security.alpha.kubernetes.io/main: localhost/../x\n"
                  "    container.apparmor.security.beta.kubernetes.io/nope: profile\n"
                  "    controller.kubernetes.io/pod-deletion-cost: '1.5'\n"
                  "    kubernetes.io/config.mirror: x\n",
                  "  securityContext: {seccompProfile: {type: RuntimeDefault}}\n"),
        "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: differs from the field "
        "seccompProfile",
        "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/main]: the profile of "
        "\"localhost/../x\" must not contain \"..\"",
        "metadata.annotations[container.apparmor.security.beta.kubernetes.io/nope]: there is no container "
        "\"nope\"",
        "metadata.annotations[container.apparmor.security.beta.kubernetes.io/nope]: \"profile\" is not an "
        "AppArmor profile, allowed are unconfined, runtime/default and localhost/<name>",
        "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: \"1.5\" must be a whole number of "
        "32 "
        "bits",
        "metadata.annotations[kubernetes.io/config.mirror]: a mirror pod needs spec.nodeName");
    decode(&d, ANNOTATED("    seccomp.security.alpha.kubernetes.io/pod: runtime/default\n",
                         "  securityContext: {seccompProfile: {type: RuntimeDefault}}\n"));
    assert_int_equal(the_pod(&d)->ignored.n, 0);
    decoded_done(&d);
    decode(&d, ANNOTATED("    container.seccomp.security.alpha.kubernetes.io/main: runtime/default\n"
                         "    seccomp.security.alpha.kubernetes.io/pod: unconfined\n",
                         ""));
    assert_int_equal(the_pod(&d)->ignored.n, 2);
    assert_string_equal(the_pod(&d)->ignored.v[0],
                        "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/main]: without "
                        "effect since Kubernetes 1.27; set the field seccompProfile");
    decoded_done(&d);
}

static void apparmor_is(const struct api_container *c, const char *type, const char *name)
{
    assert_string_equal(c->security.apparmor.type, type);
    assert_true(str_eq(c->security.apparmor.localhost_profile, name));
}

/* kubelet: the container's field, else its annotation, else the pod's field. */
static void apparmor_annotations_stand_in_for_the_field(void **state)
{
    static const char text[] =
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n"
        "    container.apparmor.security.beta.kubernetes.io/first: runtime/default\n"
        "    container.apparmor.security.beta.kubernetes.io/free: unconfined\n"
        "    container.apparmor.security.beta.kubernetes.io/own: localhost/mine\n"
        "    container.apparmor.security.beta.kubernetes.io/said: runtime/default\n"
        "    container.apparmor.security.beta.kubernetes.io/none: ''\n"
        "spec:\n"
        "  securityContext: {appArmorProfile: {type: RuntimeDefault}}\n"
        "  initContainers: [{name: first, image: x}]\n"
        "  containers:\n  - {name: free, image: x}\n  - {name: own, image: x}\n"
        "  - {name: said, image: x, securityContext: {appArmorProfile: {type: Unconfined}}}\n"
        "  - {name: none, image: x}\n";
    const struct api_pod_spec *spec;
    struct decoded d;

    (void)state;
    decode(&d, text);
    spec = &the_pod(&d)->spec;
    assert_int_equal(the_pod(&d)->ignored.n, 0);
    apparmor_is(&spec->init_containers[0], "RuntimeDefault", NULL);
    apparmor_is(&spec->containers[0], "Unconfined", NULL);
    apparmor_is(&spec->containers[1], "Localhost", "mine");
    apparmor_is(&spec->containers[2], "Unconfined", NULL);
    assert_null(spec->containers[3].security.apparmor.type);
    decoded_done(&d);
    text_is_bad(ANNOTATED("    container.apparmor.security.beta.kubernetes.io/main: localhost/\n", ""),
                "metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]: \"localhost/\" "
                "is not an AppArmor profile, allowed are unconfined, runtime/default and localhost/<name>");
    text_is_bad(ANNOTATED("    container.apparmor.security.beta.kubernetes.io/main: 'localhost/a '\n", ""),
                "metadata.annotations[container.apparmor.security.beta.kubernetes.io/main]: must not begin "
                "or end with white space");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_have_a_range),
        cmocka_unit_test(policies_are_words),
        cmocka_unit_test(profiles_fit_their_type),
        cmocka_unit_test(privilege_escalation_conflicts_are_found),
        cmocka_unit_test(proc_mounts_need_user_namespaces),
        cmocka_unit_test(sysctls_are_checked),
        cmocka_unit_test(windows_options_are_refused),
        cmocka_unit_test(annotations_of_old_are_compared_with_the_fields),
        cmocka_unit_test(apparmor_annotations_stand_in_for_the_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
