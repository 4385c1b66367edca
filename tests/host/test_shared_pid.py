# SPDX-License-Identifier: Apache-2.0
"""Pods whose containers share one PID namespace, with coracle-pause as its first process."""
import os
import signal

from coracle import alive, check, container, contains, equal, pod, read, shell, until


def pause_of(node, p):
    """(pid on the host, its cgroup folder's pod) of the first process of the shared namespace."""
    mine = os.readlink(f"/proc/{node.pid(p, 'a')}/ns/pid")
    found = [int(d) for d in os.listdir("/proc") if d.isdigit() and d != "1" and link(f"/proc/{d}/ns/pid") == mine
             and read(f"/proc/{d}/comm", "").strip() == "pause"]
    equal(len(found), 1, "processes called pause in the namespace")
    return found[0]


def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def shared(name, **more):
    """Two containers; b leaves an orphan behind that ends at once: a zombie unless the first process reaps it."""
    orphan = "(sleep 0.1 &) ; trap 'exit 0' TERM; while true; do sleep 3600 & wait $!; done"
    return pod(name, container("a"), container("b", shell(orphan)), shareProcessNamespace=True, **more)


def test_containers_see_each_other(t):
    """containers of the pod see each other's processes, the pause process is first, and zombies are reaped"""
    node = t.node()
    node.import_image()
    node.put("s.yaml", shared("s"))
    p = node.wait_running("s")
    equal(link(f"/proc/{node.pid(p, 'a')}/ns/pid"), link(f"/proc/{node.pid(p, 'b')}/ns/pid"), "PID namespace")
    seen = node.enter(p, "ps", "-o", "pid,comm", container="a").stdout
    check(seen.splitlines()[1].split() == ["1", "pause"], f"first process:\n{seen}")
    check(seen.count("sh") >= 2, f"the other container's shell is not seen:\n{seen}")
    until(lambda: not [d for d in os.listdir("/proc") if d.isdigit() and link(f"/proc/{d}/ns/pid") ==
                       link(f"/proc/{node.pid(p, 'a')}/ns/pid") and ") Z " in read(f"/proc/{d}/stat", "")], 5, "no zombie")
    pause = pause_of(node, p)
    status = read(f"/proc/{pause}/status")
    contains(status, "Uid:\t65535\t65535\t65535\t65535", "status of pause")
    contains(status, "CapEff:\t0000000000000000", "status of pause")
    contains(status, "CapBnd", "status of pause")
    contains(status, "NoNewPrivs:\t1", "status of pause")
    equal(os.listdir(f"/proc/{pause}/root"), ["pause"], "what its root holds")
    equal(os.listdir(f"/proc/{pause}/fd"), [], "its descriptors")
    check(f"pod{p.uid}/pause" in read(f"/proc/{pause}/cgroup"), lambda: read(f"/proc/{pause}/cgroup"))
    refused = node.enter(p, "sh", "-c", "ls /proc/1/root/ 2>&1; echo", container="a").stdout
    check("etc" not in refused.split(), f"a container sees the host through /proc/1/root: {refused}")
    node.remove("s.yaml")
    node.wait_gone("s")
    node.wait_no_traces(p)
    until(lambda: not alive(pause), 5, "the pause process ends with its pod")
    node.stop()


def test_one_container_restarts(t):
    """a container that ends or is restarted does not affect the others or the namespace"""
    node = t.node()
    node.import_image()
    node.put("s.yaml", shared("s"))
    p = node.wait_running("s")
    a, b, pause = node.pid(p, "a"), node.pid(p, "b"), pause_of(node, p)
    os.kill(b, signal.SIGKILL)
    again = node.wait_pod("s", lambda p: p.restarts("b") == 1 and p.state("b")[0] == "running", what="b runs again")
    equal((node.pid(again, "a"), pause_of(node, again)), (a, pause), "the other container and the pause process")
    equal(link(f"/proc/{node.pid(again, 'b')}/ns/pid"), link(f"/proc/{a}/ns/pid"), "PID namespace of the new run")
    equal(again.restarts("a"), 0, "restarts of the other")
    node.stop()


def test_killed_agent_takes_the_namespace_over(t):
    """after kill -9 of the agent the same pause process is used, and its end is still detected"""
    node = t.node()
    node.import_image()
    node.put("s.yaml", shared("s"))
    p = node.wait_running("s")
    pids = (node.pid(p, "a"), node.pid(p, "b"), pause_of(node, p))
    node.kill()
    node.start()
    same = node.wait_running("s")
    equal((node.pid(same, "a"), node.pid(same, "b"), pause_of(node, same)), pids, "processes after the restart")
    os.kill(pids[2], signal.SIGKILL)
    again = node.wait_pod("s", lambda p: p.restarts("a") == 1 and p.restarts("b") == 1 and p.state("a")[0] == "running"
                          and p.state("b")[0] == "running", what="both containers run again", deadline=30)
    check(pause_of(node, again) != pids[2], "the pause process is the one that was killed")
    contains([e["message"] for e in node.events("s") if e["reason"] == "SandboxChanged"],
             "Pod sandbox changed, it will be killed and re-created.", "events")
    equal(again.ip, p.ip, "address of the pod")
    node.remove("s.yaml")
    node.wait_gone("s")
    node.wait_no_traces(p)
    node.stop()


def test_pause_killed_while_the_agent_is_away(t):
    """a pause process that ended while no agent ran is replaced at the next start"""
    node = t.node()
    node.import_image()
    node.put("s.yaml", shared("s"))
    p = node.wait_running("s")
    pause = pause_of(node, p)
    node.kill()
    os.kill(pause, signal.SIGKILL)
    until(lambda: not alive(pause), 5, "pause ended")
    node.start()
    node.wait_pod("s", lambda p: p.restarts("a") == 1 and p.restarts("b") == 1 and p.state("a")[0] == "running"
                  and p.state("b")[0] == "running", what="both containers run again", deadline=30)
    node.stop()
