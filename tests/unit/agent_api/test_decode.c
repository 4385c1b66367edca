/* SPDX-License-Identifier: Apache-2.0 */
/* Files, documents, kinds, lists; what a whole manifest becomes. */
#include "helper.h"

#include "agent/api/yaml/yaml.h"

static void one_file_holds_objects_of_all_kinds(void **state)
{
    struct decoded d;

    (void)state;
    decode(
        &d,
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop, uid: abc-1, labels: {app: web}}\n"
        "spec: {containers: [{name: c, image: busybox}]}\n"
        "---\n# only a comment\n---\n"
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cfg}\ndata: {a: x}\n---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\n"
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n");
    assert_int_equal(d.problems.n, 0);
    assert_int_equal(d.objects.n, 4);
    assert_int_equal(d.objects.v[0].kind, API_KIND_POD);
    assert_int_equal(d.objects.v[0].document, 1);
    assert_string_equal(d.objects.v[0].pod->meta.namespace, "shop");
    assert_string_equal(d.objects.v[0].pod->meta.uid, "abc-1");
    assert_string_equal(api_kvs_get(&d.objects.v[0].pod->meta.labels, "app"), "web");
    assert_null(api_kvs_get(&d.objects.v[0].pod->meta.labels, "nope"));
    assert_int_equal(d.objects.v[1].document, 3);
    assert_string_equal(d.objects.v[1].config->meta.namespace, "default");
    assert_null(d.objects.v[1].config->type);
    assert_int_equal(d.objects.v[2].config->kind, API_SECRET);
    assert_string_equal(d.objects.v[2].config->type, "Opaque");
    assert_int_equal(d.objects.v[3].priority_class->value, 1000);
    assert_null(d.objects.v[3].priority_class->meta.namespace);
    assert_string_equal(d.objects.v[3].priority_class->preemption_policy, "PreemptLowerPriority");
    decoded_done(&d);
}

static void every_mistake_of_a_manifest_is_named(void **state)
{
    (void)state;
    text_is_bad("apiVersion: v1\nkind: Pod\nmetadata: {name: Web, labels: {app: 8080}}\nspec:\n"
                "  restartPolicy: Sometimes\n  replicas: 3\n  hostNetwork: \"true\"\n  containers:\n"
                "  - name: main\n    image: \" x\"\n    imagepullPolicy: Always\n"
                "    ports: [{containerPort: 70000}, {containerPort: \"80\"}]\n"
                "    env: [{name: A=B}, {name: OK, value: 5}]\n"
                "    volumeMounts: [{name: nope, mountPath: /a}]\n"
                "  - name: main\n    image: x\n",
                "metadata.name: \"Web\" must be a DNS name: at most 253 characters of a-z, 0-9, '-' and '.', "
                "each part "
                "beginning and ending with a letter or digit",
                "metadata.labels[app]: expected a string, got a number: put it in quotes",
                "spec.restartPolicy: \"Sometimes\" is not supported, allowed are Always, OnFailure and Never",
                "spec.replicas: unknown field",
                "spec.hostNetwork: expected true or false, got a string: leave the quotes out",
                "spec.containers[0].image: \" x\" must not begin or end with white space",
                "spec.containers[0].imagepullPolicy: unknown field, did you mean imagePullPolicy?",
                "spec.containers[0].ports[0].containerPort: 70000 is out of range, allowed are 1 to 65535",
                "spec.containers[0].ports[1].containerPort: expected a whole number, got a string: leave the "
                "quotes out",
                "spec.containers[0].env[0].name: \"A=B\" must be printable ASCII characters without '='",
                "spec.containers[0].env[1].value: expected a string, got a number: put it in quotes",
                "spec.containers[0].volumeMounts[0].name: there is no volume \"nope\" in this pod",
                "spec.containers[1].name: \"main\" is the name of another container of this pod, too");
}

