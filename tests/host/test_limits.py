# SPDX-License-Identifier: Apache-2.0
"""The daemon without disk, descriptors or memory: running pods go on; it names the shortage and recovers when that is over."""
import contextlib
import os
import random
import re
import resource
import signal

from coracle import Skip, check, container, contains, equal, pod, run, shell, until
from test_restart import facts

QUICK = shell("trap 'exit 0' TERM; while true; do sleep 0.1; done")


def quick(name):
    return pod(name, container(command=QUICK), terminationGracePeriodSeconds=0)


def explain(node, *what):
    return node.cli("explain", *what, ok=False).stdout


def events(node, name):
    return " | ".join(e["message"] for e in node.events(name))


def with_state(t, size):
    """A node whose state folder is a file system of its own, with the pods a and b."""
    os.makedirs(f"{t.scratch}/state")
    run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", f"{t.scratch}/state")
    node = t.node("--eviction-hard", "memory.available<100Mi")  # pods stay where the disk is full
    node.import_image()
    node.put("a.yaml", quick("a"))
    node.put("b.yaml", pod("b", terminationGracePeriodSeconds=0))
    node.wait_running("a", "b")
    return node


def fill(t, leave):
    """Fills the state folder except for `leave` bytes."""
    s = os.statvfs(f"{t.scratch}/state")
    with open(f"{t.scratch}/state/fill", "wb", buffering=0) as f:
        with contextlib.suppress(OSError):
            os.posix_fallocate(f.fileno(), 0, max(s.f_bavail * s.f_frsize - leave, 4096))
    for i in range(64 if leave == 0 else 0):
        with contextlib.suppress(OSError):
            with open(f"{t.scratch}/state/fill{i}", "wb", buffering=0) as f:
                f.write(bytes(4096))


def free(t):
    for name in os.listdir(f"{t.scratch}/state"):
        if name.startswith("fill"):
            os.unlink(f"{t.scratch}/state/{name}")


def test_full_disk_while_a_container_restarts(t):
    """containers that restarted while no record could be written are found by the next daemon and run on"""
    node = with_state(t, "100m")
    fill(t, 0)
    os.kill(node.pid(node.pod("a")), signal.SIGKILL)
    a = node.wait_pod("a", lambda p: p.restarts() == 1 and p.ready, 40, "a runs again")
    until(lambda: "cannot write the pod's record" in node.log(), 10, "it is said")
    before = facts(node, a)
    node.kill()
    node.start()
    equal(facts(node, node.wait_pod("a", lambda p: p.ready)), before, "the pod")
    free(t)
    until(lambda: "the pod's record can be written again" in node.log(), 20, "a record is written")
    until(lambda: os.listdir(f"{node.run_dir}/records") == [], 20, "the records of both pods are written")
    node.kill()
    node.start()
    equal(facts(node, node.wait_pod("a", lambda p: p.ready)), before, "the pod")
    equal(node.stop(), 0, "exit code")


def full_disk(t, leave):
    node = with_state(t, "100m")
    b = facts(node, node.pod("b"))
    a = node.pod("a")
    fill(t, leave)
    for i in range(4):
        node.put(f"new{i}.yaml", quick(f"new{i}"))
    said = "No space left on device"
    until(lambda: any(said in events(node, f"new{i}") or said in explain(node, "pod", f"new{i}") for i in range(4)), 20,
          "events or explain say that the disk is full")
    until(lambda: said in explain(node, "node"), 10, "explain node says so")
    node.kill()  # at its next start the disk is still full
    node.start()
    node.wait_pod("b", lambda p: p.ready)
    equal(facts(node, node.pod("b")), b, "a running pod")
    node.finish(a)
    free(t)
    node.wait_running(*[f"new{i}" for i in range(4)], deadline=60)
    until(lambda: re.search(r"pod records +done", explain(node, "node")), 20,
          lambda: f"the records are written again:\n{explain(node, 'node')}")
    equal(facts(node, node.pod("b")), b, "a running pod")
    damaged = [f for f in os.listdir(f"{node.state_dir}/pods") if f.endswith(".damaged")]
    equal(damaged, [], "damaged records")
    node.kill()
    node.start()
    node.wait_pod("b", lambda p: p.ready)
    equal(facts(node, node.pod("b")), b, "a running pod after one more restart")
    names = ["b"] + [f"new{i}" for i in range(4)]
    node.remove(*[f"{n}.yaml" for n in names])
    node.wait_gone(*names)
    equal(node.stop(), 0, "exit code")


def test_full_disk(t):
    """a full state folder: running pods survive a restart, others wait, all recovers with space"""
    full_disk(t, 0)


def test_nearly_full_disk(t):
    """a state folder with 16 KiB left, enough for some writes and not for others"""
    full_disk(t, 16384)


def test_read_only_state(t):
    """a state folder that turns read-only: running pods survive a restart, the cause is reported, all recovers with it"""
    node = with_state(t, "100m")
    b = facts(node, node.pod("b"))
    a = node.pod("a")
    # Laid over itself: a mount cannot turn read-only while files are open for writing, as errors=remount-ro does it.
    run("mount", "--bind", f"{t.scratch}/state", f"{t.scratch}/state")
    run("mount", "-o", "remount,bind,ro", f"{t.scratch}/state")
    node.put("new.yaml", quick("new"))
    until(lambda: "Read-only file system" in events(node, "new") + explain(node, "pod", "new"), 20, "the new pod says why it waits")
    until(lambda: "Read-only file system" in explain(node, "node"), 10, "explain node says so")
    node.remove("a.yaml")
    until(lambda: "Read-only file system" in explain(node, "pod", "a"), 20, lambda: f"the pod that cannot go says why:\n{explain(node, 'pod', 'a')}")
    equal(facts(node, node.pod("b")), b, "a running pod")
    node.kill()
    node.start()
    node.wait_pod("b", lambda p: p.ready)
    equal(facts(node, node.pod("b")), b, "a running pod after a restart")
    run("mount", "-o", "remount,bind,rw", f"{t.scratch}/state")
    node.wait_gone("a", deadline=90)
    node.wait_no_traces(a)
    node.wait_running("new", deadline=60)
    equal(facts(node, node.pod("b")), b, "a running pod")
    node.remove("b.yaml", "new.yaml")
    node.wait_gone("b", "new")
    equal(node.stop(), 0, "exit code")


