# SPDX-License-Identifier: Apache-2.0
"""Registries that break off, lie, hang or send too much; many pulls at once."""
import gzip
import json
import os
import threading
import time
import urllib.parse

from coracle import check, contains, container, equal, pod, until
from registry import INDEX, LAYER, MANIFEST, Scripted, descriptor, digest_of, file_layer, registries_conf


def start(t, *flags):
    registry = Scripted()
    return registry, t.node(registries_conf(t, registry), *flags)


def refused(node, reference, *parts):
    """Checks the error of `coracle image pull`; only whole blobs of the pull remain."""
    text = node.cli("image", "pull", reference, ok=False, timeout=40).stderr
    for part in parts:
        contains(text, part, f"pull of {reference}")
    until(lambda: set(os.listdir(f"{node.state_dir}/images/tmp")) <= {"blobs"}, 30, "the temporary folders are gone")
    equal(os.listdir(f"{node.state_dir}/images/layers"), [], "layers")


def test_breaks_off(t):
    """a connection that breaks in the middle of a layer: the pod says so, and the next try, by another agent, fetches only what is missing"""
    registry, node = start(t)
    first, second = file_layer("x", b"1" * 100000), file_layer("y", b"2" * 3000000)
    reference = registry.image("a:1", first, second)
    fetched = threading.Event()

    def hook(handler, kind, key):
        if kind == "blobs" and key == digest_of(second):
            fetched.wait(30)  # the first layer is whole by then
            return registry.half(handler, key, lambda: None)
        return False

    def whole():
        return os.path.exists(f"{node.state_dir}/images/tmp/blobs/sha256/{digest_of(first)[7:]}")
    registry.hook = hook
    node.put("a.yaml", pod("a", container(image=reference)))
    until(whole, 30, "the first layer")
    fetched.set()
    a = node.wait_pod("a", lambda p: p.state()[1].get("reason") in ("ErrImagePull", "ImagePullBackOff"), 40, "a failed pull")
    contains(a.state()[1]["message"], f'failed to pull image "{reference}": ' if a.state()[1]["reason"] == "ErrImagePull"
             else f'Back-off pulling image "{reference}": ErrImagePull: ', "message")
    contains(a.state()[1]["message"], "unexpected EOF", "message")
    check(whole(), "the whole layer did not stay")
    node.kill()
    registry.hook = None
    node.start()
    node.cli("image", "pull", reference)
    equal(registry.asked[digest_of(first)], 1, "requests for the first layer")
    until(lambda: os.listdir(f"{node.state_dir}/images/tmp") == [], 30, "nothing temporary is left")
    equal(node.stop(), 0, "exit code")


