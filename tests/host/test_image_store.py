# SPDX-License-Identifier: Apache-2.0
"""The image store: what is there is what was brought; what may go goes as a whole; what is in use stays."""
import hashlib
import os
import shutil
import tarfile

from coracle import IMAGE, check, container, contains, equal, mount, pod, run, until
from test_buildah import tree
from test_unpack import Source, entry, folder, hard, link, tar


def archive(s, name, *layers, **config):
    """The path of an OCI layout with one image of these layer tars, of its own."""
    s.index(s.manifest([tar(*layer) for layer in layers], **config), name=name)
    path = f"{s.t.scratch}/{name.replace('/', '_')}"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(s.dir, path)
    return path


BASE = (folder("etc"), entry("etc/passwd", b"root:x:0:0::/:/bin/sh\n"), entry("etc/motd", b"hello", mode=0o640, uid=1, gid=2),
        entry("bin/su", b"\x7fELF", mode=0o4755), hard("bin/doas", "bin/su"), link("sh", "bin/su"),
        entry("tagged", b"t", pax_headers={"SCHILY.xattr.user.who": "me"}))


def layers(node):
    return f"{node.state_dir}/images/layers"


def trees(node):
    return sorted(repr(sorted(tree(f"{layers(node)}/{name}").items())) for name in os.listdir(layers(node)))


def parts(node):
    """Everything of the store that a removal or a crash could leave."""
    found = []
    for part in ("layers", "parts", "images", "refs", "tmp"):
        found += [f"{part}/{name}" for name in os.listdir(f"{node.state_dir}/images/{part}")]
    return sorted(found)


def test_verify(t):
    """image verify sees a changed byte, mode, owner, time, attribute, link and configuration, and says which image has it"""
    node = t.node()
    s = Source(t)
    node.cli("image", "import", archive(s, "localhost/v:1", BASE, (entry("upper", b"u"),)))
    node.import_image()
    clean = node.cli("image", "verify").stdout
    contains(clean, "image/localhost/v:1 ok\n")
    contains(clean, f"image/{IMAGE} ok\n")
    [base] = [f"{layers(node)}/{d}" for d in os.listdir(layers(node)) if os.path.exists(f"{layers(node)}/{d}/etc/motd")]

    def damaged(change, undo):
        before = os.stat(f"{base}/etc/motd")
        change()
        result = node.cli("image", "verify", "localhost/v:1", ok=False)
        equal(result.returncode, 1, f"exit code with {result.stdout}")
        contains(result.stdout, f"image/localhost/v:1 damaged: layer {os.path.basename(base)}: files, modes, owners or attributes")
        undo()
        os.utime(f"{base}/etc/motd", ns=(before.st_atime_ns, before.st_mtime_ns))
        return result

    def write(text):
        with open(f"{base}/etc/motd", "w", encoding="ascii") as f:
            f.write(text)

    motd = f"{base}/etc/motd"
    kept = os.stat(f"{base}/etc").st_mtime_ns, os.stat(base).st_mtime_ns
    damaged(lambda: write("hellO"), lambda: write("hello"))
    damaged(lambda: os.chmod(motd, 0o644), lambda: os.chmod(motd, 0o640))
    damaged(lambda: os.chown(motd, 0, 2), lambda: os.chown(motd, 1, 2))
    damaged(lambda: os.utime(motd), lambda: None)
    damaged(lambda: os.setxattr(f"{base}/tagged", "user.who", b"you"), lambda: os.setxattr(f"{base}/tagged", "user.who", b"me"))
    damaged(lambda: os.setxattr(motd, "user.more", b"1"), lambda: os.removexattr(motd, "user.more"))

    def more():
        with open(f"{base}/etc/cron", "wb"):
            os.utime(f"{base}/etc", ns=(kept[0], kept[0]))

    def less():
        os.unlink(f"{base}/etc/cron")
        os.utime(f"{base}/etc", ns=(kept[0], kept[0]))

    damaged(more, less)
    equal(node.cli("image", "verify").stdout, clean, "as it was: clean again")

    # The configuration, and one that is gone; other images are not blamed.
    [image] = [i for i in node.get("/images")["items"] if "localhost/v:1" in i["names"]]
    config = f"{node.state_dir}/images/parts/{image['id'][7:]}.config"
    text = open(config, "rb").read()
    with open(config, "ab") as f:
        f.write(b" ")
    result = node.cli("image", "verify", ok=False)
    equal(result.returncode, 1, "exit code")
    contains(result.stdout, f"image/localhost/v:1 damaged: config {image['id'][7:]}: its content has the digest sha256:")
    contains(result.stdout, f"image/{IMAGE} ok\n")
    with open(config, "wb") as f:
        f.write(text)
    os.mkdir(f"{layers(node)}/{'7' * 64}")
    result = node.cli("image", "verify", ok=False)
    equal((result.returncode, result.stdout), (1, clean + f"layers/{'7' * 64} does not belong to an image\n"), "an orphan")
    os.rmdir(f"{layers(node)}/{'7' * 64}")
    os.mkdir(os.fsencode(layers(node)) + b"/x\xff")
    contains(node.cli("image", "verify", ok=False).stdout, "layers/x? does not belong to an image\n", "one that is not even UTF-8")
    os.rmdir(os.fsencode(layers(node)) + b"/x\xff")
    contains(node.cli("image", "verify", "absent", ok=False).stderr, 'no such image: "absent"')