static void good_documents_survive_bad_ones(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n"
               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: B}\n---\n"
               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n"
               "oops: [\n");
    assert_int_equal(d.objects.n, 2);
    assert_string_equal(d.objects.v[1].config->meta.name, "c");
    assert_int_equal(d.problems.n, 2);
    assert_string_equal(d.problems.v[0].field, "metadata.name");
    assert_int_equal(d.problems.v[0].document, 2);
    assert_string_equal(d.problems.v[1].field, "");
    assert_int_equal(d.problems.v[1].document, 4);
    assert_int_equal(d.problems.v[1].place.line, 14);
    decoded_done(&d);
}

static void an_unknown_kind_is_one_problem_that_names_the_known_ones(void **state)
{
    (void)state;
    text_is_bad(
        "apiVersion: apps/v1\nkind: Gadget\nmetadata: {name: x}\nspec: {replicas: 1}\n",
        "kind: \"Gadget\" is not handled by a node, allowed are Pod, ConfigMap, Secret, Deployment, "
        "ReplicaSet, "
        "StatefulSet, DaemonSet, Job, CronJob, PersistentVolumeClaim, PriorityClass, RuntimeClass, kinds "
        "that are only shown (Service, Ingress ...), List, and typed lists such as PodList");
    text_is_bad("apiVersion: v2\nkind: Pod\n",
                "apiVersion: \"v2\" is not supported for kind Pod, allowed is v1");
    text_is_bad("apiVersion: v1\n", "kind: required");
    text_is_bad("apiVersion: v1\nkind: 5\n", "kind: expected a string");
    text_is_bad("- a\n", "expected an object with apiVersion, kind and metadata");
    text_is_bad("just text\n", "expected an object with apiVersion, kind and metadata");
}

static void without_a_version_the_other_problems_are_named_too(void **state)
{
    struct decoded d;

    (void)state;
    text_is_bad("kind: Pod\n", "apiVersion: required", "metadata.name: required",
                "spec.containers: required");
    text_is_bad("apiVersion:\nkind: Secret\n", "apiVersion: required", "metadata.name: required");
    text_is_bad("apiVersion: ''\nkind: Secret\n", "apiVersion: required", "metadata.name: required");
    text_is_bad("kind: List\nitems: [{kind: Secret}]\n", "apiVersion: required",
                "items[0].apiVersion: required", "items[0].metadata.name: required");

    decode(&d, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n"
               "{kind: ConfigMap, metadata: {name: b}}\n---\n"
               "{kind: ConfigMapList, items: [{metadata: {name: c}}]}\n");
    assert_int_equal(d.problems.n, 2);
    assert_int_equal(d.objects.n, 1);
    assert_string_equal(d.objects.v[0].config->meta.name, "a");
    decoded_done(&d);
}

static void lists_are_opened(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d, "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n"
               "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
               "- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n---\n"
               "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: c}\n");
    assert_int_equal(d.problems.n, 0);
    assert_int_equal(d.objects.n, 3);
    assert_string_equal(d.objects.v[2].config->meta.name, "c");
    assert_int_equal(d.objects.v[2].document, 2);
    decoded_done(&d);

    text_is_bad(
        "apiVersion: v1\nkind: List\nitem: []\nitems:\n- 5\n- {apiVersion: v1, kind: List}\n"
        "- {apiVersion: v1, kind: ConfigMap, metadata: {name: A}}\n",
        "item: unknown field, did you mean items?", "items[0]: expected an object",
        "items[1].kind: \"List\": a list in a list is not supported",
        "items[2].metadata.name: \"A\" must be a DNS name: at most 253 characters of a-z, 0-9, '-' and '.', "
        "each part beginning and ending with a letter or digit");
    text_is_bad("apiVersion: v1\nkind: PodList\nitems: [{kind: Secret}]\n",
                "items[0].kind: \"Secret\" in a PodList, allowed is Pod");
    text_is_bad(
        "apiVersion: apps/v1\nkind: GadgetList\nitems: []\n",
        "kind: \"GadgetList\" is not handled by a node, allowed are Pod, ConfigMap, Secret, Deployment, "
        "ReplicaSet, "
        "StatefulSet, DaemonSet, Job, CronJob, PersistentVolumeClaim, PriorityClass, RuntimeClass, kinds "
        "that are only shown (Service, Ingress ...), List, and typed lists such as PodList");
    text_is_bad("apiVersion: v1\nkind: PodList\nitems: {}\n", "items: expected a list");
}

