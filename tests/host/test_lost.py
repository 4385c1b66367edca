# SPDX-License-Identifier: Apache-2.0
"""Files lost or damaged while no daemon runs: it names file and reason, sets the file aside, and everything else goes on."""
import glob
import json
import os
import signal
import subprocess

from coracle import (alive, check, container, contains, equal, pod, read, run, shell, until)
from test_restart import conmon_of, facts

QUICK = shell("trap 'exit 0' TERM; while true; do sleep 0.1; done")
NOBODY = "ab" * 32


def two(t, **more):
    """A node with the pods a (to be damaged) and b (the rest), running; the facts of b."""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=QUICK, **more), terminationGracePeriodSeconds=1))
    node.put("b.yaml", pod("b", container(command=QUICK), terminationGracePeriodSeconds=1))
    a, b = node.wait_running("a"), node.wait_running("b")
    return node, a, facts(node, b)


def again(node, b, restarts=1, deadline=20):
    """a runs again in a new container, b is the same as before: the new a."""
    new = node.wait_pod("a", lambda p: p.restarts() == restarts and p.state()[0] == "running", deadline, "a runs again")
    equal(facts(node, node.pod("b")), b, "the other pod")
    return new


def lost(p):
    last = p.container()["lastState"]["terminated"]
    equal((last["reason"], last["exitCode"]), ("ContainerStatusUnknown", 137), "lastState")


def explain(node, *what):
    return node.cli("explain", *what).stdout


def ends_clean(node, *pods):
    """Deletes a and b; they and their predecessors leave no trace."""
    now = [node.pod("a"), node.pod("b")]
    node.remove("a.yaml", "b.yaml")
    node.wait_gone("a", "b", deadline=30)
    for p in [*pods, *now]:
        node.wait_no_traces(p, deadline=20)
    equal(node.stop(), 0, "exit code")


def test_conmon_dead(t):
    """a dead conmon: the container is replaced, counted as ContainerStatusUnknown 137, and explain says so"""
    node, a, b = two(t)
    pid = node.pid(a)
    os.kill(conmon_of(a), signal.SIGKILL)
    new = again(node, b)
    lost(new)
    check(not alive(pid), "the container without a conmon runs on")
    contains(explain(node, "pod", "a"), "the run before: ContainerStatusUnknown, exit code 137 (lost: its conmon was gone")
    ends_clean(node, a)


def test_conmon_dead_at_the_record(t):
    """conmon and daemon die between a container's start and its record: the run counts"""
    node, a, b = two(t)
    node.kill()
    path = f"{node.state_dir}/pods/{a.uid}.json"
    record = json.loads(read(path))
    record["containers"]["main"]["current"]["started"] = 0  # as it was a moment before
    with open(path, "w", encoding="utf-8") as f:
        json.dump(record, f)
    os.kill(conmon_of(a), signal.SIGKILL)
    node.start()
    lost(again(node, b))
    ends_clean(node, a)


def test_started_unseen(t):
    """killed between a container's start and its record, the daemon makes up for the event and the log's link"""
    node, a, b = two(t)
    node.kill()
    path = f"{node.state_dir}/pods/{a.uid}.json"
    record = json.loads(read(path))
    record["containers"]["main"]["current"]["started"] = 0
    with open(path, "w", encoding="utf-8") as f:
        json.dump(record, f)
    for link in glob.glob(f"{node.container_logs}/a_default_*"):
        os.unlink(link)
    node.start()
    node.wait_pod("a", lambda p: p.ready)
    equal((node.pod("a").container_id(), node.pod("a").restarts()), (a.container_id(), 0), "container")
    until(lambda: glob.glob(f"{node.container_logs}/a_default_main-{a.container_id()}.log"), 5, "the log's link")
    until(lambda: [e for e in node.events("a") if e["reason"] == "Started"], 5, "the event Started")
    equal(facts(node, node.pod("b")), b, "the other pod")
    ends_clean(node, a)


