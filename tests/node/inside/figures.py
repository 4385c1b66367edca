# SPDX-License-Identifier: Apache-2.0
"""figures - what project quotas cost, on one disk with quotas and without, in turns.  Called by test_figures.py for `make bench`."""
import json
import os
import select
import time

from coracle import container, mount, pod, read, run, shell, until
from node import node

import storage

WATCHDOG = "/run/systemd/system/coracle.service.d/watchdog.conf"
FOLDER = "/run/figures"  # has the FIFO in which a container reports that it runs
WARM = 2


def program(name):
    return shell(f"trap 'exit 0' TERM; echo {name} > /figures/started; sleep 1000000 & wait")


def manifest(name):
    """A pod with all three kinds of trees: a volume, a layer, a log."""
    return pod(name, container(command=program(name), volumeMounts=[mount("e", "/e"), mount("figures", "/figures")]), hostNetwork=True,
               volumes=[{"name": "e", "emptyDir": {}}, {"name": "figures", "hostPath": {"path": FOLDER}}], terminationGracePeriodSeconds=0)


class Started:
    """Names from the FIFO, each with its time."""

    def __init__(self):
        self.fd = os.open(f"{FOLDER}/started", os.O_RDWR | os.O_NONBLOCK)

    def wait(self, names):
        """{name: when it ran}"""
        found, data, end = {}, "", time.monotonic() + 600
        while set(names) - set(found):
            if not select.select([self.fd], [], [], end - time.monotonic())[0]:
                raise AssertionError(f"not started: {set(names) - set(found)}")
            data += os.read(self.fd, 1 << 16).decode()
            *lines, data = data.split("\n")
            found |= {line: time.monotonic() for line in lines}
        return found


def start(names):
    """ms from each manifest to its process."""
    started, began = Started(), {}
    for name in names:
        began[name] = time.monotonic()
        node.put(f"{name}.yaml", manifest(name))
    ran = started.wait(names)
    os.close(started.fd)
    return [(ran[name] - began[name]) * 1000 for name in names]


def remove(names):
    node.remove(*(f"{name}.yaml" for name in names))
    node.wait_gone(*names, deadline=60)


def cpu_ms():
    """Processor time of the agent, with threads that have ended."""
    fields = read(f"/proc/{node.main_pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def assign(fs, pods):
    """ms that the ids of a pod with six trees take: of so many pods on average, and of the last one.  Before there is an agent."""
    found = json.loads(run("/payload/programs/quota_tool", "cost", f"/mnt/{fs}", pods, timeout=300).stdout)
    return found["ms"] / found["pods"], found["last_us"] / 1000


def begin(fs):
    os.makedirs(FOLDER, exist_ok=True)
    if not os.path.exists(f"{FOLDER}/started"):
        os.mkfifo(f"{FOLDER}/started")
    os.makedirs(os.path.dirname(WATCHDOG), exist_ok=True)
    with open(WATCHDOG, "w", encoding="ascii") as f:
        f.write("[Service]\nWatchdogSec=0\n")  # its answers wake the agent every 15 s
    storage.begin(fs)


def remount(fs, quotas):
    """The service with its folders on that disk, mounted that way; no pod is left from before."""
    storage.place(fs)
    source = run("findmnt", "-n", "-o", "SOURCE", f"/mnt/{fs}").stdout.strip()
    run("systemctl", "stop", "coracle.service")
    run("systemctl", "stop", "coracle-pods.service", timeout=60)
    run("umount", f"/mnt/{fs}")
    run("mount", "-o", "prjquota" if quotas else "noquota", source, f"/mnt/{fs}")
    run("systemctl", "start", "coracle.service")
    node.wait_active()


def one_by_one(fs, quotas, count):
    """(ms from the manifest to the process of each, ms of the agent's processor time for a start)"""
    remount(fs, quotas)
    names = [f"s{i}" for i in range(count)]
    for name in names[:WARM]:
        start([name])
    remove(names[:WARM])
    took, cpu = [], cpu_ms()
    for name in names:
        took += start([name])
    cpu = (cpu_ms() - cpu) / count
    remove(names)
    return took, cpu


def switches(pid):
    """How often the agent's threads were woken."""
    return sum(int(read(f"/proc/{pid}/task/{task}/status").rpartition("\nvoluntary_ctxt_switches:")[2].split()[0])
               for task in os.listdir(f"/proc/{pid}/task"))


def quiet(pid):
    """After pods have started, disks are looked at after 1, 4, 10, 20 and 40 s, in the end every five minutes."""
    def still():
        before = switches(pid)
        time.sleep(20)
        return switches(pid) == before
    until(still, 60, "an agent that rests")


def full(fs, quotas, count, seconds):
    """Many pods: (ms of each of eleven summaries, wake-ups of the agent in so many seconds of rest)"""
    remount(fs, quotas)
    names = [f"f{i}" for i in range(count)]
    start(names)
    answers = []
    for _ in range(11):
        began = time.monotonic()
        node.get("/stats/summary")
        answers.append((time.monotonic() - began) * 1000)
    quiet(node.main_pid)
    before = switches(node.main_pid)
    time.sleep(seconds)
    wakes = switches(node.main_pid) - before
    remove(names)
    return answers, wakes


def end(fs):
    remount(fs, True)
    os.unlink(WATCHDOG)
    storage.end(fs)