static void a_name_that_would_have_been_generated_is_dropped(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d, "apiVersion: v1\nkind: Pod\nmetadata: {name: a-x7k2p, generateName: a-}\n"
               "spec: {containers: [{name: main, image: x}]}\n");
    assert_int_equal(the_pod(&d)->ignored.n, 0);
    assert_string_equal(the_pod(&d)->meta.name, "a-x7k2p");
    assert_null(strstr(the_pod(&d)->json, "generateName"));
    decoded_done(&d);
    text_is_bad("apiVersion: v1\nkind: Pod\nmetadata: {name: '', generateName: a-}\n"
                "spec: {containers: [{name: main, image: x}]}\n",
                "metadata.name: required",
                "metadata.generateName: not supported: nothing generates names here; set metadata.name");
}

static void metadata_follows_the_rules(void **state)
{
    (void)state;
    text_is_bad("apiVersion: v1\nkind: ConfigMap\n", "metadata.name: required");
    text_is_bad("apiVersion: v1\nkind: ConfigMap\nmetadata: 5\n",
                "metadata: expected an object, got a number");
    text_is_bad("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-, namespace: A.b, uid: ../x}\n",
                "metadata.name: required",
                "metadata.generateName: not supported: nothing generates names here; set metadata.name",
                "metadata.namespace: \"A.b\" must be 1 to 63 characters of a-z, 0-9 and '-', beginning and "
                "ending with "
                "a letter or digit",
                "metadata.uid: \"../x\" must be 1 to 128 letters, digits and '-', not beginning with '-'");
    text_is_bad(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {-x: y, a: 'b c'}\n"
        "  annotations: {'a b': x}\n",
        "metadata.labels[-x]: the key \"-x\" must be a name of 1 to 63 characters (letters, digits, '-', "
        "'_', "
        "'.', beginning and ending with a letter or digit), optionally behind a DNS name and '/'",
        "metadata.labels[a]: the value \"b c\" must be empty or 1 to 63 letters, digits, '-', '_' and '.', "
        "beginning and ending with a letter or digit",
        "metadata.annotations[a b]: the key \"a b\" must be a name of 1 to 63 characters (letters, digits, "
        "'-', '_', '.', beginning and ending with a letter or digit), optionally behind a DNS name and '/'");
    text_is_bad("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: a, namespace: "
                "b}\nvalue: 1\n",
                "metadata.namespace: not supported: objects of this kind have no namespace");
}

static void annotations_have_a_total_limit(void **state)
{
    struct buf b = BUF_INIT(1 << 20);

    (void)state;
    buf_adds(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    k: '");
    for (int i = 0; i < 262144; i++)
        buf_addc(&b, 'x');
    buf_adds(&b, "'\n");
    text_is_bad(b.p, "metadata.annotations: 262145 bytes are too many, at most 262144 are allowed");
    buf_done(&b);
}

static void bookkeeping_of_an_api_server_is_dropped(void **state)
{
    struct decoded d;
    json_t *json;

    (void)state;
    decode(&d, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  creationTimestamp: null\n  "
               "resourceVersion: '5'\n"
               "  generation: 3\n  selfLink: /x\n  finalizers: [a/b]\n  deletionGracePeriodSeconds: 30\n"
               "  ownerReferences: [{apiVersion: v1, kind: Node, name: n, uid: u, controller: true}]\n"
               "  managedFields: [{manager: kubectl, operation: Update, fieldsV1: {'f:spec': {}}}]\n"
               "spec: {containers: [{name: c, image: busybox}]}\nstatus: {phase: Running}\n");
    json = json_loads(the_pod(&d)->json, 0, NULL);
    assert_null(json_object_get(json, "status"));
    assert_int_equal(json_object_size(json_object_get(json, "metadata")), 3);
    assert_int_equal(the_pod(&d)->meta.generation, 3);
    json_decref(json);
    decoded_done(&d);
    text_is_bad(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, finalizers: 5, ownerReferences: [{x: 1}]}\n",
        "metadata.finalizers: expected a list, got a number", "metadata.ownerReferences[0].x: unknown field");
}

