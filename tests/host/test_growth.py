# SPDX-License-Identifier: Apache-2.0
"""An agent that has started many pods is as small as before."""
import os
import time

from coracle import check, container, pod, read, shell

WAVE = 10
STARTS = int(os.environ.get("GROWTH_STARTS", "80"))  # `make soak`: 10000
SPARE_KIB = 512  # of events, of which so many are kept, and of a heap whose parts lie in another order
SPARE_FILES = 8  # connections that come and go


def private_kib(pid):
    """Its private memory."""
    rollup = dict(line.split(":", 1) for line in read(f"/proc/{pid}/smaps_rollup").splitlines()[1:])
    return sum(int(rollup[key].split()[0]) for key in ("Private_Clean", "Private_Dirty"))


def wave(node, first):
    """Ten pods with a network, volumes and a container that ends; all of them come and go."""
    names = [f"grow-{first + i}" for i in range(WAVE)]
    for name in names:
        node.put(f"{name}.yaml", pod(name, container(command=shell("cat /pod/name"), volumeMounts=[{"name": "about", "mountPath": "/pod"}]),
                                     restartPolicy="Never", terminationGracePeriodSeconds=0,
                                     volumes=[{"name": "about", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]))
    node.watch(lambda pods: all(("default", n) in pods and pods["default", n].phase == "Succeeded" for n in names), 60, "ten pods succeeded")
    node.remove(*[f"{n}.yaml" for n in names])
    node.watch(lambda pods: not pods, 60, "ten pods gone")


def test_growth(t):
    """memory and descriptors of the agent after many pod starts are what they were after the first ones"""
    node = t.node()
    node.import_image()
    pid = node.process.pid
    begin, done, sizes = time.monotonic(), 0, []
    for number in range(max(4, STARTS // WAVE)):
        wave(node, done)
        done += WAVE
        sizes.append((private_kib(pid), len(os.listdir(f"/proc/{pid}/fd"))))
    early, late = sizes[len(sizes) // 4:len(sizes) // 2], sizes[-len(sizes) // 4:]
    memory = [min(kib for kib, _ in part) for part in (early, late)]
    descriptors = [min(n for _, n in part) for part in (early, late)]
    print(f"MEASURED {done} pod starts in {time.monotonic() - begin:.0f} s: private memory {sizes[0][0]} KiB after {WAVE}, "
          f"{memory[0]} early, {memory[1]} at the end; descriptors {descriptors[0]} and {descriptors[1]}")
    check(descriptors[1] <= descriptors[0] + SPARE_FILES, f"descriptors: {[n for _, n in sizes]}")
    if "-address" not in t.build:  # a sanitizer keeps what was freed
        check(memory[1] <= memory[0] + SPARE_KIB, f"private memory in KiB: {[kib for kib, _ in sizes]}")
    node.stop()


test_growth.seconds = 30 + STARTS // 4
