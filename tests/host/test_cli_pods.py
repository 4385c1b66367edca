# SPDX-License-Identifier: Apache-2.0
"""Commands that change pods: restart, delete."""
import os
import subprocess

from coracle import check, container, contains, equal, mount, pod, shell, until


def running(p):
    return all("running" in c["state"] for c in p.status["containerStatuses"])


def test_restart(t):
    """restart ends and starts all containers in place, with one event, and does not change the back-off"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container("one", command=shell("trap 'exit 0' TERM; sleep 1000 & wait")), container("two"),
                           initContainers=[container("init", command=shell("true"))], terminationGracePeriodSeconds=0))
    before = node.wait_running("a")
    equal(node.cli("restart", "pod", "a").stdout, "pod/a restarting\n", "what it says")
    after = node.wait_pod("a", lambda p: p.restarts("one") == 1 and p.restarts("two") == 1 and running(p), 20, "both again")
    equal((after.uid, after.ip), (before.uid, before.ip), "uid and address")
    check(after.container_id("one") != before.container_id("one"), "the container was not restarted")
    equal(len([e for e in node.events("a") if e["reason"] == "Restarting"]), 1, "events")
    one = node.cli("restart", "pods", "a", "-c", "nobody", ok=False)
    contains(one.stderr, "container nobody is not valid for pod a")
    equal(node.cli("restart", "pods", "-l", "app=none", ok=False).stderr, "error: no matching resources found\n", "no such pods")
    equal(node.cli("restart", "pod/a", "--wait", timeout=90).stdout, "pod/a restarting\npod/a restarted\n", "with --wait")
    now = node.pod("a")
    check(now.ready and running(now) and (now.restarts("one"), now.restarts("two")) == (2, 2), lambda: f"not restarted: {now.status}")
    equal([e for e in node.events("a") if e["reason"] == "BackOff"], [], "back-off, which nothing was counted for")
    missing = node.cli("restart", "pod", "aa", ok=False)
    equal((missing.returncode, missing.stderr), (5, 'Error from server (NotFound): pods "aa" not found\nDid you mean "a"?\n'), "a name that is near")
    node.put("done.yaml", pod("done", container(command=shell("true")), restartPolicy="Never"))
    node.wait_pod("done", lambda p: p.phase == "Succeeded", 15, "its end")
    contains(node.cli("restart", "pod", "done", ok=False).stderr, "pod done has no containers to restart: it is Succeeded")
    node.put("once.yaml", pod("once", container(command=shell("[ -e /v/began ] && exit 5; touch /v/began; sleep 1000"),
                                                readinessProbe={"exec": {"command": ["true"]}, "initialDelaySeconds": 600},
                                                volumeMounts=[{"name": "v", "mountPath": "/v"}]),
                              volumes=[{"name": "v", "emptyDir": {}}], restartPolicy="Never", terminationGracePeriodSeconds=0))
    node.wait_running("once")
    ended = node.cli("restart", "pod/once", "--wait", ok=False, timeout=90)
    equal((ended.returncode, ended.stdout), (1, "pod/once restarting\n"), "a pod that ends instead")
    contains(ended.stderr, "error: pod once has ended (Failed)")
    node.stop()


def test_restart_during_hook(t):
    """restart --wait waits for the run after the one whose postStart hook was running, which the status did not show"""
    node = t.node()
    node.import_image()
    here = f"{t.scratch}/hook"
    os.makedirs(here)
    node.put("a.yaml", pod("a", container(command=shell("trap '' TERM; while :; do sleep 1; done"), volumeMounts=[mount("v", "/v")],
                                          lifecycle={"postStart": {"exec": {"command": shell("touch /v/began; until test -e /v/go; do sleep 0.1; done")}}}),
                           volumes=[{"name": "v", "hostPath": {"path": here}}], terminationGracePeriodSeconds=3))
    until(lambda: os.path.exists(f"{here}/began"), 15, "the hook runs")
    waits = subprocess.Popen([node.coracle, "--socket", node.socket, "restart", "pod/a", "--wait"], stdout=subprocess.PIPE, text=True)
    equal(waits.stdout.readline(), "pod/a restarting\n", "what it says first")
    open(f"{here}/go", "w").close()
    equal(waits.communicate(timeout=60)[0], "pod/a restarted\n", "what it says last")
    now = node.pod("a")
    check(now.ready and now.restarts() == 1, lambda: f"the run that was to end is not replaced: {now.status}")
    node.stop()


def test_delete(t):
    """delete --file removes the file that defines a pod and holds nothing else, and waits"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", terminationGracePeriodSeconds=0))
    node.put("more.yaml", pod("b", terminationGracePeriodSeconds=0), pod("c", namespace="other", terminationGracePeriodSeconds=0))
    node.wait_running("a")
    node.wait_running("b")
    path = f"{node.manifests}/a.yaml"
    result = node.cli("delete", "pod", "a", "--file", timeout=30)
    equal(result.stdout, f'{path} removed\npod "a" deleted\n', "what it says")
    check(node.pod("a") is None and not os.path.exists(path), "pod or file is still there")
    held = node.cli("delete", "pod", "b", "--file", ok=False)
    equal((held.returncode, held.stderr), (1, f"error: {node.manifests}/more.yaml is not removed because it also defines Pod other/c: "
                                              "take the pod out of it, or leave out --file\n"), "a file of two")
    elsewhere = node.cli("delete", "pod", "c", "--file", ok=False)
    contains(elsewhere.stderr, "There is one in namespace other: -n other\n")
    node.stop()
