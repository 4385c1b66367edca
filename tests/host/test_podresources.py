# SPDX-License-Identifier: Apache-2.0
"""podresources on kubelet's socket, asked by python3-grpcio; and what metrics and commands say of devices."""
import json
import os
import re
import stat

import coracle
import devices
from coracle import as_nobody, check, container, equal, pod, until


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
