# SPDX-License-Identifier: Apache-2.0
"""Edits of manifests, ConfigMaps and Secrets while pods run."""
import os
import time

from coracle import (check, config_map, container, contains, equal, pod, secret, until)


def test_in_place_or_new(t):
    """labels, annotations and resources change in place; any other field ends the pod and starts a new one"""
    node = t.node()
    node.import_image()
    def limited(memory):
        return container(resources={"limits": {"memory": memory, "cpu": "200m"}})
    node.put("a.yaml", pod("a", limited("32Mi"), labels={"v": "1"}))
    a = node.wait_running("a")
    node.put("a.yaml", pod("a", limited("32Mi"), labels={"v": "2"}, annotations={"note": "x"}))
    now = node.wait_pod("a", lambda p: p["metadata"].get("annotations", {}).get("note") == "x")
    equal((now.uid, now.container_id()), (a.uid, a.container_id()), "after new labels and annotations")
    node.put("a.yaml", pod("a", container(command=["/bin/sleep", "1000"]), labels={"v": "2"}, terminationGracePeriodSeconds=0))
    new = node.wait_pod("a", lambda p: p.uid != a.uid and p.state()[0] == "running", what="the new pod")
    check(new.container_id() != a.container_id(), "the container is the old one")
    equal(new.restarts(), 0, "restarts of the new pod")
    node.wait_no_traces(a)
    node.stop()


def test_image_of_a_pod_that_has_ended(t):
    """another image makes a new pod of one that succeeded or failed; another label does not"""
    node = t.node()
    node.import_image()
    node.cli("image", "import", os.environ["CORACLE_TEST_IMAGE"], "--name", "localhost/busybox:2")

    def manifest(code, image, v):
        return pod("a", container(image=image, command=["/bin/sh", "-c", f"exit {code}"]), restartPolicy="Never", labels={"v": v})

    for code, phase in ((0, "Succeeded"), (1, "Failed")):
        node.put("a.yaml", manifest(code, "localhost/busybox:1", "1"))
        a = node.wait_phase("a", phase)
        node.put("a.yaml", manifest(code, "localhost/busybox:1", "2"))
        node.wait_pod("a", lambda p: p["metadata"]["labels"]["v"] == "2" and p.uid == a.uid and p.phase == phase, what="the label")
        node.put("a.yaml", manifest(code, "localhost/busybox:2", "2"))
        new = node.wait_pod("a", lambda p: p.uid != a.uid and p.phase == phase, what=f"the new pod {phase}")
        equal((new["spec"]["containers"][0]["image"], new.restarts()), ("localhost/busybox:2", 0), "image and restarts")
        node.remove("a.yaml")
        node.wait_gone("a")
    node.stop()


def test_config_map_and_secret(t):
    """edits of ConfigMaps and Secrets reach the files within moments, as one swap, and environment variables never"""
    node = t.node()
    node.import_image()
    node.put("data.yaml", config_map("config", one="1", two="1"), secret("login", key="old"))
    node.put("a.yaml", pod("a", container(
        env=[{"name": "ONE", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "one"}}}],
        volumeMounts=[{"name": "config", "mountPath": "/config"}, {"name": "login", "mountPath": "/login"}]),
        volumes=[{"name": "config", "configMap": {"name": "config", "defaultMode": 0o440,
                                                  "items": [{"key": "one", "path": "deep/one", "mode": 0o400},
                                                            {"key": "two", "path": "two"}]}},
                 {"name": "login", "secret": {"secretName": "login"}}]))
    a = node.wait_running("a")

    def cat(path):
        return node.enter(a, "cat", path).stdout

    equal((cat("/config/deep/one"), cat("/config/two"), cat("/login/key")), ("1", "1", "old"), "files")
    equal(node.enter(a, "stat", "-L", "-c", "%a %u", "/config/deep/one", "/config/two").stdout, "400 0\n440 0\n", "modes")
    start = time.monotonic()
    node.put("data.yaml", config_map("config", one="2", two="2"), secret("login", key="new"))
    until(lambda: cat("/config/deep/one") == "2", 5, "the edit in the file")
    check(time.monotonic() - start < 2, f"the edit took {time.monotonic() - start:.1f} s")
    equal(cat("/config/two"), "2", "the other key")
    until(lambda: cat("/login/key") == "new", 5, "the Secret's file")
    contains(node.enter(a, "cat", "/proc/1/environ").stdout, "ONE=1")
    equal(node.pod("a").restarts(), 0, "restarts")
    node.stop()


def test_missing_references(t):
    """a pod waits for a missing ConfigMap, Secret or image with kubelet's reasons, and starts when it comes"""
    node = t.node()
    node.put("a.yaml", pod("a", container(
        env=[{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "x"}}}])))
    node.put("b.yaml", pod("b", container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
                           volumes=[{"name": "v", "secret": {"secretName": "later"}}]))
    image = pod("c")
    image["spec"]["containers"][0]["imagePullPolicy"] = "Never"
    node.put("c.yaml", image)
    c = node.wait_pod("c", lambda p: p.state()[1].get("reason") == "ErrImageNeverPull", what="ErrImageNeverPull")
    contains(c.state()[1]["message"], 'Container image "localhost/busybox:1" is not present with pull policy of Never')
    node.import_image()
    node.wait_running("c")
    a = node.wait_pod("a", lambda p: p.state()[1].get("reason") == "CreateContainerConfigError", what="CreateContainerConfigError")
    contains(a.state()[1]["message"], 'configmap "late" not found')
    equal(node.pod("b").state()[1].get("reason"), "ContainerCreating", "the pod whose volume is missing")
    contains(node.cli("explain", "pod", "b").stdout, 'secret "later" not found', "explain")
    start = time.monotonic()
    node.put("late.yaml", config_map("late", x="1"), secret("later", y="2"))
    node.wait_running("a", "b", deadline=5)
    check(time.monotonic() - start < 5, "they start as soon as it is there")
    node.stop()


def test_optional_references(t):
    """optional ConfigMaps and Secrets may be missing"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(
        env=[{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "no", "key": "x", "optional": True}}}],
        envFrom=[{"secretRef": {"name": "no", "optional": True}}],
        volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        volumes=[{"name": "v", "secret": {"secretName": "no", "optional": True}}]))
    a = node.wait_running("a")
    equal(node.enter(a, "ls", "/v").stdout, "", "the empty volume")
    node.put("late.yaml", secret("no", key="came late"))
    until(lambda: node.enter(a, "cat", "/v/key", ok=False).stdout == "came late", 5, "the Secret that came late")
    node.stop()