static void the_json_shows_the_defaults_of_the_api(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d,
           "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: c\n    image: "
           "busybox\n"
           "    ports: [{containerPort: 80}]\n    livenessProbe: {httpGet: {port: 80}}\n"
           "    env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]\n"
           "  volumes: [{name: v}, {name: s, secret: {secretName: x}}, {name: h, hostPath: {path: /x}}]\n");
    assert_string_equal(
        the_pod(&d)->json,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\",\"namespace\":\"default\"},"
        "\"spec\":{"
        "\"containers\":[{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\","
        "\"fieldPath\":"
        "\"metadata.name\"}}}],\"image\":\"busybox\",\"imagePullPolicy\":\"Always\",\"livenessProbe\":{"
        "\"failureThreshold\":3,\"httpGet\":{\"path\":\"/"
        "\",\"port\":80,\"scheme\":\"HTTP\"},\"periodSeconds\":10,"
        "\"successThreshold\":1,\"timeoutSeconds\":1},\"name\":\"c\",\"ports\":[{\"containerPort\":80,"
        "\"protocol\":"
        "\"TCP\"}],\"resources\":{},\"terminationMessagePath\":\"/dev/"
        "termination-log\",\"terminationMessagePolicy\":"
        "\"File\"}],\"dnsPolicy\":\"ClusterFirst\",\"enableServiceLinks\":true,\"restartPolicy\":\"Always\","
        "\"schedulerName\":\"default-scheduler\",\"securityContext\":{},\"terminationGracePeriodSeconds\":30,"
        "\"volumes\":[{\"emptyDir\":{},\"name\":\"v\"},{\"name\":\"s\",\"secret\":{\"defaultMode\":420,"
        "\"secretName\":"
        "\"x\"}},{\"hostPath\":{\"path\":\"/x\",\"type\":\"\"},\"name\":\"h\"}]}}");
    decoded_done(&d);
}

static void a_pod_reads_back_from_its_own_json(void **state)
{
    struct api_problems problems = { 0 };
    struct api_pod *again = NULL;
    struct err e = { 0 };
    struct decoded d;
    json_t *json;

    (void)state;
    decode_pod(&d,
               "resources: {limits: {cpu: 0.5, memory: 64Mi}}\nports: [{containerPort: 80}]\n"
               "lifecycle: {preStop: {sleep: {seconds: 1}}}\n"
               "volumeMounts: [{name: p, mountPath: /p}]",
               "hostNetwork: true\nvolumes:\n- name: p\n  projected:\n    sources:\n"
               "    - downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.labels}, mode: 0400}]}\n"
               "    - configMap: {name: c}");
    json = json_loads(the_pod(&d)->json, 0, NULL);
    assert_int_equal(api_decode_pod(json, &again, &problems, &e), ERR_OK);
    assert_int_equal(problems.n, 0);
    assert_string_equal(again->json, the_pod(&d)->json);
    assert_int_equal(again->spec.containers[0].ports[0].host_port, 80);
    api_pod_unref(again);
    json_decref(json);

    json = json_pack("{s:s,s:s,s:{}}", "apiVersion", "v1", "kind", "Pod", "spec");
    again = (struct api_pod *)1;
    assert_int_equal(api_decode_pod(json, &again, &problems, &e), ERR_OK);
    assert_null(again);
    assert_string_equal(problems.v[0].field, "metadata.name");
    assert_string_equal(problems.v[1].field, "spec.containers");
    json_decref(json);
    api_problems_done(&problems);
    decoded_done(&d);
}

static void json_files_are_read(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d,
           "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"ConfigMap\",\n\t\"metadata\": {\"name\": \"a\"},\n"
           "\t\"data\": {\"k\": \"v\"}\n}\n");
    assert_int_equal(d.problems.n, 0);
    assert_int_equal(d.objects.n, 1);
    decoded_done(&d);
    text_is_bad("{\"kind\": \"Pod\", \"kind\": \"Pod\"}", "not JSON: duplicate object key near '\"kind\"'");
}

