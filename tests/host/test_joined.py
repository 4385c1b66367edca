# SPDX-License-Identifier: Apache-2.0
"""The whole way: the daemon, its coracle-kube and a scripted apiserver (apiserver.py)."""
import os

from apiserver import ApiServer
from coracle import check, config_map, container, equal, mount, pod, shell, until


def joined(t, *flags):
    os.chmod(t.scratch, 0o755)
    folder = f"{t.scratch}/apiserver"
    os.makedirs(folder, exist_ok=True)
    server = ApiServer(folder)
    node = t.node("--kubeconfig", server.kubeconfig("test-node"), *flags)
    node.import_image()
    server.store.wait("Node", "test-node", lambda n: n is not None and any(
        c["type"] == "Ready" and c["status"] == "True" for c in n.get("status", {}).get("conditions", [])), seconds=15)
    return server, node


def bound(o):
    o["spec"]["nodeName"] = "test-node"
    o["metadata"].setdefault("namespace", "default")
    return o


def running(p):
    return p is not None and p.get("status", {}).get("phase") == "Running"


def test_pod_from_apiserver_to_status(t):
    """a bound pod runs with its ConfigMap, its status and events reach the apiserver, and a deletion removes it there"""
    server, node = joined(t)
    server.store.put("ConfigMap", {"metadata": {"name": "c", "namespace": "default"}, "data": {"k": "1"}})
    server.store.put("Service", {"metadata": {"name": "kubernetes", "namespace": "default"},
                                 "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]}})
    server.store.put("Pod", bound(pod("web", container(volumeMounts=[mount("v", "/v")]), volumes=[{"name": "v", "configMap": {"name": "c"}}])))
    web = server.store.wait("Pod", "web", running, seconds=20)
    here = node.wait_running("web")
    equal(here.uid, web["metadata"]["uid"], "the uid")
    equal(node.enter(here, "cat", "/v/k").stdout, "1", "the file")
    environment = node.enter(here, "cat", "/proc/1/environ").stdout.split("\0")
    check("KUBERNETES_SERVICE_HOST=10.96.0.1" in environment and "KUBERNETES_PORT=tcp://10.96.0.1:443" in environment,
          f"variables of the Service: {environment}")
    server.store.put("ConfigMap", {"metadata": {"name": "c", "namespace": "default"}, "data": {"k": "2"}})
    until(lambda: node.enter(here, "cat", "/v/k").stdout == "2", 5, "the edit reaches the volume")
    until(lambda: any(e["reason"] == "Started" and e["involvedObject"]["name"] == "web" for e in server.store.all("Event")), 10, "the event")
    check("connected since" in node.cli("explain", "node").stdout, lambda: node.cli("explain", "node").stdout)
    server.store.remove("Pod", "web", gracePeriodSeconds=1)
    until(lambda: not [p for p in server.store.all("Pod") if p["metadata"]["name"] == "web"], 15, "the pod leaves the apiserver")
    node.wait_gone("web")
    node.wait_no_traces(here)
    equal(node.stop(), 0, "the exit code")
    server.stop()


def test_ephemeral_container(t):
    """an ephemeral container that is added in the apiserver runs, and its status arrives there; nothing else of the pod changes"""
    server, node = joined(t)
    server.store.put("Pod", bound(pod("web")))
    web = server.store.wait("Pod", "web", running, seconds=20)
    before = node.wait_running("web").container_id()
    web["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "localhost/busybox:1", "imagePullPolicy": "IfNotPresent", "targetContainerName": "main",
                                           "command": ["sh", "-c", "sleep 1; exit 3"], "resources": {}}]
    server.store.put("Pod", web)

    def state(p, word):
        return word in (p["status"].get("ephemeralContainerStatuses") or [{}])[0].get("state", {})
    server.store.wait("Pod", "web", lambda p: state(p, "running"), seconds=15)
    web = server.store.wait("Pod", "web", lambda p: state(p, "terminated"), seconds=15)
    equal(web["status"]["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"], 3, "the exit code")
    equal((web["status"]["phase"], node.pod("web").container_id()), ("Running", before), "the pod")
    server.store.remove("Pod", "web", gracePeriodSeconds=1)
    until(lambda: not [p for p in server.store.all("Pod") if p["metadata"]["name"] == "web"], 15, "the pod leaves the apiserver")
    node.stop()
    server.stop()


def test_server_is_away(t):
    """a killed apiserver and a killed coracle-kube affect no pod; changes made meanwhile are reported afterwards"""
    server, node = joined(t)
    server.store.put("Pod", bound(pod("stays")))
    server.store.put("Pod", bound(pod("ends", container(command=shell("sleep 4; exit 0")), restartPolicy="Never")))
    server.store.wait("Pod", "stays", running, seconds=20)
    server.store.wait("Pod", "ends", running, seconds=20)
    before = node.wait_running("stays").container_id()
    server.stop()
    node.wait_phase("ends", "Succeeded")
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
    kubes = [p for p in pids if os.path.exists(f"/proc/{p}/exe") and _is_kube(p, t)]
    check(kubes, "no coracle-kube")
    os.kill(kubes[0], 9)
    until(lambda: [p for p in os.listdir("/proc") if p.isdigit() and int(p) != kubes[0] and _is_kube(int(p), t)], 2, "coracle-kube is back")
    server.start()
    server.store.wait("Pod", "ends", lambda p: p["status"]["phase"] == "Succeeded", seconds=40)
    equal(node.pod("stays").container_id(), before, "the container")
    node.stop()
    server.stop()


def _is_kube(pid, t):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            name = f.read().split(b"\0")[0].decode()
        return name.endswith("/coracle-kube") and os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def test_static_pod_has_a_mirror(t):
    """a pod of the folder has a mirror in the apiserver with its status, which is removed with it"""
    server, node = joined(t)
    node.put("web.yaml", pod("web"))
    mirror = server.store.wait("Pod", "web-test-node", running, seconds=20)
    static = node.wait_running("web-test-node")
    check(mirror["metadata"]["annotations"].get("kubernetes.io/config.mirror"), "the mirror has no hash")
    check(mirror["metadata"]["uid"] != static.uid, "the mirror has the uid of the static pod")
    node.remove("web.yaml")
    node.wait_gone("web-test-node")
    until(lambda: not [p for p in server.store.all("Pod") if p["metadata"]["name"] == "web-test-node"], 30, "the mirror is removed")
    node.stop()
    server.stop()
