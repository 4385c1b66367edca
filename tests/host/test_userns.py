# SPDX-License-Identifier: Apache-2.0
"""hostUsers: false: the users of a pod are not those of the host."""
import os

from coracle import Skip, check, config_map, container, contains, equal, pod, read, secret, shell, until
from test_layers import VOLUMES_WRITTEN, import_with_volumes, write_to_volumes

BLOCK = 65536


def block(node, p):
    """First id and number of ids of the pod's user namespace, as its first container has it."""
    return tuple(int(x) for x in read(f"/proc/{node.container_pids(p)[0]}/uid_map").split()[1:])


def able(node):
    """Skips the test if the kernel lacks support (Debian 12's 6.1 maps no tmpfs)."""
    said = until(lambda: [line for line in node.cli("explain", "node").stdout.splitlines() if line.split()[:2] == ["user", "namespaces"]
                          and "being tested" not in line], 10, "whether there are user namespaces")[0]
    if "not possible" in said:
        raise Skip(said.strip())


def users(name, *containers, **spec):
    return pod(name, *containers, hostUsers=False, **spec)


def test_ids(t):
    """each pod has its own ids; its root owns its files and is nobody on the host, with volumes of every kind"""
    node = t.node()
    able(node)
    node.import_image()
    host = f"{t.scratch}/tmp/host"
    os.makedirs(host)
    with open(f"{host}/roots", "w", encoding="ascii") as f:
        f.write("of root\n")
    os.chmod(f"{host}/roots", 0o600)
    node.put("c.yaml", config_map("c", key="value"), secret("s", key="hidden"))
    volumes = [{"name": "empty", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}, {"name": "host", "hostPath": {"path": host}},
               {"name": "c", "configMap": {"name": "c"}}, {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}}]
    mounts = [{"name": v["name"], "mountPath": f"/{v['name']}"} for v in volumes]
    script = ("set -e; id -u; cat /host/roots /c/key; echo; cat /s/key; echo; for d in /empty /memory /host /dev/shm / /tmp; do echo x > $d/new; done;"
              "stat -c '%u:%g %n' /empty/new /memory/new /host/new /host/roots /dev/shm/new /new /etc/hosts /bin/busybox /s/key; echo '1.2.3.4 more' >> /etc/hosts;"
              "chown 1000:1000 /empty/new; echo said > /dev/termination-log; echo done; exec sleep 1000")
    node.put("a.yaml", users("a", container(command=shell(script), volumeMounts=mounts), volumes=volumes))
    node.put("b.yaml", users("b", container(securityContext={"runAsUser": 1234, "runAsGroup": 2345})))
    node.put("plain.yaml", pod("plain"))
    a, b = node.wait_running("a"), node.wait_running("b")
    until(lambda: "done" in node.cli("logs", "a").stdout, 10, lambda: f"the script is through:\n{node.cli('logs', 'a').stdout}")
    text = node.cli("logs", "a").stdout
    for part in ("0\nof root\nvalue\nhidden\n", "0:0 /empty/new", "0:0 /memory/new", "0:0 /host/new", "0:0 /host/roots", "0:0 /dev/shm/new", "0:0 /new",
                 "0:0 /etc/hosts", "0:0 /bin/busybox", "0:0 /s/key"):
        contains(text, part, "what root of the pod saw")
    (first, n), (other, m) = block(node, a), block(node, b)
    equal((n, m, first % BLOCK, other % BLOCK), (BLOCK, BLOCK, 0, 0), "blocks")
    check(first != other and first >= BLOCK and other >= BLOCK, f"blocks {first} and {other}")
    equal(os.stat(f"/proc/{node.container_pids(a)[0]}").st_uid, first, "the host's user of the pod's root")
    equal(os.stat(f"/proc/{node.container_pids(b)[0]}").st_uid, other + 1234, "the host's user of the pod's user 1234")
    equal(os.stat(f"{host}/new").st_uid, 0, "owner on the disk of what the pod's root wrote")
    equal(os.stat(f"{node.root_dir}/pods/{a.uid}/volumes/kubernetes.io~empty-dir/empty/new").st_uid, 1000, "owner on the disk of what it gave away")
    equal(node.cli("exec", "b", "--", "id", "-u").stdout, "1234\n", "exec as the container's user")
    equal(node.cli("exec", "a", "--", "cat", "/proc/self/uid_map").stdout.split(), ["0", str(first), str(BLOCK)], "exec's map")
    plain = node.wait_running("plain")
    equal(read(f"/proc/{node.container_pids(plain)[0]}/uid_map").split(), ["0", "0", "4294967295"], "the map of a pod that shares the host's users")
    node.remove("a.yaml", "b.yaml", "plain.yaml")
    node.wait_gone("a", "b", "plain")
    for p in (a, b):
        node.wait_no_traces(p)
    equal(node.stop(), 0, "exit code")


