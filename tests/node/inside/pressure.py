# SPDX-License-Identifier: Apache-2.0
"""pressure - one pod of many uses up a disk.  Called by test_pressure.py."""
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
RESOURCE = {"nodefs.available": "ephemeral-storage"}


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


def free(signal):
    """What is available of a signal, and all there is."""
    disk = os.statvfs(node.root_dir if signal.startswith("nodefs") else node.state_dir)
    return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize


def conditions():
    return {c["type"]: c["status"] for c in node.get("/api/v1/nodes")["items"][0]["status"]["conditions"]}


def records():
    return json.loads(read(f"{node.state_dir}/evictions.json", '{"records": []}'))["records"]


class Least:
    """The least that was available of a signal in this block."""

    def __init__(self, signal):
        self.signal, self.least, self.on = signal, free(signal)[0], True
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        while self.on:
            self.least = min(self.least, free(self.signal)[0])
            time.sleep(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.on = False
        self.thread.join()


# -- the node and its innocent pods

def begin(root, state):
    """The service with its folders in /mnt/<root> and /mnt/<state>, and pods that must not be touched."""
    with open(PLACES, "w", encoding="ascii") as f:
        json.dump({"root_dir": f"/mnt/{root}/kubelet", "state_dir": f"/mnt/{state}/coracle", "pod_logs": f"/mnt/{root}/logs"}, f)
    place()
    settings()
    check(run("systemctl", "start", "coracle.service", timeout=SLOW_S, ok=False).returncode == 0, lambda: node.log()[-3000:])
    node.wait_active()
    node.import_image()
    disk = {"volumeMounts": IN_PLACE}
    quiet = {"hostNetwork": True, "terminationGracePeriodSeconds": 0, "volumes": EMPTY}
    fill = "dd if=/dev/zero of=/e/x bs=1M count={}; for i in $(seq 600); do : > /e/$i; done; for i in $(seq {}); do sleep 9999 & done; " + STAY
    node.put("within.yaml", pod("within", container(command=shell(fill.format(200, 1)), resources={"requests": {"ephemeral-storage": "300Mi"}}, **disk), **quiet))
    node.put("high.yaml", pod("high", container(command=shell(fill.format(150, 120)), **disk), priority=1000, **quiet))
    node.put("layer.yaml", pod("layer", container(command=shell("dd if=/dev/zero of=/x bs=1M count=10; " + STAY), **disk), **quiet))
    node.put("small.yaml", pod("small", container(command=shell("echo small; " + STAY), **disk), **quiet))
    node.wait_running("within", "high", "layer", "small", deadline=SLOW_S)
    for name, size in (("within", 200), ("high", 150)):
        volume = f"{node.root_dir}/pods/{node.pod(name).uid}/volumes/kubernetes.io~empty-dir/e"
        until(lambda v=volume, s=size: os.path.exists(f"{v}/600") and os.path.getsize(f"{v}/x") == s * MIB, SLOW_S, f"{name} has its files")
    os.sync()
    return {s: free(s) for s in RESOURCE}


def innocents():
    """Phase, container and restarts of each."""
    return {p.name: (p.phase, p.container_id(), p.restarts()) for p in node.pods().values() if p.name in ("within", "high", "layer", "small")}


# -- one that takes too much

FILL = "dd if=/dev/zero of=/e/x bs=1M; "


def hog():
    return pod("hog", container(command=shell(FILL + STAY), volumeMounts=IN_PLACE), hostNetwork=True, volumes=EMPTY,
               restartPolicy="Never", terminationGracePeriodSeconds=30)


def reload(hard=None, **more):
    before = node.main_pid
    settings(hard, **more)
    run("systemctl", "reload", "coracle.service", timeout=SLOW_S)
    equal(node.main_pid, before, "the process of the agent")


def message(signal, name="main"):
    """The words of a pod that was evicted for this signal; kubelet names containers for storage only."""
    text = rf"^The node was low on resource: {RESOURCE[signal]}\. Threshold quantity: [0-9A-Za-z]+, available: [0-9A-Za-z]+\. "
    return re.compile(text + (rf"(Container {name} was using [0-9A-Za-z]+, request is 0, has larger consumption of ephemeral-storage\. )?$"
                              if RESOURCE[signal] == "ephemeral-storage" else "$"))


def back_to_normal(kind):
    """Within the transition period and what a busy machine needs, pods may come again."""
    until(lambda: conditions()[kind] == "False", SLOW_S, f"{kind} is over", 0.2)
    taints = node.get("/api/v1/nodes")["items"][0]["spec"].get("taints") or []
    equal([t for t in taints if "pressure" in t["key"]], [], "taints")


def evicted(signal, p):
    equal((p.phase, p.status.get("reason")), ("Failed", "Evicted"), f"end of {p.name}")
    check(message(signal).match(p.status["message"]), lambda: f"message: {p.status['message']!r}")
    target = p.condition("DisruptionTarget")
    equal((target["status"], target["reason"]), ("True", "TerminationByKubelet"), "DisruptionTarget")


def take(signal, room):
    """A hog with `room` until the threshold is evicted; nobody else is, and then there is no pressure.  Its figures."""
    place()
    before, kind = innocents(), "DiskPressure"
    known = {r["number"] for r in records()}
    line = free(signal)[0] - room
    check(line > 0, f"{free(signal)} of {signal} leave no room of {room}")
    reload({signal: str(line)})
    equal(conditions()[kind], "False", kind)
    with Least(signal) as least:
        start = time.monotonic()
        node.put("hog.yaml", hog())
        until(lambda: node.pods() and conditions()[kind] == "True", SLOW_S * 2, f"{kind} begins", 0.02)
        seconds = time.monotonic() - start
        p = node.wait_pod("hog", lambda p: p.phase in ("Failed", "Succeeded"), SLOW_S)
    evicted(signal, p)
    equal(innocents(), before, "pods beside")
    new = [r for r in records() if r["number"] not in known]
    equal({r["signal"] for r in new}, {signal}, "signals of the records")
    victims = [v["pod"] for r in new for v in r.get("victims", [])]
    equal(victims, ["default/hog"], "victims")
    back_to_normal(kind)
    node.remove("hog.yaml")
    node.wait_gone("hog", deadline=SLOW_S)
    reload()
    return {"room": room, "left_of_threshold": round(least.least / line, 3), "until_condition_s": round(seconds, 1), "message": p.status["message"],
            "ranked": len(next(r for r in new if r.get("victims"))["ranked"]), "outcome": new[-1].get("outcome")}


def full_speed(signal, percent):
    """A hog that writes as fast as it can, with a threshold of `percent` of the disk."""
    return take(signal, free_after_place(signal, percent))


def free_after_place(signal, percent):
    place()
    available, capacity = free(signal)
    return available - capacity * percent // 100


# -- images

def unused_image(signal, mib):
    """An image that nobody uses goes first, and is enough: no pod is evicted."""
    place()
    before, known = innocents(), {r["number"] for r in records()}
    images.write("/run/unused.tar", "localhost/unused:1", images.entry("zeros", os.urandom(MIB) * mib))
    node.import_image("/run/unused.tar")
    os.unlink("/run/unused.tar")
    os.sync()
    reload({signal: str(free(signal)[0] + 20 * MIB)})
    until(lambda: [r for r in records() if r["number"] not in known and r.get("outcome")], SLOW_S, "what was reclaimed", 0.05)
    back_to_normal("DiskPressure")
    new = [r for r in records() if r["number"] not in known]
    check("unused" not in node.cli("get", "images").stdout, "the image is gone")
    equal([(r.get("outcome"), r.get("victims", [])) for r in new], [("relieved without evicting pods", [])], f"outcomes of {new}")
    equal(innocents(), before, "pods")
    reload()
    return new[0].get("reclaimed")