def damaged_file(t, path_of, what, restarts=1):
    """Kills the daemon, truncates a file, starts again."""
    node, a, b = two(t)
    pid = node.pid(a)
    node.kill()
    path = path_of(node, a)
    check(os.path.exists(path), f"no {path}")
    os.truncate(path, os.path.getsize(path) // 2)
    node.start()
    return node, a, b, pid, what, restarts


def synced_record(node, p):
    """The path of a pod's record, once it is on the disk: its second name is that of the same file."""
    path = f"{node.state_dir}/pods/{p.uid}.json"
    until(lambda: os.path.exists(path + ".synced") and os.path.samefile(path, path + ".synced"), 10, "the record is synced")
    return path


def test_damaged_record(t):
    """a truncated pod record is set aside and reported; its pod starts again, and its old container is removed"""
    node, a, b = two(t)
    pid, path = node.pid(a), synced_record(node, a)
    node.kill()
    os.truncate(path, os.path.getsize(path) // 2)
    node.start()
    new = node.wait_pod("a", lambda p: p.uid != a.uid and p.state()[0] == "running", what="the new a")
    until(lambda: not alive(pid), 20, "the old container ends")
    aside = glob.glob(f"{node.state_dir}/pods/{a.uid}.json.damaged-*")
    equal(len(aside), 1, "records set aside")
    contains(explain(node, "node"), f"record={a.uid}.json")
    contains(explain(node, "node"), "damaged state files")
    contains(explain(node, "node"), aside[0])
    contains(" ".join(e["message"] for e in node.events("test-node")), os.path.basename(aside[0]))
    equal((new.restarts(), facts(node, node.pod("b"))), (0, b), "restarts of the new one, and the other pod")
    os.unlink(aside[0])
    check("damaged state files" not in explain(node, "node"), "explain still tells of a file that is gone")
    node.wait_no_traces(a, deadline=20)
    ends_clean(node)


def test_empty_record(t):
    """a pod record whose newest content a power cut took is set aside; what was on the disk before stands in"""
    node, a, b = two(t)
    pid, path = node.pid(a), synced_record(node, a)
    node.kill()
    with open(path + ".new", "w", encoding="ascii"):
        pass
    os.rename(path + ".new", path)
    node.start()
    node.wait_pod("a", lambda p: p.ready)
    equal((node.pod("a").uid, node.pod("a").restarts(), node.pid(a)), (a.uid, 0, pid), "uid, restarts, process")
    contains(explain(node, "node"), "using the previous version of a pod record")
    equal(facts(node, node.pod("b")), b, "the other pod")
    for aside in glob.glob(f"{path}.damaged-*"):
        os.unlink(aside)
    ends_clean(node, a)


def test_damaged_meta(t):
    """a container whose meta.json is truncated runs on, is stopped and removed as any other"""
    node, a, b, pid, *_ = damaged_file(t, lambda n, p: f"{n.run_dir}/containers/{p.container_id()}/meta.json", "meta")
    node.wait_pod("a", lambda p: p.ready)
    check(alive(pid), "the container ended")
    equal(node.pod("a").restarts(), 0, "restarts")
    os.kill(pid, signal.SIGKILL)
    again(node, b)
    ends_clean(node, a)


def test_damaged_meta_of_nobody(t):
    """a container without record and with a truncated meta.json is ended and removed"""
    node, a, b = two(t)
    pid, meta = node.pid(a), f"{node.run_dir}/containers/{a.container_id()}/meta.json"
    node.kill()
    os.truncate(meta, 10)
    os.unlink(f"{node.state_dir}/pods/{a.uid}.json")
    node.start()
    until(lambda: not alive(pid), 20, "the container of nobody ends")
    node.wait_pod("a", lambda p: p.uid != a.uid and p.state()[0] == "running", what="the new a")
    equal(facts(node, node.pod("b")), b, "the other pod")
    node.wait_no_traces(a, deadline=20)
    ends_clean(node)


def test_damaged_cni_result(t):
    """a truncated CNI result is set aside and named; the pod is attached anew, its containers run on"""
    node, a, b, pid, *_ = damaged_file(t, lambda n, p: [f for f in glob.glob(f"{n.state_dir}/cni/results/*.json")
                                                         if p.ip in read(f)][0], "result")
    new = node.wait_pod("a", lambda p: p.ready and p.ip, what="a is attached again")
    check(alive(pid), "the container ended")
    until(lambda: node.enter(new, "ping", "-c", "1", "-W", "1", "10.77.0.1", ok=False).returncode == 0, 10, "its network works")
    contains(explain(node, "node"), "set aside a damaged CNI result")
    equal(facts(node, node.pod("b")), b, "the other pod")
    node.remove("a.yaml", "b.yaml")
    node.wait_gone("a", "b")
    until(lambda: not glob.glob(f"{node.state_dir}/cni/networks/*/10.77.*"), 5, "all addresses are given back")
    equal(node.stop(), 0, "exit code")


def test_damaged_image_record(t):
    """a truncated image record is set aside and named; running pods run on; the image can be brought again"""
    node, a, b, pid, *_ = damaged_file(t, lambda n, p: glob.glob(f"{n.state_dir}/images/images/*")[0], "image")
    node.wait_pod("a", lambda p: p.ready)
    check(alive(pid), "the container ended")
    equal(node.enter(node.pod("b"), "id", "-u").stdout, "0\n", "a program of the image on which pods run")
    contains(explain(node, "node"), "set aside a damaged record")
    node.put("c.yaml", pod("c", container(command=QUICK, imagePullPolicy="Never"), terminationGracePeriodSeconds=1))
    node.wait_pod("c", lambda p: p.state()[1].get("reason") == "ErrImageNeverPull", what="c says that the image is not there")
    node.import_image()
    node.wait_running("c")
    equal(facts(node, node.pod("b")), b, "the other pod")
    node.remove("c.yaml")
    node.wait_gone("c")
    ends_clean(node, a)


def test_bundle_without_conmon_pid(t):
    """without conmon.pid the run is given up as lost; conmon and container end"""
    node, a, b = two(t)
    conmon, pid = conmon_of(a), node.pid(a)
    node.kill()
    os.unlink(f"{node.run_dir}/containers/{a.container_id()}/conmon.pid")
    node.start()
    lost(again(node, b))
    until(lambda: not alive(conmon) and not alive(pid), 10, "conmon and container end")
    contains(explain(node, "pod", "a"), "ContainerStatusUnknown")
    ends_clean(node, a)


def test_reused_pids(t):
    """pids that belong to other processes by now are recognised, and these are left alone"""
    node, a, b = two(t)
    conmon = conmon_of(a)
    other = subprocess.Popen(["sleep", "600"])
    try:
        node.kill()
        for file in ("conmon.pid", "pid"):
            with open(f"{node.run_dir}/containers/{a.container_id()}/{file}", "w", encoding="ascii") as f:
                f.write(str(other.pid))
        node.start()
        lost(again(node, b))
        until(lambda: not alive(conmon), 10, "the real conmon ends")
        ends_clean(node, a)
        check(other.poll() is None, "a process that has nothing to do with it was killed")
    finally:
        other.kill()
        other.wait()


def test_record_without_container(t):
    """a container that vanished with its bundle counts as lost; the pod goes on"""
    node, a, b = two(t)
    cid, conmon = a.container_id(), conmon_of(a)
    node.kill()
    run(os.environ.get("CORACLE_TEST_RUNTIME", "crun"), f"--root={node.run_dir}/oci", "kill", cid, "KILL")
    until(lambda: not alive(conmon), 10, "conmon ends")
    run("umount", "-l", f"{node.run_dir}/containers/{cid}/rootfs")
    run("rm", "-rf", f"{node.run_dir}/containers/{cid}", f"{node.run_dir}/exits/{cid}", f"{node.run_dir}/oci/{cid}",
        f"{node.state_dir}/containers/{cid}")
    node.start()
    lost(again(node, b))
    ends_clean(node, a)


def test_left_behind(t):
    """things that no record names are removed at the start: exit files, cgroups, pinned namespaces, layers, containers"""
    node, a, b = two(t)
    pid = node.pid(a)
    os.makedirs(f"{node.run_dir}/ns/nobody", exist_ok=True)
    with open(f"{node.run_dir}/ns/nobody/net", "w", encoding="ascii"):
        pass
    run("unshare", "--net", "sh", "-c", f"mount --bind /proc/self/ns/net {node.run_dir}/ns/nobody/net")
    folders = [f.rpartition("/kubepods")[0] + "/kubepods/besteffort/podnobody" for f in node.cgroups_of(a.container_id())]
    for folder in folders:
        os.makedirs(f"{folder}/{NOBODY}", exist_ok=True)
    with open(f"{node.run_dir}/exits/{NOBODY}", "w", encoding="ascii") as f:
        f.write("0")
    os.makedirs(f"{node.state_dir}/containers/{'cd' * 32}/upper")
    node.kill()
    os.unlink(f"{node.state_dir}/pods/{a.uid}.json")
    node.remove("a.yaml")
    with open(f"{node.run_dir}/exits/{'ef' * 32}", "w", encoding="ascii") as f:
        f.write("nonsense")
    node.start()

    def left():
        found = [f for f in folders if os.path.exists(f)]
        found += [f for f in (f"{node.run_dir}/ns/nobody", f"{node.state_dir}/containers/{'cd' * 32}") if os.path.exists(f)]
        found += [f for f in os.listdir(f"{node.run_dir}/exits") if f[:2] in ("ab", "ef")]
        return found + ([f"process {pid}"] if alive(pid) else [])
    until(lambda: not left(), 20, lambda: f"leftovers {left()}")
    equal(facts(node, node.pod("b")), b, "the other pod")
    node.wait_no_traces(a, deadline=20)
    node.remove("b.yaml")
    node.wait_gone("b")
    equal(node.stop(), 0, "exit code")


def test_exit_of_nobody(t):
    """an exit file of an unknown container has no effect, and is removed at the next start"""
    node, a, b = two(t)
    with open(f"{node.run_dir}/exits/{NOBODY}", "w", encoding="ascii") as f:
        f.write("0")
    os.kill(node.pid(a), signal.SIGKILL)  # an exit that is reported after it
    again(node, b)
    node.kill()
    node.start()
    until(lambda: not os.path.exists(f"{node.run_dir}/exits/{NOBODY}"), 10, "the exit file is removed")
    ends_clean(node)


def test_killed_runtime_leaves_nothing(t):
    """a crun that is killed while it starts leaves a mount of itself in the bundle, which is removed with the bundle"""
    wrapper = f"{t.scratch}/tmp/crun"
    with open(wrapper, "w", encoding="ascii") as f:  # what crun does when it starts, up to the worst moment
        f.write(f"""#!/bin/sh
case "$*" in
*" create "*|*" start "*)
    if [ -e {t.scratch}/tmp/kill ]; then
        f=$(mktemp "$_LIBCONTAINER_STATEDIR/crun.XXXXXX") && mount --bind /usr/bin/crun "$f"
        echo "$f" >> {t.scratch}/tmp/places
        kill -9 $$
    fi;;
esac
exec /usr/bin/crun "$@"
""")
    os.chmod(wrapper, 0o755)
    with open(f"{t.scratch}/tmp/kill", "w", encoding="ascii"):
        pass
    node = t.node("--runtime", wrapper)
    node.import_image()
    node.put("a.yaml", pod("a", container(command=QUICK), terminationGracePeriodSeconds=1))
    until(lambda: os.path.exists(f"{t.scratch}/tmp/places"), 10, "the runtime was called")
    until(lambda: not [m for m in read("/proc/self/mountinfo").splitlines() if "/crun." in m], 10, "the mount is gone")
    contains(node.wait_pod("a", lambda p: p.state()[0] == "waiting" and p.state()[1].get("message")).state()[1]["message"], "", "message")
    os.unlink(f"{t.scratch}/tmp/kill")
    a = node.wait_running("a", deadline=40)
    for place in read(f"{t.scratch}/tmp/places").split():
        check(place.startswith(f"{node.run_dir}/"), f"{place} is outside the run folder")
        check(not os.path.exists(place), f"{place} is left")
    # Remains of a feature test by the daemon that was killed together with it.
    node.kill()
    place = f"{node.run_dir}/runtime/crun.abcdef"
    with open(place, "w", encoding="ascii"):
        pass
    run("mount", "--bind", "/usr/bin/crun", place)
    node.start()
    check(not os.path.exists(place), "the mount of an earlier probe is left")
    node.finish(a)
    equal(node.stop(), 0, "exit code")


test_killed_runtime_leaves_nothing.seconds = 30
