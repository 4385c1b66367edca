# SPDX-License-Identifier: Apache-2.0
"""A node of a cluster: pods, ConfigMaps and Secrets of the apiserver, told by a coracle-kube that the test plays."""
import base64
import json
import os

from coracle import all_running, check, config_map, container, contains, equal, mount, pod, read, secret, shell, until
from kube_peer import KubePeer, deleted, served

UIDS = [f"3f0c0f80-0000-4000-8000-{n:012}" for n in range(1, 10)]


def joined(t, *flags):
    """A node with the image, and the link of its first coracle-kube."""
    peer = KubePeer(t)
    node = t.node(*peer.flags(), "--node-status-update-frequency", "1s", *flags)
    node.import_image()
    return peer, node, peer.accept()


def test_pod_runs_and_is_deleted(t):
    """a pod of the apiserver runs under its uid, reports its status, and is reported as ended after a deletion"""
    _, node, link = joined(t)
    equal(link.messages[0]["type"] if link.messages else link.wait(lambda m: True)["type"], "config", "the first message")
    config = link.wait(lambda m: m["type"] == "config")
    equal((config["nodeName"], config["leaseSeconds"], config["registerNode"]), ("test-node", 40, True), "config")
    link.send("state", connected=True, since="2026-01-01T00:00:00Z", error="", requests=3)
    link.synced()
    web = served(pod("web"), UIDS[0])
    link.put(web)
    m = link.wait_phase("web", "Running")
    equal((m["static"], m["ended"], m["object"]["metadata"]["uid"]), (False, False, UIDS[0]), "the report")
    equal(m["object"]["status"]["observedGeneration"], 1, "observedGeneration")
    event = link.wait(lambda m: m["type"] == "event" and m["object"]["reason"] == "Started")["object"]
    equal((event["involvedObject"]["uid"], event["involvedObject"]["fieldPath"], event["source"]["component"]),
          (UIDS[0], "spec.containers{main}", "kubelet"), "the event")
    node_object = link.wait(lambda m: m["type"] == "node")["object"]
    equal(node_object["metadata"]["name"], "test-node", "the node's name")
    status = link.wait(lambda m: m["type"] == "node" and m["object"]["status"]["images"])["object"]["status"]
    equal(status["images"][0]["names"], ["localhost/busybox:1"], "the node's images")
    equal(status["daemonEndpoints"], {"kubeletEndpoint": {"Port": 10250}}, "the node's port")
    contains(read("/etc/os-release"), status["nodeInfo"]["osImage"], "os-release")
    for key in ("bootID", "kernelVersion", "containerRuntimeVersion", "kubeletVersion", "architecture"):
        check(status["nodeInfo"].get(key), f"nodeInfo.{key} is missing")
    equal(status["runtimeHandlers"][0]["name"], "", "the runtime's name")
    of_node = [m["object"]["reason"] for m in link.messages if m["type"] == "event" and m["object"]["involvedObject"]["kind"] == "Node"]
    equal(of_node[:6], ["Starting", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeAllocatableEnforced", "NodeReady"],
          "events of the node")
    about = link.wait(lambda m: m["type"] == "event" and m["object"]["reason"] == "NodeReady")["object"]["involvedObject"]
    equal(about, {"kind": "Node", "apiVersion": "v1", "name": "test-node", "uid": "test-node"}, "the node, as kubectl describe looks for it")
    credentials = link.wait(lambda m: m["type"] == "credentials")
    equal((credentials["server"], credentials["token"]), ("https://127.0.0.1:1", "secret"), "credentials")
    running = node.wait_running("web")
    equal(running.uid, UIDS[0], "the pod's uid")
    contains(node.cli("explain", "node").stdout, "connected since 2026-01-01T00:00:00Z; its pods are known")
    contains(node.request("GET", "/metrics")[1].decode(), "coracle_cluster_connected 1")

    since = len(link.messages)
    link.put(deleted(web, 3))
    m = link.wait_pod("web", lambda m: m["ended"], since=since)
    check(m["object"]["status"]["phase"] in ("Failed", "Succeeded"), f"the phase at the end: {m['object']['status']['phase']}")
    check(node.pod("web") is not None, "the pod was forgotten before the apiserver removed it")
    link.gone(web)
    gone = link.wait(lambda m: m["type"] == "podgone", since=since)
    equal((gone["namespace"], gone["name"], gone["uid"]), ("default", "web", UIDS[0]), "podgone")
    node.wait_gone("web")
    node.wait_no_traces(running)
    equal(node.stop(), 0, "the exit code")
    check("open handles" not in node.log(), "the daemon's loop ended with open handles")


def test_force_delete_and_next_uid(t):
    """a pod that vanishes is ended by the grace period of its spec; another uid of the same name follows it"""
    _, node, link = joined(t)
    link.synced()
    trap = container(command=shell("trap 'echo asked; exit 0' TERM; while :; do sleep 0.1; done"))
    first = served(pod("web", trap), UIDS[0])
    link.put(first)
    link.wait_phase("web", "Running")
    link.gone(first)
    link.put(served(pod("web"), UIDS[1]))
    m = link.wait_pod("web", lambda m: m["object"]["metadata"]["uid"] == UIDS[1] and m["object"]["status"]["phase"] == "Running")
    at = link.messages.index(m)
    gone = [k for k in link.messages[:at] if k["type"] == "podgone"]
    equal([k["uid"] for k in gone], [UIDS[0]], "the pods that were gone before the next one ran")
    # a `gone` of the first uid that comes late changes nothing
    link.gone(first)
    link.put(served(config_map("later")))
    node.wait_running("web")
    equal(node.pod("web").uid, UIDS[1], "the pod after the late message")
    node.stop()


def test_kube_killed(t):
    """a killed coracle-kube is restarted within a second and receives everything again; pods are not affected"""
    peer, node, link = joined(t)
    link.synced()
    link.put(served(pod("web", container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}])), UIDS[0]))
    link.wait(lambda m: m["type"] == "need" and m["name"] == "c")
    link.put(served(config_map("c", k="1"), UIDS[5]))
    link.wait_phase("web", "Running")
    before = node.wait_running("web")
    check(link.uid != 0, "coracle-kube runs as root")
    link.kill()
    again = peer.accept(deadline=1)
    equal(again.wait(lambda m: True)["type"], "config", "the first message")
    again.wait(lambda m: m["type"] == "credentials")
    again.wait(lambda m: m["type"] == "need" and m["name"] == "c")
    again.wait_phase("web", "Running")
    again.wait(lambda m: m["type"] == "node")
    now = node.pod("web")
    equal((now.uid, now.container_id(), now.restarts()), (before.uid, before.container_id(), 0), "the pod")
    # the new one repeats the objects: nothing changes
    again.put(served(pod("web", container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}])), UIDS[0]))
    again.synced()
    again.put(served(pod("next"), UIDS[1]))
    again.wait_phase("next", "Running")
    equal(node.pod("web").container_id(), before.container_id(), "the container after the objects came again")
    node.stop()