def test_lies(t):
    """a wrong digest, a foreign layer, a changed manifest, too many layers, another platform, a missing tag: each has its own message"""
    registry, node = start(t)
    layer = file_layer("x", b"x" * 1000)
    lied = registry.image("lied:1", layer)
    registry.hook = lambda handler, kind, key: key == digest_of(layer) and not registry.send(handler, file_layer("x", b"y" * 1000))
    refused(node, lied, "pull " + lied, digest_of(layer))
    registry.hook = lambda handler, kind, key: kind == "manifests" and key.startswith("sha256:") and \
        not registry.send(handler, registry.tags["lied:1"][1] + b" ", MANIFEST)
    refused(node, lied, "pull " + lied, "digest")
    registry.hook = None
    registry.image("other:1", layer)
    registry.tag("other:1", INDEX, {"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        descriptor(MANIFEST, registry.tags["other:1"][1], platform={"os": "linux", "architecture": "mips"})]})
    refused(node, f"{registry.address}/other:1", "no image found")
    refused(node, f"{registry.address}/lied:2", f"pull {registry.address}/lied:2: reading manifest 2 in ", "manifest unknown")
    manifest = json.loads(registry.tags["lied:1"][1])
    registry.tag("foreign:1", MANIFEST, {**manifest, "layers": [{**manifest["layers"][0], "urls": ["http://127.0.0.1:1/layer"]}]})
    refused(node, f"{registry.address}/foreign:1", "layer 1 of 1 ", "foreign layer on another server")
    registry.tag("tall:1", MANIFEST, {**manifest, "layers": manifest["layers"] * 129})
    refused(node, f"{registry.address}/tall:1", "it has more than 128 layers")
    equal(node.stop(), 0, "exit code")


def test_too_much(t):
    """a layer that unpacks beyond the limit, one that is too large when compressed, and a registry that stops answering"""
    registry, node = start(t, "--max-image-size=4Mi")
    bomb = file_layer("x", b"\0" * 64000000)
    refused(node, registry.image("bomb:1", bomb, kind=LAYER + "+gzip", packed=[gzip.compress(bomb)]), "the image is larger than the limit for unpacked images")
    large = file_layer("x", os.urandom(12000000))
    registry.hook = lambda handler, kind, key: key == digest_of(large) and registry.half(handler, key, lambda: threading.Event().wait(30))
    registry.blobs[digest_of(large)] = large
    refused(node, registry.image("large:1", large), "larger than the limit of 4194304 bytes")
    node.stop()
    node.flags.append("--image-pull-progress-deadline=2s")
    node.start()
    silent = file_layer("x", b"x" * 1000)
    registry.hook = lambda handler, kind, key: key == digest_of(silent) and registry.half(handler, key, lambda: threading.Event().wait(30))
    refused(node, registry.image("silent:1", silent), "no data received for 2 s")

    def drip(handler, kind, key):
        def on():
            for _ in range(600):
                handler.wfile.write(b"x")
                time.sleep(0.1)
        return key == digest_of(silent) and registry.half(handler, key, on)
    registry.hook = drip
    references = registry.image("drip:1", silent), registry.image("other:1", file_layer("x", b"y" * 1000))
    node.put("a.yaml", *[pod(n, container(image=r), hostNetwork=True) for n, r in zip(("drip", "other"), references)])
    until(lambda: "Pulled" in [e["reason"] for e in node.events("other")], 60, "another pull beside it")
    drip = node.wait_pod("drip", lambda p: p.state()[1].get("reason") in ("RegistryUnavailable", "ImagePullBackOff"), 30, "the end of the dripping one")
    contains(drip.state()[1]["message"], f"image pull failed for {references[0]} because the registry is unavailable: pull {references[0]}: ", "message")
    contains(drip.state()[1]["message"], " 2 s", "message")
    equal(node.stop(), 0, "exit code")


def test_unavailable(t):
    """a registry that refuses connections or answers 503 is RegistryUnavailable, also while the pod waits for its next try"""
    registry, node = start(t)
    registry.hook = lambda handler, kind, key: not registry.send(handler, b"busy", code=503)
    references = f"{registry.address}/busy:1", "127.0.0.1:1/nobody:1"
    node.put("a.yaml", *[pod(n, container(image=r), hostNetwork=True) for n, r in zip(("busy", "nobody"), references)])
    for name, reference, why in zip(("busy", "nobody"), references, ("503", "connection refused")):
        p = node.wait_pod(name, lambda p: p.state()[1].get("reason") == "ImagePullBackOff", 40, "a failed pull")
        contains(p.state()[1]["message"], f'Back-off pulling image "{reference}": RegistryUnavailable: image pull failed for {reference} because '
                 "the registry is unavailable: ", "message")
        contains(p.state()[1]["message"], why, "message")
        failed = [e["message"] for e in node.events(name) if e["reason"] == "Failed"]
        contains(failed[0], f'Failed to pull image "{reference}": RegistryUnavailable: ', "event")
        equal(failed[1], "Error: RegistryUnavailable", "event")


def test_many(t):
    """fifty pods of one image cause one pull; of ten images at once, three are pulled at a time from one registry"""
    registry, node = start(t)
    layer = file_layer("x", b"x" * 200000)
    reference = registry.image("one:1", layer)
    gate = threading.Event()
    registry.hook = lambda handler, kind, key: kind == "blobs" and not gate.wait(60)
    # Their containers wait for a ConfigMap, because only the image matters here.
    lacking = {"envFrom": [{"configMapRef": {"name": "missing"}}], "image": reference}
    node.put("a.yaml", *[pod(f"p{i}", container(**lacking), hostNetwork=True) for i in range(50)])
    until(lambda: len([e for e in node.events() if e["reason"] == "Pulling"]) == 50, 60, "all pods pull")
    gate.set()
    node.watch(lambda pods: len([p for p in pods.values() if p.state()[1].get("reason") == "CreateContainerConfigError"]) == 50, 60, "all have it")
    equal(registry.asked[digest_of(layer)], 1, "requests for the layer")
    equal(len([e for e in node.events() if e["reason"] == "Pulled"]), 50, "pods that were told")

    references = [registry.image(f"ten{i}:1", file_layer("x", b"%d" % i * 100000)) for i in range(10)]
    gate.clear()
    registry.most = 0
    codes = []
    threads = [threading.Thread(target=lambda r=r: codes.append(node.request(
        "POST", "/images?" + urllib.parse.urlencode({"source": "docker://" + r, "name": r}), timeout=60)[0])) for r in references]
    for thread in threads:
        thread.start()
    until(lambda: registry.now == 3, 30, lambda: f"three pulls ask for a configuration each: {registry.now}")
    gate.set()
    for thread in threads:
        thread.join()
    check(set(codes) <= {200, 201} and len(codes) == 10, f"answers: {codes}")
    check(registry.most <= 6, f"{registry.most} requests at a time")  # a pull fetches two blobs
    names = {name for item in node.get("/images")["items"] for name in item["names"]}
    check(set(references) <= names, f"images: {names}")
    equal(node.stop(), 0, "exit code")
