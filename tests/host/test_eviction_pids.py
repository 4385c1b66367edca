# SPDX-License-Identifier: Apache-2.0
"""Process ids of the node run short: the pod that forks without end goes, and nobody else."""
import os
import re
import time

import coracle
from coracle import check, container, equal, pod, read, shell, until
from test_eviction import STAY, conditions, pressure

NEEDS = "process ids"  # of the whole machine
LEFT, MOST = 1500, 4000  # processes until the threshold, and of one pod at most: the machine itself is not filled
BOMB = "for i in 1 2 3 4 5 6; do (while true; do sleep 1000 & done) & done; wait"


def available():
    most = min(int(read(f"/proc/sys/kernel/{f}")) for f in ("pid_max", "threads-max"))
    return most - int(read("/proc/loadavg").split()[3].split("/")[1])


def small_node(t, threshold):
    node = t.node(f"--eviction-hard=pid.available<{threshold}", f"--pod-max-pids={MOST}", "--eviction-pressure-transition-period=1s")
    node.import_image()
    for name in ("one", "two"):
        node.put(f"{name}.yaml", pod(name, container(command=shell(STAY))))
    node.wait_running("one", "two")
    return node


def others(node):
    return {name: (node.pod(name).container_id(), node.pod(name).restarts(), node.pod(name).phase) for name in ("one", "two")}


def test_fork_bomb(t):
    """a fork bomb in a pod that was quiet before: the right signal, the right victim, and the node recovers"""
    line = available() - LEFT
    node = small_node(t, line)
    before = others(node)
    # The looks after its start have become rare by then.
    node.put("bomb.yaml", pod("bomb", container(command=shell(f"sleep 8; {BOMB}")), restartPolicy="Never"))
    node.wait_running("bomb")
    until(lambda: available() < line, 60, "the threshold is crossed")
    crossed = time.monotonic()
    until(lambda: any(e["reason"] == "Evicted" for e in node.events("bomb")), 30, "the bomb is evicted")
    took = time.monotonic() - crossed
    bomb = node.wait_phase("bomb", "Failed", deadline=60)
    print(f"MEASURED a fork bomb: evicted {took:.2f} s after the threshold was crossed")
    check(re.fullmatch(rf"The node was low on resource: pids\. Threshold quantity: {line}, available: \d+\. ", bomb.status["message"]), bomb.status["message"])
    equal((bomb.status["reason"], bomb.state()[1]["exitCode"]), ("Evicted", 137), "bomb")
    reasons = [e["reason"] for e in node.events("test-node")]
    check("NodeHasInsufficientPID" in reasons, f"{reasons}")
    until(lambda: pressure(node, "PIDPressure") == "False", 30, "pressure is over")
    equal(conditions(node)["PIDPressure"]["reason"], "KubeletHasSufficientPID", "condition")
    equal(others(node), before, "others")
    last = node.get("/evictions")["items"][-1]
    equal(([v["pod"] for v in last["victims"]], last["signal"]), (["default/bomb"], "pid.available"), "decision")
    check(took < 3 * coracle.SLOW, f"{took:.2f} s")
    node.finish(*(node.pod(n) for n in ("one", "two", "bomb")))
    node.stop()


def notifies(cgroup):
    """Whether this kernel reports refused forks: v1 does not since Linux 6.11."""
    release = tuple(int(n) for n in re.match(r"(\d+)\.(\d+)", os.uname().release).groups())
    return coracle.cgroup_v2() or release < (6, 11)


def test_limit_of_the_pod(t):
    """a pod that reaches its own limit of processes causes a check, and is not evicted while the node has enough"""
    node = small_node(t, available() - MOST - LEFT)
    node.put("bomb.yaml", pod("bomb", container(command=shell(f"for i in $(seq {MOST + 100}); do sleep 1000 & done; {STAY}")), restartPolicy="Never"))
    node.wait_running("bomb")
    folder = node.cgroups_of(node.pod("bomb").container_id())
    events = next(f for f in (f"{d}/pids.events" for d in folder) if os.path.exists(f))
    until(lambda: not read(events).startswith("max 0"), 60, "a fork is refused")
    if notifies(events):
        node.wait_log("a fork was refused: a limit of processes is reached")
    else:
        print("# this kernel reports no refused fork on cgroup v1 (Linux 6.11 and later)")
    equal(pressure(node, "PIDPressure"), "False", "PIDPressure")
    equal(node.pod("bomb").phase, "Running", "bomb")
    node.finish(*(node.pod(n) for n in ("one", "two", "bomb")))
    node.stop()
