# SPDX-License-Identifier: Apache-2.0
"""The command line: output as users see it."""
import json
import os
import re
import subprocess
import threading
import time

from coracle import (TOP, Node, as_nobody, check, contains, container, equal, pod, read, shell, until)


def test_get(t):
    """get pods shows kubectl's columns; -A, -o wide, json, yaml, -l and -w work"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container("one"), container("two"), labels={"tier": "front"}))
    node.put("b.yaml", pod("b", namespace="other"))
    a = node.wait_running("a")
    node.wait_pod("b", lambda p: p.ready, namespace="other")
    lines = node.cli("get", "pods").stdout.splitlines()
    equal(lines[0].split(), ["NAME", "READY", "STATUS", "RESTARTS", "AGE"], "header")
    equal(len(lines), 2, "lines of namespace default")
    check(re.fullmatch(r"a +2/2 +Running +0 +\d+s", lines[1].rstrip()), f"line {lines[1]!r}")
    wide = node.cli("get", "pods", "-A", "-o", "wide").stdout.splitlines()
    equal(wide[0].split()[:7], ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"], "wide header")
    equal(sorted(line.split()[0] for line in wide[1:]), ["default", "other"], "namespaces")
    contains("\n".join(wide), a.ip, "wide")
    equal(json.loads(node.cli("get", "pods", "-o", "json").stdout)["items"][0]["metadata"]["name"], "a", "json")
    contains(node.cli("get", "pod", "a", "-o", "yaml").stdout, "name: a", "yaml")
    equal(node.cli("get", "pods", "-A", "-l", "tier=front").stdout.count("\n"), 2, "lines with -l")
    check("a" not in node.cli("get", "pods", "-l", "tier!=front").stdout.split(), "-l tier!=front shows a")
    missing = node.cli("get", "pod", "nobody", ok=False)
    equal(missing.returncode, 5, "exit code for a pod that is not there")
    contains(missing.stderr, 'pods "nobody" not found')

    watch = subprocess.Popen([node.coracle, "--socket", node.socket, "get", "pods", "-w"], stdout=subprocess.PIPE, text=True)
    seen = []
    reader = threading.Thread(target=lambda: seen.extend(iter(watch.stdout.readline, "")), daemon=True)
    reader.start()
    until(lambda: any(line.startswith("a ") for line in seen), 5, "the watch shows what is there")
    node.put("c.yaml", pod("c"))
    until(lambda: any(line.startswith("c ") and "Running" in line for line in seen), 15, lambda: f"the watch shows c; {seen}")
    watch.terminate()
    watch.wait()
    equal(node.cli("wait", "pod/a", "pod/c", "--timeout", "60s").stdout, "pod/a condition met\npod/c condition met\n", "wait")
    node.remove("c.yaml")
    equal(node.cli("wait", "pod/c", "--for", "delete", "--timeout", "60s", timeout=90).stdout, "pod/c condition met\n", "wait for the end")
    node.stop()


def test_wait(t):
    """wait returns at once, with the reason, for a pod that has ended; jsonpath, create and delete"""
    node = t.node()
    node.import_image()
    node.put("job.yaml", pod("job", container(command=shell("exit 3")), restartPolicy="Never"))
    node.wait_phase("job", "Failed")
    began = time.monotonic()
    ended = node.cli("wait", "pod/job", "--timeout", "60s", ok=False)
    equal((ended.returncode, ended.stdout), (1, ""), "wait for a pod that has failed")
    contains(ended.stderr, "error: pod job has ended (Failed): it no longer meets condition=Ready; see coracle explain pod job\n")
    check(time.monotonic() - began < 30, "wait for an ended pod takes its whole time")
    equal(node.cli("wait", "pod/job", "--for=jsonpath={.status.phase}=Failed").stdout, "pod/job condition met\n", "a phase")

    def wait(*words):
        return subprocess.Popen([node.coracle, "--socket", node.socket, "wait", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    created = wait("pod/late", "--for=create", "--timeout=60s")
    node.put("late.yaml", pod("late", container(command=shell("until [ -e /tmp/end ]; do sleep 0.1; done; exit 4")), restartPolicy="Never"))
    equal(created.communicate(timeout=60)[0], "pod/late condition met\n", "wait for the creation")
    never = wait("pod/late", "--for=condition=DisruptionTarget", "--timeout=60s")
    late = node.wait_running("late")
    check(never.poll() is None, "wait for a condition of a running pod has ended")
    node.enter(late, "touch", "/tmp/end")
    out, err = never.communicate(timeout=60)
    equal((never.returncode, out), (1, ""), "wait for a pod that fails meanwhile")
    contains(err, "pod late has ended (Failed): it no longer meets condition=DisruptionTarget")
    node.stop()


def test_describe_and_explain(t):
    """describe shows containers, conditions and events; explain shows the step, its age and its cause of waiting"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(ports=[{"containerPort": 80}]), labels={"x": "y"}))
    node.wait_running("a")
    text = node.cli("describe", "pod", "a").stdout
    for part in ("Name:", "Namespace:", "default", "x=y", "Containers:", "main:", "localhost/busybox:1", "Conditions:", "Ready",
                 "Events:", "Started"):
        contains(text, part, "describe")
    check(node.cli("explain", "pod", "a").stdout.strip(), "explain says nothing")
    steps = [step["name"] for step in json.loads(node.cli("explain", "node", "-o", "json").stdout)["steps"]]
    equal(len(set(steps)), len(steps), f"each step of the node once: {steps}")
    node.put("b.yaml", pod("b", container(image="localhost/absent:1", imagePullPolicy="Never")))
    node.wait_pod("b", lambda p: p.state()[1].get("reason") == "ErrImageNeverPull")
    contains(node.cli("explain", "pod", "b").stdout, "localhost/absent:1", "explain of a waiting pod")
    node.stop()


