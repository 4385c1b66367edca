# SPDX-License-Identifier: Apache-2.0
"""Manifests that the folder accepts or rejects, and its messages."""
import json
import os

from coracle import (SLOW, as_nobody, check, contains, equal, pod, read, until)

TEN_MISTAKES = """\
apiVersion: v1
kind: Pod
metadata:
  name: Bad_Name
  labels:
    "no spaces here": x
spec:
  restartPolicy: Sometimes
  terminationGracePeriod: 5
  dnsPolicy: Best
  volumes:
  - name: data
    hostPath:
      path: /srv/../etc
  containers:
  - name: web
    image: localhost/busybox:1
    imagePullPolicy: Maybe
    ports:
    - containerPort: 70000
    resources:
      limits:
        memory: 12Qi
  - name: web
    image: localhost/busybox:1
    volumeMounts:
    - name: nothing
      mountPath: /x
"""
TEN_PLACES = ["metadata.name", "metadata.labels", "spec.restartPolicy", "spec.terminationGracePeriod", "spec.dnsPolicy",
              "spec.volumes[0].hostPath.path", "spec.containers[0].imagePullPolicy", "spec.containers[0].ports[0].containerPort",
              "spec.containers[0].resources.limits", "spec.containers[1].name", "spec.containers[1].volumeMounts[0].name"]
# Line and column of some of them.
TEN_LINES = {"metadata.name": (4, 3), "spec.terminationGracePeriod": (9, 3), "spec.containers[0].ports[0].containerPort": (20, 7),
             "spec.containers[1].volumeMounts[0].name": (27, 7)}


def settled(node, file, deadline=10):
    """The problems of a file once there are some."""
    return until(lambda: node.problems().get(file), deadline, lambda: f"a problem of {file}; now {node.get('/manifests')}")


def test_ten_mistakes(t):
    """a manifest with ten mistakes names them all at once, by file, line, column and field, for people and for programs"""
    node = t.node()
    node.put("bad.yaml", TEN_MISTAKES)
    problems = settled(node, "bad.yaml")
    text = "\n".join(problems)
    for place in TEN_PLACES:
        contains(text, place, "problems")
    check(len(problems) >= 10, f"{len(problems)} problems:\n{text}")
    node.wait_log("spec.containers[1].volumeMounts[0].name")
    path = f"{t.scratch}/tmp/bad.yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write(TEN_MISTAKES)
    result = node.cli("validate", path, ok=False)
    check(result.returncode != 0, "validate says yes")
    for place in TEN_PLACES:
        contains(result.stdout + result.stderr, place, "validate")
    lines = [line.split(": ") for line in result.stderr.splitlines()]
    places = [tuple(int(n) for n in line[0].removeprefix(path + ":").split(":")) for line in lines]
    equal(places, sorted(places), "the order of the problems")
    for field, place in TEN_LINES.items():
        contains(result.stderr, f"{path}:{place[0]}:{place[1]}: {field}: ", "validate")
    of_validate = json.loads(node.cli("validate", "-o", "json", path, ok=False).stdout)["items"][0]["problems"]
    of_daemon = [m for m in node.get("/manifests")["items"] if m["name"] == "bad.yaml"][0]["problems"]
    own = f"{node.manifests}/bad.yaml"
    equal([{**p, "file": own} for p in of_validate], of_daemon, "problems of `validate` and of the daemon")
    for field, (line, column) in TEN_LINES.items():
        found = [p for p in of_daemon if p["field"] == field][0]
        equal((found["file"], found["line"], found["column"], found["document"]), (own, line, column, 1), f"place of {field}")
    shown = node.cli("get", "pods", ok=False)
    contains(shown.stderr, f"{own}:4:3: warning: metadata.name: ", "get pods")
    for i in range(3):
        node.put(f"more-{i}.yaml", TEN_MISTAKES)
        settled(node, f"more-{i}.yaml")
    shown = node.cli("get", "pods", ok=False)
    equal(shown.stderr.splitlines()[-1:], ["warning: 4 manifests have problems: see `coracle get manifests`"], "get pods, many bad files")
    check("metadata.name" not in shown.stderr, f"get pods prints problems of many files:\n{shown.stderr}")
    contains(node.cli("get", "manifests").stderr, "more-2.yaml:27:7: warning: spec.containers[1].volumeMounts[0].name: ", "get manifests")
    node.remove("bad.yaml", "more-0.yaml", "more-1.yaml", "more-2.yaml")
    until(lambda: not node.problems(), 5, "problems go with their file")
    node.stop()


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(12))

