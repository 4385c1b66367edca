# SPDX-License-Identifier: Apache-2.0
"""kubectl on a node that joins no cluster: the local API, with the kubectl that is installed."""
import json
import os
import shutil
import socket
import ssl
import subprocess

from coracle import Skip, check, contains, container, equal, pod, run, until

PORT = 16443


def kubectl_path():
    found = os.environ.get("CORACLE_TEST_KUBECTL") or shutil.which("kubectl")
    if found is None:
        raise Skip("kubectl is not installed (package kubernetes-client)")
    return found


class Lone:
    """A node with the local API, and kubectl for it."""

    def __init__(self, t, **kwargs):
        self.kubectl_path = kubectl_path()
        run("ip", "link", "set", "lo", "up")
        self.node = t.node(f"--local-api=127.0.0.1:{PORT}", **kwargs)
        self.node.import_image()
        self.config = f"{t.scratch}/kubeconfig"
        self.cache = f"{t.scratch}/cache"
        until(lambda: self.node.cli("kubeconfig", ok=False).returncode == 0, 20, "the certificates")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(self.node.cli("kubeconfig").stdout)
        os.chmod(self.config, 0o600)

    def argv(self, *words):
        return [self.kubectl_path, f"--kubeconfig={self.config}", f"--cache-dir={self.cache}", *words]

    def kubectl(self, *words, ok=True, stdin=None, timeout=40):
        if stdin is None:
            return run(*self.argv(*words), ok=ok, timeout=timeout)
        return run(*self.argv(*words), ok=ok, timeout=timeout, stdin=None, input=stdin)

    def json(self, *words):
        return json.loads(self.kubectl(*words, "-o", "json").stdout)


def test_reading(t):
    """kubectl reads pods, nodes, events and logs of a lone node"""
    k = Lone(t)
    k.node.put("web.yaml", pod("web", container(command=["sh", "-c", "echo hello; exec sleep 1000"])))
    k.node.wait_running("web")
    contains(k.kubectl("version").stdout, "Server", "version")
    contains(k.kubectl("api-resources").stdout, "configmaps", "api-resources")
    contains(k.kubectl("get", "pods", "-A").stdout, "1/1", "get pods")
    contains(k.kubectl("get", "pods", "-o", "wide").stdout, "test-node", "wide")
    equal(k.json("get", "pod", "web")["metadata"]["name"], "web", "one pod")
    contains(k.kubectl("get", "nodes").stdout, "Ready", "get nodes")
    contains(k.kubectl("describe", "pod", "web").stdout, "Started", "describe pod")
    contains(k.kubectl("describe", "node").stdout, "Capacity", "describe node")
    contains(k.kubectl("get", "events").stdout, "Started", "events")
    equal(k.kubectl("logs", "web").stdout, "hello\n", "logs")
    equal(k.kubectl("exec", "web", "--", "echo", "inside").stdout, "inside\n", "exec")
    equal(k.kubectl("exec", "-i", "web", "--", "cat", stdin="typed").stdout, "typed", "exec -i")
    equal(k.kubectl("exec", "web", "--", "sh", "-c", "exit 7", ok=False).returncode, 7, "the exit code")
    contains(k.kubectl("get", "namespaces").stdout, "Active", "namespaces")
    described = k.kubectl("describe", "node").stdout
    contains(described, "RenewTime:", "the lease of the node")
    contains(described, "coracle is posting ready status", "its conditions")
    equal("<unknown>" in described, False, "times of the node are known")
    contains(k.kubectl("get", "--raw", "/readyz?verbose").stdout, "readyz check passed", "readyz")
    until(lambda: k.kubectl("top", "pod", "web", ok=False).returncode == 0, 60, "top pod")
    contains(k.kubectl("top", "node").stdout, "test-node", "top node")
    contains(k.kubectl("get", "pod", "none", ok=False).stderr, 'pods "none" not found', "no such pod")
    # A kind that is not there makes kubectl ask for discovery again, with the ETag of its copy: 304 must not spoil that.
    contains(k.kubectl("get", "frobs", ok=False).stderr, 'resource type "frobs"', "no such kind")
    contains(k.kubectl("api-resources").stdout, "deployments", "api-resources")
    contains(k.kubectl("api-resources").stdout, "deployments", "api-resources again")
    contains(k.kubectl("get", "pods").stdout, "web", "pods after it")
    k.node.stop()


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: two, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: two}}
  template:
    metadata: {labels: {app: two}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: localhost/busybox:1, command: [sleep, "1000"]}]
"""


def test_workload(t):
    """the status of a workload follows its pods, and its namespace exists as long as it does"""
    k = Lone(t)
    k.kubectl("get", "deployments", "-A")  # the copy begins before the workload
    k.node.put("two.yaml", DEPLOYMENT)
    until(lambda: k.kubectl("rollout", "status", "deployment/two", "-n", "shop", "--timeout=30s", ok=False).returncode == 0, 60,
          "the rollout is complete")
    equal(k.json("get", "deployment", "two", "-n", "shop")["status"]["availableReplicas"], 2, "available replicas")
    equal(k.json("get", "namespace", "shop")["status"]["phase"], "Active", "the namespace")
    k.node.remove("two.yaml")
    until(lambda: "shop" not in k.kubectl("get", "namespaces").stdout, 60, "the namespace goes with its last object")
    k.node.stop()


def test_busy_port(t):
    """a port that is in use at the start is retried"""
    run("ip", "link", "set", "lo", "up")
    with socket.create_server(("127.0.0.1", PORT)):
        node = t.node(f"--local-api=127.0.0.1:{PORT}")
        until(lambda: node.log().count("cannot open the node's port yet; will retry") == 1, 20, "the busy port is named")
    until(lambda: "the local API is open" in node.log(), 20, "the port opens when it is free")
    equal(node.log().count("cannot open the node's port yet; will retry"), 1, "said once")
    node.stop()
