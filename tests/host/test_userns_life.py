# SPDX-License-Identifier: Apache-2.0
"""hostUsers: false, the rest of a pod's life: streams, mounts of the host below volumes, restarts, nodes that cannot."""
import contextlib
import json
import os
import pty
import signal
import subprocess

from coracle import check, container, contains, equal, pod, read, run, shell, until
from test_userns import able

IDS = 65536


def own(name, *containers, **more):
    return pod(name, *(containers or [container()]), hostUsers=False, **more)


def block(node, p, name=None):
    """The id of the pod's root on the host, from its container's namespace; checks that the block is complete."""
    inside, first, n = (int(x) for x in read(f"/proc/{node.container_pids(p, name)[0]}/uid_map").split())
    equal((inside, n, first % IDS), (0, IDS, 0), "the mapping")
    check(first >= IDS, f"block {first}")
    return first


def owner(path):
    st = os.stat(path)
    return st.st_uid, st.st_gid


def run_in(node, name, text, container_name=None, **kwargs):
    """A shell's output in a container, by `coracle exec`."""
    where = ["-c", container_name] if container_name else []
    return node.cli("exec", name, *where, "--", "/bin/sh", "-c", text, **kwargs).stdout


def with_terminal(node, name, container_name, text):
    """The output of a shell with a terminal."""
    master, slave = pty.openpty()
    with subprocess.Popen([node.coracle, "--socket", node.socket, "exec", "-it", name, "-c", container_name, "--", "/bin/sh",
                           "-c", text], stdin=slave, stdout=slave, stderr=slave, start_new_session=True) as process:
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # the other side is closed
            while chunk := os.read(master, 4096):
                shown += chunk
        process.wait(timeout=10)
    os.close(master)
    return shown.decode()


def volumes(folder):
    return [{"name": "host", "hostPath": {"path": folder}}, {"name": "empty", "emptyDir": {}},
            {"name": "memory", "emptyDir": {"medium": "Memory"}}]


MOUNTS = [{"name": "host", "mountPath": "/host"}, {"name": "empty", "mountPath": "/empty"},
          {"name": "memory", "mountPath": "/memory"}]


def test_users_of_pods_are_their_own(t):
    """root of a pod is nobody's root outside; two pods have different blocks; after their end the blocks are free"""
    node = t.node()
    able(node)
    node.import_image()
    node.put("a.yaml", own("a"))
    node.put("b.yaml", own("b"))
    a, b = node.wait_running("a"), node.wait_running("b")
    a = node.pod("a")
    equal(sorted([block(node, a), block(node, b)]), [IDS, 2 * IDS], "blocks")
    for p in (a, b):
        first = block(node, p)
        for file in ("uid_map", "gid_map"):
            equal(run_in(node, p.name, f"cat /proc/self/{file}").split(), ["0", str(first), str(IDS)], f"{file} inside")
        contains(read(f"/proc/{node.pid(p)}/status"), f"Uid:\t{first}\t{first}\t{first}\t{first}", "the process outside")
        equal(run_in(node, p.name, "id -u").strip(), "0", "user inside")
        text = node.cli("explain", "pod", p.name).stdout
        contains(text, f"0 to 65535 are {first} to {first + IDS - 1} on the host", "explain pod")
    contains(node.cli("explain", "node").stdout, "possible (hostUsers: false)", "explain node")
    node.finish(a, b)
    node.put("c.yaml", own("c"))
    c = node.wait_running("c")
    equal(block(node, c), IDS, "the block that was free again")
    node.remove("c.yaml")
    node.wait_gone("c")
    node.stop()


