# SPDX-License-Identifier: Apache-2.0
"""A daemon does not share its folders and cgroups: a second daemon, or one that would find pods of other
software, is refused before it does any harm."""
import contextlib
import os
import subprocess

from coracle import Node, check, contains, equal, hierarchies, pod
from test_restart import facts

POD = "/kubepods/besteffort/pod11111111-1111-4111-8111-111111111111"


def second(t, node, **own):
    """A daemon with folders of its own except for those given: (exit code, output)."""
    base = f"{t.scratch}/tmp/second"
    flags = {"pod-manifest-path": f"{base}/manifests", "root-dir": f"{base}/kubelet", "state-dir": f"{base}/state", "run-dir": f"{base}/run",
             "pod-logs-dir": f"{base}/log/pods", "container-logs-dir": f"{base}/log/containers", "cni-conf-dir": f"{base}/cni",
             "cgroup-root": f"/{t.name}/second", **own}
    os.makedirs(f"{base}/manifests", exist_ok=True)
    os.makedirs(f"{base}/cni", exist_ok=True)
    r = subprocess.run([node.coracle, "run"] + [f"--{k}={v}" for k, v in flags.items()], check=False, capture_output=True, text=True,
                       timeout=30, stdin=subprocess.DEVNULL)
    equal(sorted(os.listdir(base)), ["cni", "manifests"], "what a refused start leaves behind")
    return r.returncode, r.stdout + r.stderr


def first(t):
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    return node


def is_refused(t, what, **own):
    node = first(t)
    before = facts(node, node.pod("a"))
    session = subprocess.Popen([node.coracle, "--socket", node.socket, "exec", "-i", "a", "--", "sh", "-c", "echo here; read line; echo $line"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(session.stdout.readline(), "here\n", "an exec session of the first")
    code, said = second(t, node, **{k: v(node) for k, v in own.items()})
    equal(code, 1, "exit code of the second")
    contains(said, f"another coracle (process {node.process.pid}) {what}")
    equal(session.communicate("goes on\n", timeout=10)[0], "goes on\n", "the session")
    equal(session.returncode, 0, "its exit code")
    equal(facts(node, node.pod("a")), before, "the pod of the first")
    node.put("b.yaml", pod("b"))
    node.wait_running("b")
    equal(node.stop(), 0, "exit code")


def test_state_folder(t):
    """a second daemon on the state folder of a running daemon is refused; the first is not affected"""
    is_refused(t, "runs on the state folder", **{"state-dir": lambda node: node.state_dir})


def test_run_folder(t):
    """a second daemon on its run folder is refused too"""
    is_refused(t, "runs on the run folder", **{"run-dir": lambda node: node.run_dir})


def test_cgroup_root(t):
    """a second daemon with its cgroup root is refused too"""
    is_refused(t, "has its pods in cgroup", **{"cgroup-root": lambda node: node.cgroup_root})


def test_pods_of_other_software(t):
    """if processes run below kubepods without a coracle before, the daemon does not start and kills none"""
    node = Node(t)
    t.nodes.append(node)
    folders = [f"{root}{node.cgroup_root}{POD}" for root in hierarchies()]
    for folder in folders:
        os.makedirs(folder)
        levels = [folder.removesuffix(POD)]
        for part in POD[1:].split("/"):
            levels.append(f"{levels[-1]}/{part}")
        for level in levels:  # v1: a process may enter only where these are set
            for name in ("cpuset.cpus", "cpuset.mems"):
                with contextlib.suppress(OSError):
                    with open(f"{level}/{name}", "w", encoding="ascii") as f:
                        f.write(open(f"{os.path.dirname(level)}/{name}", encoding="ascii").read())
    other = subprocess.Popen(["sleep", "1000"])
    try:
        for folder in folders:
            with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as f:
                f.write(str(other.pid))
        code, said = second(t, node, **{"cgroup-root": node.cgroup_root})
        equal(code, 1, "exit code")
        contains(said, f"processes run in cgroup {node.cgroup_root}/kubepods, but not of this agent")
        check(other.poll() is None, "the other software's process")
        check("leftover" not in said, said)
    finally:
        other.kill()
        other.wait()
    node.start()
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    equal(node.stop(), 0, "exit code")
