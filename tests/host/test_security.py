# SPDX-License-Identifier: Apache-2.0
"""Kernel settings, name resolution, limits and terminals of pods."""
import os
import resource
import subprocess

from coracle import check, container, contains, equal, pod, read, shell, until


def refused(node, name, reason, text):
    p = node.wait_phase(name, "Failed")
    equal((p.status.get("reason"), p.status.get("message")), (reason, f"Pod was rejected: {text}"), f"status of {name}")


def test_sysctls(t):
    """unsafe kernel settings are rejected unless the node allows them, and are set in the pod only"""
    node = t.node("--allowed-unsafe-sysctls", "kernel.msg*,net/core/somaxconn")
    node.import_image()

    def put(name, settings, **more):
        node.put(f"{name}.yaml", pod(name, securityContext={"sysctls": [{"name": k, "value": v} for k, v in settings.items()]}, **more))

    put("safe", {"net.ipv4.ip_unprivileged_port_start": "80", "kernel.shm_rmid_forced": "1"})
    put("allowed", {"kernel.msgmax": "65536", "net.core.somaxconn": "77"})
    put("slashes", {"net/core/somaxconn": "78"})
    put("wrong", {"kernel.sem": "1 2 3 4"})
    host = [open(f"/proc/sys/{name}", encoding="ascii").read() for name in ("kernel/msgmax", "kernel/shm_rmid_forced")]
    safe, allowed, slashes = (node.wait_running(name) for name in ("safe", "allowed", "slashes"))

    def value(p, name):
        return node.enter(p, "cat", f"/proc/sys/{name}").stdout.strip()

    equal((value(safe, "net/ipv4/ip_unprivileged_port_start"), value(safe, "kernel/shm_rmid_forced")), ("80", "1"), "safe settings")
    equal((value(allowed, "kernel/msgmax"), value(allowed, "net/core/somaxconn")), ("65536", "77"), "allowed settings")
    equal(value(slashes, "net/core/somaxconn"), "78", "a setting named with slashes")
    check(value(safe, "net/core/somaxconn") not in ("77", "78"), "a setting of another pod is seen")
    refused(node, "wrong", "SysctlForbidden", 'forbidden sysctl: "kernel.sem" not allowlisted')
    equal([open(f"/proc/sys/{name}", encoding="ascii").read() for name in ("kernel/msgmax", "kernel/shm_rmid_forced")], host,
          "settings of the host")
    node.stop()


def test_sysctl_value_that_the_kernel_refuses(t):
    """a value that the kernel does not take keeps the pod waiting, with an event that names the setting and counts the tries"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", securityContext={"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "-5"}]}))
    until(lambda: [e for e in node.events("a") if e["reason"] == "FailedCreatePodSandBox" and e["count"] >= 2
                   and "sysctl net.ipv4.ip_unprivileged_port_start" in e["message"]], 10, "an event of the sandbox")
    equal(node.log().count("cannot make a pod's namespaces"), 1, "lines of the log")
    equal(node.pod("a").phase, "Pending", "phase")
    node.remove("a.yaml")
    node.wait_gone("a")
    node.stop()


def test_settings_that_are_nobodys(t):
    """the daemon refuses to start with a pattern that includes settings of the host"""
    for pattern, words in (("kernel.panic", "not known to be namespaced"), ("net.*.x", "must have at most 253 characters")):
        done = subprocess.run([f"{t.build}/coracle", "run", "--allowed-unsafe-sysctls", pattern], check=False, timeout=20,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(done.returncode != 0, "the daemon started")
        contains(done.stdout, "--allowed-unsafe-sysctls")
        contains(done.stdout, words)


def test_dns_limits(t):
    """entries that do not fit into resolv.conf are omitted, with kubelet's events"""
    node = t.node("--cluster-dns", "10.96.0.10", "--cluster-domain", "cluster.local", "--resolv-conf", "")
    node.import_image()
    many = [f"s{i}.test" for i in range(31)]
    node.put("a.yaml", pod("a", dnsConfig={"nameservers": ["192.0.2.1", "192.0.2.2", "192.0.2.3"], "searches": many}))
    node.put("b.yaml", pod("b", dnsPolicy="Default"))
    a, b = node.wait_running("a"), node.wait_running("b")
    applied = ["default.svc.cluster.local", "svc.cluster.local", "cluster.local"] + many[:29]
    equal(node.enter(a, "cat", "/etc/resolv.conf").stdout,
          f"search {' '.join(applied)}\nnameserver 10.96.0.10\nnameserver 192.0.2.1\nnameserver 192.0.2.2\noptions ndots:5\n", "resolv.conf")
    equal({e["message"] for e in node.events("a") if e["reason"] == "DNSConfigForming"}, {
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
        "10.96.0.10 192.0.2.1 192.0.2.2",
        f"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: {' '.join(applied)}"},
        "events")
    equal(node.enter(b, "cat", "/etc/resolv.conf").stdout, "search .\nnameserver 127.0.0.1\n", "resolv.conf without a file of the node")
    equal([e for e in node.events("b") if e["reason"] == "DNSConfigForming"], [], "events of the one that fits")
    node.stop()


def test_limits_of_processes(t):
    """open files and locked memory are limited the same way whatever the daemon was started with, also in a further process"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    a = node.wait_running("a")
    hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1] % 2**64, 524288)
    locked = min(resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] % 2**64, 8 << 20)
    wanted = [f"Max open files 1024 {hard} files", f"Max locked memory {locked} {locked} bytes"]

    def limits(text):
        lines = [" ".join(line.split()) for line in text.splitlines()]
        return [line for line in lines if line.startswith(("Max open files", "Max locked memory"))]

    equal(limits(read(f"/proc/{node.pid(a)}/limits")), wanted, "limits of the container")
    further = limits(node.cli("exec", "a", "--", "cat", "/proc/self/limits").stdout)
    if "runc" in os.environ.get("CORACLE_TEST_RUNTIME", ""):  # built with Go 1.19, whose start may raise the soft limit
        wanted[0] = wanted[0].replace(" 1024 ", f" {further[0].split()[3]} ")
    equal(further, wanted, "limits of a further process")
    node.stop()


def test_input_and_terminal(t):
    """without stdin a container reads the end at once, with it it waits; with tty it has a terminal"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container("closed", shell("cat; echo end; exec sleep 6009")),
                           container("open", shell("cat; echo end; exec sleep 6009"), stdin=True),
                           container("terminal", shell("tty; echo $TERM; exec sleep 6009"), tty=True)))
    node.wait_running("a")
    until(lambda: node.logs("a", "closed") == "end\n", 10, "the end of no input")
    until(lambda: node.logs("a", "terminal").replace("\r", "") == "/dev/pts/0\nxterm\n", 10, "a terminal")
    equal(node.logs("a", "open"), "", "log of the one that waits for input")
    equal([node.pod("a").state(name)[0] for name in ("closed", "open", "terminal")], ["running"] * 3, "states")
    node.stop()
