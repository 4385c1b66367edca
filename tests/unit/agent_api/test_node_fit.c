/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod fits a node: nodeSelector and required node affinity. */
#include "helper.h"

#define T(text) ((char[]){ text })

static struct api_kv pairs[] = { { T("arch"), T("amd64") }, { T("cores"), T("8") }, { T("zone"), T("a") } };
static const struct api_kvs labels = { pairs, 3 };

static void fits(const char *spec, bool wanted)
{
    struct decoded d;

    decode_pod(&d, "", spec);
    if (api_pod_fits_node(&the_pod(&d)->spec, "n1", &labels) != wanted)
        fail_msg("%s", spec);
    decoded_done(&d);
}

#define TERMS(terms)                                                                                         \
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" terms  \
    "]}}}"

static void all_of_the_selector_must_fit(void **state)
{
    (void)state;
    fits("", true);
    fits("nodeSelector: {zone: a, arch: amd64}", true);
    fits("nodeSelector: {zone: a, arch: arm64}", false);
    fits("nodeSelector: {other: ''}", false);
}

static void one_term_must_fit_in_all_its_parts(void **state)
{
    (void)state;
    fits(TERMS("{matchExpressions: [{key: zone, operator: In, values: [b, a]}]}"), true);
    fits(TERMS("{matchExpressions: [{key: zone, operator: In, values: [b]}]}"), false);
    fits(TERMS("{matchExpressions: [{key: zone, operator: In, values: [b]}]}, {matchExpressions: [{key: "
               "arch, operator: "
               "Exists}]}"),
         true);
    fits(TERMS("{matchExpressions: [{key: zone, operator: Exists}, {key: gpu, operator: Exists}]}"), false);
    fits(TERMS("{matchExpressions: [{key: gpu, operator: NotIn, values: [x]}, {key: gpu, operator: "
               "DoesNotExist}]}"),
         true);
    fits(TERMS("{matchExpressions: [{key: cores, operator: Gt, values: ['7']}, {key: cores, operator: Lt, "
               "values: ['9']}]}"),
         true);
    fits(TERMS("{matchExpressions: [{key: zone, operator: Gt, values: ['7']}]}"), false);
    fits(TERMS("{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}"), true);
    fits(TERMS("{matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]}"), false);
    fits(TERMS("{}"), false);
}

static void preferences_do_not_count(void **state)
{
    (void)state;
    fits(
        "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: "
        "{matchExpressions: [{key: gpu, operator: Exists}]}}]}}",
        true);
}

/* What a scheduler and the eviction by taints say of a pod with these tolerations. */
static void with_taint(const char *tolerations, const char *value, const char *effect, bool scheduled,
                       int64_t stays)
{
    const struct api_taint taint = { (char *)"k", (char *)(uintptr_t)value, (char *)(uintptr_t)effect };
    struct decoded d;
    char spec[400];

    snprintf(spec, sizeof(spec), "tolerations: [%s]", tolerations);
    decode_pod(&d, "", spec);
    assert_true((api_pod_unschedulable(&the_pod(&d)->spec, &taint, 1) == NULL) == scheduled);
    assert_int_equal(api_pod_stays_seconds(&the_pod(&d)->spec, &taint), stays);
    decoded_done(&d);
}

static void taints_keep_pods_away_that_do_not_tolerate_them(void **state)
{
    (void)state;
    with_taint("", "v", "NoSchedule", false, 0);
    with_taint("", "v", "NoExecute", false, 0);
    with_taint("", "v", "PreferNoSchedule", true, 0);
    with_taint("{key: k, operator: Exists}", "v", "NoSchedule", true, INT64_MAX);
    with_taint("{key: k, value: v}", "v", "NoExecute", true, INT64_MAX);
    with_taint("{key: k, value: w}", "v", "NoExecute", false, 0);
    with_taint("{key: k, operator: Exists, effect: NoSchedule}", "v", "NoExecute", false, 0);
    with_taint("{operator: Exists}", "", "NoExecute", true, INT64_MAX);
}

static void the_shortest_toleration_counts(void **state)
{
    (void)state;
    with_taint("{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 60}", "v", "NoExecute", true,
               60);
    with_taint("{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 60}, {key: k, value: v, "
               "effect: NoExecute, tolerationSeconds: 5}",
               "v", "NoExecute", true, 5);
    with_taint("{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: -1}", "v", "NoExecute", true,
               0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_the_selector_must_fit),
        cmocka_unit_test(one_term_must_fit_in_all_its_parts),
        cmocka_unit_test(preferences_do_not_count),
        cmocka_unit_test(taints_keep_pods_away_that_do_not_tolerate_them),
        cmocka_unit_test(the_shortest_toleration_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