static void numbers_that_are_whole_are_whole(void **state)
{
    struct decoded d;

    (void)state;
    decode_pod(&d, "", "terminationGracePeriodSeconds: 20.0\npriority: 1e3");
    assert_int_equal(the_pod(&d)->spec.termination_grace_seconds, 20);
    assert_int_equal(the_pod(&d)->spec.priority, 1000);
    assert_non_null(strstr(the_pod(&d)->json, "\"priority\":1000,"));
    decoded_done(&d);
    pod_is_bad("", "priority: 1.5\nterminationGracePeriodSeconds: 1e30",
               "spec.priority: expected a whole number, got 1.5",
               "spec.terminationGracePeriodSeconds: expected a whole number, got 1e+30");
    pod_is_bad("", "priority: 2147483648",
               "spec.priority: 2147483648 is out of range, allowed are -2147483648 to 2147483647");
}

static void wrong_types_are_named(void **state)
{
    (void)state;
    pod_is_bad("command: sh",
               "nodeSelector: [a]\nvolumes: {a: b}\ntolerations: [5]\nsecurityContext: x\naffinity: 3",
               "spec.containers[0].command: expected a list, got a string",
               "spec.nodeSelector: expected an object, got a list",
               "spec.volumes: expected a list, got an object",
               "spec.tolerations[0]: expected an object, got a number",
               "spec.securityContext: expected an object, got a string",
               "spec.affinity: expected an object, got a number");
    pod_is_bad("args: [a, 1, null]\ntty: maybe\nresources: {limits: {cpu: {}, memory: [1]}}", "",
               "spec.containers[0].args[1]: expected a string, got a number: put it in quotes",
               "spec.containers[0].args[2]: expected a string, got nothing",
               "spec.containers[0].tty: expected true or false, got a string",
               "spec.containers[0].resources.limits[cpu]: expected a quantity (500m, 1.5Gi), got an object",
               "spec.containers[0].resources.limits[memory]: expected a quantity (500m, 1.5Gi), got a list");
    text_is_bad("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: x}\n",
                "spec.containers: expected a list, got a string");
    text_is_bad("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n",
                "spec.containers: required");
    text_is_bad("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "spec.containers: required");
}

static void too_many_problems_are_counted(void **state)
{
    struct buf b = BUF_INIT(1 << 20);
    struct decoded d;

    (void)state;
    buf_adds(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    for (int i = 0; i < 500; i++)
        buf_addf(&b, "x%d: 1\n", i);
    decode(&d, b.p);
    assert_int_equal(d.problems.n, API_PROBLEMS_MAX);
    assert_string_equal(d.problems.v[API_PROBLEMS_MAX - 1].message, "and 301 more problems, not shown");
    decoded_done(&d);
    buf_done(&b);
}

static void sizes_are_limited(void **state)
{
    struct buf b = BUF_INIT(16 << 20);
    struct decoded d;

    (void)state;
    for (int i = 0; i < API_FILE_MAX + 1; i++)
        buf_addc(&b, '#');
    decode(&d, b.p);
    assert_int_equal(d.problems.n, 1);
    assert_string_equal(d.problems.v[0].message, "10485761 bytes are too many, at most 10485760 are allowed");
    decoded_done(&d);
    buf_reset(&b);
    buf_adds(&b, "args: [");
    for (int i = 0; i < 2001; i++)
        buf_adds(&b, "a,");
    buf_adds(&b, "]");
    pod_is_bad(b.p, "", "spec.containers[0].args: 2001 elements are too many, at most 2000 are allowed");
    buf_done(&b);
}

static void names_in_paths_cannot_play_tricks(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n\"x\\e[31m\\n\": 1\n");
    assert_int_equal(d.problems.n, 1);
    assert_string_equal(d.problems.v[0].field, "x?[31m?");
    decoded_done(&d);
}

static void priority_classes_keep_the_systems_range(void **state)
{
    struct decoded d;

    (void)state;
#define CLASS(name, rest)                                                                                    \
    "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " name "}\n" rest
    text_is_bad(CLASS("a", "value: 1000000001\n"),
                "value: 1000000001 is out of range, allowed is at most 1000000000");
    text_is_bad(CLASS("system-x", "value: 1\n"),
                "metadata.name: \"system-x\": names that begin with \"system-\" are reserved");
    text_is_bad(CLASS("system-node-critical", "value: 1\nglobalDefault: true\n"),
                "value: system-node-critical has the value 2000001000",
                "globalDefault: system-node-critical cannot be the default");
    text_is_bad(CLASS("a", "value: 1\npreemptionPolicy: x\n"),
                "preemptionPolicy: \"x\" is not supported, allowed are PreemptLowerPriority and Never");
    decode(&d, CLASS("system-cluster-critical", "value: 2000000000\ndescription: d\n"));
    assert_int_equal(d.problems.n, 0);
    assert_string_equal(d.objects.v[0].priority_class->description, "d");
    decoded_done(&d);
    decode(&d, CLASS("low", "value: -2147483648\nglobalDefault: true\n"));
    assert_int_equal(d.problems.n, 0);
    assert_true(d.objects.v[0].priority_class->global_default);
    decoded_done(&d);
#undef CLASS
}

static void a_runtime_class_names_its_handler(void **state)
{
    struct decoded d;

    (void)state;
#define CLASS(rest) "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: a}\n" rest
    decode(&d, CLASS("handler: runc\noverhead: {podFixed: {memory: 32Mi, cpu: 100m}}\n"
                     "scheduling: {nodeSelector: {a: b}, tolerations: [{operator: Exists}]}\n"));
    assert_int_equal(d.problems.n, 0);
    assert_int_equal(d.objects.v[0].kind, API_KIND_RUNTIME_CLASS);
    assert_string_equal(d.objects.v[0].runtime_class->meta.name, "a");
    assert_string_equal(d.objects.v[0].runtime_class->handler, "runc");
    assert_int_equal(d.objects.v[0].runtime_class->overhead.n, 2);
    decoded_done(&d);
    text_is_bad(CLASS(""), "handler: required");
    text_is_bad(
        CLASS("handler: a/b\n"),
        "handler: \"a/b\" must be 1 to 63 characters of a-z, 0-9 and '-', beginning and ending with a "
        "letter or digit");
    text_is_bad(CLASS("handler: a\noverhead: {podFixed: {memory: -1}}\n"),
                "overhead.podFixed[memory]: -1 is negative, allowed are 0 and more");
    text_is_bad("apiVersion: node.k8s.io/v1beta1\nkind: RuntimeClass\nmetadata: {name: a}\nhandler: a\n",
                "apiVersion: \"node.k8s.io/v1beta1\" is not supported for kind RuntimeClass, allowed is "
                "node.k8s.io/v1");
#undef CLASS
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file_holds_objects_of_all_kinds),
        cmocka_unit_test(every_mistake_of_a_manifest_is_named),
        cmocka_unit_test(good_documents_survive_bad_ones),
        cmocka_unit_test(an_unknown_kind_is_one_problem_that_names_the_known_ones),
        cmocka_unit_test(without_a_version_the_other_problems_are_named_too),
        cmocka_unit_test(lists_are_opened),
        cmocka_unit_test(a_name_that_would_have_been_generated_is_dropped),
        cmocka_unit_test(metadata_follows_the_rules),
        cmocka_unit_test(annotations_have_a_total_limit),
        cmocka_unit_test(bookkeeping_of_an_api_server_is_dropped),
        cmocka_unit_test(the_json_shows_the_defaults_of_the_api),
        cmocka_unit_test(a_pod_reads_back_from_its_own_json),
        cmocka_unit_test(json_files_are_read),
        cmocka_unit_test(numbers_that_are_whole_are_whole),
        cmocka_unit_test(wrong_types_are_named),
        cmocka_unit_test(too_many_problems_are_counted),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(names_in_paths_cannot_play_tricks),
        cmocka_unit_test(priority_classes_keep_the_systems_range),
        cmocka_unit_test(a_runtime_class_names_its_handler),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
