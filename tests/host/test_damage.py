# SPDX-License-Identifier: Apache-2.0
"""Every file of the state folder, in every state in which a power cut, a full disk or an administrator may
leave it: the daemon starts, names the file it set aside, all pods run again, and pods that the file does not
concern are not touched."""
import glob
import json
import os
import re

from coracle import check, contains, container, equal, pod, read, shell, until
from test_restart import facts

QUICK = shell("trap 'exit 0' TERM; while true; do sleep 0.1; done")
UID = "[0-9a-f]{8}-[0-9a-f-]{27}"

# All files below the state folder, except those of layers and containers.  A new one needs a line here and in
# docs/state-files.md.
KNOWN = {
    "pods": rf"pods/{UID}\.json",
    "synced": rf"pods/{UID}\.json\.synced",
    "images": r"images/images/[0-9a-f]{64}\.json",
    "refs": r"images/refs/[0-9a-f]{64}\.json",
    "parts": r"images/parts/[0-9a-f]{64}\.config",
    "results": r"cni/results/[^/]+-[0-9a-f]{64}-eth0\.json",
    "leases": r"cni/networks/[^/]+/[0-9a-f.:]+",
    "reserved": r"cni/networks/[^/]+/last_reserved_ip\.\d",
    "lock": r"cni/networks/[^/]+/lock",
    "foreign": r"foreign-pods",
    "node": r"node\.json",
    "daemon": r"lock",
}


def state_files(node):
    """{kind: [path]}; an unknown file fails the test."""
    found = {kind: [] for kind in KNOWN}
    for folder, names, files in os.walk(node.state_dir):
        relative = os.path.relpath(folder, node.state_dir)
        if relative in ("images/layers", "images/tmp", "containers"):
            names[:] = []
            continue
        for file in files:
            path = os.path.normpath(f"{relative}/{file}")
            kinds = [kind for kind, pattern in KNOWN.items() if re.fullmatch(pattern, path)]
            equal(len(kinds), 1, f"known kinds of state file {path}")
            found[kinds[0]].append(f"{folder}/{file}")
    return found


def replace(path, data):
    """Replaces the inode, so that the file's second names keep their content."""
    with open(path + "~", "wb") as f:
        f.write(data)
    os.rename(path + "~", path)


def empty(path):
    replace(path, b"")


def emptied_in_place(path):
    os.truncate(path, 0)


def half(path):
    os.truncate(path, os.path.getsize(path) // 2)


def garbage(path):
    with open(path, "r+b") as f:
        f.write(os.urandom(os.path.getsize(path)))


def zeros(path):
    with open(path, "r+b") as f:
        f.write(bytes(os.path.getsize(path)))


def missing(path):
    os.unlink(path)


def newer(path):
    try:
        record = json.loads(read(path))
    except ValueError:
        return
    record["version"] = 99
    replace(path, json.dumps(record).encode())


def temporary(path):
    """The file left by an interrupted write."""
    with open(f"{os.path.dirname(path)}/.{os.path.basename(path)}.0123abcd", "w", encoding="ascii") as f:
        f.write("{")


DAMAGES = (empty, emptied_in_place, half, garbage, zeros, missing, newer, temporary)


def populated(t):
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=QUICK), terminationGracePeriodSeconds=1,
                           initContainers=[container("init", command=["true"])]))
    node.put("b.yaml", pod("b", container(command=QUICK), terminationGracePeriodSeconds=1))
    node.put("done.yaml", pod("done", container(command=["true"]), restartPolicy="Never"))
    for name in ("a", "b"):
        node.wait_pod(name, lambda p: p.ready)
    node.wait_phase("done", "Succeeded")
    return node