def test_logs(t):
    """logs shows output as it was written; -c, -p, -f and errors are kubectl's"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container("talk", shell("echo out; sleep 0.2; echo err >&2; sleep 0.2; printf 'no newline'; sleep 0.2; i=0; "
                                                        "while true; do i=$((i+1)); echo line $i; sleep 0.2; done")),
                           container("quiet"), terminationGracePeriodSeconds=0))
    a = node.wait_running("a")
    until(lambda: "line 1" in node.logs("a", "talk"), 10, "line 1")
    text = node.logs("a", "talk")
    contains(text, "out\n")
    contains(text, "err\n")
    contains(text, "no newlineline 1\n")
    ambiguous = node.cli("logs", "a", ok=False)
    check(ambiguous.returncode != 0 or "Defaulted container" in ambiguous.stderr, f"logs without -c: {ambiguous}")
    equal(node.cli("logs", "a", "-c", "absent", ok=False).returncode, 5, "logs of a container that is not there")
    follow = subprocess.Popen([node.coracle, "--socket", node.socket, "logs", "a", "-c", "talk", "-f"], stdout=subprocess.PIPE,
                              text=True)
    seen = []
    threading.Thread(target=lambda: seen.extend(iter(follow.stdout.readline, "")), daemon=True).start()
    until(lambda: len([x for x in seen if "line" in x]) >= 4, 10, lambda: f"four lines; {seen}")
    os.kill(node.pid(a, "talk"), 9)
    node.wait_pod("a", lambda p: p.restarts("talk") == 1)
    contains(node.logs("a", "talk", previous=True), "line 4", "log of the instance before")
    node.remove("a.yaml")
    node.wait_gone("a")
    follow.wait(timeout=10)
    node.stop()


def test_log_files(t):
    """logs are in CRI format under pod-logs-dir, with the links of container-logs-dir"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=shell("echo hello; sleep 1000")), terminationGracePeriodSeconds=0))
    a = node.wait_running("a")
    path = f"{node.pod_logs}/default_a_{a.uid}/main/0.log"

    def first_line():
        with open(path, encoding="utf-8") as f:
            return f.readline()

    line = until(first_line, 5, "a line")
    check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(Z|[+-]\d\d:\d\d) stdout F hello\n", line), f"line {line!r}")
    link = f"{node.container_logs}/a_default_main-{a.container_id()}.log"
    equal(os.path.realpath(link), os.path.realpath(path), "the link")
    node.remove("a.yaml")
    node.wait_gone("a")
    until(lambda: not os.path.lexists(link), 5, "the link goes with the pod")
    node.stop()


