/* SPDX-License-Identifier: Apache-2.0 */
/* What a kube-apiserver 1.36 makes of the spec of a new object; and what it cannot decode. */
#include "agent/api/patch/write/write.h"
#include "tests/unit/agent_api_patch/patch_case.h"

#include "base/codec/json.h"
#include "base/scope.h"

/* The object that is made of this one, or the message that refuses it. */
static json_t *made(const char *version, const char *kind, const char *text, json_t **ret_status)
{
    const struct api_write w = { .type = API_WRITE_CREATE,
                                 .kind = api_patch_kind_find(version, kind),
                                 .namespace = "n",
                                 .validation = API_FIELDS_IGNORE };
    json_auto_t *body = json_loads(text, 0, NULL), *warnings = json_array();
    json_t *object = NULL;
    struct err e = { 0 };
    bool same;

    assert_non_null(body);
    *ret_status = NULL;
    ERR_IGNORE(api_write(&w, NULL, body, warnings, &object, &same, ret_status, &e));
    return object;
}

static void becomes_(const char *version, const char *kind, const char *spec, const char *wanted)
{
    str_auto text = str_printf("{\"metadata\":{\"name\":\"a\"},\"spec\":%s}", spec);
    json_auto_t *status = NULL, *object = made(version, kind, text, &status);

    assert_non_null(object);
    patch_expect(json_object_get(object, "spec"), wanted);
}

#define SERVICE(spec, wanted)                                                                                \
    becomes_("v1", "Service", "{\"ports\":[{\"port\":80}]," spec "}",                                        \
             "{\"ports\":[{\"port\":80,\"protocol\":\"TCP\",\"targetPort\":80}]," wanted "}")
#define INSIDE "\"sessionAffinity\":\"None\",\"internalTrafficPolicy\":\"Cluster\""
#define ONE_FAMILY "\"ipFamilies\":[\"IPv4\"],\"ipFamilyPolicy\":\"SingleStack\""

static void services(void **state)
{
    (void)state;
    SERVICE("\"sessionAffinityConfig\":{\"clientIP\":{\"timeoutSeconds\":5}}",
            "\"type\":\"ClusterIP\"," INSIDE "," ONE_FAMILY);
    SERVICE("\"type\":\"LoadBalancer\"", "\"type\":\"LoadBalancer\",\"externalTrafficPolicy\":\"Cluster\","
                                         "\"allocateLoadBalancerNodePorts\":true," INSIDE "," ONE_FAMILY);
    SERVICE("\"externalIPs\":[\"1.2.3.4\"]", "\"externalIPs\":[\"1.2.3.4\"],\"type\":\"ClusterIP\","
                                             "\"externalTrafficPolicy\":\"Cluster\"," INSIDE "," ONE_FAMILY);
    SERVICE("\"type\":\"ExternalName\",\"externalName\":\"a.b\"",
            "\"type\":\"ExternalName\",\"externalName\":\"a.b\",\"sessionAffinity\":\"None\"");
    SERVICE(
        "\"sessionAffinity\":\"ClientIP\"",
        "\"type\":\"ClusterIP\",\"sessionAffinity\":\"ClientIP\",\"sessionAffinityConfig\":{\"clientIP\":{"
        "\"timeoutSeconds\":10800}},\"internalTrafficPolicy\":\"Cluster\"," ONE_FAMILY);
    SERVICE("\"clusterIP\":\"None\",\"selector\":{\"a\":\"b\"}",
            "\"clusterIP\":\"None\",\"clusterIPs\":[\"None\"],\"selector\":{\"a\":\"b\"},"
            "\"type\":\"ClusterIP\"," INSIDE "," ONE_FAMILY);
    SERVICE("\"clusterIP\":\"None\",\"ipFamilies\":[\"IPv6\"]",
            "\"clusterIP\":\"None\",\"clusterIPs\":[\"None\"],\"type\":\"ClusterIP\"," INSIDE
            ",\"ipFamilies\":[\"IPv6\",\"IPv4\"],\"ipFamilyPolicy\":\"RequireDualStack\"");
    becomes_("v1", "Service",
             "{\"ports\":[{\"port\":80,\"targetPort\":0},{\"port\":81,\"targetPort\":\"\"}]}",
             "{\"ports\":[{\"port\":80,\"protocol\":\"TCP\",\"targetPort\":80},{\"port\":81,\"protocol\":"
             "\"TCP\",\"targetPort\":81}],\"type\":\"ClusterIP\"," INSIDE "," ONE_FAMILY "}");
}

/* The fields that the field manager of a new Service owns. */
static json_t *owned(json_t *object)
{
    json_t *entry = json_array_get(json_object_get(json_object_get(object, "metadata"), "managedFields"), 0);

    return json_object_get(json_object_get(entry, "fieldsV1"), "f:spec");
}