def test_files_have_the_owners_of_their_side(t):
    """image, writable layer, volumes and the pod's own files: root's on both sides, or the block's in the layer only"""
    node = t.node()
    able(node)
    node.import_image()
    folder = f"{t.scratch}/folder"
    os.mkdir(folder, 0o755)
    with open(f"{folder}/secret", "w", encoding="utf-8") as f:
        f.write("of root")
    os.chmod(f"{folder}/secret", 0o600)
    node.put("p.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": "map"}},
             {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "hidden"}},
             own("p", container(volumeMounts=MOUNTS + [
                 {"name": "map", "mountPath": "/map"}, {"name": "hidden", "mountPath": "/hidden"},
                 {"name": "all", "mountPath": "/all"}, {"name": "down", "mountPath": "/down"},
                 {"name": "empty", "mountPath": "/sub", "subPath": "a/b"}]),
                 container("user", volumeMounts=MOUNTS, securityContext={"runAsUser": 1000, "runAsGroup": 1000}),
                 volumes=volumes(folder) + [
                     {"name": "map", "configMap": {"name": "m"}},
                     {"name": "hidden", "secret": {"secretName": "s", "defaultMode": 0o400}},
                     {"name": "down", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                     {"name": "all", "projected": {"sources": [{"configMap": {"name": "m"}}, {"secret": {
                         "name": "s", "items": [{"key": "k", "path": "s"}]}}]}}],
                 securityContext={"fsGroup": 2000, "supplementalGroups": [3000]}))
    p = node.wait_running("p")
    first = block(node, p, "main")

    equal(run_in(node, "p", "stat -c %u:%g / /bin /etc/hosts /etc/resolv.conf /etc/hostname /dev/termination-log /dev/shm "
                            "/host /host/secret", "main").split(), ["0:0"] * 9, "owners inside")
    equal(run_in(node, "p", "cat /host/secret; cat /map/k /hidden/k /all/k /all/s /down/name", "main"), "of root"
          "maphiddenmaphiddenp", "contents")
    equal(run_in(node, "p", "stat -Lc %a:%u:%g /map/k /hidden/k", "main").split(), ["644:0:2000", "440:0:2000"], "modes")
    run_in(node, "p", "touch /own /host/new /empty/new /memory/new /dev/shm/new /sub/new; echo x >> /etc/hosts; "
                      "echo done > /dev/termination-log; chown 5:6 /own", "main")
    with open(f"/proc/{node.pid(p, 'main')}/mountinfo", encoding="utf-8") as f:
        upper = next(line.partition("upperdir=")[2].split(",")[0] for line in f if line.split()[4] == "/")
    check(upper, "no upper folder")
    layer = f"{node.state_dir}/containers/{p.container_id('main')}/upper"
    equal(owner(f"{layer}/own"), (first + 5, first + 6), "owner of a file of the layer, outside")
    equal(owner(layer), (first, first), "owner of the layer itself")
    equal(owner(f"{folder}/new"), (0, 0), "owner of what root wrote to a hostPath, outside")
    empty = f"{node.root_dir}/pods/{p.uid}/volumes/kubernetes.io~empty-dir/empty"
    equal(owner(f"{empty}/new"), (0, 2000), "owner of what root wrote to an emptyDir, outside")
    check(os.path.exists(f"{empty}/a/b/new"), "the subPath is not part of the volume")

    equal(run_in(node, "p", "id -u; id -g; id -G", "user").split(), ["1000", "1000", "1000", "2000", "3000"], "the user")
    run_in(node, "p", "echo shared > /empty/by-user; echo shared > /memory/by-user", "user")
    equal(owner(f"{empty}/by-user"), (1000, 2000), "owner of what a user wrote, outside")
    equal(run_in(node, "p", "cat /empty/by-user /memory/by-user; stat -c %u:%g /empty/by-user", "main").split(),
          ["shared", "shared", "1000:2000"], "the volume that two containers share")
    refused = node.cli("exec", "p", "-c", "user", "--", "cat", "/host/secret", ok=False)
    contains(refused.stderr, "Permission denied", "a file of root's")
    contains(node.logs("p", "user") + run_in(node, "p", "cat /etc/hosts", "user"), "p", "the hosts file")
    node.finish(p)
    equal(owner(folder), (0, 0), "the hostPath itself")
    equal(read(f"{folder}/secret"), "of root", "what lies in it")
    node.stop()


