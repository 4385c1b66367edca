/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_cli/served.h"

#include "base/codec/json.h"

/* ---- get --------------------------------------------------------------------------------------- */

static void objects_have_tables_of_their_own(void **state)
{
    struct fixture *f = *state;

    expect(f, "get nodes", 0,
           "NAME   STATUS     ROLES    AGE   VERSION\n"
           "n1     NotReady   <none>   2m    v0.1.0\n",
           "");
    expect(f, "get node/n1 -o wide --no-headers", 0,
           "n1    NotReady   <none>   2m    v0.1.0   10.0.0.1   6.1.0   crun://1.8\n", "");
    expect(f, "get cm", 0,
           "NAME       DATA   AGE\n"
           "settings   2      <unknown>\n",
           "");
    expect(f, "get configmaps -A", 0,
           "NAMESPACE   NAME       DATA   AGE\n"
           "a           other      0      <unknown>\n"
           "default     settings   2      <unknown>\n",
           "");
    expect(f, "get secrets", 0,
           "NAME    TYPE     DATA   AGE\n"
           "login   Opaque   2      <unknown>\n",
           "");
    expect(f, "get pc high", 0,
           "NAME   VALUE   GLOBAL-DEFAULT\n"
           "high   1000    false\n",
           "");
    expect(f, "get image localhost/b:1 --no-headers", 0,
           "docker.io/library/busybox:1   0123456789ab   5d    4.3MB\n"
           "localhost/b:1                 0123456789ab   5d    4.3MB\n",
           "");
    expect(f, "get secrets -n empty", 0, "", "No resources found in empty namespace.\n");
    expect(f, "get cm -A -o name", 0, "configmap/other\nconfigmap/settings\n", "");
}

static void devices_are_shown_with_the_pod_that_holds_them(void **state)
{
    struct fixture *f = *state;

    expect(f, "get devices", 0,
           "RESOURCE          DEVICE      HEALTH      NUMA     POD           CONTAINER\n"
           "example.com/gpu   gpu-2       Healthy     0,1      default/web   init,main\n"
           "example.com/gpu   gpu-10      Unhealthy   0        <none>        <none>\n"
           "example.com/usb   gone^[[2J   Unknown     <none>   a/z           main\n",
           "");
    expect(
        f, "get devices example.com/gpu -o wide --no-headers", 0,
        "example.com/gpu   gpu-2    Healthy     0,1   default/web   init,main   plugin gpu.sock, pid 812\n"
        "example.com/gpu   gpu-10   Unhealthy   0     <none>        <none>      plugin gpu.sock, pid 812\n",
        "");
    expect(f, "get device example.com/gpu --sort-by .health -o name", 0,
           "example.com/gpu/gpu-2\nexample.com/gpu/gpu-10\n", "");
    expect(f, "get devices -o jsonpath={.items[1].id}", 0, "gpu-10", "");
    expect(f, "get devices example.com/none", 5, "",
           "error: there are no devices of a resource \"example.com/none\"\n");
    expect(f, "get devices -w", 2, "", "error: devices cannot be watched or selected by labels\n");
    expect(f, "get devices/example.com/gpu", 2, "",
           "error: devices are listed by resource: 'coracle get devices example.com/gpu'\n");
}

static void objects_are_printed_whole(void **state)
{
    struct fixture *f = *state;
    json_t *value;

    expect(f, "get cm other -n a -o yaml", 0,
           "apiVersion: v1\ndata: {}\nkind: ConfigMap\nmetadata:\n  name: other\n  namespace: a\n", "");
    assert_int_equal(run(f, "get cm -o json"), 0); /* the list has no values, what is shown does */
    value = json_loads(f->out, 0, NULL);
    assert_string_equal(json_str(cli_at(json_array_get(cli_at(value, "items"), 0), "data"), "a.conf"),
                        "one = 1\n\ttwo");
    assert_null(cli_at(json_array_get(cli_at(value, "items"), 0), "sizes"));
    json_decref(value);
    assert_int_equal(run(f, "get image localhost/b:1 -o json"), 0);
    value = json_loads(f->out, 0, NULL);
    assert_string_equal(cli_text(value, "id"), "sha256:0123456789abcdef0123");
    json_decref(value);
}