def limit(node, what, value):
    soft, hard = resource.prlimit(node.process.pid, what)
    resource.prlimit(node.process.pid, what, (value, hard))
    return soft, hard


def test_no_descriptors(t):
    """a daemon without free descriptors reports it; running pods are not affected; waiting pods start when there are some"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", quick("a"))
    node.put("b.yaml", pod("b", terminationGracePeriodSeconds=0))
    node.wait_running("a", "b")
    before = facts(node, node.pod("b"))
    in_use = len(os.listdir(f"/proc/{node.process.pid}/fd"))
    for spare in (0, 1, 2, 3, 5, 8):
        soft, _ = limit(node, resource.RLIMIT_NOFILE, in_use + spare)
        since = len(node.log())
        node.put("new.yaml", quick("new"))
        if spare < 5:
            until(lambda: "Too many open files" in node.log()[since:], 20, "the log says what is missing")
        limit(node, resource.RLIMIT_NOFILE, soft)
        node.wait_running("new", deadline=60)
        node.remove("new.yaml")
        node.wait_gone("new", deadline=30)
    equal(facts(node, node.pod("b")), before, "a running pod")
    # A container's end while there are none is noticed afterwards.
    soft, _ = limit(node, resource.RLIMIT_NOFILE, in_use)
    run("kill", "-9", before[2])
    limit(node, resource.RLIMIT_NOFILE, soft)
    node.wait_pod("b", lambda p: p.restarts() == 1 and p.state()[0] == "running", 30, "the killed one runs again")
    node.remove("a.yaml", "b.yaml")
    node.wait_gone("a", "b")
    equal(node.stop(), 0, "exit code")


def test_few_descriptors_at_the_start(t):
    """a start with too few descriptors reports it; running pods are not affected, and a start with enough finds everything unchanged"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", terminationGracePeriodSeconds=0))
    before = facts(node, node.wait_running("a"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for few in (8, 16, 24, 32):
        node.kill()
        since = len(node.log())
        coracle, node.coracle = node.coracle, f"{t.scratch}/tmp/few"
        with open(node.coracle, "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\nulimit -n {few}\nexec {coracle} \"$@\"\n")
        os.chmod(node.coracle, 0o755)
        node.start(wait=False)
        until(lambda: node.process.poll() is not None or "ready" in node.log()[since:], 20, "it ends or runs")
        if node.process.poll() is not None:
            contains(node.log()[since:], "Too many open files", "the log")
            node.process = None
        else:
            node.kill()
        node.coracle = coracle
        node.start()
        node.wait_pod("a", lambda p: p.ready)
        equal(facts(node, node.pod("a")), before, "the pod")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(node.stop(), 0, "exit code")
    check((soft, hard) == resource.getrlimit(resource.RLIMIT_NOFILE), "our own limit")


def test_no_memory(t):
    """a daemon that gets no memory keeps its state intact; with memory, at the latest after its next start, all work is done"""
    if "address" in os.path.basename(t.build):
        raise Skip("AddressSanitizer ends a process that gets no memory")
    node = t.node()
    node.import_image()
    node.put("a.yaml", quick("a"))
    node.put("b.yaml", pod("b", terminationGracePeriodSeconds=0))
    node.wait_running("a", "b")
    before = facts(node, node.pod("b"))
    rng = random.Random(5)
    ended = 0
    for turn in range(12):
        with open(f"/proc/{node.process.pid}/statm", encoding="ascii") as f:
            size = int(f.read().split()[0]) * resource.getpagesize()
        limit(node, resource.RLIMIT_AS, size + rng.choice((0, 0, 4096, 65536, 262144, 1 << 20)))
        node.put("new.yaml", quick("new"))
        for _ in range(20):
            with contextlib.suppress(OSError, AssertionError, ValueError):
                node.pods()
            node.put("big.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": {"x": "y" * rng.randrange(1 << 18)}})
        if node.process.poll() is None:
            limit(node, resource.RLIMIT_AS, resource.RLIM_INFINITY)
        else:  # systemd would start it again
            ended += 1
            check("AddressSanitizer" not in node.log(), lambda: node.log()[-3000:])
            node.process = None
            node.start()
        node.wait_running("new", deadline=60)
        equal(facts(node, node.pod("b")), before, "a running pod")
        node.remove("new.yaml")
        node.wait_gone("new", deadline=60)
    print(f"it ended {ended} times of 12")
    equal([f for f in os.listdir(f"{node.state_dir}/pods") if f.endswith(".damaged")], [], "damaged records")
    node.kill()
    node.start()
    node.wait_pod("b", lambda p: p.ready)
    equal(facts(node, node.pod("b")), before, "a running pod")
    node.remove("a.yaml", "b.yaml")
    node.wait_gone("a", "b")
    equal(node.stop(), 0, "exit code")


test_full_disk.seconds = 40
test_nearly_full_disk.seconds = 40
test_read_only_state.seconds = 60
test_no_descriptors.seconds = 40
test_no_memory.seconds = 60
