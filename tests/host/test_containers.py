# SPDX-License-Identifier: Apache-2.0
"""The environment of a container: identity, rights, limits, files, network."""
import os
import re

from coracle import (SLOW, cgroup_v2, check, config_map, container, contains, equal, http_answers, links, pod, read, run, shell, until)


def test_security(t):
    """users, groups, capabilities, read-only root, no new privileges and seccomp are as the securityContext says"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container("plain"), container("tight", securityContext={
        "runAsUser": 1234, "runAsGroup": 2345, "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, "seccompProfile": {"type": "RuntimeDefault"}}),
        container("privileged", securityContext={"privileged": True}),
        securityContext={"supplementalGroups": [3456], "fsGroup": 4567},
        volumes=[{"name": "scratch", "emptyDir": {}}]))
    a = node.wait_running("a")

    def status(name):
        pid = node.pid(a, name)
        return dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)

    tight, plain, privileged = status("tight"), status("plain"), status("privileged")
    equal((tight["Uid"].split()[0], tight["Gid"].split()[0]), ("1234", "2345"), "uid and gid")
    check({"3456", "4567"} <= set(tight["Groups"].split()), f"groups {tight['Groups']}")
    equal(int(tight["CapBnd"], 16), 1 << 10, "bounding set of drop ALL add NET_BIND_SERVICE")
    equal((tight["NoNewPrivs"], tight["Seccomp"]), ("1", "2"), "no_new_privs and seccomp of the tight one")
    equal((plain["Uid"].split()[0], plain["NoNewPrivs"], plain["Seccomp"]), ("0", "0", "0"), "the plain one")
    equal(int(plain["CapEff"], 16), 0xa80425fb, "default capabilities")
    check(int(privileged["CapEff"], 16) & (1 << 21), "CAP_SYS_ADMIN of the privileged one")
    check(node.enter(a, "touch", "/x", container="tight", ok=False).returncode != 0, "writing to a read-only root")
    equal(node.enter(a, "touch", "/x", container="plain").returncode, 0, "writing to a root file system")
    for path in ("/proc/kcore", "/proc/keys", "/proc/timer_list"):
        if os.path.exists(path):
            text = node.enter(a, "head", "-c", "1", path, container="plain", ok=False).stdout
            equal(text, "", f"masked {path}")
    check(node.enter(a, "sh", "-c", "echo 1 > /proc/sys/kernel/panic", container="plain", ok=False).returncode != 0,
          "writing to /proc/sys")
    node.stop()


def test_refusals(t):
    """runAsNonRoot is refused before the start with kubelet's message; an unknown program says so"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(securityContext={"runAsNonRoot": True})))
    node.put("b.yaml", pod("b", container(command=["/bin/absent"]), restartPolicy="Never"))
    a = node.wait_pod("a", lambda p: p.state()[1].get("reason") == "CreateContainerConfigError")
    contains(a.state()[1]["message"], "container has runAsNonRoot and image will run as root")
    b = node.wait_phase("b", "Failed")
    word, detail = b.state()
    equal((word, detail.get("exitCode")), ("terminated", 128), "state of the container with an unknown program")
    contains(detail.get("message", ""), "absent")
    node.stop()


def test_limits(t):
    """CPU and memory limits and requests reach the cgroups of container and pod"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(resources={"requests": {"cpu": "250m", "memory": "24Mi"},
                                                     "limits": {"cpu": "500m", "memory": "48Mi"}})))
    a = node.wait_running("a")
    equal(a.status.get("qosClass"), "Burstable", "QoS class")

    def value(controller, file, up=0):
        folder = node.container_cgroup(a, controller)
        for _ in range(up):
            folder = os.path.dirname(folder)
        return read(f"{folder}/{file}").strip()

    for up in (0, 1):
        if cgroup_v2():
            equal((value("", "memory.max", up), value("", "cpu.max", up)), (str(48 << 20), "50000 100000"), f"limits, {up} up")
        else:
            equal(value("memory", "memory.limit_in_bytes", up), str(48 << 20), f"memory limit, {up} up")
            equal((value("cpu", "cpu.cfs_quota_us", up), value("cpu", "cpu.shares", up)), ("50000", "256"), f"CPU, {up} up")
    contains(node.container_cgroup(a, "memory"), f"/kubepods/burstable/pod{a.uid}/", "cgroup path")
    node.stop()


def test_oom(t):
    """a container over its memory limit is OOMKilled and restarted"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=shell("sleep 0.2; tail /dev/zero"), resources={"limits": {"memory": "16Mi"}})))
    a = node.wait_pod("a", lambda p: p.restarts() >= 1, 20, "a restart")
    last = a.container()["lastState"]["terminated"]
    equal((last["reason"], last["exitCode"]), ("OOMKilled", 137), "lastState")
    node.stop()


