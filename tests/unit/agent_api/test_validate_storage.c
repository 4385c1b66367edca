/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumes and the sources of volumes that pods have, too. */
#include "agent/api/generic.h"
#include "agent/api/manifest/decode.h"
#include "tests/unit/agent_api/helper.h"

static struct api_generic *make(const char *spec, struct err *e)
{
    str_auto text =
        str_printf("{\"apiVersion\": \"v1\", \"kind\": \"PersistentVolume\", \"metadata\": {\"name\": "
                   "\"v\"}, \"spec\": {%s}}",
                   spec);
    json_auto_t *o = json_loads(text, 0, NULL);
    struct api_generic *made = NULL;

    assert_non_null(o);
    return api_make_generic(API_KIND_PERSISTENT_VOLUME, o, &made, e) == ERR_OK ? made : NULL;
}

#define COMMON "\"capacity\": {\"storage\": \"1Gi\"}, \"accessModes\": [\"ReadWriteOnce\"]"

static void is_bad(const char *spec, const char *problem)
{
    struct err e = { 0 };
    struct api_generic *g = make(spec, &e);

    if (g != NULL || strstr(e.text, problem) == NULL)
        fail_msg("%s: %s", spec, g != NULL ? "no problem" : e.text);
}

static void sources_reach_the_structs(void **state)
{
    struct err e = { 0 };
    struct api_generic *g =
        make(COMMON ", \"iscsi\": {\"targetPortal\": \"s\", \"iqn\": \"iqn.2026-11.a:b\", "
                    "\"lun\": 3, \"secretRef\": {\"name\": \"n\", \"namespace\": \"m\"}, "
                    "\"chapAuthSession\": true}, \"mountOptions\": [\"noatime\"]",
             &e);

    (void)state;
    if (g == NULL)
        fail_msg("%s", e.text);
    assert_int_equal(g->pv->storage.kind, API_STORAGE_ISCSI);
    assert_int_equal(g->pv->storage.lun, 3);
    assert_string_equal(g->pv->storage.interface, "default");
    assert_string_equal(g->pv->storage.secret.namespace_, "m");
    assert_string_equal(g->pv->mount_options.v[0], "noatime");
    assert_string_equal(g->pv->reclaim_policy, "Retain");
    assert_false(api_pv_is_block(g->pv));
    api_generic_unref(g);
    g = make(COMMON
             ", \"csi\": {\"driver\": \"d\", \"volumeHandle\": \"h\", \"volumeAttributes\": {\"a\": \"b\"}, "
             "\"nodeStageSecretRef\": {\"name\": \"n\", \"namespace\": \"m\"}}, \"volumeMode\": \"Block\"",
             &e);
    if (g == NULL)
        fail_msg("%s", e.text);
    assert_string_equal(g->pv->storage.handle, "h");
    assert_string_equal(g->pv->storage.stage_secret.name, "n");
    assert_true(api_pv_is_block(g->pv));
    api_generic_unref(g);
}

static void what_kubernetes_refuses_is_refused(void **state)
{
    (void)state;
    is_bad(COMMON, "must specify a volume type");
    is_bad(COMMON ", \"hostPath\": {\"path\": \"/a\"}, \"nfs\": {\"server\": \"s\", \"path\": \"/a\"}",
           "may not specify more than 1 volume type");
    is_bad(COMMON ", \"awsElasticBlockStore\": {\"volumeID\": \"x\"}",
           "hands this volume type to a CSI driver");
    is_bad(COMMON ", \"glusterfs\": {}", "has removed or retired this volume type");
    is_bad("\"accessModes\": [\"ReadWriteOnce\"], \"hostPath\": {\"path\": \"/a\"}", "storage is required");
    is_bad(
        "\"capacity\": {\"storage\": \"1Gi\"}, \"accessModes\": [\"ReadWriteOnce\", \"ReadWriteOncePod\"], "
        "\"hostPath\": {\"path\": \"/a\"}",
        "may not use ReadWriteOncePod with other access modes");
    is_bad(COMMON ", \"nfs\": {\"server\": \"s\", \"path\": \"a\"}", "must be an absolute path");
    is_bad(COMMON ", \"iscsi\": {\"targetPortal\": \"s\", \"iqn\": \"x\", \"lun\": 0}",
           "must start with iqn.");
    is_bad(COMMON ", \"iscsi\": {\"targetPortal\": \"s\", \"iqn\": \"iqn.x\", \"lun\": 0, "
                  "\"chapAuthDiscovery\": true}",
           "is required with chapAuthDiscovery");
    is_bad(COMMON ", \"fc\": {}", "must specify either targetWWNs or wwids");
    is_bad(COMMON ", \"fc\": {\"targetWWNs\": [\"a\"]}", "is required if targetWWNs is specified");
    is_bad(COMMON ", \"flexVolume\": {\"driver\": \"a/b\", \"options\": {\"a.kubernetes.io/x\": \"y\"}}",
           "namespaces are reserved");
    is_bad(
        COMMON
        ", \"csi\": {\"driver\": \"d\", \"volumeHandle\": \"h\", \"nodeStageSecretRef\": {\"name\": \"n\"}}",
        "needs a name and a namespace");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources_reach_the_structs),
        cmocka_unit_test(what_kubernetes_refuses_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