def test_config_and_secret(t):
    """a pod waits for unknown ConfigMaps and Secrets; edits reach its volume; they are dropped with the pod"""
    _, node, link = joined(t)
    link.synced()
    web = served(pod("web", container(volumeMounts=[mount("v", "/v")],
                                      env=[{"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}}]),
                     volumes=[{"name": "v", "configMap": {"name": "c"}}]), UIDS[0])
    link.put(web)
    for kind, name in (("ConfigMap", "c"), ("Secret", "s")):
        link.wait(lambda m, kind=kind, name=name: m["type"] == "need" and (m["kind"], m["namespace"], m["name"]) == (kind, "default", name))
    until(lambda: "is not known yet: the apiserver has not answered" in node.cli("explain", "pod", "web").stdout, 10,
          lambda: f"explain names what is waited for:\n{node.cli('explain', 'pod', 'web').stdout}")
    # one of the folder with the same name is another one
    node.put("c.yaml", config_map("c", key="the folder's"))
    link.send("denied", kind="ConfigMap", namespace="default", name="c", code=403, message="no relationship found")
    until(lambda: "the apiserver refuses it (403): no relationship found" in node.cli("explain", "pod", "web").stdout, 10, "explain shows the refusal")
    link.put(served(config_map("c", key="1"), UIDS[3]))
    since = len(link.messages)
    link.send("gone", kind="Secret", namespace="default", name="s", uid="")
    link.wait_phase("web", "Running")
    w = node.wait_running("web")
    equal(node.enter(w, "cat", "/v/key").stdout, "1", "the file")
    link.put(served(config_map("c", key="2"), UIDS[3]))
    until(lambda: node.enter(w, "cat", "/v/key").stdout == "2", 2, "the edit reaches the volume")
    link.put(deleted(web, 1))
    link.wait_pod("web", lambda m: m["ended"], since=since)
    for name in "cs":
        link.wait(lambda m, name=name: m["type"] == "drop" and m["name"] == name, since=since)
    node.stop()


def service(name, ip, *ports, namespace="default"):
    return served({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
                   "spec": {"clusterIP": ip, "ports": [{"port": n, "protocol": "TCP", "name": f"p{n}"} for n in ports]}})


def environment(node, name):
    return dict(line.split("=", 1) for line in node.enter(node.pod(name), "cat", "/proc/1/environ").stdout.strip("\0").split("\0"))


def test_services(t):
    """a pod waits until Services are known, then has their variables; a static pod does not wait; later changes concern later starts"""
    peer, node, link = joined(t)
    link.send("synced", kind="Pod")
    node.put("early.yaml", pod("early"))
    node.wait_running("early-test-node")
    link.put(service("kubernetes", "10.96.0.1", 443), service("db", "10.96.0.7", 5432), service("far", "10.96.0.8", 1, namespace="other"),
             service("headless", "None", 1), service("bad", "10.96.0.9\nX", 1))
    link.put(served(pod("web", container(env=[{"name": "URL", "value": "https://$(KUBERNETES_SERVICE_HOST)"}])), UIDS[0]),
             served(pod("plain", enableServiceLinks=False), UIDS[1]))
    why = "services have not yet been read at least once, cannot construct envvars"
    until(lambda: why in node.cli("explain", "pod", "web", ok=False).stdout, 10, lambda: f"explain names it:\n{node.cli('explain', 'pod', 'web', ok=False).stdout}")
    link.wait(lambda m: m["type"] == "event" and m["object"]["reason"] == "Failed" and m["object"]["message"] == f"Error: {why}")
    link.send("synced", kind="Service")
    for name in ("web", "plain"):
        link.wait_phase(name, "Running", deadline=8)
        node.wait_running(name)
    of_web, of_plain, early = (environment(node, name) for name in ("web", "plain", "early-test-node"))
    equal((of_web["KUBERNETES_SERVICE_HOST"], of_web["KUBERNETES_SERVICE_PORT_P443"], of_web["DB_PORT"], of_web["URL"]),
          ("10.96.0.1", "443", "tcp://10.96.0.7:5432", "https://10.96.0.1"), "variables of web")
    equal([k for k in of_web if k.startswith(("FAR", "HEADLESS", "BAD"))], [], "variables of Services that do not count")
    equal((of_plain["KUBERNETES_SERVICE_HOST"], "DB_SERVICE_HOST" in of_plain), ("10.96.0.1", False), "variables without links")
    equal([k for k in early if "SERVICE" in k], [], "variables of the pod that did not wait")
    before = node.pod("web").container_id()

    # A coracle-kube that ended meanwhile: what the new one does not put is gone. What runs is left alone.
    link.kill()
    link = peer.accept(deadline=2)
    link.put(service("kubernetes", "10.96.0.1", 443), service("db", "10.96.0.77", 5432), service("late", "10.96.0.5", 9))
    link.synced()
    link.gone(service("late", "10.96.0.5", 9))
    link.put(served(pod("web"), UIDS[0]), served(pod("next"), UIDS[2]))
    link.wait_phase("next", "Running")
    node.wait_running("next")
    of_next = environment(node, "next")
    equal((of_next["DB_SERVICE_HOST"], "LATE_SERVICE_HOST" in of_next, "KUBERNETES_SERVICE_HOST" in of_next),
          ("10.96.0.77", False, True), "variables of next")
    equal((node.pod("web").container_id(), environment(node, "web")["DB_SERVICE_HOST"]), (before, "10.96.0.7"), "the running container")
    contains(node.request("GET", "/metrics")[1].decode(), "coracle_kube_services 2")
    node.stop()


def test_pod_that_cannot_run(t):
    """a pod with a volume that this node does not support stays Pending, and an event and a condition name the field"""
    _, node, link = joined(t)
    link.synced()
    web = served(pod("web", container(volumeMounts=[mount("data", "/data")]),
                     volumes=[{"name": "data", "gitRepo": {"repository": "https://example.com/x"}}]), UIDS[0])
    link.put(web)
    event = link.wait(lambda m: m["type"] == "event" and m["object"]["reason"] == "FailedMount")["object"]
    contains(event["message"], "spec.volumes[0].gitRepo", "the event")
    m = link.wait_pod("web", lambda m: "gitRepo" in m["object"]["status"].get("message", ""))
    equal((m["object"]["status"]["phase"], m["ended"]), ("Pending", False), "phase and end")
    condition = [c for c in m["object"]["status"]["conditions"] if c["type"] == "PodReadyToStartContainers"][0]
    equal((condition["status"], condition["reason"]), ("False", "NotSupportedByNode"), "the condition")
    contains(condition["message"], "spec.volumes[0].gitRepo", "the condition")
    node.kill()
    node.start()
    peer_pod = node.wait_pod("web", lambda p: True)
    equal(peer_pod.phase, "Pending", "the phase after a restart of the agent")
    node.stop()


def test_edits_in_place(t):
    """labels, image and resources of a pod change in place"""
    _, node, link = joined(t)
    link.synced()
    def version(n, memory="32Mi", **spec):
        return served(pod("web", container(resources={"limits": {"memory": memory, "cpu": "200m"}}), labels={"v": str(n)}, **spec), UIDS[0], generation=n)
    link.put(version(1))
    link.wait_phase("web", "Running")
    before = node.wait_running("web")
    link.put(version(2, memory="48Mi"))
    m = link.wait_pod("web", lambda m: m["object"]["status"].get("observedGeneration") == 2)
    equal(m["object"]["metadata"]["labels"], {"v": "2"}, "labels")
    link.wait_pod("web", lambda m: m["object"]["status"]["containerStatuses"][0].get("resources", {}).get("limits", {}).get("memory") == "48Mi")
    equal(node.pod("web").container_id(), before.container_id(), "the container")
    node.stop()


def test_folder_pods_are_static(t):
    """a pod of the folder gets the node's name as its suffix, is static, and never clashes with one of the apiserver"""
    _, node, link = joined(t)
    link.synced()
    node.put("web.yaml", pod("web"))
    m = link.wait_phase("web-test-node", "Running")
    notes = m["object"]["metadata"]["annotations"]
    equal((m["static"], notes["kubernetes.io/config.source"], notes["kubernetes.io/config.hash"]),
          (True, "file", m["object"]["metadata"]["uid"]), "the static pod")
    check({"operator": "Exists", "effect": "NoExecute"} in m["object"]["spec"]["tolerations"], "no toleration of NoExecute")
    link.put(served(pod("web"), UIDS[0]))
    link.wait_phase("web", "Running")
    equal(sorted(k[1] for k in node.pods()), ["web", "web-test-node"], "the pods")
    # its mirror in the apiserver is no pod to be run
    mirror = served(pod("web-test-node", annotations={"kubernetes.io/config.mirror": notes["kubernetes.io/config.hash"]}), UIDS[1])
    link.put(mirror)
    node.remove("web.yaml")
    node.wait_gone("web-test-node")
    node.stop()


def test_restart_without_the_apiserver(t):
    """without its apiserver an agent keeps and starts the recorded pods; pods missing from the first set are ended"""
    peer, node, link = joined(t)
    link.synced()
    for n, name in enumerate(("stay", "leave")):
        link.put(served(pod(name), UIDS[n]))
    for name in ("stay", "leave"):
        link.wait_phase(name, "Running")
    ids = {p: node.wait_running(p).container_id() for p in ("stay", "leave")}
    node.kill()
    link.close()
    node.start()
    link = peer.accept()
    for name in ("stay", "leave"):
        m = link.wait_phase(name, "Running")
        equal(m["object"]["metadata"]["uid"], UIDS[0 if name == "stay" else 1], "the uid")
        equal(node.pod(name).container_id(), ids[name], "the container of " + name)
    link.put(served(pod("stay"), UIDS[0]))
    link.synced()
    link.wait(lambda m: m["type"] == "podgone" and m["name"] == "leave")
    equal(node.pod("stay").container_id(), ids["stay"], "the container of the pod that stays")
    node.stop()


def test_token(t):
    """a projected token comes from the apiserver; a refusal is shown and retried"""
    _, node, link = joined(t)
    link.synced()
    web = served(pod("web", container(volumeMounts=[mount("t", "/t")]), serviceAccountName="robot",
                     volumes=[{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]}}]),
                 UIDS[0])
    link.put(web)
    asked = link.wait(lambda m: m["type"] == "token")
    equal((asked["namespace"], asked["serviceAccount"]), ("default", "robot"), "the account")
    equal(asked["request"]["boundObjectRef"], {"kind": "Pod", "apiVersion": "v1", "name": "web", "uid": UIDS[0]}, "the bound object")
    equal(asked["request"]["expirationSeconds"], 3607, "the lifetime")
    link.send("answer", id=asked["id"], object={"status": {"token": "abc.def.ghi", "expirationTimestamp": "2099-01-01T00:00:00Z"}})
    link.wait_phase("web", "Running")
    equal(node.enter(node.wait_running("web"), "cat", "/t/token").stdout, "abc.def.ghi", "the token")
    node.stop()


def test_labels_and_taints(t):
    """the apiserver's labels and taints of the node apply to pods bound later; a rejected pod stays Failed"""
    _, node, link = joined(t)
    link.synced()
    link.put(served(pod("early", nodeSelector={"disk": "fast"}), UIDS[0]))
    m = link.wait_phase("early", "Failed")
    equal(m["object"]["status"]["reason"], "NodeAffinity", "the reason")
    def of_node(labels, taints):
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "test-node", "labels": labels}, "spec": {"taints": taints}}
    before = of_node({"disk": "fast"}, [])
    before["status"] = {"nodeInfo": {"bootID": "5f3c0f80-0000-4000-8000-000000000000"}}
    link.put(before, before)
    boot = read("/proc/sys/kernel/random/boot_id").strip()
    event = link.wait(lambda m: m["type"] == "event" and m["object"]["reason"] == "Rebooted")["object"]
    equal((event["message"], event["type"]), (f"Node test-node has been rebooted, boot id: {boot}", "Warning"), "the event")
    link.put(served(pod("fits", nodeSelector={"disk": "fast"}), UIDS[1]))
    link.wait_phase("fits", "Running")
    link.put(of_node({"disk": "fast"}, [{"key": "broken", "effect": "NoExecute"}]))
    link.put(served(pod("late"), UIDS[2]))
    m = link.wait_phase("late", "Failed")
    equal(m["object"]["status"]["reason"], "TaintToleration", "the reason")
    link.put(of_node({"disk": "fast"}, []))
    link.put(served(pod("last"), UIDS[3]))
    link.wait_phase("last", "Running")
    equal((node.pod("early").phase, node.pod("late").phase), ("Failed", "Failed"), "rejected pods stay so")
    equal(len([m for m in link.messages if m["type"] == "event" and m["object"]["reason"] == "Rebooted"]), 1, "events of the boot")
    node.stop()


