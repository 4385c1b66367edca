# SPDX-License-Identifier: Apache-2.0
"""pressure - one pod of many uses up a disk, inodes or process ids: it alone is evicted, and the node is well again.  Called by test_pressure.py."""
import json
import os
import re
import threading
import time

import coracle
import images
from coracle import check, container, equal, mount, pod, read, run, shell, until
from node import node

CONFIG = "/etc/coracle/config.yaml"
PLACES = "/run/pressure.json"  # where the node has its folders, for later calls
MIB = 1 << 20
SLOW_S = 15  # times CORACLE_TEST_SLOW
TRANSITION_S = 3
IN_PLACE = [mount("e", "/e")]
EMPTY = [{"name": "e", "emptyDir": {}}]
STAY = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
INNOCENTS = ("within", "high", "layer", "small")
RESOURCE = {"nodefs.available": "ephemeral-storage", "imagefs.available": "ephemeral-storage", "containerfs.available": "ephemeral-storage",
            "nodefs.inodesFree": "inodes", "imagefs.inodesFree": "inodes", "containerfs.inodesFree": "inodes", "pid.available": "pids"}
# What a hog does; it ends by itself if it is not evicted.
HOGS = {"volume": "dd if=/dev/zero of=/e/x bs=1M; ",
        "layer": "dd if=/dev/zero of=/x bs=1M; ",
        "log": "line=$(head -c 4000 /dev/zero | tr '\\0' x); yes $line; ",
        "volume's inodes": "for i in $(seq 20000); do : > /e/h$i; done; ",
        "layer's inodes": "mkdir /d; for i in $(seq 20000); do : > /d/h$i; done; ",
        "processes": "for i in $(seq 2000); do sleep 9999 & done; "}


def place():
    for key, value in json.loads(read(PLACES)).items():
        setattr(node, key, value)


def settings(hard=None, **more):
    """Writes the configuration; hard: {signal: threshold}; without any, nothing but the end of all memory counts."""
    own = {"rootDir": node.root_dir, "stateDir": node.state_dir}
    kubelet = {"podLogsDir": node.pod_logs, "containerLogMaxSize": "8Gi", "evictionHard": hard or {"memory.available": "1Mi"},
               "evictionPressureTransitionPeriod": f"{TRANSITION_S}s", "imageGCHighThresholdPercent": 100, **more}
    with open(CONFIG, "w", encoding="utf-8") as f:
        f.write(json.dumps({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **kubelet}) + "\n---\n" +
                json.dumps({"apiVersion": "coracle.dev/v1", "kind": "CoracleConfiguration", **own}) + "\n")


def reload(hard=None, **more):
    before = node.main_pid
    settings(hard, **more)
    run("systemctl", "reload", "coracle.service", timeout=SLOW_S)
    equal(node.main_pid, before, "the process of the agent")


def free(signal):
    """What is available of a signal, and all there is."""
    if signal == "pid.available":
        limits = node.get("/stats/summary")["node"]["rlimit"]
        return limits["maxpid"] - limits["curproc"], limits["maxpid"]
    where = {"nodefs": node.root_dir, "imagefs": f"{node.state_dir}/images", "containerfs": f"{node.state_dir}/containers"}
    disk = os.statvfs(where[signal.split(".", maxsplit=1)[0]])
    return (disk.f_ffree, disk.f_files) if "inodes" in signal else (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)


def kind_of(signal):
    return "PIDPressure" if signal == "pid.available" else "DiskPressure"


def conditions():
    return {c["type"]: c["status"] for c in node.get("/api/v1/nodes")["items"][0]["status"]["conditions"]}


def records():
    return json.loads(read(f"{node.state_dir}/evictions.json", '{"records": []}'))["records"]


class Least:
    """The least that was available of a disk in this block."""

    def __init__(self, signal):
        self.signal, self.least, self.on = signal, free(signal)[0], True
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        while self.on:
            self.least = min(self.least, free(self.signal)[0])
            time.sleep(0.01 if self.signal != "pid.available" else 0.5)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.on = False
        self.thread.join()


# -- the node and its innocent pods