static void allocated_fields_have_no_manager(void **state)
{
    json_auto_t *status = NULL,
                *object = made("v1", "Service",
                               "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"clusterIP\":\"None\","
                               "\"ipFamilyPolicy\":\"SingleStack\",\"ports\":[{\"port\":80}]}}",
                               &status);
    json_t *own = owned(object);

    (void)state;
    assert_non_null(own);
    assert_non_null(json_object_get(own, "f:clusterIP"));
    assert_non_null(json_object_get(own, "f:ipFamilyPolicy")); /* it was set by the client */
    assert_non_null(json_object_get(own, "f:internalTrafficPolicy"));
    assert_null(json_object_get(own, "f:clusterIPs"));
    assert_null(json_object_get(own, "f:ipFamilies"));
}

static void workloads(void **state)
{
#define SET                                                                                                  \
    "\"podManagementPolicy\":\"OrderedReady\",\"replicas\":1,\"revisionHistoryLimit\":10,\"serviceName\":"   \
    "\"\","
#define RETENTION                                                                                            \
    "\"persistentVolumeClaimRetentionPolicy\":{\"whenDeleted\":\"Retain\",\"whenScaled\":\"Retain\"}"
    (void)state;
    becomes_("apps/v1", "StatefulSet",
             "{\"ordinals\":{},\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"d\"},\"spec\":{}}]}",
             "{" SET RETENTION ",\"ordinals\":{\"start\":0},\"updateStrategy\":{\"type\":\"RollingUpdate\","
             "\"rollingUpdate\":{\"partition\":0}},\"volumeClaimTemplates\":[{\"apiVersion\":\"v1\",\"kind\":"
             "\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"d\"},\"spec\":{\"volumeMode\":"
             "\"Filesystem\"},\"status\":{\"phase\":\"Pending\"}}]}");
    becomes_("apps/v1", "StatefulSet",
             "{\"updateStrategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":null}}",
             "{" SET RETENTION ",\"updateStrategy\":{\"type\":\"RollingUpdate\"}}");
    becomes_(
        "batch/v1", "Job",
        "{\"podFailurePolicy\":{\"rules\":[{\"action\":\"Count\",\"onPodConditions\":[{\"type\":\"X\"}]}]}}",
        "{\"backoffLimit\":6,\"completionMode\":\"NonIndexed\",\"completions\":1,\"parallelism\":1,"
        "\"manualSelector\":false,\"suspend\":false,\"podReplacementPolicy\":\"Failed\","
        "\"podFailurePolicy\":{\"rules\":[{\"action\":\"Count\",\"onPodConditions\":[{\"type\":\"X\","
        "\"status\":\"True\"}]}]}}");
    becomes_("batch/v1", "CronJob", "{\"schedule\":\"@daily\",\"jobTemplate\":{}}",
             "{\"schedule\":\"@daily\",\"jobTemplate\":{\"metadata\":{}},\"concurrencyPolicy\":\"Allow\","
             "\"suspend\":false,\"successfulJobsHistoryLimit\":3,\"failedJobsHistoryLimit\":1}");
#undef RETENTION
#undef SET
}

static void cannot_be_decoded(const char *version, const char *kind, const char *text, const char *why)
{
    json_auto_t *status = NULL, *object = made(version, kind, text, &status);
    const char *message = json_str(status, "message"), *at = message != NULL ? strstr(message, why) : NULL;

    assert_null(object);
    if (at == NULL || strcmp(at, why) != 0)
        fail_msg("%s", message != NULL ? message : "no status");
}

static void what_go_cannot_decode(void **state)
{
#define SECRET(value) "{\"metadata\":{\"name\":\"a\"},\"data\":{\"a\":\"" value "\"}}"
    (void)state;
    cannot_be_decoded("apps/v1", "Deployment",
                      "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"strategy\":{\"rollingUpdate\":{"
                      "\"maxUnavailable\":2147483648}}}}",
                      ": json: cannot unmarshal number 2147483648 into Go struct field "
                      "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxUnavailable of type int32");
    cannot_be_decoded("apps/v1", "Deployment",
                      "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"replicas\":3000000000}}",
                      ": json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec."
                      "replicas of type int32");
    cannot_be_decoded("v1", "Secret", SECRET("!!"), ": illegal base64 data at input byte 0");
    cannot_be_decoded("v1", "Secret", SECRET("MQ"), ": illegal base64 data at input byte 0");
    cannot_be_decoded("v1", "Secret", SECRET("YWJjZ"), ": illegal base64 data at input byte 4");
    cannot_be_decoded("v1", "Secret", SECRET("YWI=x"), ": illegal base64 data at input byte 4");
#undef SECRET
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(services),
        cmocka_unit_test(allocated_fields_have_no_manager),
        cmocka_unit_test(workloads),
        cmocka_unit_test(what_go_cannot_decode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