HOSTILE = {
    "bomb.yaml": BOMB,
    "deep.yaml": "[" * 100000,
    "deep.json": "{\"a\":" * 100000,
    "noise.yaml": "\x01\x02 binary \x00 noise",
    "unfinished.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: 'unfinished\n",
    "scalar.yaml": "42\n",
    "kind.yaml": "apiVersion: apps/v1\nkind: Gadget\nmetadata: {name: x}\n",
    "twice.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: '1', a: '2'}\n",
}


def test_hostile_files(t):
    """100 MB, a folder, a FIFO, unreadable, endless anchors and worse: one clear line each, the rest keeps running"""
    node = t.node()
    node.import_image()
    node.put("good.yaml", pod("good"))
    good = node.wait_running("good")
    with open(f"{node.manifests}/huge.yaml", "wb") as f:
        f.write(b"# nothing\n" * (10 * 1024 * 1024))
    os.mkdir(f"{node.manifests}/folder.yaml")
    os.mkfifo(f"{node.manifests}/fifo.yaml")
    os.symlink("/proc/self/mem", f"{node.manifests}/unreadable.yaml")  # root may open it; reading fails
    os.symlink("nowhere", f"{node.manifests}/dangling.yaml")
    os.symlink("loop.yaml", f"{node.manifests}/loop.yaml")
    os.symlink("/dev/zero", f"{node.manifests}/zero.yaml")
    for file, text in HOSTILE.items():
        node.put(file, text)
    bad = ["huge.yaml", "folder.yaml", "fifo.yaml", "unreadable.yaml", "loop.yaml", "zero.yaml", *HOSTILE]
    for file in bad:
        problems = settled(node, file)
        equal(len(problems), 1, f"problems of {file}: {problems}")
        check(0 < len(problems[0]) < 500 and "\n" not in problems[0], f"one clear line: {problems[0]!r}")
        node.wait_log(file)
    for file in bad:
        lines = [line for line in node.log().splitlines() if f"file={file}" in line and " DEBUG " not in line]
        equal(len(lines), 1, f"log lines about {file}: {lines}")
    rss = int([line for line in read(f"/proc/{node.process.pid}/status").splitlines() if line.startswith("VmHWM")][0].split()[1])
    if SLOW == 1:  # not for the sanitized daemon
        check(rss < 100 * 1024, f"the daemon grew to {rss} KiB")

    node.put("later.yaml", pod("later"))
    node.wait_running("later")
    equal((node.pod("good").uid, node.pod("good").restarts()), (good.uid, 0), "the pod that ran before")
    node.stop()


test_hostile_files.seconds = 20


def test_unreadable_by_mode(t):
    """a file whose mode denies access is refused or read, never a hang (root may read it)"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    os.chmod(f"{node.manifests}/a.yaml", 0)
    check(as_nobody("cat", f"{node.manifests}/a.yaml", ok=False).returncode != 0, "mode 000")
    node.wait_running("a")
    node.stop()


def test_invalid_edit(t):
    """an invalid edit does not affect the running pod and is reported; the correction clears the report"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", labels={"v": "1"}))
    a = node.wait_running("a")
    broken = pod("a", labels={"v": "2"})
    broken["spec"]["restartPolicy"] = "Perhaps"
    node.put("a.yaml", broken)
    contains("\n".join(settled(node, "a.yaml")), "spec.restartPolicy")
    shown = node.cli("get", "pods")
    contains(shown.stdout + shown.stderr, "a.yaml", "get pods tells of it")
    now = node.pod("a")
    equal((now.uid, now.container_id(), now["metadata"]["labels"]), (a.uid, a.container_id(), {"v": "1"}), "the pod")
    node.put("a.yaml", pod("a", labels={"v": "2"}))
    now = node.wait_pod("a", lambda p: p["metadata"]["labels"] == {"v": "2"})
    equal((now.uid, now.container_id()), (a.uid, a.container_id()), "the pod after the correction")
    equal(node.problems(), {}, "problems")
    node.stop()