def test_removal(t):
    """rm names the pods that use an image, prune removes unused images that are not pinned, and no file of them stays on disk"""
    node = t.node()
    s = Source(t)
    node.import_image()
    node.cli("image", "import", archive(s, "localhost/a:1", BASE, (entry("a", b"a" * 1000),)))
    node.cli("image", "import", archive(s, "localhost/b:1", BASE, (entry("b", b"b" * 2000),)))
    wide = node.cli("image", "ls", "-o", "wide").stdout
    rows = {line.split()[0]: line.split() for line in wide.splitlines()}
    equal(rows["NAME"], ["NAME", "IMAGE", "ID", "CREATED", "SIZE", "OWN", "SHARED", "PINNED"], "headers")
    equal(rows["localhost/a:1"][-3:], ["1kB", "32B", "no"], "own and shared bytes")
    node.put("web.yaml", pod("web"), pod("db"))
    node.wait_running("web", "db")
    result = node.cli("image", "rm", IMAGE, ok=False)
    equal(result.returncode, 1, "rm of an image in use")
    contains(result.stderr, f'image "{IMAGE}" is in use by pod default/')
    check("default/web" in result.stderr and "default/db" in result.stderr, f"both pods: {result.stderr}")

    node.cli("image", "pin", "localhost/b:1")
    node.cli("image", "import", archive(s, "localhost/a:1", BASE, (entry("new", b"n"),)))  # the old one loses its name
    contains(node.cli("image", "ls").stdout, "<none>")
    out = node.cli("image", "prune").stdout
    contains(out, "image sha256:")
    contains(out, "Total reclaimed space: 1kB\n")
    check("<none>" not in node.cli("image", "ls").stdout, "it went")
    node.cli("image", "prune", "--all")
    names = node.cli("image", "ls", "-o", "name").stdout.split()
    equal(sorted(names), sorted([f"image/{IMAGE}", "image/localhost/b:1"]), "in use, and pinned")
    node.cli("image", "unpin", "localhost/b:1")
    node.cli("image", "prune", "-a")
    equal(node.cli("image", "ls", "-o", "name").stdout.split(), [f"image/{IMAGE}"], "in use")
    until(lambda: not os.listdir(f"{node.state_dir}/images/tmp"), 30, "the rubbish is gone")
    equal(len(parts(node)), 4, f"layer, configuration, record and name: {parts(node)}")
    contains(node.cli("image", "verify").stdout, "ok\n")


def test_collection(t):
    """on a disk that is too full the least recently used image is removed, down to the low threshold; one in use or pinned never"""
    os.makedirs(f"{t.scratch}/state/images")
    run("mount", "-t", "tmpfs", "-o", "size=200m", "coracle-images", f"{t.scratch}/state/images")
    try:
        collect(t)
    finally:
        run("umount", "-l", f"{t.scratch}/state/images")


