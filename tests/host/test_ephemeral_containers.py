# SPDX-License-Identifier: Apache-2.0
"""Ephemeral containers: what `kubectl debug` adds to a pod of the apiserver that runs."""
import json
import os
import subprocess

from coracle import check, config_map, container, contains, equal, mount, pod, shell, until
from kube_peer import KubePeer, deleted, served
from node_port import NodePort, Pki

UID = "3f0c0f80-0000-4000-8000-000000000011"
IMAGE = "localhost/busybox:1"


def joined(t, *flags):
    peer = KubePeer(t)
    node = t.node(*peer.flags(), *flags)
    node.import_image()
    link = peer.accept()
    link.synced()
    return peer, node, link


def debugger(name="debug", command=None, **more):
    return {"name": name, "image": IMAGE, "command": command or ["sleep", "1000"], **more}


def web(*debuggers, generation=1, containers=None, **spec):
    return served(pod("web", *(containers or [container()]), ephemeralContainers=list(debuggers), **spec), UID, generation=generation)


def ephemeral(o, name="debug"):
    """The status of an ephemeral container; {} while there is none."""
    return next((s for s in o.get("status", {}).get("ephemeralContainerStatuses", []) if s["name"] == name), {})


def is_(state, name="debug"):
    return lambda m: state in ephemeral(m["object"], name).get("state", {})


def event(link, reason, name="debug"):
    return link.wait(lambda m: m["type"] == "event" and m["object"]["reason"] == reason
                     and m["object"]["involvedObject"].get("fieldPath") == f"spec.ephemeralContainers{{{name}}}", what=f"event {reason}")["object"]


def test_added_to_a_running_pod(t):
    """an added one runs beside the others, undisturbed; its end is in the status, and it does not run again"""
    _, node, link = joined(t)
    link.put(web())
    link.wait_phase("web", "Running")
    before = node.wait_running("web")
    link.put(web(debugger(command=shell("hostname; sleep 1; exit 7")), generation=2))
    m = link.wait_pod("web", is_("running"))
    status = ephemeral(m["object"])
    equal((status["ready"], status["restartCount"], status["image"], "started" in status), (False, 0, IMAGE, False), "the status")
    equal(m["object"]["status"]["observedGeneration"], 2, "observedGeneration")
    check("coracle.dev/FieldsIgnored" not in json.dumps(m["object"]["status"]), "it is named as ignored")
    for reason in ("Pulled", "Created", "Started"):
        event(link, reason)
    m = link.wait_pod("web", is_("terminated"))
    equal((ephemeral(m["object"])["state"]["terminated"]["exitCode"], m["object"]["status"]["phase"]), (7, "Running"), "exit code and phase")
    equal(node.logs("web", "debug"), "web\n", "its log")
    contains(node.cli("logs", "web", "-c", "debug").stdout, "web", "coracle logs")
    ready = next(c for c in m["object"]["status"]["conditions"] if c["type"] == "Ready")
    equal(ready["status"], "True", "the pod's readiness")
    now = node.pod("web")
    equal((now.container_id(), now.restarts()), (before.container_id(), 0), "the regular container")
    # the second one comes first in the list, as a strategic merge patch puts it
    link.put(web(debugger("other"), debugger(command=shell("hostname; sleep 1; exit 7")), generation=3))
    m = link.wait_pod("web", is_("running", "other"))
    equal(ephemeral(m["object"])["state"]["terminated"]["exitCode"], 7, "the first one's exit code")
    described = node.cli("describe", "pod", "web").stdout
    contains(described, "Ephemeral Containers:")
    contains(described, "other:")
    contains(node.cli("get", "pods").stdout, "1/1", "the ready containers")
    contains(node.cli("exec", "web", "-c", "other", "--", "echo", "inside").stdout, "inside", "exec")
    link.put(deleted(web(debugger("other"), debugger(), generation=4), 2))
    link.wait_pod("web", lambda m: m["ended"])
    link.gone(web())
    node.wait_gone("web")
    node.wait_no_traces(before)
    equal(node.stop(), 0, "the exit code")


def test_target(t):
    """with a target it sees only the target's processes; without one only its own; a removed target is named"""
    _, node, link = joined(t)
    two = [container("main", command=["sleep", "4711"]), container("side", command=["sleep", "4712"])]
    link.put(web(containers=two))
    link.wait_phase("web", "Running")
    look = shell("for p in /proc/[0-9]*; do cat $p/cmdline | tr '\\0' ' '; echo; done; sleep 1000")
    link.put(web(debugger("with", look, targetContainerName="main"), debugger("alone", look), generation=2, containers=two))
    link.wait_pod("web", lambda m: is_("running", "with")(m) and is_("running", "alone")(m))
    here = node.pod("web")
    until(lambda: "sleep 4711" in node.logs("web", "with"), 5, lambda: "the target's process is seen: " + node.logs("web", "with"))
    check("sleep 4712" not in node.logs("web", "with"), "a process of another container is seen")
    until(lambda: "tr" in node.logs("web", "alone"), 5, "the log of the other one")
    check("sleep 471" not in node.logs("web", "alone"), "without a target it sees others: " + node.logs("web", "alone"))
    # the target ends: so do those in its namespace
    os.kill(node.pid(here, "main"), 9)
    m = link.wait_pod("web", is_("terminated", "with"))
    equal(ephemeral(m["object"], "with")["state"]["terminated"]["exitCode"], 137, "its exit code")
    check("running" in ephemeral(m["object"], "alone")["state"], "the other one ended, too")
    node.stop()


