# SPDX-License-Identifier: Apache-2.0
"""RuntimeClass: pods of one node under different OCI runtimes."""
import os
import shutil

from coracle import container, contains, equal, pod, read, shell, until
from test_joined import bound, joined, running


def runtime_class(name, handler, **more):
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": handler, **more}


def noted(t, name, program):
    """A runtime that notes its commands: `<name> ... <command> ... <id>`; returns its path."""
    path = f"{t.scratch}/tmp/{name}"
    with open(path, "w", encoding="ascii") as f:
        f.write(f'#!/bin/sh\necho "$*" >> {path}.log\nexec {program} "$@"\n')
    os.chmod(path, 0o755)
    return path


def commands(path, cid):
    """What the runtime was told to do with a container."""
    lines = [line.split() for line in read(f"{path}.log", "").splitlines()]
    known = ("create", "start", "exec", "delete")
    return [word for line in lines if line and line[-1] == cid for word in line if word in known]


def says(node, p):
    return node.cli("exec", p.name, "--", "/bin/sh", "-c", "echo in $HOSTNAME").stdout


def test_two_runtimes(t):
    """a pod under crun beside one under runc: exec, kill -9, a restart without their handlers, deletion; each by its own runtime"""
    paths = {"one": noted(t, "one", shutil.which("crun")), "two": noted(t, "two", shutil.which("runc"))}
    handlers = ["--runtime-handlers", ",".join(f"{name}={path}" for name, path in paths.items())]
    node = t.node(*handlers)
    node.import_image()
    node.put("classes.yaml", runtime_class("first", "one"), runtime_class("second", "two"))
    node.put("a.yaml", pod("a", runtimeClassName="first"))
    node.put("b.yaml", pod("b", runtimeClassName="second"))
    node.put("c.yaml", pod("c"))
    node.wait_running("a", "b", "c")
    pods = {"one": node.pod("a"), "two": node.pod("b")}
    before = {name: (p.uid, p.container_id(), node.pid(p)) for name, p in pods.items()}

    def used(*words):
        for name, p in pods.items():
            equal(commands(paths[name], p.container_id()), list(words), f"commands of {name} for its container")
            other = "two" if name == "one" else "one"
            equal(commands(paths[other], p.container_id()), [], f"commands of {other} for the container of {name}")

    used("create", "start")
    for p in pods.values():
        equal(says(node, p), f"in {p.name}\n", "exec")
    used("create", "start", "exec")
    equal(says(node, node.pod("c")), "in c\n", "exec under the default runtime")
    for path in paths.values():
        equal(commands(path, node.pod("c").container_id()), [], "commands for a pod without a class")

    node.kill()
    node.flags = [f for f in node.flags if f not in handlers]
    node.start()
    node.wait_running("a", "b", "c")
    for name, p in pods.items():
        now = node.pod(p.name)
        equal((now.uid, now.container_id(), node.pid(now)), before[name], "the pod after the restart")
        equal(says(node, p), f"in {p.name}\n", "exec after the restart")
    used("create", "start", "exec", "exec")
    node.remove("a.yaml", "b.yaml", "c.yaml")
    node.wait_gone("a", "b", "c")
    used("create", "start", "exec", "exec", "delete")
    for p in pods.values():
        node.wait_no_traces(p)
    equal(node.stop(), 0, "the exit code")


def test_installed_runtimes(t):
    """without configuration, crun and runc are handlers, and a class is not needed for them"""
    node = t.node()
    node.import_image()
    handlers = node.get("/api/v1/nodes")["items"][0]["status"]["runtimeHandlers"]
    equal([h["name"] for h in handlers], ["", "crun", "runc"], "the handlers")
    for runtime in ("crun", "runc"):
        node.put(f"{runtime}.yaml", pod(runtime, runtimeClassName=runtime))
    node.wait_running("crun", "runc")
    for runtime in ("crun", "runc"):
        cid = node.pod(runtime).container_id()
        contains(read(f"{node.run_dir}/containers/{cid}/meta.json"), f'"program":"{shutil.which(runtime)}"', "the record")
        equal(says(node, node.pod(runtime)), f"in {runtime}\n", "exec")
    node.finish(node.pod("crun"), node.pod("runc"))
    equal(node.stop(), 0, "the exit code")


def failure(node, name, text):
    return any(e["reason"] == "FailedCreatePodSandBox" and e["message"] == f"Failed to create pod sandbox: {text}"
               and e["type"] == "Warning" for e in node.events(name))


