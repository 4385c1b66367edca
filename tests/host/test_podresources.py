# SPDX-License-Identifier: Apache-2.0
"""podresources on kubelet's socket, asked by python3-grpcio; and what metrics and commands say of devices."""
import json
import os
import re
import stat

import coracle
import devices
from coracle import as_nobody, check, container, contains, equal, pod, until


def mode_of(path):
    return oct(stat.S_IMODE(os.stat(path).st_mode))


def counters(node, prefix):
    """{name: value} of the metrics that begin so."""
    text = node.request("GET", "/metrics")[1].decode()
    return {m.group(1): float(m.group(2)) for m in re.finditer(rf"^({prefix}\S*) (\S+)$", text, re.MULTILINE)}


def test_pods_without_devices(t):
    """podresources lists running pods with sidecars and regular containers, knows no others, and counts its calls"""
    node = devices.start(t)
    client = devices.Client()
    folder = f"{node.root_dir}/pod-resources"
    equal((mode_of(folder), mode_of(f"{folder}/kubelet.sock")), ("0o750", "0o755"), "modes, as kubelet's")
    equal(client.podresources(node, "List"), {"response": {}}, "no pods")
    equal(client.podresources(node, "GetAllocatableResources"), {"response": {}}, "no devices")
    node.put("a.yaml", pod("a", container("main"),
                           initContainers=[container("first", command=["true"]), {**container("side"), "restartPolicy": "Always"}],
                           terminationGracePeriodSeconds=0))
    node.put("b.yaml", pod("b", container("main", command=["true"]), restartPolicy="Never"))
    node.wait_running("a")
    node.wait_phase("b", "Succeeded")
    a = {"name": "a", "namespace": "default", "containers": [{"name": "side"}, {"name": "main"}]}
    equal(client.podresources(node, "List"), {"response": {"pod_resources": [a]}}, "the pod that runs")
    equal(client.podresources(node, "Get", pod_name="a", pod_namespace="default"), {"response": {"pod_resources": a}}, "Get")
    for name, namespace in (("b", "default"), ("a", "other"), ("", "")):
        equal(client.podresources(node, "Get", pod_name=name, pod_namespace=namespace),
              {"code": "Unknown", "error": f"pod {name} in namespace {namespace} not found"}, "Get of a pod that does not run")
    name = 'kubelet_pod_resources_endpoint_{}{{server_api_version="v1"}}'
    equal(counters(node, "kubelet_pod_resources_endpoint_"),
          {name.format("requests_total"): 7, name.format("requests_list"): 2, name.format("requests_get_allocatable"): 1,
           name.format("requests_get"): 4, name.format("errors_get"): 3}, "metrics")
    answers = [client.podresources(node, "List").get("error") for _ in range(150)]
    check(set(answers) <= {None, "rejected by rate limit"}, lambda: f"answers to many calls: {set(answers)}")
    node.kill()
    node.start()
    until(lambda: client.podresources(node, "List") == {"response": {"pod_resources": [a]}}, 10, "the pod after a restart")
    node.stop()
    check(not os.path.exists(f"{folder}/kubelet.sock"), "the socket goes with the agent")
    client.close()


def test_served_later(t):
    """podresources is served as soon as its folder can be made; until then explain node says why it is not"""
    node = devices.start(t)
    client = devices.Client()
    folder = f"{node.root_dir}/pod-resources"
    node.stop()
    os.rmdir(folder)
    open(folder, "w", encoding="ascii").close()
    node.start()
    contains(node.cli("explain", "node").stdout, "podresources")
    os.unlink(folder)
    until(lambda: os.path.exists(f"{folder}/kubelet.sock"), 30, "the socket")
    equal(client.podresources(node, "List"), {"response": {}}, "its answer")
    check("podresources" not in node.cli("explain", "node").stdout.partition("Recent log")[0], "explain node has no problem any more")
    client.close()


def test_only_root_asks(t):
    """podresources refuses everybody but root, also where the socket's mode would let them in"""
    node = devices.start(t)
    folder = f"{node.root_dir}/pod-resources"
    for path in (node.root_dir, folder, f"{folder}/kubelet.sock"):
        os.chmod(path, 0o777)
    with open(f"{t.scratch}/question", "w+", encoding="utf-8") as question:
        question.write(f'{{"call": "List", "socket": "{folder}/kubelet.sock"}}\n')
        question.seek(0)
        answer = as_nobody(devices.PYTHON, f"{coracle.HERE}/grpc_client.py", stdin=question).stdout
    equal(json.loads(answer)["code"], "PermissionDenied", f"nobody's call: {answer}")
    node.stop()


