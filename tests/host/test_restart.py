# SPDX-License-Identifier: Apache-2.0
"""Restarts of the daemon, which pods do not notice."""
import json
import os
import random
import re
import signal
import time

from coracle import (alive, check, config_map, container, equal, pod, read, run, shell, until)


def ten(node, *without):
    """The running pods: {name: (uid, container id, pid, start time of the process, restarts, imageID)}."""
    return {name: facts(node, node.pod(name)) for name in names() if name not in without}


def names():
    return [f"pod-{i}" for i in range(10)]


def facts(node, p):
    pid = node.pid(p)
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        started = f.read().rpartition(")")[2].split()[19]
    return p.uid, p.container_id(), pid, started, p.restarts(), p.container()["imageID"]


def start_ten(node):
    node.import_image()
    node.put("config.yaml", config_map("config", text="one"))
    for i, name in enumerate(names()):
        node.put(f"{name}.yaml", pod(name, container(
            volumeMounts=[{"name": "config", "mountPath": "/config"}],
            ports=[{"containerPort": 80, "hostPort": 8200}] if i == 0 else []),
            volumes=[{"name": "config", "configMap": {"name": "config"}}]))
    node.wait_running(*names(), deadline=40)


def test_kill_9(t):
    """kill -9 with ten pods, then start: same processes, restart counts unchanged"""
    node = t.node()
    start_ten(node)
    before = ten(node)
    for _ in range(3):
        node.kill()
        for _uid, _cid, pid, _started, _restarts, image in before.values():
            check(alive(pid), f"process {pid} of a pod died with the daemon")
            check(re.fullmatch("sha256:[0-9a-f]{64}", image), f"imageID of an imported image: {image}")
        node.start()
        node.watch(lambda pods: all(("default", n) in pods and pods["default", n].ready for n in names()), what="ten pods ready")
        equal(ten(node), before, "uids, container ids, processes and restart counts, images")
    node.put("config.yaml", config_map("config", text="two"))
    until(lambda: node.enter(node.pod("pod-3"), "cat", "/config/text").stdout == "two", 5, "an update after the restart")
    node.remove(*[f"{n}.yaml" for n in names()])
    node.wait_gone(*names())
    equal(node.stop(), 0, "exit code")


def runtime_with(t, body):
    """A runtime that runs extra code at some of its commands; $T: the folder tmp."""
    path = f"{t.scratch}/tmp/crun"
    with open(path, "w", encoding="ascii") as f:
        f.write(f"""#!/bin/sh
T={t.scratch}/tmp
case " $* " in
{body}
esac
exec /usr/bin/crun "$@"
""")
    os.chmod(path, 0o755)
    return path


def with_hook(t, command):
    return pod("a", container(lifecycle={"postStart": {"exec": {"command": shell(command)}}},
                              volumeMounts=[{"name": "go", "mountPath": "/go"}]),
               volumes=[{"name": "go", "hostPath": {"path": f"{t.scratch}/tmp"}}], terminationGracePeriodSeconds=0)


def test_kill_between_start_and_hook(t):
    """a daemon killed right after a container's start runs its postStart hook at the next one"""
    node = t.node("--runtime", runtime_with(t, """*" start "*) [ -e $T/killed ] || { touch $T/killed; /usr/bin/crun "$@"; kill -9 $PPID; exit 0; };;"""))
    node.import_image()
    node.put("a.yaml", with_hook(t, "echo hook >> /go/hook"))
    node.process.wait(30)
    node.process = None
    node.start()
    node.wait_running("a")
    equal(node.pod("a").restarts(), 0, "restarts")
    equal(read(f"{t.scratch}/tmp/hook", "none"), "hook\n", "what the hook wrote")


def test_kill_before_the_last_run_is_removed(t):
    """a daemon killed right after a container's restart: the next one removes what is left of the run before"""
    node = t.node("--runtime", runtime_with(t, """*" start "*) echo >> $T/starts; if [ $(wc -l < $T/starts) = 2 ]; then
    /usr/bin/crun "$@"; kill -9 $PPID; exit 0; fi;;"""))
    node.import_image()
    node.put("a.yaml", pod("a", container(), terminationGracePeriodSeconds=0))
    before = node.wait_running("a").container_id()
    os.kill(node.pid(node.pod("a")), signal.SIGKILL)
    node.process.wait(30)
    node.process = None
    node.start()
    node.wait_running("a")
    equal(node.pod("a").restarts(), 1, "restarts")
    parts = [f"{t.scratch}/{folder}/{before}" for folder in ("run/containers", "run/exits", "run/oci", "state/containers")]
    until(lambda: not any(os.path.exists(p) for p in parts), 10, "nothing is left of the run before")
    equal(len(os.listdir(f"{t.scratch}/run/containers")), 1, "containers")