# Thresholds of containerfs are those of imagefs where layers are apart from the rest.
SETTING = {"containerfs.available": "imagefs.available", "containerfs.inodesFree": "imagefs.inodesFree"}


def begin(root, state, image_disk="", layer_disk=""):
    """The service with its folders on these disks ("": that of the VM, without quotas), images and layers on others if these are named,
    and pods that must not be touched: two have more of everything than a hog gets, but within their request or with a higher priority."""
    folders = {"root_dir": f"/mnt/{root}/kubelet" if root else "/var/lib/kubelet", "pod_logs": f"/mnt/{root}/logs" if root else "/var/log/pods",
               "state_dir": f"/mnt/{state}/coracle" if state else "/var/lib/coracle"}
    with open(PLACES, "w", encoding="ascii") as f:
        json.dump(folders, f)
    place()
    settings()
    for disk, name in ((image_disk, "images"), (layer_disk, "containers")):
        if disk:
            for folder in (f"/mnt/{disk}/{name}", f"{node.state_dir}/{name}"):
                os.makedirs(folder, exist_ok=True)
            run("mount", "--bind", f"/mnt/{disk}/{name}", f"{node.state_dir}/{name}")
    check(run("systemctl", "start", "coracle.service", timeout=SLOW_S, ok=False).returncode == 0, lambda: node.log()[-3000:])
    node.wait_active()
    node.import_image()
    disk = {"volumeMounts": IN_PLACE}
    quiet = {"hostNetwork": True, "terminationGracePeriodSeconds": 0, "volumes": EMPTY}
    fill = ("mkdir /d; for i in $(seq 600); do : > /e/$i; : > /d/$i; done; for i in $(seq {}); do sleep 9999 & done; "
            "for f in /e/x /x; do dd if=/dev/zero of=$f bs=1M count=100; done; : > /e/done; ")
    node.put("within.yaml", pod("within", container(command=shell(fill.format(1) + STAY), resources={"requests": {"ephemeral-storage": "400Mi"}}, **disk), **quiet))
    node.put("high.yaml", pod("high", container(command=shell(fill.format(200) + STAY), **disk), priority=1000, **quiet))
    node.put("layer.yaml", pod("layer", container(command=shell("dd if=/dev/zero of=/x bs=1M count=10; " + STAY), **disk), **quiet))
    node.put("small.yaml", pod("small", container(command=shell("echo small; " + STAY), **disk), **quiet))
    node.wait_running(*INNOCENTS, deadline=SLOW_S)
    for name in ("within", "high"):
        volume = f"{node.root_dir}/pods/{node.pod(name).uid}/volumes/kubernetes.io~empty-dir/e"
        until(lambda v=volume: os.path.exists(f"{v}/done"), SLOW_S, f"{name} has its files")
    os.sync()
    return {s: free(s) for s in RESOURCE}


def end():
    """No pod, no service, and no bind mount: the next one begins elsewhere."""
    place()
    node.remove(*(f"{name}.yaml" for name in INNOCENTS))
    node.wait_gone(*INNOCENTS, deadline=SLOW_S)
    run("systemctl", "stop", "coracle.service", timeout=SLOW_S)
    run("systemctl", "stop", "coracle-pods.service", timeout=60)
    for name in ("images", "containers"):
        if os.path.ismount(f"{node.state_dir}/{name}"):
            run("umount", f"{node.state_dir}/{name}")


def innocents():
    """Phase, container and restarts of each."""
    return {p.name: (p.phase, p.container_id(), p.restarts()) for p in node.pods().values() if p.name in INNOCENTS}


# -- one that takes too much

def hog(what, name="hog", **more):
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 30, **more}
    return pod(name, container(command=shell(HOGS[what] + STAY), volumeMounts=IN_PLACE), hostNetwork=True, volumes=EMPTY, **spec)


def message(signal, what):
    """The words of a pod that was evicted for this signal; kubelet names containers for storage only, by their layer and log."""
    text = rf"^The node was low on resource: {RESOURCE[signal]}\. Threshold quantity: [0-9A-Za-z]+, available: [0-9A-Za-z]+\. "
    if RESOURCE[signal] == "ephemeral-storage":
        text += r"(Container main was using [0-9A-Za-z]+, request is 0, has larger consumption of ephemeral-storage\. )" + ("?" if what == "volume" else "")
    return re.compile(text + "$")


