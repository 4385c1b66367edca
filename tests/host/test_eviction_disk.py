# SPDX-License-Identifier: Apache-2.0
"""How soon a disk that fills is noticed: before it is full if it is written, within seconds if it is taken without a write."""
import os
import time

import coracle
from coracle import check, container, equal, mount, pod, shell, until
from test_eviction import MIB, STAY, small_disk

DISK, LINE = 1500, 150  # MiB
E, VOLUME = [mount("e", "/e")], [{"name": "e", "emptyDir": {}}]


def volume_pod(name, command, **more):
    return pod(name, container(command=shell(command), volumeMounts=E), volumes=VOLUME, restartPolicy="Never", terminationGracePeriodSeconds=1, **more)


def disk_node(t):
    node = t.node(f"--eviction-hard=nodefs.available<{LINE}Mi", "--eviction-pressure-transition-period=1s")
    node.import_image()
    node.put("small.yaml", volume_pod("small", STAY))
    node.wait_running("small")
    return node


def only_big_went(node):
    """The decision about `big`."""
    big = node.wait_phase("big", "Failed", deadline=60)
    equal(big.status["reason"], "Evicted", f"reason of {big.status}")
    until(lambda: node.get("/evictions")["items"][-1].get("outcome"), 20, "its end is recorded")
    last = node.get("/evictions")["items"][-1]
    equal([v["pod"] for v in last["victims"]], ["default/big"], "victims")
    equal((node.pod("small").phase, node.pod("small").restarts()), ("Running", 0), "small")
    return last


def mib(text):
    """Of a quantity of bytes."""
    for suffix, factor in (("Ki", 1 / 1024), ("Mi", 1), ("Gi", 1024)):
        if text.endswith(suffix):
            return int(text[:-2]) * factor
    return int(text) / MIB


def test_full_speed(t):
    """a disk that is filled at full speed: the threshold is detected while most of its reserve is still free"""
    with small_disk(t, "kubelet", DISK):
        node = disk_node(t)
        # Whatever waits before it: the looks have become rare by then.
        node.put("big.yaml", volume_pod("big", f"sleep 6; dd if=/dev/zero of=/e/x bs=1M; echo stopped; {STAY}"))
        last = only_big_went(node)
        left = mib(last["available"])
        print(f"MEASURED a disk of {DISK} MiB filled at full speed: {left:.0f} of {LINE} MiB were left when it was seen")
        check(left > LINE / 4 or coracle.SLOW > 1, f"{left:.0f} MiB were left, of {LINE}")
        node.finish(*(node.pod(n) for n in ("small", "big")))
        node.stop()


def taken_at_once(t, before, size):
    """fallocate(2) after so many seconds; returns how long it took until that was seen."""
    with small_disk(t, "kubelet", DISK) as folder:
        node = disk_node(t)
        node.put("big.yaml", volume_pod("big", f"{before}; fallocate -l {size * MIB} /e/x; {STAY}"))
        until(lambda: os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize < LINE * MIB, 60, "it has taken the space")
        began = time.monotonic()
        until(lambda: any(e["reason"] == "Evicted" for e in node.events("big")), 30, "big is evicted")
        took = time.monotonic() - began
        only_big_went(node)
        node.finish(*(node.pod(n) for n in ("small", "big")))
        node.stop()
    return took


def test_young_pod_takes_all(t):
    """a pod that allocates the disk without writing, soon after its start, is detected within seconds"""
    took = taken_at_once(t, "sleep 1.5", DISK - 200)
    print(f"MEASURED a pod of 1.5 s takes the disk with one fallocate(2): seen after {took:.1f} s")
    check(took < 8 * coracle.SLOW, f"{took:.1f} s")


def test_near_the_threshold(t):
    """close to the threshold, a file allocated without a write is detected as soon as by kubelet"""
    near = DISK // 16 // 2
    fill = f"fallocate -l $(( $(df -k /e | tail -1 | awk '{{print $4}}') - {(LINE + near) * 1024} ))k /e/y"
    took = taken_at_once(t, f"{fill}; sleep 25", 2 * near)
    print(f"MEASURED {2 * near} MiB are allocated with {near} left until the threshold, after 25 s of rest: seen after {took:.1f} s")
    check(took < 12 * coracle.SLOW, f"{took:.1f} s")
