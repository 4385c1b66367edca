# SPDX-License-Identifier: Apache-2.0
"""eviction - one pod of many takes memory as fast as the machine gives it.  Called by test_eviction.py."""
import array
import os
import re
import shutil
import signal

import coracle
from coracle import check, equal, pod, read, run, until
from node import UNIT_CGROUP, node

import images

CONFIG = "/etc/coracle/config.yaml"
NOTES = "/var/lib/hog"  # what the hogs write down; a hostPath
MIB = 1 << 20
INNOCENTS = 20
SLOW_S = 120
TEXT = re.compile(r"^The node was low on resource: memory\. Threshold quantity: 100Mi, available: \d+([KM]i)?\. "
                  r"Container main was using \d+[KM]i, request is 16Mi, has larger consumption of memory\. $")


def begin(version):
    """The service with a short transition period, an image with /hog, and the innocent pods."""
    equal(2 if coracle.cgroup_v2() else 1, version, "version of cgroups")
    with open(CONFIG, "w", encoding="utf-8") as f:
        f.write("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
                "evictionHard: {memory.available: 100Mi}\nevictionPressureTransitionPeriod: 1s\n")
    os.makedirs(NOTES)
    check(run("systemctl", "enable", "--now", "coracle.service", ok=False).returncode == 0, "the service does not start")
    node.wait_active()
    node.import_image()
    with open("/payload/programs/hog", "rb") as f:
        images.write("/tmp/hog.tar", "localhost/hog:1", images.entry("hog", f.read(), 0o755))
    node.import_image("/tmp/hog.tar")
    names = [f"innocent-{i}" for i in range(INNOCENTS)]
    for name in names:
        node.put(f"{name}.yaml", pod(name, coracle.container(resources={"requests": {"memory": "24Mi"}}), hostNetwork=True,
                                     terminationGracePeriodSeconds=0))
    node.wait_running(*names, deadline=240)


def meminfo(key):
    return int(re.search(rf"^{key}:\s+(\d+) kB", read("/proc/meminfo"), re.M).group(1)) << 10


def stat(path, *keys):
    values = dict(line.split() for line in read(path).splitlines())
    return sum(int(values[k]) for k in keys)


def available():
    """memory.available: kubelet's, or the kernel's own estimate where that is below a twentieth and smaller."""
    if coracle.cgroup_v2():
        used = stat("/sys/fs/cgroup/memory.stat", "anon", "file") - stat("/sys/fs/cgroup/memory.stat", "inactive_file")
    else:
        used = int(read("/sys/fs/cgroup/memory/memory.usage_in_bytes")) - stat("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file")
    total, kernel = meminfo("MemTotal"), meminfo("MemAvailable")
    return total - used, kernel, total // 100 * 5


def oom_kills():
    """Of the whole machine, in cgroups or not."""
    return stat("/proc/vmstat", "oom_kill")


def until_crossing():
    """How much may be taken until 100Mi are left, by the smaller of both figures."""
    by_kubelet, by_kernel, floor = available()
    return min(by_kubelet - 100 * MIB, max(by_kernel - floor, by_kernel - 100 * MIB) if by_kernel < by_kubelet else by_kubelet)


def notes_of(name):
    """(last tick, times of each MiB) of a hog, in seconds."""
    numbers = array.array("Q")
    with open(f"{NOTES}/{name}", "rb") as f:
        numbers.frombytes(f.read())
    return numbers[0] / 1e9, [t / 1e9 for t in numbers[2:2 + numbers[1]]]


def hog(name, *words):
    return pod(name, coracle.container(image="localhost/hog:1", command=["/hog", "anon", f"{NOTES}/{name}", *words], imagePullPolicy="Never",
                                       resources={"requests": {"memory": "16Mi"}}, volumeMounts=[{"name": "notes", "mountPath": NOTES}]),
               hostNetwork=True, terminationGracePeriodSeconds=30, volumes=[{"name": "notes", "hostPath": {"path": NOTES}}])


