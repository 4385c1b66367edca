# SPDX-License-Identifier: Apache-2.0
"""coracle debug: containers added to a pod of the manifest folder, and pods in the node's own namespaces."""
import os

from coracle import check, container, contains, equal, pod, shell, until

IMAGE = "localhost/busybox:1"


def state(name):
    return lambda p: next((s["state"] for s in p.status.get("ephemeralContainerStatuses", []) if s["name"] == name), {})


def test_a_pod(t):
    """it sees its target's processes; an edit and a restart of the agent keep it; a new pod is without it"""
    node = t.node()
    node.import_image()
    node.put("web.yaml", pod("web", container("main", command=["sleep", "4711"])))
    before = node.wait_running("web")
    made = node.cli("debug", "web", "--image", IMAGE, "--target", "main", "-c", "look", "--env", "A=b",
                    "--", "sh", "-c", "ps; echo A=$A; sleep 1000")
    equal((made.stdout, made.stderr), ("", ""), "output")
    node.wait_pod("web", lambda p: "running" in state("look")(p))
    until(lambda: "A=b" in node.logs("web", "look"), 10, "its log")
    contains(node.logs("web", "look"), "sleep 4711")
    with open(f"{t.scratch}/tmp/in", "w+", encoding="utf-8") as f:
        f.write("through\n")
        f.seek(0)
        piped = node.cli("debug", "-i", "pod/web", "--image", IMAGE, "--", "cat", stdin=f)
    contains(piped.stdout, "through")
    contains(piped.stderr, "Defaulting debug container name to debugger-")
    contains(node.cli("debug", "web", "--image", IMAGE, "-c", "main", ok=False).stderr, "is the name of another container")
    contains(node.cli("debug", "web", "--image", IMAGE, "--target", "none", ok=False).stderr, 'there is no container "none"')
    equal(node.cli("debug", "nobody", "--image", IMAGE, ok=False).returncode, 5, "exit code for no such pod")

    node.kill()
    node.start()
    now = node.wait_pod("web", lambda p: "running" in state("look")(p))
    equal((now.uid, now.container_id(), now.restarts()), (before.uid, before.container_id(), 0), "the pod after a restart")
    equal(len(now["spec"]["ephemeralContainers"]), 2, "ephemeral containers after a restart")
    node.put("web.yaml", pod("web", container("main", command=["sleep", "4711"]), labels={"edited": "yes"}))
    now = node.wait_pod("web", lambda p: p["metadata"].get("labels", {}).get("edited") == "yes")
    equal((now.uid, "running" in state("look")(now)), (before.uid, True), "after an edit")
    node.put("web.yaml", pod("web", container("main", command=["sleep", "4712"])))
    now = node.wait_pod("web", lambda p: p.uid != before.uid and p.phase == "Running", 60)
    check("ephemeralContainers" not in now["spec"], "the new pod has it, too")
    node.stop()


def test_the_node(t):
    """debug node/NAME runs a pod in the node's namespaces, with its files at /host"""
    node = t.node()
    node.import_image()
    name = node.get("/api/v1/nodes")["items"][0]["metadata"]["name"]
    with open(f"{t.scratch}/tmp/seen", "w", encoding="utf-8") as f:
        f.write("the host's\n")
    done = node.cli("debug", "-i", f"node/{name}", "--image", IMAGE, "--",
                    *shell(f"cat; cat /host{t.scratch}/tmp/seen; readlink /proc/self/ns/net"))
    equal(done.stdout, f"the host's\n{os.readlink('/proc/self/ns/net')}\n", "output")
    contains(done.stderr, f"Creating debugging pod node-debugger-{name}-")
    file = [f for f in os.listdir(node.manifests) if f.startswith("pod-default-node-debugger-")]
    equal(len(file), 1, "manifests")
    equal(node.cli("debug", "node/nobody", "--image", IMAGE, ok=False).returncode, 5, "exit code for no such node")
    node.stop()
