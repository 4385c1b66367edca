# SPDX-License-Identifier: Apache-2.0
"""kubectl writes on a node that joins no cluster: what it writes are files of the manifest folder."""
import base64
import http.client
import json
import os
import re
import ssl

from coracle import check, contains, equal, read, until
from test_lone_kubectl import PORT, Lone


def files(k):
    return sorted(f for f in os.listdir(k.node.manifests) if not f.startswith("."))


def text(k, name):
    with open(f"{k.node.manifests}/{name}", encoding="utf-8") as f:
        return f.read()


POD = """
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  terminationGracePeriodSeconds: 60
  containers:
  - name: c
    image: localhost/busybox:1
    command: ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
"""


def test_create_and_delete(t):
    """kubectl create and delete a ConfigMap and a Pod; the folder has a file for each"""
    k = Lone(t)
    contains(k.kubectl("auth", "can-i", "create", "pods").stdout, "yes", "auth can-i")
    k.kubectl("create", "configmap", "a", "--from-literal=x=1")
    equal(files(k), ["configmap-default-a.yaml"], "files")
    contains(text(k, "configmap-default-a.yaml"), 'x: "1"', "the file")
    equal(k.json("get", "cm", "a")["data"], {"x": "1"}, "the object")
    contains(k.kubectl("create", "configmap", "a", ok=False).stderr, 'configmaps "a" already exists', "again")
    k.kubectl("delete", "configmap", "a")
    equal(files(k), [], "files after delete")
    contains(k.kubectl("get", "cm", "a", ok=False).stderr, "not found", "gone")
    k.kubectl("create", "-f", "-", stdin=POD)
    k.node.wait_running("web")
    equal(files(k), ["pod-default-web.yaml"], "files")
    k.kubectl("delete", "pod", "web", "--wait=false")
    contains(k.kubectl("get", "pod", "web", ok=False).stdout, "Terminating", "the end takes its time")
    k.kubectl("delete", "pod", "web", "--now")
    equal(files(k), [], "files after delete")
    k.node.stop()


CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {%s}
"""


def test_apply(t):
    """kubectl apply merges three ways and by field managers, also after a restart; files edited by hand count"""
    k = Lone(t)
    k.kubectl("apply", "-f", "-", stdin=CONFIG % "a: '1', b: '1'")
    k.kubectl("patch", "cm", "c", "-p", '{"data":{"d":"1"}}')
    k.kubectl("apply", "-f", "-", stdin=CONFIG % "a: '2', c: '1'")
    equal(k.json("get", "cm", "c")["data"], {"a": "2", "c": "1", "d": "1"}, "three ways")
    contains(k.kubectl("apply", "-f", "-", stdin=CONFIG % "a: '2', c: '1'").stdout, "unchanged", "the same again")
    k.kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=CONFIG.replace("c}", "s}") % "x: '1'")
    k.node.kill()
    k.node.start()
    two = ("apply", "--server-side", "--field-manager=two", "-f", "-")
    conflict = until(lambda: (lambda r: r if "onflict" in r.stderr else None)(
        k.kubectl(*two, ok=False, stdin=CONFIG.replace("c}", "s}") % "x: '2'")), 30, "a conflict").stderr
    contains(conflict, 'conflict with "one"', "the managers survive")
    k.kubectl(*two, "--force-conflicts", stdin=CONFIG.replace("c}", "s}") % "x: '2'")
    equal(k.json("get", "cm", "s")["data"], {"x": "2"}, "by force")
    check(len([line for line in text(k, "configmap-default-s.yaml").split("\n") if "managedFields" in line]) == 1,
          "managers are one line")
    first = "# kept\n" + CONFIG.replace("c}", "m1}") % "a: '1'"
    with open(f"{k.node.manifests}/two.yaml", "w", encoding="utf-8") as f:
        f.write(first + "---\n# too\n" + CONFIG.replace("c}", "m2}") % "a: '1'")
    until(lambda: k.kubectl("get", "cm", "m2", ok=False).returncode == 0, 20, "both objects")
    k.kubectl("label", "cm", "m2", "x=one")
    contains(text(k, "two.yaml"), first, "the other document")
    equal(k.json("get", "cm", "m2")["metadata"]["labels"], {"x": "one"}, "the label")
    k.kubectl("delete", "cm", "m1")
    check("m1" not in text(k, "two.yaml") and "m2" in text(k, "two.yaml"), "one document is removed")
    with open(f"{t.scratch}/edit", "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nsed -i 's/x: one/x: two/' \"$1\"\n")
    os.chmod(f"{t.scratch}/edit", 0o755)
    os.environ["KUBE_EDITOR"] = f"{t.scratch}/edit"
    k.kubectl("edit", "cm", "m2")
    equal(k.json("get", "cm", "m2")["metadata"]["labels"], {"x": "two"}, "edited")
    k.kubectl("create", "secret", "generic", "s", "--from-literal=p=secret")
    equal(os.stat(f"{k.node.manifests}/secret-default-s.yaml").st_mode & 0o777, 0o600, "the mode of a Secret")
    before = files(k)
    k.kubectl("create", "cm", "dry", "--dry-run=server")
    contains(k.kubectl("create", "-f", "-", ok=False, stdin=POD.replace("web", "w_")).stderr, "is invalid", "refused")
    equal(files(k), before, "nothing is written")
    k.node.stop()


def test_collections(t):
    """kubectl deletes by selectors, and a namespace with what is in it; a manifest of a Pod replaces the running one"""
    k = Lone(t)
    for n, label in enumerate(("one", "one", "two")):
        k.kubectl("apply", "-f", "-", stdin=CONFIG.replace("c}", f"c{n}, labels: {{l: {label}}}}}") % "a: '1'")
    ask(k, "DELETE", "/api/v1/namespaces/default/configmaps?labelSelector=l%3Done", None)
    equal(files(k), ["configmap-default-c2.yaml"], "the collection")
    contains(k.kubectl("create", "cm", "x", "-n", "shop", ok=False).stderr, 'namespaces "shop" not found', "no namespace")
    k.kubectl("create", "namespace", "shop")
    k.kubectl("create", "cm", "x", "-n", "shop")
    k.kubectl("create", "-n", "shop", "-f", "-", stdin=POD)
    until(lambda: k.json("get", "pod", "web", "-n", "shop")["status"]["phase"] == "Running", 60, "the pod runs")
    k.kubectl("replace", "-n", "shop", "-f", "-", stdin=POD)
    check("\n  dnsPolicy:" not in text(k, "pod-shop-web.yaml"), "a file has defaults that nobody wrote")
    k.kubectl("delete", "namespace", "shop", "--wait=false")
    equal(files(k), ["configmap-default-c2.yaml"], "the namespace")
    contains(k.kubectl("get", "namespace", "shop").stdout, "Terminating", "as long as its pod")
    contains(k.kubectl("create", "cm", "y", "-n", "shop", ok=False).stderr, "is being terminated", "nothing new")
    contains(k.kubectl("delete", "namespace", "default", ok=False).stderr, "may not be deleted", "default")
    k.kubectl("delete", "pod", "web", "-n", "shop", "--now", ok=False)
    until(lambda: "shop" not in k.kubectl("get", "namespaces").stdout, 60, "it goes with its pod")
    k.node.stop()


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 1
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: c, image: "localhost/busybox:1", command: [sleep, "1000"]}
"""


def test_workloads(t):
    """kubectl scales, restarts and deletes what the node runs for workloads"""
    k = Lone(t)

    def pods():
        return {p["metadata"]["uid"]: p["metadata"]["name"] for p in k.json("get", "pods", "-l", "app=d")["items"]
                if "deletionTimestamp" not in p["metadata"]}

    k.kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    k.kubectl("rollout", "status", "deployment/d", "--timeout=60s", timeout=80)
    k.kubectl("scale", "deployment", "d", "--replicas=2")
    until(lambda: len(pods()) == 2, 60, "two pods")
    contains(text(k, "deployment-default-d.yaml"), "replicas: 2", "the file")
    first, name = sorted(pods().items())[0]
    k.kubectl("delete", "pod", name, "--now")
    until(lambda: len(pods()) == 2 and first not in pods(), 60, "another pod for the deleted one")
    second, name = sorted(pods().items())[0]
    k.kubectl("create", "--raw", f"/api/v1/namespaces/default/pods/{name}/eviction", "-f", "-",
              stdin=json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}))
    until(lambda: len(pods()) == 2 and second not in pods(), 60, "another pod for the evicted one")
    before = pods()
    k.kubectl("rollout", "restart", "deployment/d")
    until(lambda: len(pods()) == 2 and not pods().keys() & before.keys(), 90, "new pods")
    k.kubectl("delete", "deployment", "d")
    until(lambda: not pods(), 60, "no pods")
    equal(files(k), [], "files")
    k.node.stop()


