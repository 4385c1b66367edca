# SPDX-License-Identifier: Apache-2.0
"""`coracle run --ephemeral` removes everything it made."""
import os
import re
import signal

from coracle import check, config_map, container, equal, pod, shell, tree


def everything(t, signo):
    node = t.node(ephemeral=True)
    made_by_test = {"manifests", "cni", "log", "tmp", "daemon.log", "notify"}
    node.import_image()
    node.put("config.yaml", config_map("c", a="1"))
    for i in range(4):
        node.put(f"p{i}.yaml", pod(f"p{i}", container(
            ports=[{"containerPort": 80, "hostPort": 8400 + i}],
            volumeMounts=[{"name": "c", "mountPath": "/c"}, {"name": "e", "mountPath": "/e"}]),
            volumes=[{"name": "c", "configMap": {"name": "c"}}, {"name": "e", "emptyDir": {}}]))
    node.put("crash.yaml", pod("crash", container(command=shell("exit 1"))))
    node.put("stubborn.yaml", pod("stubborn", container(command=["/bin/sleep", "1000"]), terminationGracePeriodSeconds=1))
    node.wait_running("p0", "p1", "p2", "p3", "stubborn")
    uids = [p.uid for p in node.pods().values()]
    check(t.leaks(), "the search for leaks finds nothing of a running node: it is blind")
    equal(node.stop(signo, deadline=30), 0, "exit code")
    equal(t.leaks(), [], "what is left")
    equal(os.listdir(node.pod_logs) + os.listdir(node.container_logs), [], "logs that are left")
    # The image store and the lock stay for the next run.  Nothing else may be left except empty folders.
    left = [p for p in tree(t.scratch) if p.split("/")[0] not in made_by_test and not p.startswith(("state/images/", "state/lock"))]
    equal([p for p in left if not os.path.isdir(f"{t.scratch}/{p}") or os.path.basename(p) in uids], [], "files that are left")


def test_sigint(t):
    """Ctrl-C leaves no process, mount, namespace, cgroup, link, rule or file"""
    everything(t, signal.SIGINT)


def test_sigterm_while_starting(t):
    """SIGTERM in the middle of starts leaves nothing either"""
    node = t.node(ephemeral=True)
    node.import_image()
    for i in range(8):
        node.put(f"p{i}.yaml", pod(f"p{i}", terminationGracePeriodSeconds=0))
    node.watch(lambda pods: len(pods) == 8, what="eight pods known")
    equal(node.stop(signal.SIGTERM, deadline=30), 0, "exit code")
    equal(t.leaks(), [], "what is left")


def test_left_over_from_kill(t):
    """an ephemeral run removes the leftovers of an earlier one that was killed by -9"""
    node = t.node(ephemeral=True)
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    node.kill()
    node.start()
    node.wait_running("a")
    equal(node.stop(signal.SIGTERM, deadline=30), 0, "exit code")
    # The cgroup root was there when this run began, so it may stay; nothing below it.
    left = [line for line in t.leaks() if not re.fullmatch(rf"cgroup .*/{t.name}", line)]
    equal(left, [], "what is left")