def test_environment_and_files(t):
    """environment, hostname, hosts, resolv.conf, /dev/shm, termination message and downward API fields"""
    with open(f"{t.scratch}/tmp/resolv.conf", "w", encoding="ascii") as f:
        f.write("nameserver 192.0.2.53\nsearch example.test\noptions timeout:2\n")
    node = t.node("--cluster-dns", "192.0.2.10", "--cluster-domain", "boat.local", "--resolv-conf", f"{t.scratch}/tmp/resolv.conf")
    node.import_image()
    node.put("config.yaml", config_map("config", A="from-map", B="b"))
    node.put("a.yaml", pod("a", container(
        command=shell("echo last words > /dev/termination-log; echo shared > /dev/shm/x; env; sleep 1000"),
        env=[{"name": "A", "value": "own"}, {"name": "C", "value": "$(A)-$(B)"},
             {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
             {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        envFrom=[{"configMapRef": {"name": "config"}}], workingDir="/tmp"), container("other"),
        hostAliases=[{"ip": "192.0.2.1", "hostnames": ["alias.example"]}], terminationGracePeriodSeconds=0))
    a = node.wait_running("a")
    until(lambda: "PATH=" in node.logs("a", "main"), 5, "its output")
    lines = node.logs("a", "main").splitlines()
    for line in ("A=own", "B=b", "C=own-b", f"IP={a.ip}", "NODE=test-node", "HOSTNAME=a", "PWD=/tmp"):
        check(line in lines, f"{line} is not in {lines}")

    def cat(path, name="main"):
        return node.enter(a, "cat", path, container=name).stdout

    equal(node.enter(a, "hostname", container="main").stdout, "a\n", "hostname")
    contains(cat("/etc/hosts"), f"{a.ip}\ta\n", "/etc/hosts")
    contains(cat("/etc/hosts"), "192.0.2.1\talias.example", "/etc/hosts")
    resolv = cat("/etc/resolv.conf").splitlines()
    equal(sorted(resolv), ["nameserver 192.0.2.10", "options ndots:5",
                           "search default.svc.boat.local svc.boat.local boat.local example.test"], "resolv.conf")
    until(lambda: cat("/dev/shm/x", "other") == "shared\n", 5, "/dev/shm is shared")
    contains(node.enter(a, "df", "/dev/shm", container="main").stdout, "65536", "size of /dev/shm")
    contains(node.enter(a, "ip", "link", "show", "lo", container="main").stdout, "UP", "lo")
    os.kill(node.pid(a, "main"), 9)
    after = node.wait_pod("a", lambda p: p.restarts("main") == 1)
    equal(after.container("main")["lastState"]["terminated"].get("message"), "last words\n", "termination message")
    node.stop()


def test_volumes(t):
    """hostPath, emptyDir, memory-backed emptyDir and subPath"""
    node = t.node()
    node.import_image()
    os.mkdir(f"{t.scratch}/tmp/host")
    with open(f"{t.scratch}/tmp/host/file", "w", encoding="ascii") as f:
        f.write("from the host")
    node.put("a.yaml", pod("a", container(volumeMounts=[
        {"name": "host", "mountPath": "/host", "readOnly": True}, {"name": "host", "mountPath": "/one", "subPath": "file"},
        {"name": "disk", "mountPath": "/disk"}, {"name": "memory", "mountPath": "/memory"}]), volumes=[
            {"name": "host", "hostPath": {"path": f"{t.scratch}/tmp/host", "type": "Directory"}},
            {"name": "disk", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}}]))
    a = node.wait_running("a")
    equal(node.enter(a, "cat", "/host/file").stdout, "from the host", "hostPath")
    equal(node.enter(a, "cat", "/one").stdout, "from the host", "subPath")
    check(node.enter(a, "touch", "/host/x", ok=False).returncode != 0, "writing to a read-only hostPath")
    node.enter(a, "touch", "/disk/x", "/memory/x")
    mounts = node.enter(a, "cat", "/proc/mounts").stdout
    check(re.search(r" /memory tmpfs .*size=4096k", mounts), f"the memory-backed emptyDir: {mounts}")
    check(node.enter(a, "dd", "if=/dev/zero", "of=/memory/y", "bs=1M", "count=8", ok=False).returncode != 0, "its size limit")
    # It survives a restart of the container.
    os.kill(node.pid(a), 9)
    a = node.wait_pod("a", lambda p: p.restarts() == 1 and p.state()[0] == "running")
    equal(node.enter(a, "ls", "/disk").stdout, "x\n", "emptyDir after a restart")
    node.stop()
    with open(f"{t.scratch}/tmp/host/file", encoding="ascii") as f:
        equal(f.read(), "from the host", "the host's file afterwards")


def test_network(t):
    """pods reach one another by address; hostNetwork shares the node's; bandwidth and links go with the pod"""
    node = t.node()
    node.import_image()
    server = container(command=shell("mkdir /w; echo hi > /w/index.html; httpd -f -p 80 -h /w & trap 'kill $!' TERM; wait"))
    node.put("server.yaml", pod("server", server, annotations={"kubernetes.io/ingress-bandwidth": "10M"}))
    node.put("client.yaml", pod("client"))
    node.put("host.yaml", pod("host", hostNetwork=True))
    server, client, host = (node.wait_running(n) for n in ("server", "client", "host"))
    http_answers(server.ip)
    equal(node.enter(client, "wget", "-q", "-O", "-", f"http://{server.ip}/").stdout, "hi\n", "pod to pod")
    equal(node.enter(server, "wget", "-q", "-O", "-", f"http://{server.ip}/").stdout, "hi\n", "pod to itself by its address")
    equal(os.stat(f"/proc/{node.pid(host)}/ns/net").st_ino, os.stat("/proc/self/ns/net").st_ino, "hostNetwork")
    check(os.stat(f"/proc/{node.pid(client)}/ns/net").st_ino != os.stat("/proc/self/ns/net").st_ino, "own network")
    contains(run("tc", "qdisc").stdout, "tbf", "traffic shaping")
    node.remove("server.yaml", "client.yaml")
    node.wait_gone("server", "client")
    until(lambda: not [x for x in links() if x.startswith(("veth", "bwp"))], 5, lambda: f"links gone; {links()}")
    node.stop()


def test_replacement_is_quick(t):
    """a killed container's replacement runs at once, in the same network"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    a = node.wait_running("a")
    os.kill(node.pid(a), 9)
    b = node.wait_pod("a", lambda p: p.restarts() == 1 and p.state()[0] == "running", 3 * SLOW)
    equal((b.ip, b.uid), (a.ip, a.uid), "address and uid")
    equal(b.container()["lastState"]["terminated"]["exitCode"], 137, "last exit code")
    node.stop()


def test_active_deadline(t):
    """a pod older than activeDeadlineSeconds fails, also if the agent was not running at that moment"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("early", activeDeadlineSeconds=1))
    node.put("b.yaml", pod("late", activeDeadlineSeconds=2))
    node.put("c.yaml", pod("never", activeDeadlineSeconds=3600))
    node.wait_running("never")
    early = node.wait_phase("early", "Failed", deadline=8)
    equal((early.status["reason"], early.status["message"]),
          ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"), "verdict")
    node.kill()
    late = node.start().wait_phase("late", "Failed", deadline=8)
    equal(late.status["reason"], "DeadlineExceeded", "reason")
    equal(node.pod("early").status["reason"], "DeadlineExceeded", "reason of the first after the restart")
    node.wait_running("never")
    node.stop()


def test_sysctls(t):
    """sysctls that the node allows are set in the pod's namespaces, those of its interface too; others are refused"""
    node = t.node("--allowed-unsafe-sysctls", "kernel.msg*,net.core.somaxconn,net.ipv4.conf.eth0.*")
    node.import_image()
    sysctls = {"kernel.shm_rmid_forced": "1", "kernel.msgmax": "4096", "net.core.somaxconn": "77",
               "net.ipv4.conf.eth0.rp_filter": "2", "net.ipv4.ip_unprivileged_port_start": "99"}
    node.put("a.yaml", pod("a", securityContext={"sysctls": [{"name": n, "value": v} for n, v in sysctls.items()]}))
    a = node.wait_running("a")
    for name, value in sysctls.items():
        equal(node.enter(a, "cat", "/proc/sys/" + name.replace(".", "/")).stdout.strip(), value, name)
    node.put("b.yaml", pod("b", securityContext={"sysctls": [{"name": "kernel.sem", "value": "1"}]}))
    b = node.wait_phase("b", "Failed")
    equal((b.status["reason"], b.status["message"]),
          ("SysctlForbidden", 'Pod was rejected: forbidden sysctl: "kernel.sem" not allowlisted'), "refusal")
    node.kill()
    node.start()
    equal(node.enter(node.wait_running("a"), "cat", "/proc/sys/net/ipv4/conf/eth0/rp_filter").stdout.strip(), "2", "after kill -9")
    node.stop()
