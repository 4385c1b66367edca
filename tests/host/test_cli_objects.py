# SPDX-License-Identifier: Apache-2.0
"""get and describe of the node, ConfigMaps, Secrets, PriorityClasses and images, as the daemon has them."""
import base64
import json

from coracle import check, contains, equal, pod, run

SECRET = "the-answer-is-41"
APPLIED = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"kind": "Secret", "stringData": {"password": SECRET}}), "a": "b"}


def test_objects(t):
    """get and describe of node, ConfigMaps, Secrets, PriorityClasses and images; no byte of a Secret's value on the socket"""
    node = t.node("--node-labels", "zone=a", "--register-with-taints", "special=yes:PreferNoSchedule")
    node.import_image()
    node.put("a.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "labels": {"app": "web"}},
                        "data": {"key": "value\nmore"}, "binaryData": {"raw": "/wAA"}},
             {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "annotations": APPLIED}, "type": "Opaque",
              "stringData": {"password": SECRET}},
             {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000,
              "description": "first"},
             pod("p"))
    node.wait_running("p")

    settings = json.loads(node.cli("get", "cm", "settings", "-o", "json").stdout)
    equal((settings["data"], settings["binaryData"]), ({"key": "value\nmore"}, {"raw": "/wAA"}), "the ConfigMap's data")
    equal(json.loads(node.cli("get", "cm", "-A", "-o", "json").stdout)["items"], [settings], "the same, as a list")
    contains(node.cli("describe", "cm/settings").stdout, "key:\n----\nvalue\nmore\n")
    equal(node.cli("get", "secrets", "--no-headers").stdout.split(), ["login", "Opaque", "1", "<unknown>"], "secrets")
    contains(node.cli("describe", "secret", "login").stdout, f"password:  {len(SECRET)} bytes\n")
    said = "".join(run("curl", "-s", "--unix-socket", node.socket, f"http://x{path}").stdout
                   for path in ("/api/v1/secrets", "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/secrets/login", "/manifests"))
    said += "".join(node.cli(*args).stdout for args in (("get", "secret", "login", "-o", "yaml"), ("get", "secrets", "-A", "-o", "json"), ("describe", "secret", "login")))
    contains(said, '"login"')
    check("last-applied" not in said, f"an annotation that holds the data is told: {said}")
    check(SECRET not in said and base64.b64encode(SECRET.encode()).decode() not in said, f"the value is told: {said}")

    me = json.loads(node.cli("get", "node", "-o", "json").stdout)["items"][0]
    equal((me["metadata"]["labels"]["zone"], me["spec"]["taints"][0]["key"]), ("a", "special"), "labels and taints")
    equal(node.cli("get", "nodes", "--no-headers").stdout.split()[:2], [me["metadata"]["name"], "Ready"], "nodes")
    text = node.cli("describe", "node").stdout
    for part in ("special=yes:PreferNoSchedule", "Allocatable:", "(1 in total)", "coracle://"):
        contains(text, part, "describe node")
    contains(node.cli("describe", "pc").stdout, "Value:             1000\n")
    image = node.cli("describe", "image", "localhost/busybox:1").stdout
    contains(image, "pod default/p\n")
    image = json.loads(node.cli("image", "inspect", "localhost/busybox:1").stdout)
    equal(image["usedBy"], [{"kind": "Pod", "namespace": "default", "name": "p"}], "used by")
    check(image["config"]["Cmd"] and image["layers"][0]["sizeBytes"] > 0, f"configuration and layers: {image}")
    equal(node.cli("get", "secret", "nobody", ok=False).returncode, 5, "exit code")
    node.stop()