def test_rights(t):
    """root of such a pod controls its own network and mounts, and nothing of the host"""
    node = t.node()
    able(node)
    node.import_image()
    script = ("ip link set lo down && ip link set lo up && echo link; mount -t tmpfs none /tmp && echo mounted; hostname other && echo named;"
              "echo 1 > /proc/sys/kernel/printk 2>/dev/null || echo no-printk; mknod /n c 1 3 2>/dev/null || echo no-node;"
              "cat /proc/sys/net/ipv4/ip_unprivileged_port_start; exec sleep 1000")
    node.put("a.yaml", users("a", container(command=shell(script), securityContext={"capabilities": {"add": ["NET_ADMIN", "SYS_ADMIN", "MKNOD"]}}),
                             securityContext={"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "81"},
                                                          {"name": "kernel.shm_rmid_forced", "value": "1"}]}))
    a = node.wait_running("a")
    until(lambda: "81" in node.cli("logs", "a").stdout, 10, lambda: f"the script is through:\n{node.cli('logs', 'a').stdout}")
    for word in ("link\n", "mounted\n", "named\n", "no-printk\n", "no-node\n"):
        contains(node.cli("logs", "a").stdout, word, "what it could do")
    equal(node.enter(a, "cat", "/proc/sys/kernel/shm_rmid_forced").stdout, "1\n", "an IPC sysctl")
    with open(f"{t.scratch}/tmp/mine", "w", encoding="ascii") as f:
        f.write("copied\n")
    node.cli("cp", f"{t.scratch}/tmp/mine", "a:/root-has")
    equal(node.enter(a, "stat", "-c", "%u:%g", "/root-has").stdout, "0:0\n", "the owner of what was copied in")
    node.cli("cp", "a:/root-has", f"{t.scratch}/tmp/back")
    equal(read(f"{t.scratch}/tmp/back"), "copied\n", "what was copied out")
    unmasked = {"procMount": "Unmasked"}
    node.put("u.yaml", users("u", container(securityContext=unmasked)))
    u = node.wait_running("u")
    check(" /proc/timer_list " not in read(f"/proc/{node.container_pids(u)[0]}/mountinfo"), "/proc/timer_list is masked")
    check(" /proc/timer_list " in read(f"/proc/{node.container_pids(a)[0]}/mountinfo"), "/proc/timer_list is not masked")
    equal(node.stop(), 0, "exit code")


def test_shared(t):
    """several containers of a pod share its users: emptyDir, PID namespace, restarts, init containers, probes, fsGroup"""
    node = t.node()
    able(node)
    node.import_image()
    v = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    probe = {"exec": {"command": ["cat", "/v/from-init"]}, "periodSeconds": 1}
    node.put("a.yaml", users("a", container("one", shell("echo hi > /v/one; exec sleep 1000"), readinessProbe=probe, **v,
                                            securityContext={"runAsUser": 1000}),
                             container("two", shell("until [ -e /v/one ]; do sleep 0.05; done; cat /v/one; stat -c %u:%g /v/one; [ -e /v/again ] || { touch /v/again; exit 3; }; exec sleep 1000"), **v),
                             initContainers=[container("init", shell("echo x > /v/from-init; chmod o+w /v"), **v)],
                             shareProcessNamespace=True, securityContext={"fsGroup": 2000}, volumes=[{"name": "v", "emptyDir": {}}]))
    a = node.wait_pod("a", lambda p: p.ready and p.restarts("two") == 1, 30)
    until(lambda: "hi\n1000:2000\n" in node.cli("logs", "a", "-c", "two").stdout, 10, "the other container's file")
    equal(node.enter(a, "cat", "/proc/1/comm", container="one").stdout.strip(), "pause", "process 1")
    equal(node.cli("exec", "a", "-c", "one", "--", "sh", "-c", "kill -0 1 2>&1 || echo no").stdout.strip()[-2:], "no", "a user may not signal root's pause")
    node.finish(a)
    equal(node.stop(), 0, "exit code")