def test_devices_of_pods(t):
    """podresources, metrics and commands show each device, its NUMA node, its health and the container that has it"""
    node = devices.start(t)
    client = devices.Client()
    plugin = devices.plugin_at_work(node, "--numa", "0,1", "--toggle", "3", devices=4)

    def device(number, numa):
        return {"resource_name": devices.RESOURCE, "device_ids": [f"dev-{number}"], "topology": {"nodes": [{"ID": str(numa)} if numa else {}]}}
    node.put("a.yaml", devices.asking("a", 2, initContainers=[
        {**container("side"), "restartPolicy": "Always", "resources": {"limits": {devices.RESOURCE: "1"}}},
        container("first", command=["true"], resources={"limits": {devices.RESOURCE: "1"}})]))
    node.wait_running("a")
    a = {"name": "a", "namespace": "default",
         "containers": [{"name": "side", "devices": [device(0, 0)]}, {"name": "main", "devices": [device(1, 1), device(2, 0)]}]}
    equal(client.podresources(node, "List"), {"response": {"pod_resources": [a]}}, "sidecar and container, without the plain init container")
    equal(client.podresources(node, "Get", pod_name="a", pod_namespace="default"), {"response": {"pod_resources": a}}, "Get")
    alpha = {**a, "containers": [{**c, "devices": [{k: d[k] for k in d if k != "topology"} for d in c["devices"]]} for c in a["containers"]]}
    equal(client.podresources(node, "List", version="v1alpha1"), {"response": {"pod_resources": [alpha]}}, "List of v1alpha1")
    equal({k: v for k, v in counters(node, "kubelet_pod_resources_endpoint_").items() if "v1alpha1" in k},
          {'kubelet_pod_resources_endpoint_requests_total{server_api_version="v1alpha1"}': 1}, "calls of v1alpha1")
    all_of_it = [device(0, 0), device(1, 1), device(2, 0), device(3, 1)]
    equal(client.podresources(node, "GetAllocatableResources"), {"response": {"devices": all_of_it}}, "devices of the node")
    plugin.signal("HUP")
    devices.wait_node(node, 4, 3)
    equal(client.podresources(node, "GetAllocatableResources"), {"response": {"devices": all_of_it[:3]}}, "healthy devices")
    equal(re.sub(" +", " ", node.cli("get", "devices", "--no-headers").stdout).split("\n"),
          ["example.com/dev dev-0 Healthy 0 default/a side",
           "example.com/dev dev-1 Healthy 1 default/a first,main",
           "example.com/dev dev-2 Healthy 0 default/a main",
           "example.com/dev dev-3 Unhealthy 1 <none> <none>", ""], "get devices")
    described = re.sub(" +", " ", node.cli("describe", "node").stdout)
    contains(described, "\n example.com/dev 3 3\n", "what is allocated")
    contains(described, "\n example.com/dev dev-1 Healthy default a first,main\n", "devices in use")
    contains(node.cli("describe", "pod", "a").stdout, "dev-1 (Healthy), dev-2 (Healthy)", "describe pod")
    explained = re.sub(" +", " ", node.cli("explain", "node").stdout)
    contains(explained, "resource example.com/dev", "explain node")
    check("grpc" not in explained, lambda: f"the stream of lists is no operation in progress:\n{explained}")
    found = counters(node, "kubelet_device_plugin_")
    equal(found['kubelet_device_plugin_registration_total{resource_name="example.com/dev"}'], 1, "registrations")
    equal(found['kubelet_device_plugin_alloc_duration_seconds_count{resource_name="example.com/dev"}'], 3, "Allocate")
    equal(found['kubelet_device_plugin_alloc_duration_seconds_bucket{resource_name="example.com/dev",le="+Inf"}'], 3, "its buckets")
    judged = counters(node, "kubelet_topology_manager_admission_")
    equal([judged[f"kubelet_topology_manager_admission_{name}"] for name in ("requests_total", "errors_total", "duration_ms_count")],
          [1, 0, 1], "pods judged by topology")
    equal(counters(node, "coracle_extended_resource_held_devices"),
          {'coracle_extended_resource_held_devices{resource_name="example.com/dev"}': 3}, "held")
    plugin.stop()
    devices.wait_node(node, 4, 0)
    equal(client.podresources(node, "List"), {"response": {"pod_resources": [a]}}, "the pod's devices without the plugin")
    contains(re.sub(" +", " ", node.cli("get", "devices").stdout), "dev-0 Unknown", "nobody vouches for it")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(client.podresources(node, "List"), {"response": {}}, "the pod is gone")
    node.stop()
    client.close()