static void objects_that_are_not_there_have_the_same_words_and_code(void **state)
{
    struct fixture *f = *state;

    expect(f, "get cm absent settings --no-headers", 5, "settings   2     <unknown>\n",
           "Error from server (NotFound): configmaps \"absent\" not found\n");
    expect(f, "describe node n2", 5, "", "Error from server (NotFound): nodes \"n2\" not found\n");
    expect(f, "describe secret nope", 5, "", "Error from server (NotFound): secrets \"nope\" not found\n");
    expect(f, "get pc nope", 5, "",
           "Error from server (NotFound): priorityclasses.scheduling.k8s.io \"nope\" not found\n");
    expect(f, "describe image absent:1", 5, "",
           "Error from server (NotFound): no such image: \"absent:1\"\n");
    expect(f, "get cm -w", 2, "", "error: configmaps cannot be watched\n");
    assert_int_equal(run(f, "describe secret/login secret"), 2);
    assert_string_equal(f->err, "error: secret: either all or none must be KIND/NAME\n");
    assert_int_equal(run(f, "describe pod/web gizmo/x"), 2);
    assert_string_equal(f->err, "error: the server doesn't have a resource type \"gizmo\": there are pods, "
                                "nodes, configmaps, secrets, "
                                "priorityclasses, images, persistentvolumeclaims, persistentvolumes, "
                                "controllerrevisions, daemonsets, deployments, "
                                "replicasets, statefulsets, cronjobs, jobs, csidrivers\n");
}

/* ---- describe ---------------------------------------------------------------------------------- */

static void config_maps_secrets_and_classes_are_described_as_kubectl_does(void **state)
{
    struct fixture *f = *state;

    expect(f, "describe configmap settings", 0,
           "Name:         settings\n"
           "Namespace:    default\n"
           "Labels:       app=web\n"
           "Annotations:  <none>\n"
           "Immutable:    true\n"
           "\n"
           "Data\n"
           "====\n"
           "a.conf:\n"
           "----\n"
           "one = 1\n"
           " two\n"
           "\n"
           "\n"
           "BinaryData\n"
           "====\n"
           "logo: 3 bytes\n"
           "\n"
           "Events:  <none>\n",
           "");
    expect(f, "describe secret", 0,
           "Name:         login\n"
           "Namespace:    default\n"
           "Labels:       <none>\n"
           "Annotations:  <none>\n"
           "\n"
           "Type:  Opaque\n"
           "\n"
           "Data\n"
           "====\n"
           "password:  12 bytes\n"
           "user:      4 bytes\n",
           "");
    expect(f, "describe priorityclass/high", 0,
           "Name:           high\n"
           "Labels:         <none>\n"
           "Annotations:    <none>\n"
           "Value:          1000\n"
           "GlobalDefault:  false\n"
           "Description:    first\n",
           "");
    expect(f, "describe image docker.io/library/busybox:1", 0,
           "Names:     docker.io/library/busybox:1\n"
           "           localhost/b:1\n"
           "Image ID:  sha256:0123456789abcdef0123\n"
           "Created:   Sun, 28 Dec 2025 03:06:05 +0000 (5d ago)\n"
           "Size:      4.3MB\n"
           "Own:       0B\n"
           "Shared:    0B\n"
           "Pinned:    no\n"
           "Used By:   pod default/db\n"
           "           pod default/web\n",
           "");
}

