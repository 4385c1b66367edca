# SPDX-License-Identifier: Apache-2.0
"""Faults around the daemon: full disks, a supervisor that hangs, containers that misuse their writable files."""
import contextlib
import os
import signal

from coracle import check, container, equal, pod, run, secret, shell, until

from test_restart import conmon_of

QUICK = shell("trap 'exit 0' TERM; while true; do sleep 0.1; done")


def test_full_state_disk(t):
    """a full state folder prevents no deletion; pods that waited for space start when there is some again"""
    os.makedirs(f"{t.scratch}/state")
    run("mount", "-t", "tmpfs", "-o", "size=90m", "tmpfs", f"{t.scratch}/state")
    node = t.node("--eviction-hard=memory.available<1Mi")  # no threshold of a disk: with one, "a" would be evicted and "b" refused
    node.import_image()
    node.put("a.yaml", pod("a", container(command=QUICK)))
    a = node.wait_running("a")
    with contextlib.suppress(OSError):
        with open(f"{t.scratch}/state/fill", "wb", buffering=0) as f:
            while True:
                f.write(bytes(65536))
    with contextlib.suppress(OSError):
        with open(f"{t.scratch}/state/rest", "wb", buffering=0) as f:
            while True:
                f.write(bytes(512))
    node.put("b.yaml", pod("b", container(command=QUICK)))
    node.wait_pod("b", lambda p: any("No space left" in e["message"] for e in node.events("b")), what="the event that says why")
    node.finish(a)
    os.unlink(f"{t.scratch}/state/fill")
    os.unlink(f"{t.scratch}/state/rest")
    node.wait_running("b", deadline=40)
    node.stop()


def test_run_folder_is_out_of_reach(t):
    """a container that fills /etc/hosts, /etc/resolv.conf and /etc/hostname does not affect the run folder"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=shell(
        "for f in hosts resolv.conf hostname; do dd if=/dev/zero of=/etc/$f bs=1M count=8; done; echo done; sleep 3600"))))
    node.wait_running("a")
    until(lambda: "done" in node.logs("a"), what="the container has written")
    large = run("find", node.run_dir, "-xdev", "-type", "f", "-size", "+1024k", "-not", "-path", "*/rootfs/*").stdout
    equal(large, "", "large files in the run folder")
    node.stop()


def test_stopped_conmon(t):
    """a stopped conmon delays no deletion"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=QUICK), terminationGracePeriodSeconds=1))
    a = node.wait_running("a")
    os.kill(conmon_of(a), signal.SIGSTOP)
    node.remove("a.yaml")
    node.wait_gone("a", deadline=30)
    node.wait_no_traces(a)
    node.stop()


def test_secret_in_a_command(t):
    """a secret expanded into a command that cannot be started appears in no event, log, record or status"""
    value = "kingfisher-over-the-weir"
    node = t.node()
    node.import_image()
    node.put("s.yaml", secret("s", key=value))
    node.put("a.yaml", pod("a", container(command=["/bin/$(KEY)"], env=[
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}}]), restartPolicy="Never"))
    a = node.wait_phase("a", "Failed")
    check("/bin/***" in a.state()[1]["message"], f"the message: {a.state()[1]}")
    for path in ("/api/v1/pods", "/api/v1/events"):
        check(value.encode() not in node.request("GET", path)[1], f"{path} holds the value")
    check(value not in node.log(), "the daemon's log holds the value")
    equal(run("grep", "-rl", value, node.state_dir, node.root_dir, node.pod_logs, ok=False).stdout, "", "files with the value")
    node.stop()


test_full_state_disk.seconds = 20
test_stopped_conmon.seconds = 15