def innocents():
    """Name, container and restarts of each."""
    return {p.name: (p.container_id(), p.restarts(), p.phase) for p in node.pods().values() if p.name.startswith("innocent-")}


def one(number):
    """A hog among the innocent: it is evicted in time, and nobody else is touched.  Returns its figures."""
    name, before, kills = f"hog-{number}", innocents(), oom_kills()
    node.put(f"{name}.yaml", hog(name, str(meminfo("MemTotal") // MIB)))
    node.wait_running(name, deadline=SLOW_S)
    room = until_crossing()
    with open(f"{NOTES}/{name}.go", "w", encoding="ascii"):
        pass
    node.wait_pod(name, lambda p: p.phase == "Failed", deadline=SLOW_S)
    p = node.pod(name)
    equal(p.status.get("reason"), "Evicted", f"reason of {name}: {p.status}")
    check(TEXT.match(p.status["message"]), f"message: {p.status['message']!r}")
    equal(p.status["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137, "exit code")
    equal(oom_kills(), kills, "kills out of memory")
    changed = {k: v for k, v in innocents().items() if v != before.get(k)}
    check(not changed and len(before) == INNOCENTS,
          lambda: f"innocent pods changed: {changed}; {len(before)} before; {run('coracle', 'get', 'evictions', '-o', 'json').stdout[-6000:]}")
    end, taken = notes_of(name)
    crossing = next((t for i, t in enumerate(taken) if (i + 1) * MIB >= room), None)
    node.remove(f"{name}.yaml")
    node.wait_gone(name, deadline=SLOW_S)
    until(lambda: not pressure(), SLOW_S, "the node has no memory pressure")
    for file in (name, f"{name}.go"):
        os.unlink(f"{NOTES}/{file}")
    return {"room_mib": room >> 20, "taken_mib": len(taken), "mib_per_s": round(len(taken) / (taken[-1] - taken[0])),
            "crossing_to_kill_ms": None if crossing is None else round((end - crossing) * 1000, 1), "before_ms": round((taken[-1] - taken[0]) * 1000)}


def killed():
    """v2: an agent that is killed and does not come back leaves no level behind; one that runs has one."""
    high, drop_in = f"/sys/fs/cgroup{UNIT_CGROUP}/kubepods/memory.high", "/run/systemd/system/coracle.service.d"
    until(lambda: read(high).strip() != "max", 30, "the alarm has a level")
    os.makedirs(drop_in)
    with open(f"{drop_in}/restart.conf", "w", encoding="utf-8") as f:
        f.write("[Service]\nRestart=no\n")
    run("systemctl", "daemon-reload", timeout=60)
    os.kill(node.main_pid, signal.SIGKILL)
    until(lambda: read(high).strip() == "max", 30, "systemd takes the level away")
    shutil.rmtree(drop_in)
    run("systemctl", "daemon-reload", timeout=60)
    run("systemctl", "start", "coracle", timeout=60)
    until(lambda: read(high).strip() != "max", 30, "the next agent has a level again")


def pressure():
    """Whether the node has the condition MemoryPressure."""
    conditions = node.get("/api/v1/nodes")["items"][0]["status"]["conditions"]
    return next((c["status"] for c in conditions if c["type"] == "MemoryPressure"), "False") == "True"


def speed():
    """MiB/s of a hog in no pod, for what the machine gives at most."""
    shutil.rmtree(NOTES, ignore_errors=True)
    os.makedirs(NOTES)
    with open(f"{NOTES}/free.go", "w", encoding="ascii"):
        pass
    run("timeout", "-s", "KILL", "20", "/payload/programs/hog", "anon", f"{NOTES}/free", "1600", ok=False, timeout=60)
    _, taken = notes_of("free")
    shutil.rmtree(NOTES)
    return round(len(taken) / (taken[-1] - taken[0]))