def back_to_normal(kind):
    """Within the transition period and what a busy machine needs, pods may come again."""
    until(lambda: conditions()[kind] == "False", SLOW_S, f"{kind} is over", 0.2)
    taints = node.get("/api/v1/nodes")["items"][0]["spec"].get("taints") or []
    equal([t for t in taints if "pressure" in t["key"]], [], "taints")


def evicted(signal, what, p):
    equal((p.phase, p.status.get("reason")), ("Failed", "Evicted"), f"end of {p.name}")
    check(message(signal, what).match(p.status["message"]), lambda: f"message: {p.status['message']!r}")
    target = p.condition("DisruptionTarget")
    equal((target["status"], target["reason"]), ("True", "TerminationByKubelet"), "DisruptionTarget")


def take(signal, what, room):
    """A hog with `room` until the threshold is evicted; nobody else is, and then there is no pressure.  Its figures."""
    place()
    before, kind = innocents(), kind_of(signal)
    known = {r["number"] for r in records()}
    line = free(signal)[0] - room
    check(line > 0, f"{free(signal)} of {signal} leave no room of {room}")
    reload({SETTING.get(signal, signal): str(line)})
    equal(conditions()[kind], "False", kind)
    with Least(signal) as least:
        start = time.monotonic()
        node.put("hog.yaml", hog(what))
        until(lambda: conditions()[kind] == "True", SLOW_S * 2, f"{kind} begins", 0.02)
        seconds = time.monotonic() - start
        p = node.wait_pod("hog", lambda p: p.phase in ("Failed", "Succeeded"), SLOW_S)
    evicted(signal, what, p)
    equal({k for k, v in conditions().items() if k.endswith("Pressure") and v == "True"} - {kind}, set(), "other conditions")
    equal(innocents(), before, "pods beside")
    back_to_normal(kind)
    new = [r for r in records() if r["number"] not in known]
    equal({r["signal"] for r in new}, {signal}, "signals of the records")
    # Chosen again, it is killed sooner.
    equal({(v["pod"], r["outcome"]) for r in new for v in r.get("victims", [])}, {("default/hog", "its pods ended")}, f"victims in {new}")
    node.remove("hog.yaml")
    node.wait_gone("hog", deadline=SLOW_S)
    reload()
    return {"room": room, "left_of_threshold": round(least.least / line, 3), "until_condition_s": round(seconds, 1), "message": p.status["message"]}


def full_speed(signal, percent):
    """A hog that writes as fast as it can, with a threshold of `percent` of the disk."""
    place()
    available, capacity = free(signal)
    return take(signal, "volume", available - capacity * percent // 100)


# -- images

def settled(signal):
    """What is available once it does not change any more: files that an import needed are removed in the background."""
    seen = []

    def still():
        os.sync()
        seen.append(free(signal)[0])
        return len(seen) > 3 and len(set(seen[-3:])) == 1
    until(still, SLOW_S, lambda: f"{signal} stays: {seen}", 0.5)
    return seen[-1]


def unused_image(signal, mib):
    """An image that nobody uses goes first, and is enough: no pod is evicted."""
    place()
    before, known = innocents(), {r["number"] for r in records()}
    images.write("/run/unused.tar", "localhost/unused:1", images.entry("zeros", os.urandom(MIB) * mib))
    node.import_image("/run/unused.tar")
    os.unlink("/run/unused.tar")
    reload({signal: str(settled(signal) + 20 * MIB)})
    until(lambda: [r for r in records() if r["number"] not in known and r.get("outcome")], SLOW_S, "what was reclaimed", 0.05)
    back_to_normal("DiskPressure")
    new = [r for r in records() if r["number"] not in known]
    check("unused" not in node.cli("get", "images").stdout, "the image is gone")
    equal([(r["signal"], r.get("outcome"), r.get("victims", [])) for r in new], [(signal, "relieved without evicting pods", [])], f"outcomes of {new}")
    equal(innocents(), before, "pods")
    reload()
    return new[0].get("reclaimed")