def patch(k, path, body, status=200):
    """A strategic merge patch, for what older versions of kubectl do by requests that no server has any more."""
    ask(k, "PATCH", path, body, status)


def ask(k, method, path, body, status=200):
    def data(key):
        return re.search(rf"{key}-data: \"?([A-Za-z0-9+/=]+)", read(k.config))[1]
    pem = f"{k.config}.pem"
    with open(pem, "wb") as f:
        for key in ("client-certificate", "client-key"):
            f.write(base64.b64decode(data(key)))
    tls = ssl.create_default_context(cadata=base64.b64decode(data("certificate-authority")).decode())
    tls.load_cert_chain(pem)
    connection = http.client.HTTPSConnection("127.0.0.1", PORT, context=tls, timeout=60)
    connection.request(method, path, body, {"Content-Type": "application/strategic-merge-patch+json"})
    answer = connection.getresponse()
    got = answer.read()
    equal(answer.status, status, f"{path}: {got[:300]}")
    connection.close()


def test_debug(t):
    """kubectl debug's request adds a container to a pod of the folder, which can be changed afterwards as before"""
    k = Lone(t)
    k.kubectl("create", "-f", "-", stdin=POD)
    k.node.wait_running("web")
    added = json.dumps({"spec": {"ephemeralContainers": [{"name": "look", "image": "localhost/busybox:1", "imagePullPolicy": "Never",
                                                          "command": ["sleep", "1000"], "targetContainerName": "c"}]}})
    patch(k, "/api/v1/namespaces/default/pods/web/ephemeralcontainers", added)
    k.node.wait_pod("web", lambda p: "running" in p.status.get("ephemeralContainerStatuses", [{}])[0].get("state", {}), deadline=60)
    k.kubectl("label", "pod", "web", "tier=front")
    pod = k.json("get", "pod", "web")
    equal((pod["metadata"]["labels"], [c["name"] for c in pod["spec"]["ephemeralContainers"]]), ({"tier": "front"}, ["look"]), "the pod")
    check("ephemeralContainers" not in text(k, "pod-default-web.yaml").replace("f:ephemeralContainers", ""), "the file has it")
    k.kubectl("delete", "pod", "web", "--now")
    k.node.stop()


def test_resize(t):
    """the subresource resize changes a running container in place, and its file; other fields are left as they are"""
    k = Lone(t)
    k.kubectl("create", "-f", "-", stdin=POD + "    resources: {requests: {cpu: 20m}}\n")
    before = k.node.wait_running("web")
    url = "/api/v1/namespaces/default/pods/web/resize"
    patch(k, url, json.dumps({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "50m"}}}]}}))
    k.node.wait_pod("web", lambda p: p.container("c").get("resources", {}).get("requests", {}).get("cpu") == "50m", deadline=60)
    pod = k.json("get", "pod", "web")
    equal((pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"]), (before.uid, 0), "the pod, resized in place")
    contains(text(k, "pod-default-web.yaml"), "50m", "the file")
    patch(k, url, json.dumps({"spec": {"containers": [{"name": "c", "image": "localhost/busybox:2"}]}}))
    equal(k.json("get", "pod", "web")["spec"]["containers"][0]["image"], "localhost/busybox:1", "the image, which is not resized")
    patch(k, url, json.dumps({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "0"}}}]}}), status=422)
    k.kubectl("delete", "pod", "web", "--now")
    k.node.stop()