static void the_node_is_described_with_what_its_pods_ask_for(void **state)
{
    struct fixture *f = *state;

    expect(
        f, "describe node", 0,
        "Name:               n1\n"
        "Roles:              <none>\n"
        "Labels:             kubernetes.io/os=linux\n"
        "                    zone=a\n"
        "Annotations:        <none>\n"
        "CreationTimestamp:  Fri, 02 Jan 2026 03:04:05 +0000\n"
        "Taints:             dedicated=db:NoSchedule\n"
        "Conditions:\n"
        "  Type   Status  Reason           Message\n"
        "  ----   ------  ------           -------\n"
        "  Ready  False   KubeletNotReady  no network\n"
        "Addresses:\n"
        "  InternalIP:  10.0.0.1\n"
        "  Hostname:    n1\n"
        "Capacity:\n"
        "  cpu:              2\n"
        "  example.com/gpu:  2\n"
        "  memory:           4Gi\n"
        "  pods:             110\n"
        "Allocatable:\n"
        "  cpu:              2\n"
        "  example.com/gpu:  1\n"
        "  memory:           2Gi\n"
        "  pods:             110\n"
        "System Info:\n"
        "  Kernel Version:             6.1.0\n"
        "  Architecture:               amd64\n"
        "  Container Runtime Version:  crun://1.8\n"
        "  Kubelet Version:            v0.1.0\n"
        "Non-terminated Pods:          (3 in total)\n"
        "  Namespace                   Name  CPU Requests  CPU Limits   Memory Requests  Memory Limits  Age\n"
        "  ---------                   ----  ------------  ----------   ---------------  -------------  ---\n"
        "  a                           z     0 (0%)        0 (0%)       0 (0%)           0 (0%)         "
        "<unknown>\n"
        "  default                     db    0 (0%)        0 (0%)       0 (0%)           0 (0%)         5s\n"
        "  default                     web   500m (25%)    1500m (75%)  64Mi (3%)        128Mi (6%)     2m\n"
        "Allocated resources:\n"
        "  (Total limits may be over 100 percent, i.e., overcommitted.)\n"
        "  Resource         Requests    Limits\n"
        "  --------         --------    ------\n"
        "  cpu              500m (25%)  1500m (75%)\n"
        "  memory           64Mi (3%)   128Mi (6%)\n"
        "  example.com/gpu  1           1\n"
        "Devices in use:\n"
        "  Resource         Device     Health   Namespace  Pod  Containers\n"
        "  --------         ------     ------   ---------  ---  ----------\n"
        "  example.com/gpu  gpu-2      Healthy  default    web  init,main\n"
        "  example.com/usb  gone^[[2J  Unknown  a          z    main\n"
        "Events:            <none>\n",
        "");
}

static void descriptions_are_objects_too(void **state)
{
    struct fixture *f = *state;

    expect(f, "describe secret login -o yaml", 0,
           "items:\n- secret:\n    apiVersion: v1\n    kind: Secret\n    metadata:\n      name: login\n"
           "      namespace: default\n    sizes:\n      password: 12\n      user: 4\n    type: Opaque\n",
           "");
}

/* ---- completion -------------------------------------------------------------------------------- */

static void names_are_those_of_the_kind(void **state)
{
    struct fixture *f = *state;

    expect(f, "__complete get configmaps s", 0, "settings\n", "");
    expect(f, "__complete get pods w", 0, "web\n", "");
    expect(f, "__complete describe node n", 0, "n1\n", "");
    expect(f, "__complete describe image local", 0, "localhost/b:1\n", "");
    expect(f, "__complete get manifests s", 0, "", "");
    expect(f, "__complete get devices example.com/", 0, "example.com/gpu\nexample.com/usb\n", "");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(objects_have_tables_of_their_own),
        T(devices_are_shown_with_the_pod_that_holds_them),
        T(objects_are_printed_whole),
        T(objects_that_are_not_there_have_the_same_words_and_code),
        T(config_maps_secrets_and_classes_are_described_as_kubectl_does),
        T(the_node_is_described_with_what_its_pods_ask_for),
        T(descriptions_are_objects_too),
        T(names_are_those_of_the_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