def test_finished_and_readiness_gate(t):
    """a pod that succeeded is reported as ended and not started again; a readiness gate waits for the cluster's condition"""
    _, node, link = joined(t)
    link.synced()
    job = served(pod("job", container(command=shell("exit 0")), restartPolicy="Never"), UIDS[0])
    link.put(job)
    link.wait_pod("job", lambda m: m["ended"] and m["object"]["status"]["phase"] == "Succeeded")
    gated = served(pod("gated", readinessGates=[{"conditionType": "example.com/ready"}]), UIDS[1])
    link.put(gated)
    def ready(m):
        return next((c for c in m["object"]["status"].get("conditions", []) if c["type"] == "Ready"), {})
    m = link.wait_pod("gated", lambda m: ready(m).get("reason") == "ReadinessGatesNotReady")
    contains(ready(m)["message"], 'pod readiness gate "example.com/ready" does not exist', "the condition")
    since = len(link.messages)
    link.put({**gated, "status": {"phase": "Running", "conditions": [{"type": "example.com/ready", "status": "True"}]}})
    link.wait_pod("gated", lambda m: ready(m).get("status") == "True", since=since)
    link.put(deleted(job, 0))
    link.gone(job)
    link.wait(lambda m: m["type"] == "podgone" and m["name"] == "job")
    node.stop()


def test_grace_becomes_shorter(t):
    """a second deletion with a shorter grace period ends the pod earlier; without a grace period at once"""
    _, node, link = joined(t)
    link.synced()
    stubborn = container(command=shell("trap '' TERM; while :; do sleep 0.1; done"))
    web = served(pod("web", stubborn, terminationGracePeriodSeconds=600), UIDS[0])
    link.put(web)
    link.wait_phase("web", "Running")
    node.wait_running("web")
    link.put(deleted(web, 600))
    node.wait_pod("web", lambda p: p["metadata"].get("deletionGracePeriodSeconds") == 600, what="the deletion")
    link.put(deleted(web, 1))
    m = link.wait_pod("web", lambda m: m["ended"], deadline=10)
    equal(m["object"]["status"]["phase"], "Failed", "the phase of a pod that was killed")
    link.gone(web)
    node.wait_gone("web")
    node.stop()