def settled(node):
    """Waits until all is as the manifests want it and every record is on the disk."""
    for name in ("a", "b"):
        node.wait_pod(name, lambda p: p.ready and p.ip, what=f"{name} is ready again")
    node.wait_phase("done", "Succeeded")
    until(lambda: all(os.path.exists(p + ".synced") and os.path.samefile(p, p + ".synced")
                      for p in glob.glob(f"{node.state_dir}/pods/*.json")), 10, "the records are synced")


def of_pod(node, name, paths):
    """The path that belongs to the pod."""
    p = node.pod(name)
    found = [f for f in paths if p.uid in f or p.ip == os.path.basename(f) or p.ip and p.ip in read(f, "")]
    check(found, f"no file of {name} among {paths}")
    return found[0]


def every_damage(t, kind, restores_image=False):
    node = populated(t)
    for damage in DAMAGES:
        settled(node)
        files = state_files(node)[kind]
        if damage is temporary and kind in ("leases", "reserved") or not files:
            continue  # not our files; host-local writes them in place
        path = of_pod(node, "a", files) if kind in ("pods", "synced", "results", "leases") else files[0]
        b = facts(node, node.pod("b"))
        node.kill()
        damage(path)
        before = len(node.log())
        node.start()
        if restores_image and damage not in (temporary,):
            node.import_image()
        settled(node)
        equal(facts(node, node.pod("b")), b, f"the other pod, after {damage.__name__} of {path}")
        contains(node.log()[before:], " ready", "log")
        left = [f for folder in (".", "pods", "images/images", "images/refs", "cni/results")
                for f in glob.glob(f"{node.state_dir}/{folder}/*.damaged-*")]
        for aside in left:
            contains(node.cli("explain", "node").stdout, "damaged state files")
            check([e for e in node.events("test-node") if os.path.basename(aside) in e["message"]], f"no event tells of {aside}")
            os.unlink(aside)
        check(not left or kind in ("pods", "synced", "images", "refs", "results", "node"), f"{kind}: {left} set aside")
        until(lambda: all(glob.glob(f"{node.state_dir}/cni/networks/*/{node.pod(n).ip}") for n in ("a", "b")), 5,
              "the pods' addresses are taken")
        until(lambda: not [f for folder in ("pods", "images/images", "images/refs", "cni/results")
                           for f in os.listdir(f"{node.state_dir}/{folder}") if f.startswith(".")], 5,
              "no temporary file is left: one may just be being written")
    node.remove("a.yaml", "b.yaml", "done.yaml")
    node.wait_gone("a", "b", "done", deadline=30)
    until(lambda: not glob.glob(f"{node.state_dir}/cni/networks/*/10.*"), 10, "all addresses are given back")
    until(lambda: not os.listdir(f"{node.state_dir}/pods"), 10, "no record is left")
    until(lambda: not os.listdir(f"{node.state_dir}/containers"), 10, "no container's layer is left")
    equal(node.stop(), 0, "exit code")


def test_foreign(t):
    """the list of foreign pods: the same damage"""
    every_damage(t, "foreign")


def test_node(t):
    """labels, taints and uid of a lone node: the same damage"""
    every_damage(t, "node")


def test_pods(t):
    """pod records: empty, cut, garbage, zeros, gone, newer, half written"""
    every_damage(t, "pods")


def test_synced(t):
    """the second names of pod records: the same damage"""
    every_damage(t, "synced")


def test_images(t):
    """image records: the same damage; the image is imported again, pods run on"""
    every_damage(t, "images", restores_image=True)


def test_refs(t):
    """names of images: the same damage"""
    every_damage(t, "refs", restores_image=True)


def test_results(t):
    """CNI results: the same damage; the pod is attached again"""
    every_damage(t, "results")


def test_leases(t):
    """addresses assigned by host-local: the same damage"""
    every_damage(t, "leases")


def test_reserved(t):
    """host-local's last address: the same damage"""
    every_damage(t, "reserved")


for _test in (test_node, test_pods, test_synced, test_images, test_refs, test_results, test_leases, test_reserved):
    _test.seconds = 60
