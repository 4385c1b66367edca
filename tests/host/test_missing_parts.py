# SPDX-License-Identifier: Apache-2.0
"""Missing programs are reported at the start, with the package that has them."""
import os
import shutil

from coracle import TOP, Failed, check, contains, equal, pod, until


def test_no_plugins(t):
    """missing CNI plugins are reported at the start with their package, and pods wait for the network with a reason"""
    node = t.node("--cni-bin-dir", f"{t.scratch}/tmp")
    contains(node.log(), "containernetworking-plugins", "log")
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.put("host.yaml", pod("host", hostNetwork=True))
    node.wait_running("host")
    until(lambda: "bridge" in node.cli("explain", "pod", "a").stdout, 10, "explain names the plugin")
    equal(node.pod("a").phase, "Pending", "the pod that needs a network")
    for plugin in os.listdir("/usr/lib/cni"):  # as the package would do
        shutil.copy(f"/usr/lib/cni/{plugin}", f"{t.scratch}/tmp/{plugin}")
    node.wait_running("a", deadline=30)
    node.stop()


def path_without(t, *missing):
    """A PATH with the usual programs except some."""
    folder = f"{t.scratch}/tmp/bin"
    os.mkdir(folder)
    for where in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
        for name in os.listdir(where):
            if name not in missing and not os.path.lexists(f"{folder}/{name}"):
                os.symlink(f"{where}/{name}", f"{folder}/{name}")
    return folder


def started_without(t, missing, package):
    """The daemon either refuses to start or runs on; either way it names program and package."""
    node = t.node(path=path_without(t, *missing), wait=False)
    until(lambda: package in node.log(), 10, lambda: f"the log names {package}; it says\n{node.log()}")
    contains(node.log(), missing[0], "log")
    if node.process.poll() is None:
        node.stop()
    else:
        node.process = None


def test_no_runtime(t):
    """a missing crun is reported at the start with its package"""
    started_without(t, ["crun", "runc"], "crun")


def test_no_conmon(t):
    """a missing conmon is reported at the start with its package"""
    started_without(t, ["conmon"], "conmon")


def test_no_list(t):
    """without a network list pods wait and say so; a list that comes is used at once"""
    os.rename(f"{t.scratch}/cni/10-coracle.conflist", f"{t.scratch}/tmp/list")
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    until(lambda: "cni" in node.cli("explain", "pod", "a", ok=False).stdout.lower(), 10, "explain speaks of CNI")
    sample = f"{TOP}/examples/cni/10-coracle.conflist"
    contains(node.cli("explain", "node").stdout, f"Has your network provider started? A list to begin with: {sample}\n", "explain node")
    with open(f"{t.scratch}/cni/wrong.conflist", "w", encoding="ascii") as f:
        f.write("{}")
    until(lambda: "wrong.conflist" in node.cli("explain", "node").stdout, 10, "a list that is wrong")
    check(sample not in node.cli("explain", "node").stdout, "a sample is named beside a list that is wrong")
    os.unlink(f"{t.scratch}/cni/wrong.conflist")
    os.rename(f"{t.scratch}/tmp/list", f"{t.scratch}/cni/10-coracle.conflist")
    node.wait_running("a", deadline=10)
    node.stop()


def test_runtime_that_is_none(t):
    """a program that is not an OCI runtime ends the start with its answer"""
    try:
        t.node("--runtime", "/bin/echo")
    except Failed as e:
        contains(str(e), "the daemon ended with 1", "the start")
        contains(t.nodes[0].log(), "/bin/echo --version: not an OCI runtime's answer", "log")
        return
    raise Failed("it started")