def test_restart(t):
    """a killed daemon finds the pods' ids again: running pods are not affected, new pods get others, ids are released with their pod"""
    node = t.node()
    able(node)
    node.import_image()
    for name in "abc":
        node.put(f"{name}.yaml", users(name))
    pods = [node.wait_running(n) for n in "abc"]
    facts = [(block(node, p), node.pid(p)) for p in pods]
    equal(len({f[0] for f in facts}), 3, "different blocks")
    node.kill()
    node.remove("a.yaml")
    node.put("d.yaml", users("d"))
    node.start()
    d = node.wait_running("d")
    node.wait_gone("a")
    node.wait_no_traces(pods[0])
    equal([(block(node, p), node.pid(p)) for p in pods[1:]], facts[1:], "the pods that stayed")
    check(block(node, d) not in [f[0] for f in facts[1:]], "the new pod has an id of its own")
    os.kill(node.container_pids(pods[1])[0], 9)
    b = node.wait_pod("b", lambda p: p.restarts() == 1 and p.state()[0] == "running")
    equal(block(node, b), facts[1][0], "the block after a restart of the container")
    node.put("e.yaml", users("e"))
    equal(block(node, node.wait_running("e")), facts[0][0], "the block that came free")
    equal(node.stop(), 0, "exit code")


def test_refused(t):
    """conflicting fields are rejected by name; a volume that cannot be mapped keeps its pod waiting, and is named"""
    node = t.node()
    able(node)
    node.import_image()
    node.put("bad.yaml", users("bad", hostNetwork=True))
    problems = until(lambda: node.problems().get("bad.yaml"), 10, "the problem is told")
    contains("\n".join(problems), "spec.hostNetwork: cannot be true when hostUsers is false", "problems")
    node.put("p.yaml", users("p", container(volumeMounts=[{"name": "v", "mountPath": "/v"}]), volumes=[{"name": "v", "hostPath": {"path": "/proc"}}]))
    p = node.wait_pod("p", lambda p: p.state()[1].get("reason") == "CreateContainerError")
    contains(p.state()[1]["message"], "hostUsers: false: the file system proc at /proc cannot be mapped to the pod's users", "message")
    contains(p.state()[1]["message"], 'volume "v"', "message")
    node.put("big.yaml", users("big", container(securityContext={"runAsUser": 70000})))
    big = node.wait_pod("big", lambda p: "reason" in p.state()[1] and p.state()[1]["reason"] != "ContainerCreating")
    contains(str(big.state()), "65535", "a user that the namespace does not have")
    node.remove("p.yaml", "big.yaml")
    node.wait_gone("p", "big")
    node.wait_no_traces(p)
    equal(node.stop(), 0, "exit code")


def test_volumes_of_an_image(t):
    """folders that the image declares as volumes belong to the pod's root, and are writable where the root is not"""
    node = t.node()
    able(node)
    import_with_volumes(t, node)
    equal(write_to_volumes(node, "ro", True, hostUsers=False), VOLUMES_WRITTEN + "touch: y: Read-only file system\nx\n1\n755:0:0\nro\n",
          "with a read-only root")
    equal(write_to_volumes(node, "rw", False, hostUsers=False), VOLUMES_WRITTEN + "y\nx\n1\n755:0:0\nrw\n", "with a writable root")
    node.stop()