def test_stop_amid_a_start(t):
    """a daemon that is asked to end while a container starts begins no hook; the next one runs it"""
    node = t.node("--runtime", runtime_with(t, """*" start "*) touch $T/starting; while [ ! -e $T/go ]; do sleep 0.02; done;;"""))
    node.import_image()
    node.put("a.yaml", with_hook(t, "echo hook >> /go/hook; while [ ! -e /go/enough ]; do sleep 0.1; done"))
    until(lambda: os.path.exists(f"{t.scratch}/tmp/starting"), 20, "a start that is under way")
    os.kill(node.process.pid, signal.SIGTERM)
    until(lambda: "stopping; pods continue to run" in node.log(), 10, "the signal is taken")
    with open(f"{t.scratch}/tmp/go", "w", encoding="ascii"):
        pass
    equal(node.stop(deadline=10), 0, "exit code")
    equal(read(f"{t.scratch}/tmp/hook", "none"), "none", "a hook")
    node.start()
    until(lambda: read(f"{t.scratch}/tmp/hook", "") == "hook\n", 10, "the hook")
    with open(f"{t.scratch}/tmp/enough", "w", encoding="ascii"):
        pass
    node.wait_running("a")


def test_while_it_was_away(t):
    """exits, removals, edits and new manifests made while no daemon ran take effect"""
    node = t.node()
    start_ten(node)
    never = pod("never", container(command=shell("until [ -e /go/now ]; do sleep 0.05; done; exit 7"),
                                   volumeMounts=[{"name": "go", "mountPath": "/go"}]),
                restartPolicy="Never", volumes=[{"name": "go", "hostPath": {"path": f"{t.scratch}/tmp"}}])
    node.put("never.yaml", never)
    ending = node.wait_running("never")
    before = ten(node)
    victim = node.pod("pod-1")
    removed = node.pod("pod-2")
    node.kill()
    os.kill(node.pid(victim), signal.SIGKILL)
    with open(f"{t.scratch}/tmp/now", "w", encoding="ascii"):
        pass
    node.remove("pod-2.yaml")
    node.put("new.yaml", pod("new"))
    node.put("config.yaml", config_map("config", text="changed meanwhile"))
    for p in (victim, ending):
        until(lambda: os.path.exists(f"{node.run_dir}/exits/{p.container_id()}"), 10, lambda: f"{p.name} ends while nobody looks")
    node.start()
    again = node.wait_pod("pod-1", lambda p: p.restarts() == 1 and p.state()[0] == "running", what="the killed one was restarted")
    equal((again.uid, again.container()["lastState"]["terminated"]["exitCode"]), (victim.uid, 137), "its uid and last exit code")
    equal(node.wait_phase("never", "Failed").state()[1]["exitCode"], 7, "exit code of the one that ended")
    node.wait_gone("pod-2")
    node.wait_no_traces(removed)
    node.wait_running("new")
    until(lambda: node.enter(node.pod("pod-5"), "cat", "/config/text").stdout == "changed meanwhile", 5, "the edited ConfigMap")
    after = ten(node, "pod-1", "pod-2")
    equal(after, {n: f for n, f in before.items() if n in after}, "the others")
    node.stop()