def test_validate(t):
    """validate needs no daemon and reports valid and invalid files by its exit code"""
    node = Node(t)
    for name, text, code in (("good.yaml", json.dumps(pod("a")), 0),
                             ("bad.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [], colour: red}\n", 1)):
        path = f"{t.scratch}/tmp/{name}"
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        result = node.cli("validate", path, ok=False)
        equal(result.returncode, code, f"exit code for {name}: {result.stdout}{result.stderr}")
    contains(result.stdout + result.stderr, "spec.colour")
    contains(result.stdout + result.stderr, "spec.containers")


def test_images(t):
    """image import, ls and rm; an image in use stays"""
    node = t.node()
    check("localhost/busybox" not in node.cli("image", "ls").stdout, "an image before the import")
    node.import_image()
    contains(node.cli("image", "ls").stdout, "localhost/busybox", "image ls")
    node.import_image()  # once more changes nothing
    piped = subprocess.run(f"{node.coracle} --socket {node.socket} image export localhost/busybox:1 - | "
                           f"{node.coracle} --socket {node.socket} image import - --name localhost/piped:1 -q",
                           shell=True, capture_output=True, text=True, timeout=60, check=False)
    equal((piped.returncode, piped.stdout), (0, "image/localhost/piped:1 imported\n"), f"through a pipe: {piped}")
    node.cli("image", "rm", "localhost/piped:1")
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    check(node.cli("image", "rm", "localhost/busybox:1", ok=False).returncode != 0, "an image in use was removed")
    node.remove("a.yaml")
    node.wait_gone("a")
    node.cli("image", "rm", "localhost/busybox:1")
    check("localhost/busybox" not in node.cli("image", "ls").stdout, "the image after image rm")
    bad = f"{t.scratch}/tmp/bad.tar"
    with open(bad, "wb") as f:
        f.write(b"not a tar archive" * 1000)
    result = node.cli("image", "import", bad, ok=False)
    check(result.returncode != 0 and result.stderr.strip(), f"import of garbage: {result}")
    node.stop()


def test_credentials(t):
    """the socket's group may read, only root may change anything"""
    node = t.node("--socket-group", "nogroup")
    node.import_image()
    reader = as_nobody(node.coracle, "--socket", node.socket, "get", "pods", ok=False)
    equal(reader.returncode, 0, f"reading as a member of the group: {reader.stderr}")
    writer = as_nobody(node.coracle, "--socket", node.socket, "image", "rm", "localhost/busybox:1", ok=False)
    equal(writer.returncode, 4, "changing something as a member of the group")
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    remover = as_nobody(node.coracle, "--socket", node.socket, "delete", "pod", "a", "--file", ok=False)
    equal((remover.returncode, os.path.exists(f"{node.manifests}/a.yaml")), (4, True), f"removing a file: {remover.stderr}")
    contains(node.cli("image", "ls").stdout, "localhost/busybox")
    node.stop()


def test_version_and_no_daemon(t):
    """version works; without a daemon the error explains how to start one"""
    node = Node(t)
    contains(node.cli("version").stdout, read(f"{TOP}/VERSION").strip(), "version")
    result = node.cli("get", "pods", ok=False)
    equal(result.returncode, 3, "exit code")
    contains(result.stderr, node.socket)
    contains(result.stderr, "is the daemon running?")


def test_kube_shaped_socket(t):
    """curl uses the socket like an apiserver: paths, selectors, watch, Status objects"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", labels={"x": "1"}))
    node.wait_running("a")
    listing = node.get("/api/v1/pods?labelSelector=x%3D1")
    equal((listing["kind"], listing["apiVersion"], len(listing["items"])), ("PodList", "v1", 1), "list")
    equal(len(node.get("/api/v1/pods?labelSelector=x%3D2")["items"]), 0, "list with another label")
    equal(node.get("/api/v1/namespaces/default/pods/a")["metadata"]["name"], "a", "one pod")
    code, body = node.request("GET", "/api/v1/namespaces/default/pods/b")
    status = json.loads(body)
    equal((code, status["kind"], status["reason"]), (404, "Status", "NotFound"), "a pod that is not there")
    equal(node.request("GET", "/nowhere")[0], 404, "an unknown path")
    equal(node.request("DELETE", "/api/v1/pods")[0] in (404, 405), True, "a method that is not for this path")
    equal(node.request("GET", "/healthz"), (200, b"ok"), "/healthz")
    contains(node.request("GET", "/metrics")[1].decode(), "# TYPE", "/metrics")
    start = time.monotonic()
    node.stop()
    check(time.monotonic() - start < 5, "an idle daemon ends at once")
