/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as an apiserver has them: what is dropped, what keeps a pod from running, what is not a manifest's.
 */
#include "helper.h"

#include <string.h>

static struct api_object served(const char *text)
{
    json_auto_t *o = json_loads(text, 0, NULL);
    struct api_object made = { 0 };
    struct err e = { 0 };

    assert_non_null(o);
    if (api_decode_served(o, &made, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return made;
}

static void refused(const char *text, const char *why)
{
    json_auto_t *o = json_loads(text, 0, NULL);
    struct api_object made = { 0 };
    struct err e = { 0 };

    assert_int_equal(api_decode_served(o, &made, &e), ERR_INVALID);
    if (strstr(e.text, why) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", e.text, why);
}

#define META "\"name\": \"a\", \"namespace\": \"n\", \"uid\": \"u-1\", \"resourceVersion\": \"7\""
#define POD(meta, spec, status)                                                                              \
    "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {" META meta "}, \"spec\": {\"containers\": " \
    "[{\"name\": \"c\", \"image\": \"i\", \"newField\": 1}]" spec "}, \"status\": {" status "}}"

static void test_drops(void **state)
{
    struct api_object o = served(POD(", \"managedFields\": [{\"anything\": 1}], \"fieldOfMeta\": {}",
                                     ", \"fieldOfSpec\": [1]", "\"phase\": \"Running\", \"unknown\": 3"));

    (void)state;
    assert_int_equal(o.kind, API_KIND_POD);
    assert_int_equal(o.pod->origin, API_FROM_SERVER);
    assert_int_equal(api_object_origin(&o), API_FROM_SERVER);
    assert_null(strstr(o.pod->json, "newField"));
    assert_null(strstr(o.pod->json, "fieldOf"));
    assert_null(strstr(o.pod->json, "status"));
    assert_null(strstr(o.pod->json, "resourceVersion"));
    assert_string_equal(o.pod->meta.uid, "u-1");
    assert_null(o.pod->served.problem);
    assert_false(o.pod->served.deleting);
    api_object_unref(&o);
}

static void test_deletion_and_conditions(void **state)
{
    struct api_object o =
        served(POD(", \"deletionTimestamp\": \"2026-01-01T00:00:00Z\", \"deletionGracePeriodSeconds\": 7", "",
                   "\"conditions\": [{\"type\": \"x/y\", \"status\": \"True\"}, 3, {\"type\": 1}]"));

    (void)state;
    assert_true(o.pod->served.deleting);
    assert_int_equal(o.pod->served.deletion_grace_seconds, 7);
    assert_string_equal(o.pod->served.conditions, "{\"x/y\":\"True\"}");
    api_object_unref(&o);
}

static void test_problem(void **state)
{
    struct api_object o =
        served(POD(", \"deletionTimestamp\": \"2026-01-01T00:00:00Z\"",
                   ", \"volumes\": [{\"name\": \"v\", \"gitRepo\": {\"repository\": \"x\"}}]", ""));

    (void)state;
    assert_non_null(strstr(o.pod->served.problem, "spec.volumes[0].gitRepo: not supported: "));
    assert_true(o.pod->served.deleting);
    assert_int_equal(o.pod->spec.n_containers, 1);
    assert_string_equal(o.pod->spec.containers[0].image, "i");
    api_object_unref(&o);
}

static void test_storage(void **state)
{
    struct api_object o =
        served(POD("",
                   ", \"volumes\": [{\"name\": \"v\", \"csi\": {\"driver\": \"d\"}}, {\"name\": \"w\", "
                   "\"persistentVolumeClaim\": {\"claimName\": \"x\"}}]",
                   ""));

    (void)state;
    assert_null(o.pod->served.problem);
    assert_int_equal(o.pod->spec.volumes[1].kind, API_VOL_CLAIM);
    api_object_unref(&o);
    o = served("{\"apiVersion\": \"v1\", \"kind\": \"PersistentVolume\", \"metadata\": {\"name\": \"p\", "
               "\"uid\": \"u\"}, \"spec\": {\"capacity\": {\"storage\": \"1Gi\"}, \"accessModes\": "
               "[\"ReadWriteOnce\"], \"later\": 1, \"csi\": {\"driver\": \"d\", \"volumeHandle\": \"h\"}}, "
               "\"status\": {\"phase\": \"Bound\"}}");
    assert_int_equal(o.kind, API_KIND_PERSISTENT_VOLUME);
    assert_int_equal(o.generic->origin, API_FROM_SERVER);
    assert_string_equal(o.generic->pv->storage.driver, "d");
    api_object_unref(&o);
    o = served("{\"apiVersion\": \"storage.k8s.io/v1\", \"kind\": \"CSIDriver\", \"metadata\": {\"name\": "
               "\"d\"}, \"spec\": {\"attachRequired\": false, \"later\": 1}}");
    assert_int_equal(o.kind, API_KIND_CSI_DRIVER);
    api_object_unref(&o);
}

static void test_trust_bundles(void **state)
{
    static const struct {
        const char *source, *problem; /* NULL: it is taken */
    } all[] = {
        { "\"name\": \"a\", \"path\": \"p\"", NULL },
        { "\"name\": \"a.b:c:d.e\", \"optional\": true, \"path\": \"p\"", NULL },
        { "\"signerName\": \"a.b/c.d\", \"path\": \"p\"", NULL },
        { "\"signerName\": \"a.b/c\", \"labelSelector\": {\"matchLabels\": {\"x\": \"y\"}, "
          "\"matchExpressions\": [{\"key\": \"z\", \"operator\": \"DoesNotExist\"}]}, \"path\": \"p\"",
          NULL },
        { "\"path\": \"p\"", ": name or signerName is required" },
        { "\"name\": \"a\", \"signerName\": \"a.b/c\", \"path\": \"p\"",
          ": only one of name and signerName" },
        { "\"name\": \"\", \"path\": \"p\"", ".name: required" },
        { "\"name\": \"A\", \"path\": \"p\"", ".name: the name of \"A\" must be" },
        { "\"name\": \"a.b:c:D\", \"path\": \"p\"", ".name: what follows the last ':' of \"a.b:c:D\" must" },
        { "\"name\": \"a.b/c:d\", \"path\": \"p\"",
          ".name: \"a.b/c:d\" has the signer's '/' written as ':'" },
        { "\"name\": \"a\", \"labelSelector\": {}, \"path\": \"p\"",
          ".labelSelector: not allowed with name" },
        { "\"signerName\": \"\", \"path\": \"p\"", ".signerName: required" },
        { "\"signerName\": \"a.b\", \"path\": \"p\"", ".signerName: \"a.b\" must be a domain and a path" },
        { "\"signerName\": \"ab/c\", \"path\": \"p\"", ".signerName: the domain of \"ab/c\" needs" },
        { "\"signerName\": \"a..b/c\", \"path\": \"p\"", ".signerName: each part of the domain" },
        { "\"signerName\": \"a.b/c.\", \"path\": \"p\"", ".signerName: each part of the path" },
        { "\"signerName\": \"a.b/c\", \"labelSelector\": {\"matchExpressions\": [{\"key\": \"z\", "
          "\"operator\": \"In\"}]}, \"path\": \"p\"",
          ".labelSelector.matchExpressions[0].values: at least one" },
        { "\"name\": \"a\", \"path\": \"../p\"", ".path: " },
        { "\"name\": \"a\"", ".path: required" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        str_auto volume = str_printf(", \"volumes\": [{\"name\": \"v\", \"projected\": {\"sources\": "
                                     "[{\"clusterTrustBundle\": {%s}}]}}]",
                                     all[i].source);
        str_auto text = str_printf(POD("", "%s", ""), volume);
        struct api_object o = served(text);

        if (all[i].problem == NULL && o.pod->served.problem != NULL)
            fail_msg("%s: %s", all[i].source, o.pod->served.problem);
        if (all[i].problem != NULL &&
            (o.pod->served.problem == NULL || strstr(o.pod->served.problem, all[i].problem) == NULL))
            fail_msg("%s: %s", all[i].source, o.pod->served.problem);
        api_object_unref(&o);
    }
}

#define EPHEMERAL(members) ", \"ephemeralContainers\": [{\"name\": \"d\", \"image\": \"i\"" members "}]"

static void test_ephemeral(void **state)
{
    struct api_object o =
        served(POD("", EPHEMERAL(", \"targetContainerName\": \"c\", \"resources\": {}"), ""));
    const struct api_container *c = o.pod->spec.ephemeral_containers;
    struct api_problems problems = { 0 };
    struct api_pod *recorded;
    struct err e = { 0 };
    json_auto_t *manifest = json_loads(o.pod->json, 0, NULL);

    (void)state;
    assert_null(o.pod->served.problem);
    assert_int_equal(o.pod->ignored.n, 0);
    assert_int_equal(o.pod->spec.n_ephemeral_containers, 1);
    assert_string_equal(c->name, "d");
    assert_string_equal(c->target, "c");
    assert_int_equal(c->pull_policy, API_PULL_ALWAYS);
    assert_ptr_equal(api_ephemeral_find(&o.pod->spec, "d"), c);
    assert_null(api_ephemeral_find(&o.pod->spec, "c"));
    assert_ptr_equal(api_container_at(&o.pod->spec, 0), o.pod->spec.containers);
    assert_null(api_container_at(&o.pod->spec, 1));
    /* what the agent writes into its record is read back */
    assert_int_equal(api_decode_pod(manifest, &recorded, &problems, &e), ERR_OK);
    assert_int_equal(problems.n, 0);
    assert_string_equal(recorded->spec.ephemeral_containers[0].target, "c");
    api_pod_unref(recorded);
    api_object_unref(&o);
}

/* No apiserver lets them through; this one does. */
static void test_ephemeral_rules(void **state)
{
    static const struct {
        const char *members, *problem;
    } bad[] = {
        { ", \"ports\": [{\"containerPort\": 80}]", "[0].ports: not allowed for ephemeral containers" },
        { ", \"livenessProbe\": {\"exec\": {\"command\": [\"x\"]}}", "[0].livenessProbe: not allowed" },
        { ", \"lifecycle\": {\"preStop\": {\"exec\": {\"command\": [\"x\"]}}}",
          "[0].lifecycle: not allowed" },
        { ", \"restartPolicy\": \"Always\"", "[0].restartPolicy: not allowed" },
        { ", \"resources\": {\"limits\": {\"cpu\": \"1\"}}", "[0].resources.limits: not allowed" },
        { ", \"volumeMounts\": [{\"name\": \"v\", \"mountPath\": \"/v\", \"subPath\": \"s\"}]",
          "[0].volumeMounts[0].subPath: not allowed" },
        { ", \"volumeMounts\": [{\"name\": \"w\", \"mountPath\": \"/v\"}]", "there is no volume \"w\"" },
        { ", \"targetContainerName\": \"x\"", "[0].targetContainerName: there is no container \"x\"" },
        { "}, {\"name\": \"d\", \"image\": \"i\"", "[1].name: \"d\" is the name of another container" },
        { "}, {\"name\": \"c\", \"image\": \"i\"", "[1].name: \"c\" is the name of another container" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        str_auto spec = str_printf(", \"volumes\": [{\"name\": \"v\", \"emptyDir\": {}}]" EPHEMERAL("%s"),
                                   bad[i].members);
        str_auto text = str_printf(POD("", "%s", ""), spec);
        struct api_object o = served(text);

        if (o.pod->served.problem == NULL || strstr(o.pod->served.problem, bad[i].problem) == NULL)
            fail_msg("\"%s\" does not contain \"%s\"",
                     o.pod->served.problem != NULL ? o.pod->served.problem : "", bad[i].problem);
        api_object_unref(&o);
    }
}

static void test_hostile(void **state)
{
    (void)state;
    refused("[]", "?: ");
    refused("{}", "kind");
    refused("{\"kind\": \"Service\", \"apiVersion\": \"v1\"}", "Service: kind: ");
    refused("{\"kind\": \"Pod\", \"apiVersion\": \"v1\"}", "name");
    refused("{\"kind\": \"Pod\", \"apiVersion\": \"v1\", \"metadata\": 3, \"spec\": [], \"status\": 1}", "");
    refused("{\"kind\": \"Pod\", \"apiVersion\": \"v1\", \"metadata\": {" META
            "}, \"spec\": {\"containers\": 7}}",
            "spec.containers");
    refused("{\"kind\": \"Secret\", \"apiVersion\": \"v1\", \"metadata\": {" META
            "}, \"data\": {\"k\": \"%\"}}",
            "data");
}

static void test_configs(void **state)
{
    struct api_object o = served("{\"kind\": \"Secret\", \"apiVersion\": \"v1\", \"metadata\": {" META
                                 "}, \"data\": {\"k\": \"YQ==\"}, \"type\": \"Opaque\", \"later\": true}");

    (void)state;
    assert_int_equal(o.kind, API_KIND_SECRET);
    assert_int_equal(o.config->origin, API_FROM_SERVER);
    assert_int_equal(api_config_get(o.config, "k")->size, 1);
    api_object_unref(&o);
}

static void test_static(void **state)
{
    static const char text[] =
        "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, "
        "image: i}]}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}\n";
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(api_decode_static("f", text, strlen(text), "node-1", &objects, &problems, &e), ERR_OK);
    if (problems.n > 0)
        fail_msg("%s: %s", problems.v[0].field, problems.v[0].message);
    assert_int_equal(objects.n, 2);
    assert_string_equal(objects.v[0].pod->meta.name, "web-node-1");
    assert_int_equal(objects.v[0].pod->spec.n_tolerations, 1);
    assert_string_equal(objects.v[0].pod->spec.tolerations[0].effect, "NoExecute");
    assert_string_equal(objects.v[1].config->meta.name, "web");
    api_objects_done(&objects);
    assert_int_equal(api_decode_static("f", text, strlen(text), NULL, &objects, &problems, &e), ERR_OK);
    assert_string_equal(objects.v[0].pod->meta.name, "web");
    api_objects_done(&objects);
    api_problems_done(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drops),           cmocka_unit_test(test_deletion_and_conditions),
        cmocka_unit_test(test_problem),         cmocka_unit_test(test_storage),
        cmocka_unit_test(test_trust_bundles),   cmocka_unit_test(test_ephemeral),
        cmocka_unit_test(test_ephemeral_rules), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_configs),         cmocka_unit_test(test_static),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