def collect(t):
    node = t.node("--image-gc-high-threshold", "30", "--image-gc-low-threshold", "20", "--minimum-image-ttl-duration", "1ms")
    s = Source(t)
    def bring(name):
        node.cli("image", "import", archive(s, f"localhost/{name}:1", [entry("big", name.encode() * (12 << 20))]))

    def there():
        return sorted(line.split("/")[-1][0] for line in node.cli("image", "ls", "-o", "name").stdout.split() if "busybox" not in line)

    bring("a")
    bring("b")
    node.cli("image", "pin", "localhost/a:1")
    node.import_image()
    node.put("web.yaml", pod("web", container(volumeMounts=[mount("c", "/c")]),
                             volumes=[{"name": "c", "image": {"reference": "localhost/c:1", "pullPolicy": "IfNotPresent"}}]))
    bring("c")
    node.wait_running("web")
    equal(there(), ["a", "b", "c"], "below the threshold all stay")
    bring("d")
    bring("e")  # 62 MB of 200: over 30 %, and down to 40 MB
    until(lambda: there() == ["a", "c", "e"] or there() == ["a", "c"] or there() == ["a", "c", "d"], 20,
          lambda: f"two of b, d and e go: {there()}")
    until(lambda: "image collection" in node.cli("explain", "node").stdout, 30, "explain node tells of it")
    contains(node.request("GET", "/metrics")[1].decode(), 'kubelet_image_garbage_collected_total{reason="space"} ')

    # Nothing may go any more: told in kubelet's words.
    node.cli("image", "pin", *[f"localhost/{name}:1" for name in there()])
    for name in "fg":
        bring(name)
        node.cli("image", "pin", f"localhost/{name}:1", ok=False)
    events = until(lambda: [e for e in node.events("test-node") if e["reason"] == "FreeDiskSpaceFailed"], 20, "the event")
    contains(events[0]["message"], "Failed to garbage collect required amount of images. Attempted to free ")
    contains(node.cli("image", "verify").stdout, "image/localhost/c:1 ok\n")
    node.finish(node.pod("web"))


def test_export(t):
    """export: the layers are packed again, so an import has the same files under an id of its own; skopeo reads it; an old store's frames go"""
    node = t.node()
    s = Source(t)
    long = "d/" * 60 + "n" * 90
    upper = (entry("etc/.wh.motd"), folder("opt"), entry("opt/.wh..wh..opq"), entry(long, b"long name"), entry("empty"), entry("new", b"n" * 1000),
             hard("etc/alias", "new"), entry("caf\u00e9", b"utf"), link("to", "/etc"), entry("to/through", b"a link"),
             folder("t", mode=0o1777), entry("odd", b"o" * 513, uid=3 << 20, gname="some"), entry("twice", b"one"), entry("twice", b"two"))
    node.cli("image", "import", archive(s, "localhost/e:1", BASE, upper, BASE, User="7"))
    before = [i for i in node.get("/images")["items"] if i["names"] == ["localhost/e:1"]][0]
    unpacked = trees(node)
    file = f"{t.scratch}/e.tar"
    node.cli("image", "export", "localhost/e:1", file)
    contains(node.cli("image", "export", "localhost/e:1", file, ok=False).stderr, f"error: create {file}: File exists")
    run("skopeo", "copy", f"oci-archive:{file}:localhost/e:1", f"oci:{t.scratch}/copy:e")
    with tarfile.open(file) as outer:  # each part is what its name says
        for member in outer.getmembers():
            if member.name.startswith("blobs/sha256/"):
                equal(hashlib.sha256(outer.extractfile(member).read()).hexdigest(), member.name[13:], "blob")
    node.cli("image", "rm", "localhost/e:1")
    until(lambda: not os.listdir(layers(node)), 30, "the layers are gone")
    node.cli("image", "import", file)
    after = [i for i in node.get("/images")["items"] if i["names"] == ["localhost/e:1"]][0]
    equal(after.get("created"), before.get("created"), "when it was made")
    equal(trees(node), unpacked, "the layers")
    contains(node.cli("image", "verify").stdout, "image/localhost/e:1 ok\n")

    # Versions before this one kept something of each layer's tar beside it.
    node.stop()
    frame = f"{node.state_dir}/images/parts/{os.listdir(layers(node))[0]}.frame"
    with open(frame, "wb") as f:
        f.write(b"old")
    node.start()
    until(lambda: not os.path.exists(frame), 30, "the frame of an old store is gone")
    contains(node.cli("image", "verify").stdout, "image/localhost/e:1 ok\n")