def test_target_gone(t):
    """a target that has ended, and one that never ran, are named with the texts of kubelet and its runtime"""
    _, node, link = joined(t)
    parts = dict(containers=[container("main"), container("job", command=["true"], restartPolicy="Never"),
                             container("never", image="localhost/absent:1", imagePullPolicy="Never")])
    link.put(web(**parts))
    link.wait_pod("web", lambda m: any("terminated" in s["state"] for s in m["object"]["status"].get("containerStatuses", [])))
    link.put(web(debugger("late", targetContainerName="job"), debugger("early", targetContainerName="never"), generation=2, **parts))
    m = link.wait_pod("web", lambda m: all(ephemeral(m["object"], n).get("state", {}).get("waiting", {}).get("message") for n in ("late", "early")))
    late, early = (ephemeral(m["object"], n)["state"]["waiting"] for n in ("late", "early"))
    equal((early["reason"], early["message"]), ("CreateContainerConfigError", "unable to find target container never"), "never")
    equal(late["reason"], "CreateContainerError", "the reason")
    contains(late["message"], "invalid target container: container \"")
    contains(late["message"], "is not running - in state CONTAINER_EXITED")
    equal(event(link, "Failed", "early")["message"], "Error: unable to find target container never", "the event")
    node.stop()


def test_agent_killed(t):
    """after kill -9 of the agent it is adopted with the others; one that ended meanwhile has its exit code and stays ended"""
    _, node, link = joined(t)
    link.put(web())
    link.wait_phase("web", "Running")
    both = web(debugger("stays"), debugger("ends", shell("while [ ! -e /tmp/end ]; do sleep 0.1; done; exit 3")), generation=2)
    link.put(both)
    link.wait_pod("web", lambda m: is_("running", "stays")(m) and is_("running", "ends")(m))
    before = node.pod("web")
    ids = {s["name"]: s["containerID"] for s in before.status["ephemeralContainerStatuses"]}
    ends = int(next(p for p in node.container_pids(before, "ends")))
    node.kill()
    os.kill(ends, 9)
    node.start()
    def settled(p):
        s = {s["name"]: s for s in p.status.get("ephemeralContainerStatuses", [])}
        return "running" in s["stays"]["state"] and "terminated" in s["ends"]["state"]
    now = node.wait_pod("web", settled)
    equal({s["name"]: s["containerID"] for s in now.status["ephemeralContainerStatuses"]}, ids, "the runs")
    equal((now.container_id(), now.restarts()), (before.container_id(), 0), "the regular container")
    node.stop()


def test_volumes_and_environment(t):
    """it mounts a volume that no other container mounts, and waits for the ConfigMap of its environment"""
    _, node, link = joined(t)
    parts = dict(volumes=[{"name": "v", "configMap": {"name": "files"}}, {"name": "e", "emptyDir": {}}])
    link.put(web(**parts))
    link.wait_phase("web", "Running")
    before = node.wait_running("web")
    link.put(web(debugger(volumeMounts=[mount("v", "/v"), mount("e", "/e")],
                          env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "values", "key": "k"}}}]), generation=2, **parts))
    for name in ("files", "values"):
        link.wait(lambda m, name=name: m["type"] == "need" and m["name"] == name)
    link.put(served(config_map("files", key="1")), served(config_map("values", k="2")))
    link.wait_pod("web", is_("running"))
    now = node.pod("web")
    equal(node.enter(now, "cat", "/v/key", container="debug").stdout, "1", "the file")
    contains(node.enter(now, "cat", "/proc/1/environ", container="debug").stdout, "A=2", "the environment")
    equal(now.container_id(), before.container_id(), "the regular container")
    node.stop()


def test_streams(t):
    """attach reaches its standard input, and the node's port its log and a command in it"""
    _, node, link = joined(t)
    link.put(web())
    link.wait_phase("web", "Running")
    link.put(web(debugger(command=["sh"], stdin=True), debugger("other", shell("echo noted; exec sleep 1000")), generation=2))
    link.wait_pod("web", lambda m: is_("running")(m) and is_("running", "other")(m))
    shown = subprocess.run([node.coracle, "--socket", node.socket, "attach", "-i", "web", "-c", "debug"], input="echo in $HOSTNAME; exit 5\n",
                           capture_output=True, text=True, timeout=20, check=False)
    contains(shown.stdout, "in web", "what is attached says")
    m = link.wait_pod("web", is_("terminated"))
    equal(ephemeral(m["object"])["state"]["terminated"]["exitCode"], 5, "the exit code")
    port = NodePort(node, Pki(f"{t.scratch}/pki"))
    equal(port.ask("/containerLogs/default/web/other")[::2], (200, "noted\n"), "the log")
    equal(port.ask("/run/default/web/other?cmd=echo%20run", method="POST")[::2], (200, "run\n"), "run")
    port.stop()
    node.stop()


def test_its_files_count(t):
    """its files count for the pod's limit of local storage, as in kubelet: the pod is evicted"""
    _, node, link = joined(t)
    parts = dict(containers=[container(resources={"limits": {"ephemeral-storage": "1Mi"}})])
    link.put(web(**parts))
    link.wait_phase("web", "Running")
    node.wait_running("web")
    link.put(web(debugger(command=shell("head -c 3000000 /dev/zero > /big; sleep 1000")), generation=2, **parts))
    m = link.wait_phase("web", "Failed", deadline=60)
    equal((m["object"]["status"]["reason"], m["object"]["status"]["message"]),
          ("Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "), "the eviction")
    node.stop()


def test_static_pods_have_none(t):
    """a pod of the manifest folder with ephemeral containers is refused; the reason names kubectl debug"""
    node = t.node()
    node.import_image()
    node.put("web.yaml", pod("web", ephemeralContainers=[debugger()]))
    until(lambda: "spec.ephemeralContainers: not supported: ephemeral containers cannot be set when a pod is created"
          in json.dumps(node.problems()), 5, lambda: f"the problem: {node.problems()}")
    node.stop()