def test_two_files_one_pod(t):
    """of two files that define one pod the first is used; when it is removed, the other is used"""
    node = t.node()
    node.import_image()
    node.put("first.yaml", pod("same", labels={"from": "first"}))
    first = node.wait_running("same")
    node.put("second.yaml", pod("same", labels={"from": "second"}))
    contains("\n".join(settled(node, "second.yaml")), "first.yaml")
    equal(node.pod("same")["metadata"]["labels"], {"from": "first"}, "labels")
    equal(node.pod("same").container_id(), first.container_id(), "the container")
    node.remove("first.yaml")
    node.wait_pod("same", lambda p: p["metadata"]["labels"] == {"from": "second"} and p.state()[0] == "running")
    equal(node.problems(), {}, "problems")
    node.stop()


def test_formats(t):
    """JSON, several documents, kind List, other extensions; dot files and editors' leftovers are ignored"""
    node = t.node()
    node.import_image()
    node.put("a.json", pod("json"))
    node.put("several.yaml", pod("doc-1"), "# only a comment\n", pod("doc-2"))
    node.put("list.yaml", {"apiVersion": "v1", "kind": "List", "items": [pod("item-1"), pod("item-2")]})
    node.put("manifest.txt", pod("text"))
    for file in ("web.yaml~", ".web.yaml.swp", "#web.yaml#", "web.yaml.bak", "web.yaml.orig", "4913", "web.tmp"):
        with open(f"{node.manifests}/{file}", "w", encoding="utf-8") as f:
            f.write(TEN_MISTAKES)
    node.wait_running("json", "doc-1", "doc-2", "item-1", "item-2", "text")
    equal(node.problems(), {}, "problems")
    equal(len(node.pods()), 6, "pods")
    node.remove("several.yaml")
    node.wait_gone("doc-1", "doc-2")
    node.stop()


def test_written_in_place(t):
    """a file written slowly in place takes effect once it is closed, not before"""
    node = t.node()
    node.import_image()
    node.put("other.yaml", pod("other"))
    node.wait_running("other")
    with open(f"{node.manifests}/slow.yaml", "w", encoding="utf-8") as f:
        f.write("apiVersion: v1\nkind: Pod\nmetadata:\n  name: slow\n")
        f.flush()
        node.remove("other.yaml")  # takes effect later than a file that was read at once or soon
        node.wait_gone("other")
        equal((node.pods(), node.problems()), ({}, {}), "pods and problems of a half-written file")
        f.write("spec:\n  containers:\n  - name: a\n    image: localhost/busybox:1\n    command: [sleep, '100']\n"
                "  terminationGracePeriodSeconds: 0\n")
    node.wait_running("slow")
    node.stop()


def test_folder_goes_and_comes(t):
    """a folder that is missing at start or moved away ends no pod"""
    os.rename(f"{t.scratch}/manifests", f"{t.scratch}/away")
    node = t.node()
    node.import_image()
    os.rename(f"{t.scratch}/away", f"{t.scratch}/manifests")
    node.put("a.yaml", pod("a"))
    a = node.wait_running("a")
    os.rename(f"{t.scratch}/manifests", f"{t.scratch}/away")
    node.wait_log("the manifest folder is missing; its objects still apply")
    equal(node.pod("a").container_id(), a.container_id(), "the pod while the folder is away")
    os.rename(f"{t.scratch}/away", f"{t.scratch}/manifests")
    node.put("b.yaml", pod("b"))
    node.wait_running("a", "b")
    equal(node.pod("a").container_id(), a.container_id(), "the pod when the folder is back")
    node.stop()
