# SPDX-License-Identifier: Apache-2.0
"""Volumes of type `image`: the tree of an image, read-only, in a container that is made of another."""
import os

from coracle import check, container, contains, equal, mount, mounts_below, pod, shell, until
from test_unpack import Source, device, entry, folder, link, tar
from test_userns import able

NAME = "localhost/data:1"


def data_image(t, *layers, name=NAME):
    """The folder of an OCI layout with these layers; without: one small layer."""
    if not hasattr(t, "data_source"):
        t.data_source = Source(t)
    layers = layers or ((folder("models"), entry("models/a.bin", b"weights\n"), entry("run", b"#!/bin/sh\necho it runs\n", mode=0o755),
                         link("latest", "models/a.bin"), folder("secret", mode=0o700, uid=1000)),)
    t.data_source.index(t.data_source.manifest([tar(*layer) for layer in layers]), name=name)
    return t.data_source.dir


def image_volume(reference=NAME, policy="IfNotPresent", name="v"):
    return {"name": name, "image": {"reference": reference, "pullPolicy": policy}}


def at(path="/v", **more):
    return mount("v", path, **more)


def images(node):
    return [name for item in node.get("/images")["items"] for name in item["names"]]


def test_shown(t):
    """several containers see the image's tree, read-only, with whiteouts applied; nothing of it is left after the pod"""
    node = t.node()
    node.import_image()
    node.import_image(data_image(t, (folder("d"), entry("d/old", b"1"), entry("d/kept", b"2"), entry("run", b"#!/bin/sh\necho it runs\n", mode=0o4755),
                                     device("null", 1, 3)),
                                 (folder("d"), entry("d/.wh.old"), entry("d/new", b"3"))))
    script = shell("ls /v/d; cat /v/d/kept /v/d/new; echo; /v/run; touch /v/x 2>&1; echo y > /v/d/kept; exec sleep 1000")
    node.put("a.yaml", pod("a", container("one", script, volumeMounts=[at()]), container("two", script, volumeMounts=[at("/v/")]),
                           initContainers=[container("first", shell("test $(cat /v/d/new) = 3"), volumeMounts=[at()])], volumes=[image_volume()]))
    a = node.wait_running("a")
    for name in ("one", "two"):
        until(lambda n=name: "kept" in node.logs("a", n).partition("touch")[2], 10, lambda n=name: f"the script of {n}: {node.logs('a', n)}")
        text = node.logs("a", name)
        contains(text, "kept\nnew\n23\nit runs\n")
        equal(text.count("Read-only file system"), 2, f"refused writes in:\n{text}")
    check(node.enter(a, "dd", "if=/v/null", "count=1", container="one", ok=False).returncode != 0, "a device of the image can be opened")
    options = [line.split() for line in node.enter(a, "cat", "/proc/self/mounts", container="one").stdout.splitlines() if line.split()[1] == "/v"]
    check(len(options) == 1 and {"ro", "nosuid", "nodev"} <= set(options[0][3].split(",")), f"mounts at /v: {options}")
    status = a.container("one")["volumeMounts"][0]
    equal((status["name"], status["mountPath"], status["volumeStatus"]["image"]["imageRef"][:7]), ("v", "/v", "sha256:"), "volumeMounts of the status")
    text = node.cli("describe", "pod", "a").stdout
    for part in ("Type:", "Image (a container image or OCI artifact)", NAME):
        contains(text, part, "describe")
    contains(node.cli("explain", "pod", "a").stdout, f"image {NAME}", "explain")
    equal(len([m for m in mounts_below(node.root_dir) if "kubernetes.io~image" in m]), 1, "mounts of the volume on the host")
    node.finish(a)
    equal(node.stop(), 0, "exit code")