def test_sigterm_leaves_pods(t):
    """SIGTERM and SIGINT leave the pods, and end with exit code 0"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    before = facts(node, node.wait_running("a"))
    for signo in (signal.SIGTERM, signal.SIGINT):
        equal(node.stop(signo), 0, "exit code")
        check(alive(before[2]), f"the pod ended with {signo!r}")
        node.start()
        node.wait_pod("a", lambda p: p.ready)
        equal(facts(node, node.pod("a")), before, "facts")
    node.stop()


def test_killed_at_any_moment(t):
    """killed repeatedly while pods start and stop, the daemon reaches the state of the manifest folder"""
    node = t.node()
    node.import_image()
    rng = random.Random(4711)
    seen = []
    for turn in range(10):
        if turn % 2 == 0:
            for i in range(4):
                node.put(f"p{i}.yaml", pod(f"p{i}", container(ports=[{"containerPort": 80, "hostPort": 8300 + i}]),
                                           terminationGracePeriodSeconds=1))
        else:
            node.remove("p0.yaml", "p1.yaml")
        time.sleep(rng.uniform(0, 0.25))
        seen += node.pods().values()
        node.kill()
        node.start()
    node.wait_running("p2", "p3")
    node.wait_gone("p0", "p1")
    for i in (2, 3):
        equal(len(node.container_pids(node.pod(f"p{i}"))) > 0, True, f"p{i} has a process")
    live = {node.pod("p2").uid, node.pod("p3").uid}
    for old in seen:
        if old.uid not in live:
            node.wait_no_traces(old)
    conmons = [line for line in run("ps", "-eo", "args").stdout.splitlines() if t.name + "/" in line and "conmon" in line.split()[0]]
    equal(len(conmons), 2, f"supervisors {conmons}")
    node.stop()


test_killed_at_any_moment.seconds = 20


def test_supervisor_lost(t):
    """a container whose conmon has ended is killed and replaced: ContainerStatusUnknown, 137"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    first = node.wait_running("a")
    pid = node.pid(first)
    os.kill(conmon_of(first), signal.SIGKILL)
    after = node.wait_pod("a", lambda p: p.restarts() == 1 and p.state()[0] == "running", what="the replacement")
    last = after.container()["lastState"]["terminated"]
    equal((last["reason"], last["exitCode"]), ("ContainerStatusUnknown", 137), "lastState")
    check(not alive(pid), "the old container still runs")
    # The same while no daemon looks, and the container gone as well.
    second_pid = node.pid(after)
    node.kill()
    os.kill(conmon_of(after), signal.SIGKILL)
    os.kill(second_pid, signal.SIGKILL)
    node.start()
    node.wait_pod("a", lambda p: p.restarts() == 2 and p.state()[0] == "running", 30, "the second replacement")
    node.stop()


def conmon_of(p):
    for line in run("ps", "-eo", "pid,args").stdout.splitlines():
        words = line.split()
        if len(words) > 1 and words[1].endswith("conmon") and p.container_id() in line:
            return int(words[0])
    raise AssertionError(f"no conmon of {json.dumps(p.container())}")


test_kill_9.seconds = 15
test_while_it_was_away.seconds = 15
test_supervisor_lost.seconds = 12  # the second replacement comes after a back-off of 10 s


def test_invalid_edit(t):
    """an invalid edit does not affect the pod across a kill -9, either; removing the file ends it"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.put("b.yaml", pod("b"))
    node.wait_running("a", "b")
    before = facts(node, node.pod("a")), facts(node, node.pod("b"))
    node.put("a.yaml", "kind: Pod\nspec: nonsense\n")
    node.wait_log("manifest rejected")
    node.kill()
    node.start()
    node.watch(lambda pods: all(("default", n) in pods and pods["default", n].ready for n in "ab"), what="both pods ready")
    equal((facts(node, node.pod("a")), facts(node, node.pod("b"))), before, "the pods after the restart")
    node.kill()
    node.remove("a.yaml")
    node.start()
    node.wait_gone("a")
    equal(facts(node, node.pod("b")), before[1], "the other pod")


def test_conditions(t):
    """no condition of a pod changes over kill -9, not even for a moment: status and times are those of before, also with probes"""
    node = t.node()
    node.import_image()
    node.put("plain.yaml", pod("plain"))
    node.put("probed.yaml", pod("probed", container(
        readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1},
        startupProbe={"exec": {"command": ["true"]}, "periodSeconds": 1})))
    node.put("done.yaml", pod("done", container(command=["true"]), restartPolicy="Never"))
    for name in ("plain", "probed"):
        node.wait_pod(name, lambda p: p.ready)
    node.wait_phase("done", "Succeeded")

    def all_conditions():
        return {name: node.pod(name).status["conditions"] for name in ("plain", "probed", "done")}
    before = all_conditions()
    for _ in range(2):
        node.kill()
        node.start()
        equal(all_conditions(), before, "conditions at once")
        seen = []
        end = time.monotonic() + 2.5  # two periods of the probes, to see that nothing happens
        while time.monotonic() < end:
            seen.append(all_conditions())
            time.sleep(0.05)
        check(all(s == before for s in seen), lambda: f"conditions changed: {[s for s in seen if s != before][0]}")
    equal(node.stop(), 0, "exit code")
    node.start()
    equal(all_conditions(), before, "conditions after a stop")
    node.remove("plain.yaml", "probed.yaml", "done.yaml")
    node.wait_gone("plain", "probed", "done")
    equal(node.stop(), 0, "exit code")