def test_root_inside_rules_the_pods_own(t):
    """with its capabilities root changes its network, its host name's namespace and mounts, but nothing of the host"""
    node = t.node()
    able(node)
    node.import_image()
    node.put("p.yaml", own("p", container(securityContext={"capabilities": {"add": ["NET_ADMIN", "SYS_ADMIN"]}}),
                           hostname="known", securityContext={"sysctls": [
                               {"name": "net.ipv4.ip_unprivileged_port_start", "value": "80"},
                               {"name": "kernel.shm_rmid_forced", "value": "1"}]}))
    p = node.wait_running("p")
    equal(run_in(node, "p", "hostname; cat /proc/sys/net/ipv4/ip_unprivileged_port_start "
                            "/proc/sys/kernel/shm_rmid_forced").split(), ["known", "80", "1"], "name and sysctls")
    run_in(node, "p", "ip link set eth0 mtu 1300 && ip addr add 192.0.2.1/32 dev lo && mount -t tmpfs none /tmp")
    contains(run_in(node, "p", "ip addr"), "192.0.2.1", "addresses")
    contains(run_in(node, "p", "ip link show eth0"), "mtu 1300", "the link")
    for text in ("echo 1 > /proc/sys/kernel/core_uses_pid", "mount -t devtmpfs none /tmp", "mknod /x b 1 1",
                 "hostname other"):
        node.cli("exec", "p", "--", "/bin/sh", "-c", f"{text} && exit 9; exit 3", ok=False)
    check(node.cli("exec", "p", "--", "/bin/sh", "-c", "mknod /x b 1 1", ok=False).returncode != 0, "a device was made")
    host = os.readlink("/proc/self/ns/user")
    check(os.readlink(f"/proc/{node.pid(p)}/ns/user") != host, "the host's user namespace")
    node.stop()


def test_pods_with_users_live_like_others(t):
    """logs, probes, hooks, init containers, terminals, restarts of a container, /dev/stdout, privileged, no masks"""
    node = t.node()
    able(node)
    node.import_image()
    ready = {"exec": {"command": ["/bin/sh", "-c", "test $(id -u) = 1000 && cat /tmp/up"]}, "periodSeconds": 1}
    node.put("p.yaml", own(
        "p", container("main", shell("echo begun; echo to-file > /dev/stdout; echo up > /tmp/up; trap 'exit 3' TERM; "
                                     "while true; do sleep 3600 & wait $!; done"),
                       readinessProbe=ready, securityContext={"runAsUser": 1000},
                       lifecycle={"postStart": {"exec": {"command": ["/bin/sh", "-c", "echo hook > /proc/1/fd/1"]}}}),
        container("bare", securityContext={"procMount": "Unmasked"}),
        container("mighty", securityContext={"privileged": True}),
        container("terminal", tty=True, stdin=True),
        initContainers=[container("first", shell("cat; id -u; test $(awk '{print $2}' /proc/self/uid_map) -ge 65536"))],
        restartPolicy="Always"))
    p = node.wait_pod("p", lambda p: p.ready, what="p ready")
    first = block(node, p, "main")
    for line in ("begun", "to-file", "hook"):
        until(lambda line=line: line in node.logs("p", "main"), 5, lambda line=line: f"log line {line}")
    equal(node.logs("p", "first").strip(), "0", "log of the init container")
    equal(run_in(node, "p", "grep -c ' /proc/' /proc/self/mountinfo", "bare", ok=False).strip(), "0", "masks when Unmasked")
    check(run_in(node, "p", "grep -c ' /proc/' /proc/self/mountinfo", "terminal").strip() != "0", "no masks by default")
    contains(run_in(node, "p", "grep CapEff /proc/self/status", "mighty"), "fff", "capabilities of a privileged container")
    equal(run_in(node, "p", "stat -c %u /dev/console; ls /dev/pts", "terminal").split()[0], "0", "owner of the terminal")
    for who, user in (("bare", "0"), ("main", "1000")):
        equal(run_in(node, "p", "id -u > /dev/stdout; echo err > /dev/stderr", who).strip(), user, "an exec's /dev/stdout")
    contains(with_terminal(node, "p", "terminal", "tty; echo end"), "/dev/pts/", "exec with a terminal")

    os.kill(node.pid(p, "main"), signal.SIGKILL)
    again = node.wait_pod("p", lambda p: p.restarts("main") == 1 and p.ready, what="main runs again", deadline=30)
    equal(block(node, again, "main"), first, "the block after a restart of a container")
    contains(read(f"/proc/{node.pid(again, 'main')}/status"), f"Uid:\t{first + 1000}\t", "the new run")
    node.finish(p)
    node.stop()


