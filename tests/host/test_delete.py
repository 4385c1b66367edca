# SPDX-License-Identifier: Apache-2.0
"""A removed manifest ends its pod, and everything that belonged to it."""
import time

from coracle import SLOW, check, config_map, container, equal, firewall, links, pod, secret, shell, until


def rich_pod(name, **more):
    """A pod with one of everything that could be left behind."""
    return pod(name, container(
        env=[{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}],
        ports=[{"containerPort": 80, "hostPort": 8123}],
        volumeMounts=[{"name": n, "mountPath": f"/{n}"} for n in ("config", "login", "scratch", "memory")]),
        volumes=[{"name": "config", "configMap": {"name": "config"}}, {"name": "login", "secret": {"secretName": "login"}},
                 {"name": "scratch", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}], **more)


def test_no_trace(t):
    """a deleted pod leaves no process, mount, namespace, cgroup, lease, rule, folder or log"""
    node = t.node()
    node.import_image()
    node.put("objects.yaml", config_map("config", a="1"), secret("login", password="x"))
    node.put("pod.yaml", rich_pod("rich"))
    rich = node.wait_running("rich")
    check(node.traces(rich), "the search for traces finds nothing of a running pod: it is blind")
    check("8123" in firewall(), "no rule for the hostPort")
    node.remove("pod.yaml")
    node.wait_gone("rich")
    node.wait_no_traces(rich)
    check("8123" not in firewall(), lambda: f"hostPort rules are left:\n{firewall()}")
    equal([link for link in links() if link.startswith("veth")], [], "veth links")
    node.stop()


def test_term_then_kill(t):
    """deletion sends SIGTERM, waits out the grace period, then kills every process of the cgroup"""
    node = t.node()
    node.import_image()
    node.put("polite.yaml", pod("polite", container(command=shell("trap 'echo bye; exit 0' TERM; while true; do sleep 60 & wait $!; done"))))
    node.put("stubborn.yaml", pod("stubborn", container(command=shell("trap '' TERM; sleep 1000 & while true; do sleep 1000; done")),
                                  terminationGracePeriodSeconds=2))
    polite, stubborn = node.wait_running("polite"), node.wait_running("stubborn")
    until(lambda: len(node.container_pids(stubborn)) >= 2, 5, lambda: f"processes of the stubborn one: {node.container_pids(stubborn)}")
    pids = node.container_pids(stubborn)
    start = time.monotonic()
    node.remove("polite.yaml", "stubborn.yaml")
    node.wait_gone("polite", deadline=3)
    node.wait_gone("stubborn", deadline=10)
    took = time.monotonic() - start
    check(1.8 < took < 2 + 3 * SLOW, f"the stubborn pod was gone after {took:.1f} s, wanted a little over 2")
    node.wait_no_traces(polite)
    node.wait_no_traces(stubborn)
    node.stop()


def test_image_stop_signal_and_exit_codes(t):
    """exit code and signal of an ended container are reported"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("code", container(command=shell("exit 42")), restartPolicy="Never"))
    node.put("b.yaml", pod("sig", container(command=shell("sh -c 'kill -9 $PPID'; sleep 100")), restartPolicy="Never"))
    code = node.wait_phase("code", "Failed")
    equal((code.state()[1]["exitCode"], code.state()[1]["reason"]), (42, "Error"), "exit 42")
    node.remove("a.yaml", "b.yaml")
    node.wait_gone("code", "sig")
    node.stop()


def test_deleted_while_starting(t):
    """pods deleted in the middle of their start leave nothing"""
    node = t.node()
    node.import_image()
    node.put("objects.yaml", config_map("config", a="1"), secret("login", password="x"))
    for delay_ms in (0, 2, 5, 10, 20, 35, 60, 100):
        node.put("pod.yaml", rich_pod(f"brief-{delay_ms}", terminationGracePeriodSeconds=0))
        time.sleep(delay_ms / 1000)
        node.remove("pod.yaml")
    until(lambda: not node.pods(), 20, lambda: f"all pods gone; now {list(node.pods())}")
    until(lambda: "8123" not in firewall(), 5, "no hostPort rule left")
    until(lambda: not [link for link in links() if link.startswith("veth")], 5, "no veth link left")
    equal(node.stop(), 0, "exit code")
    left = [line for line in t.leaks() if "/pod" in line or line.startswith("process") or "/ns/" in line]
    equal(left, [], "leaks")


def test_same_name_again(t):
    """a pod put back under the same name while the old one still ends is a new pod"""
    node = t.node()
    node.import_image()
    slow = pod("again", container(command=shell("trap 'sleep 1; exit' TERM; while true; do sleep 60 & wait $!; done")))
    node.put("pod.yaml", slow)
    first = node.wait_running("again")
    node.remove("pod.yaml")
    node.wait_log("pod ending")
    node.put("pod.yaml", slow)
    second = node.wait_pod("again", lambda p: p.uid != first.uid and p.state()[0] == "running", what="the new pod")
    check(second.container_id() != first.container_id(), "the container id was used again")
    node.wait_no_traces(first)
    node.stop()