def test_missing(t):
    """a missing image holds the containers that mount it, with kubelet's reasons; they start when it is there"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(volumeMounts=[at()]), container("other"), volumes=[image_volume(policy="Never")]))
    a = node.wait_pod("a", lambda p: p.state("main")[1].get("reason") == "ErrImageNeverPull" and p.state("other")[0] == "running")
    equal(a.state("main"), ("waiting", {"reason": "ErrImageNeverPull", "message": f'Container image "{NAME}" is not present with pull policy of Never'}), "state")
    node.put("b.yaml", pod("b", container(volumeMounts=[at()]), volumes=[image_volume("localhost:1/none:1")]))
    node.put("c.yaml", pod("c", container(volumeMounts=[at()]), volumes=[image_volume("a//b:1")]))
    node.wait_pod("b", lambda p: p.state()[1].get("reason") in ("ErrImagePull", "ImagePullBackOff"))
    node.wait_pod("c", lambda p: p.state()[1].get("reason") == "InvalidImageName")
    contains(str([(e["reason"], e["message"]) for e in node.events("b")]), "Failed to pull image")
    node.import_image(data_image(t))
    a = node.wait_running("a")
    equal(node.enter(a, "cat", "/v/latest").stdout, "weights\n", "through a link of the image")
    equal(node.stop(), 0, "exit code")


def test_sub_path(t):
    """subPath and subPathExpr of an image: a folder, a file, one that is not there, one that leads out"""
    node = t.node()
    node.import_image()
    node.import_image(data_image(t, (folder("models"), entry("models/a.bin", b"weights\n"), link("out", "../../../.."), link("abs", "/etc"))))
    node.put("a.yaml", pod("a", container(env=[{"name": "WHICH", "value": "a"}],
                                          volumeMounts=[at(subPath="models"), at("/file", subPath="models/a.bin"),
                                                        at("/expr", subPathExpr="models/$(WHICH).bin")]), volumes=[image_volume()]))
    node.put("b.yaml", pod("b", container(volumeMounts=[at(subPath="models/none")]), volumes=[image_volume()]))
    node.put("c.yaml", pod("c", container(volumeMounts=[at(subPath="out/etc")]), container("abs", volumeMounts=[at(subPath="abs")]), volumes=[image_volume()]))
    a = node.wait_running("a")
    equal(node.enter(a, "cat", "/v/a.bin", "/file", "/expr").stdout, 3 * "weights\n", "the file, three ways")
    check(node.enter(a, "touch", "/v/x", ok=False).returncode != 0, "a sub path can be written to")
    b = node.wait_pod("b", lambda p: p.state()[1].get("reason") == "CreateContainerError")
    equal(b.state()[1]["message"], f'ImageVolumeMountFailed: sub path "models/none" does not exist in image volume "{NAME}"', "message")
    for name in ("main", "abs"):
        c = node.wait_pod("c", lambda p, n=name: p.state(n)[1].get("reason") == "CreateContainerError")
        contains(c.state(name)[1]["message"], "ImageVolumeMountFailed", "message of a path that leads out")
    node.finish(a, b, c)
    equal(node.stop(), 0, "exit code")


def test_in_use(t):
    """an image that is mounted is not removed, whatever its name means by now, also after a restart of the agent"""
    node = t.node()
    node.import_image()
    node.import_image(data_image(t, (entry("which", b"first\n"),)))
    first = next(i["id"] for i in node.get("/images")["items"] if NAME in i["names"])
    node.put("a.yaml", pod("a", container(volumeMounts=[at()]), volumes=[image_volume()]))
    a = node.wait_running("a")
    contains(node.cli("image", "rm", NAME, ok=False).stderr, "in use", "removal of a mounted image")
    node.import_image(data_image(t, (entry("which", b"second\n"),)))
    node.kill()
    node.start()
    node.wait_running("a")
    contains(node.cli("image", "rm", first, ok=False).stderr, "in use", "removal of the image that was mounted under that name")
    equal(node.enter(a, "cat", "/v/which").stdout, "first\n", "what the running container sees")
    os.kill(node.pid(a), 9)  # its next run has the volume as it is
    a = node.wait_pod("a", lambda p: p.restarts() == 1 and p.state()[0] == "running", 40)
    equal(node.enter(a, "cat", "/v/which").stdout, "first\n", "what the next run sees")
    node.remove("a.yaml")
    node.wait_gone("a")
    node.put("a.yaml", pod("a", container(volumeMounts=[at()]), volumes=[image_volume()]))
    a = node.wait_running("a")
    equal(node.enter(a, "cat", "/v/which").stdout, "second\n", "what a new pod sees")
    node.remove("a.yaml")
    node.wait_gone("a")
    node.cli("image", "rm", first)
    node.cli("image", "rm", NAME)
    check(NAME not in images(node), "the image is still there")
    equal(node.stop(), 0, "exit code")


def test_killed(t):
    """an agent that is killed while such pods start leaves nothing that the next one does not finish or remove"""
    node = t.node()
    node.import_image()
    node.import_image(data_image(t))
    for n in range(6):
        node.put("a.yaml", pod("a", container("one", volumeMounts=[at()]), container("two", volumeMounts=[at(subPath="models")]), volumes=[image_volume()]))
        with_mount = n % 2 == 0

        def begun():
            return any("kubernetes.io~image" in m for m in mounts_below(node.root_dir)) if with_mount else node.pod("a") is not None
        until(begun, 10, "the pod begins", interval=0.002)
        node.kill()
        if n == 5:
            node.remove("a.yaml")
        node.start()
        if n < 5:
            a = node.wait_running("a")
            equal(node.enter(a, "cat", "/v/a.bin", container="two").stdout, "weights\n", "a sub path")
            if n % 3 == 0:
                node.remove("a.yaml")
                node.wait_gone("a")
    until(lambda: not mounts_below(node.root_dir), 20, lambda: f"mounts are left: {mounts_below(node.root_dir)}")
    until(lambda: not os.listdir(f"{node.root_dir}/pods"), 20, "folders of pods are left")
    equal(node.stop(), 0, "exit code")


def test_users(t):
    """with hostUsers: false the files belong to the pod's users as they belong to the image's"""
    node = t.node()
    able(node)
    node.import_image()
    node.import_image(data_image(t))
    node.put("a.yaml", pod("a", container(command=shell("stat -c '%u %n' /v/run /v/secret /file; /v/run; exec sleep 1000"),
                                          volumeMounts=[at(), at("/file", subPath="models/a.bin")]), hostUsers=False, volumes=[image_volume()]))
    a = node.wait_running("a")
    until(lambda: "it runs" in node.logs("a"), 10, lambda: node.logs("a"))
    equal(node.logs("a"), "0 /v/run\n1000 /v/secret\n0 /file\nit runs\n", "owners inside")
    node.finish(a)
    equal(node.stop(), 0, "exit code")
