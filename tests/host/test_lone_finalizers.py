# SPDX-License-Identifier: Apache-2.0
"""Finalizers hold objects back on a lone node, as they do with an apiserver."""
import os

from coracle import check, contains, equal, until
from test_lone_kubectl import Lone

HELD = """
apiVersion: v1
kind: ConfigMap
metadata: {name: held, namespace: default, finalizers: [example.test/a, example.test/b]}
data: {x: "1"}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: held, namespace: default, finalizers: [example.test/a]}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: localhost/busybox:1, command: [sleep, "1000"]}]
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: held, namespace: default, finalizers: [example.test/a]}
spec:
  selector: {matchLabels: {app: held}}
  template:
    metadata: {labels: {app: held}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: localhost/busybox:1, command: [sleep, "1000"]}]
"""


def release(k, kind, finalizers="null", ok=True):
    return k.kubectl("patch", kind, "held", "--type=merge", "-p", f'{{"metadata":{{"finalizers":{finalizers}}}}}', ok=ok)


def file_of(k, kind):
    return os.path.exists(f"{k.node.manifests}/{kind}-default-held.yaml")


def test_objects(t):
    """a ConfigMap that is deleted stays, marked, until its last finalizer is gone; also after a kill; the CLI does the same"""
    k = Lone(t)
    k.kubectl("apply", "-f", "-", stdin=HELD)
    k.kubectl("delete", "cm", "held", "--wait=false")
    got = k.json("get", "cm", "held")["metadata"]
    check(got.get("deletionTimestamp"), "it is marked")
    equal(got["deletionGracePeriodSeconds"], 0, "its grace period")
    equal(file_of(k, "configmap"), True, "its file stays")
    k.kubectl("delete", "cm", "held", "--wait=false")  # once more: nothing changes
    equal(k.json("get", "cm", "held")["metadata"]["deletionTimestamp"], got["deletionTimestamp"], "the first time counts")
    k.node.kill()
    k.node.start()
    until(lambda: k.kubectl("get", "cm", "held", ok=False).returncode == 0, 20, "the object")
    equal(k.json("get", "cm", "held")["metadata"]["deletionTimestamp"], got["deletionTimestamp"], "it is kept")
    contains(release(k, "cm", '["example.test/a","example.test/b","example.test/c"]', ok=False).stderr,
             "no new finalizers can be added if the object is being deleted", "another finalizer")
    release(k, "cm", '["example.test/b"]')
    equal(k.json("get", "cm", "held")["metadata"]["finalizers"], ["example.test/b"], "one is left")
    k.kubectl("label", "cm", "held", "a=b")
    check(k.json("get", "cm", "held")["metadata"].get("deletionTimestamp"), "a label does not bring it back")
    release(k, "cm")
    contains(k.kubectl("get", "cm", "held", ok=False).stderr, "not found", "it is gone")
    equal(file_of(k, "configmap"), False, "its file, too")
    k.kubectl("apply", "-f", "-", stdin=HELD)
    k.node.cli("delete", "configmap", "held", "--wait=false", ok=False)
    check(k.json("get", "cm", "held")["metadata"].get("deletionTimestamp"), "the CLI marks it")
    release(k, "cm")
    equal(file_of(k, "configmap"), False, "its file is gone again")
    k.node.stop()


def test_pods(t):
    """a Pod that a finalizer holds ends, and stays to be seen; one of a Deployment runs on until that is let go"""
    k = Lone(t)
    k.kubectl("apply", "-f", "-", stdin=POD)
    k.kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    k.node.wait_running("held")
    until(lambda: k.json("get", "deployment", "held")["status"].get("readyReplicas") == 1, 30, "the Deployment's pod")
    k.kubectl("delete", "pod", "held", "--wait=false")
    k.kubectl("delete", "deployment", "held", "--cascade=foreground" if "foreground" in k.kubectl("delete", "--help").stdout
              else "--cascade=true", "--wait=false")
    until(lambda: k.json("get", "pod", "held")["status"]["phase"] in ("Failed", "Succeeded"), 30, "the pod ends")
    check(k.json("get", "pod", "held")["metadata"].get("deletionTimestamp"), "and is there")
    check(k.json("get", "deployment", "held")["metadata"].get("deletionTimestamp"), "the Deployment is there")
    k.node.kill()
    k.node.start()
    until(lambda: k.kubectl("get", "pod", "held", ok=False).returncode == 0, 20, "the pod")
    equal(len([p for p in k.json("get", "pods", "-l", "app=held")["items"] if p["status"]["phase"] == "Running"]), 1, "its pod runs on")
    release(k, "pod")
    until(lambda: k.kubectl("get", "pod", "held", ok=False).returncode != 0, 20, "the pod goes")
    release(k, "deployment")
    contains(k.kubectl("get", "deployment", "held", ok=False).stderr, "not found", "the Deployment is gone")
    until(lambda: k.json("get", "pods", "-l", "app=held")["items"] == [], 30, "its pods go with it")
    k.node.stop()


for _test in (test_objects, test_pods):
    _test.seconds = 90