def test_missing(t):
    """a missing class and a missing handler are events with kubelet's text, and the pods start once they exist"""
    node = t.node("--runtime-handlers", "broken=/bin/false,gone=/nonexistent/runtime")
    node.import_image()
    node.wait_log("a runtime handler has no program")
    node.wait_log("a runtime handler cannot be used")
    node.put("a.yaml", pod("a", runtimeClassName="none"))
    until(lambda: failure(node, "a", 'runtimeclass.node.k8s.io "none" not found'), 10, lambda: f"the event of a: {node.events('a')}")
    node.put("class.yaml", runtime_class("none", "kata"))
    text = 'failed to get sandbox runtime: no runtime for "kata" is configured'
    until(lambda: failure(node, "a", text), 10, lambda: f"the event of a: {node.events('a')}")
    until(lambda: any(e["message"].endswith(text) and e["count"] > 1 for e in node.events("a")), 15, "it is tried again")
    equal(node.pod("a").phase, "Pending", "the phase")
    contains(node.cli("explain", "pod", "a", ok=False).stdout, 'no runtime for "kata" is configured')
    for name in ("broken", "gone"):
        node.put(f"{name}.yaml", pod(name, runtimeClassName=name), runtime_class(name, name))
        until(lambda n=name: failure(node, n, f'failed to get sandbox runtime: no runtime for "{n}" is configured'), 10,
              lambda n=name: f"the event of {n}: {node.events(n)}")
    node.put("class.yaml", runtime_class("none", "runc"))
    node.wait_running("a", deadline=5)
    node.remove("broken.yaml", "gone.yaml")
    node.wait_gone("broken", "gone")
    node.finish(node.pod("a"))
    equal(node.stop(), 0, "the exit code")


def test_of_the_cluster(t):
    """a class of the apiserver chooses the runtime; the pod's overhead is in its cgroup; the node's status names the handlers"""
    server, node = joined(t)
    status = server.store.wait("Node", "test-node", lambda n: n is not None and "runtimeHandlers" in n["status"], seconds=10)["status"]
    equal([h["name"] for h in status["runtimeHandlers"]], ["", "crun", "runc"], "the handlers")
    for handler in status["runtimeHandlers"]:
        equal(handler["features"], {"recursiveReadOnlyMounts": True, "userNamespaces": True}, f"features of {handler['name']!r}")
    # A node asks for RuntimeClasses once it has a pod; this one has to wait for its own.
    limited = container(resources={"limits": {"memory": "64Mi", "cpu": "500m"}})
    server.store.put("Pod", bound(pod("web", limited, runtimeClassName="other", overhead={"memory": "32Mi", "cpu": "100m"})))
    until(lambda: any(e["reason"] == "FailedCreatePodSandBox" and 'runtimeclass.node.k8s.io "other" not found' in e["message"]
                      for e in server.store.all("Event")), 15, "the event about the class")
    server.store.put("RuntimeClass", runtime_class("other", "runc", overhead={"podFixed": {"memory": "32Mi", "cpu": "100m"}}))
    server.store.wait("Pod", "web", running, seconds=20)
    here = node.wait_running("web")
    contains(read(f"{node.run_dir}/containers/{here.container_id()}/meta.json"), '"handler":"runc"', "the record")
    folder = os.path.dirname(node.container_cgroup(here, "memory"))
    limit = read(f"{folder}/memory.max", "") or read(f"{folder}/memory.limit_in_bytes")
    equal(int(limit), 96 << 20, "the pod's memory limit with its overhead")
    server.store.remove("Pod", "web", gracePeriodSeconds=1)
    until(lambda: not [p for p in server.store.all("Pod") if p["metadata"]["name"] == "web"], 15, "the pod leaves the apiserver")
    node.wait_no_traces(here)
    equal(node.stop(), 0, "the exit code")
    server.stop()


def test_static_pod_of_a_cluster(t):
    """a pod of the folder uses a class of the apiserver; a shell in its container ends with it"""
    server, node = joined(t)
    server.store.put("RuntimeClass", runtime_class("of-cluster", "runc"))
    node.put("a.yaml", pod("a", container(command=shell("exec sleep 1000")), runtimeClassName="of-cluster",
                           terminationGracePeriodSeconds=0))
    here = node.wait_running("a-test-node")
    contains(read(f"{node.run_dir}/containers/{here.container_id()}/meta.json"), '"handler":"runc"', "the record")
    node.remove("a.yaml")
    node.wait_gone("a-test-node")
    node.wait_no_traces(here)
    equal(node.stop(), 0, "the exit code")
    server.stop()