def test_shared_process_namespace(t):
    """shareProcessNamespace: the pause process is one of the pod's users, and root of the pod rules its processes"""
    node = t.node()
    able(node)
    node.import_image()
    node.put("p.yaml", own("p", container("a"), container("b", securityContext={"runAsUser": 7}),
                           shareProcessNamespace=True))
    p = node.wait_running("p")
    first = block(node, p, "a")
    inside = os.readlink(f"/proc/{node.pid(p, 'a')}/ns/pid")
    equal(os.readlink(f"/proc/{node.pid(p, 'b')}/ns/pid"), inside, "PID namespace")
    seen = run_in(node, "p", "ps -o pid,user,comm", "a")
    equal(seen.splitlines()[1].split(), ["1", "65535", "pause"], f"first process:\n{seen}")
    pause = next(d for d in os.listdir("/proc") if d.isdigit() and read(f"/proc/{d}/comm", "").strip() == "pause"
                 and f"pod{p.uid}" in read(f"/proc/{d}/cgroup", ""))
    contains(read(f"/proc/{pause}/status"), f"Uid:\t{first + 65535}\t", "the pause process outside")
    run_in(node, "p", "kill -TERM $(ps -o pid,user | awk '$2 == 7 {print $1; exit}')", "a")
    node.wait_pod("p", lambda p: p.restarts("b") == 1, what="b was ended by a")
    node.kill()
    node.start()
    same = node.wait_running("p")
    equal(os.readlink(f"/proc/{node.pid(same, 'a')}/ns/pid"), inside, "PID namespace after the agent's restart")
    node.finish(p)
    node.stop()


def test_killed_agent_knows_the_blocks(t):
    """kill -9: the pod keeps running with its block, new pods get others; leftovers without a pod are removed"""
    node = t.node()
    able(node)
    node.import_image()
    folder = f"{t.scratch}/folder"
    os.mkdir(folder)
    node.put("a.yaml", own("a", container(volumeMounts=MOUNTS), volumes=volumes(folder)))
    node.put("gone.yaml", own("gone", container(volumeMounts=MOUNTS), volumes=volumes(folder)))
    a, gone = node.wait_running("a"), node.wait_running("gone")
    a, pid = node.pod("a"), node.pid(node.pod("a"))
    first, other = block(node, a), block(node, gone)
    node.kill()
    node.remove("gone.yaml")
    os.unlink(f"{node.state_dir}/pods/{gone.uid}.json")  # owned by no pod now
    node.put("b.yaml", own("b"))
    node.start()
    b = node.wait_running("b")
    equal(node.pid(node.pod("a")), pid, "the process after the agent's restart")
    check(block(node, b) not in (first,), f"the block of a was given to b: {block(node, b)}")
    equal(run_in(node, "a", "awk '{print $2}' /proc/self/uid_map").strip(), str(first), "uid_map inside")
    os.kill(pid, signal.SIGKILL)
    again = node.wait_pod("a", lambda p: p.restarts() == 1 and p.state()[0] == "running", what="a runs again")
    contains(read(f"/proc/{node.pid(again)}/status"), f"Uid:\t{first}\t", "the new run")
    node.wait_no_traces(gone)
    check(other in (IDS, 2 * IDS), "blocks from the first on")

    node.kill()  # in the midst of a start
    node.put("c.yaml", own("c"))
    node.start(wait=False)
    until(lambda: os.path.exists(f"{node.root_dir}/pods") and len(os.listdir(f"{node.run_dir}/ns")) >= 3, 20, "namespaces of c")
    node.kill()
    node.start()
    c = node.wait_running("c", deadline=30)
    equal(len({block(node, x) for x in (node.pod("a"), node.pod("b"), c)}), 3, "different blocks")

    for name in ("a", "b", "c"):
        node.remove(f"{name}.yaml")
    node.wait_gone("a", "b", "c")
    for p in (a, b, c):
        node.wait_no_traces(p)
    node.stop()


