# SPDX-License-Identifier: Apache-2.0
"""kubectl writes on a node that joins no cluster: what it writes are files of the manifest folder."""
import json
import os

from coracle import check, contains, equal, until
from test_lone_kubectl import Lone


def files(k):
    return sorted(f for f in os.listdir(k.node.manifests) if not f.startswith("."))


def text(k, name):
    with open(f"{k.node.manifests}/{name}", encoding="utf-8") as f:
        return f.read()


POD = """
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  terminationGracePeriodSeconds: 60
  containers:
  - name: c
    image: localhost/busybox:1
    command: ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
"""


def test_create_and_delete(t):
    """kubectl create and delete a ConfigMap and a Pod; the folder has a file for each"""
    k = Lone(t)
    k.kubectl("create", "configmap", "a", "--from-literal=x=1")
    equal(files(k), ["configmap-default-a.yaml"], "files")
    contains(text(k, "configmap-default-a.yaml"), 'x: "1"', "the file")
    equal(k.json("get", "cm", "a")["data"], {"x": "1"}, "the object")
    contains(k.kubectl("create", "configmap", "a", ok=False).stderr, 'configmaps "a" already exists', "again")
    k.kubectl("delete", "configmap", "a")
    equal(files(k), [], "files after delete")
    contains(k.kubectl("get", "cm", "a", ok=False).stderr, "not found", "gone")
    k.kubectl("create", "-f", "-", stdin=POD)
    k.node.wait_running("web")
    equal(files(k), ["pod-default-web.yaml"], "files")
    k.kubectl("delete", "pod", "web", "--wait=false")
    contains(k.kubectl("get", "pod", "web", ok=False).stdout, "Terminating", "the end takes its time")
    k.kubectl("delete", "pod", "web", "--now")
    equal(files(k), [], "files after delete")
    k.node.stop()