def test_mounts_of_the_host_stay(t):
    """mounts below a hostPath appear inside with the pod's ids, and stay mounted after the pod has ended"""
    node = t.node()
    able(node)
    node.import_image()
    folder = f"{t.scratch}/tmp/folder"
    os.makedirs(f"{folder}/sub")
    run("mount", "-t", "tmpfs", "-o", "mode=755", "none", f"{folder}/sub")
    with open(f"{folder}/sub/file", "w", encoding="ascii") as f:
        f.write("below")
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/later", "mountPropagation": "HostToContainer"}]
    node.put("p.yaml", own("p", container(volumeMounts=mounts), volumes=[{"name": "v", "hostPath": {"path": folder}}]))
    p = node.wait_running("p")
    equal(run_in(node, "p", "cat /v/sub/file; stat -c ' %u' /v/sub/file /later/sub/file"), "below 0\n 0\n", "below the volume")
    # A path below a volume belongs to the containers that run: the runtime would follow their links.
    mapped = f"{node.run_dir}/containers/{p.container_id()}/"
    sources = [m.get("source", "") for m in json.loads(read(f"{mapped}config.json"))["mounts"]]
    below = [x for x in sources if x.startswith(mapped) and len(x[len(mapped):].split("/")) > 2]
    equal(below, [], "sources of mounts that are below a volume")
    check(any("/part-" in x for x in sources), f"the mount below has a place of its own: {sources}")
    os.mkdir(f"{folder}/new")
    run("mount", "-t", "tmpfs", "-o", "mode=755", "none", f"{folder}/new")
    until(lambda: run_in(node, "p", "grep -c ' /later/new ' /proc/self/mountinfo", ok=False).strip() == "1", 5, "a later mount shows")
    equal(run_in(node, "p", "grep -c ' /v/new ' /proc/self/mountinfo", ok=False).strip(), "0", "where it shall not")
    os.kill(node.pid(p), signal.SIGKILL)
    node.wait_pod("p", lambda p: p.restarts() == 1 and p.state()[0] == "running", what="p runs again")
    node.finish(p)
    for name in ("sub", "new"):
        check(os.path.ismount(f"{folder}/{name}"), f"{name} was unmounted on the host")
    equal(read(f"{folder}/sub/file"), "below", "the host's file")
    for name in ("sub", "new"):
        run("umount", f"{folder}/{name}")
    node.stop()


def test_what_cannot_be_is_refused(t):
    """invalid combinations, users outside the block, and file systems that cannot be mapped: each with one error"""
    node = t.node()
    able(node)
    node.import_image()
    node.put("host.yaml", own("host", hostNetwork=True, hostPID=True, hostIPC=True))
    node.put("mask.yaml", pod("mask", container(securityContext={"procMount": "Unmasked"})))
    node.put("out.yaml", own("out", container(volumeMounts=[{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}],
                                              securityContext={"privileged": True}), volumes=[{"name": "v", "emptyDir": {}}]))
    until(lambda: len(node.problems()) == 3, 10, "problems")
    problems = node.problems()
    texts = "\n".join(problems["host.yaml"])
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        contains(texts, f"spec.{field}: cannot be true when hostUsers is false", "problems")
    contains("\n".join(problems["mask.yaml"]), '"Unmasked" needs hostUsers to be false', "problems")
    contains("\n".join(problems["out.yaml"]), "Bidirectional has no effect when hostUsers is false", "problems")

    node.put("user.yaml", own("user", container(securityContext={"runAsUser": 70000})))
    p = node.wait_pod("user", lambda p: p.state()[0] == "waiting" and "70000" in p.state()[1].get("message", ""), what="refused")
    equal(p.state()[1]["message"], "user or group 70000: with hostUsers: false a pod has users and groups 0 to 65535", "message")
    node.put("proc.yaml", own("proc", container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
                              volumes=[{"name": "v", "hostPath": {"path": "/proc/sys"}}]))
    p = node.wait_pod("proc", lambda p: "mapped" in p.state()[1].get("message", ""), what="refused")
    equal(p.state()[1]["message"], 'volume "v": hostUsers: false: the file system proc at /proc cannot be mapped to the '
          "pod's users", "message")
    node.stop()


def test_node_that_cannot(t):
    """without user namespaces such a pod waits with one event that gives the reason, and others run"""
    os.chmod(t.scratch, 0o700)
    node = t.node()
    node.import_image()
    node.put("p.yaml", own("p"))
    node.put("q.yaml", pod("q", container()))
    node.wait_running("q")
    why = f"hostUsers: false is not possible on this node: the folder {t.scratch} is closed to other users (mode 0700), " \
          "but pods' users pass through it"
    until(lambda: node.events("p"), 10, "an event")
    equal([(e["reason"], e["message"], e["count"]) for e in node.events("p")],
          [("FailedCreatePodSandBox", f"Failed to create pod sandbox: {why}", 1)], "events")
    contains(node.cli("explain", "pod", "p").stdout, "is closed to other users", "explain pod")
    contains(node.cli("explain", "node").stdout, "is closed to other users", "explain node")
    equal(node.pod("p").phase, "Pending", "phase")
    node.remove("p.yaml")
    node.wait_gone("p")
    node.stop()
