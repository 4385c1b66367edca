# SPDX-License-Identifier: Apache-2.0
"""Images of several layers made by buildah: coracle-unpack produces the same tree that buildah sees.

The other end is independent code: containers/storage writes the layers' tars and reads them back.  Its driver
vfs compares two whole trees and writes a whiteout for each name that is gone; overlay hands on what overlayfs
noted, opaque folders among it.
"""
import gzip
import hashlib
import json
import os
import shutil
import stat
import struct
import subprocess
import tarfile

from coracle import SLOW, Skip, check, equal, run
from test_unpack import Source

HOME = "/mnt"  # in the test's own mount namespace: containers/storage wants short paths
CAPABILITY = "security.capability"


def capability(*numbers):
    """The attribute of a file with these capabilities, permitted and effective (linux/capability.h, revision 2)."""
    bits = sum(1 << n for n in numbers)
    return struct.pack("<5I", 0x02000001, bits & 0xffffffff, 0, bits >> 32, 0)


class Buildah:
    def __init__(self, t, driver):
        if shutil.which("buildah") is None:
            raise Skip("buildah is not installed")
        self.driver = driver
        self.layers = 0
        os.mkdir(f"{t.scratch}/buildah")
        run("mount", "--bind", f"{t.scratch}/buildah", HOME)
        run("mount", "--make-private", HOME)
        os.mkdir(f"{HOME}/tmp")
        with open(f"{HOME}/storage.conf", "w", encoding="ascii") as f:  # instead of the host's
            f.write(f'[storage]\ndriver = "{driver}"\ngraphroot = "{HOME}/root"\nrunroot = "{HOME}/run"\n')
        self.env = {"PATH": os.environ["PATH"], "HOME": HOME, "TMPDIR": f"{HOME}/tmp", "XDG_RUNTIME_DIR": f"{HOME}/tmp",
                    "CONTAINERS_STORAGE_CONF": f"{HOME}/storage.conf"}

    def __call__(self, *argv):
        return run("buildah", "--root", f"{HOME}/root", "--runroot", f"{HOME}/run", "--storage-driver", self.driver, *argv,
                   timeout=60, env=self.env).stdout.strip()

    def image(self):
        return f"localhost/layers:{self.layers}"

    def layer(self, change):
        """One more layer on top: what change(root) does to the tree."""
        name = self("from", "scratch") if self.layers == 0 else self("from", "--pull-never", self.image())
        change(self("mount", name))
        self("umount", name)
        self.layers += 1
        self("commit", "--quiet", "--rm", name, self.image())

    def tree(self, image=None):
        """The tree that a container of the image would see."""
        name = self("from", "--pull-never", image or self.image())
        found = tree(self("mount", name))
        self("umount", name)
        return found


# ---- the layers -----------------------------------------------------------------------------------------------------


class Root:
    """Changes to a tree; every file gets a time of its own, so that buildah sees each change however soon it comes."""

    clock = 1_000_000_000

    def __init__(self, root):
        self.root = root

    def path(self, name):
        return os.path.join(self.root, name)

    def file(self, name, data=b"", mode=0o644, uid=0, gid=0, **attributes):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        os.chown(path, uid, gid)
        os.chmod(path, mode)
        for key, value in attributes.items():
            os.setxattr(path, key.replace("_", "."), value)
        self.touch(name)

    def touch(self, name):
        Root.clock += 10
        os.utime(self.path(name), (Root.clock, Root.clock))

    def folder(self, name, mode=0o755, uid=0, gid=0):
        os.makedirs(self.path(name), exist_ok=True)
        os.chown(self.path(name), uid, gid)
        os.chmod(self.path(name), mode)

    def link(self, name, *others):
        for other in others:
            os.link(self.path(name), self.path(other))

    def symlink(self, name, target):
        os.symlink(target, self.path(name))

    def remove(self, *names):
        for name in names:
            path = self.path(name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)


def base(root):
    r = Root(root)
    for name in ("bin", "etc", "usr/bin", "opt", "var"):
        r.folder(name)
    with open(shutil.which("busybox"), "rb") as f:
        r.file("bin/busybox", f.read(), 0o755)
    r.link("bin/busybox", "bin/sh", "bin/ls", "usr/bin/env")
    r.file("bin/su", b"su", 0o4755)
    r.file("bin/wall", b"wall", 0o2755, gid=5)
    r.file("bin/plain", b"plain", 0o755)
    r.file("bin/ping", b"ping", 0o755, security_capability=capability(13))
    r.file("bin/trace", b"trace", 0o755, security_capability=capability(19, 38))
    r.file("bin/nc", b"nc", 0o755, uid=7)
    r.file("etc/motd", b"hello", 0o640, uid=1, gid=70000, user_note=b"\0binary\xff")
    for name in ("gone", "back", "becomes-folder", "becomes-link", "n\u00e4me", "with space", "z" * 200):
        r.file(f"etc/{name}", name.encode())
    r.file("/".join(["usr/share"] + ["deep" * 20] * 4 + ["f"]), b"longer than a tar header")
    r.folder("tmp", 0o1777)
    r.folder("home/user", 0o700, 1000, 1000)
    r.file("home/user/kept", b"k", 0o600, 1000, 1000)
    r.folder("empty", 0o711, 3, 4)
    r.symlink("etc/mtab", "../proc/self/mounts")
    r.symlink("lib", "usr/lib")
    os.mkfifo(r.path("var/pipe"), 0o640)
    os.truncate(r.path("etc/gone"), 1 << 20)
    for folder in ("gone", "opaque", "twice", "becomes-file"):
        r.file(f"opt/{folder}/one", b"1")
        r.file(f"opt/{folder}/sub/two", b"2")


def changed(root):
    r = Root(root)
    r.remove("etc/gone", "etc/back", "opt/gone", "opt/opaque", "opt/twice", "opt/becomes-file", "etc/becomes-folder", "etc/becomes-link",
             "bin/ls")
    r.folder("opt/opaque", 0o750, 8, 9)
    r.file("opt/opaque/new", b"new")
    r.file("opt/twice/sub/three", b"3")
    r.file("opt/becomes-file", b"a file")
    r.file("etc/becomes-folder/in", b"in")
    r.symlink("etc/becomes-link", "motd")
    r.file("bin/ls", b"its own", 0o755)  # leaves its hard links
    os.chmod(r.path("bin/plain"), 0o6755)  # no more than this
    os.setxattr(r.path("bin/nc"), CAPABILITY, capability(10))
    os.removexattr(r.path("bin/trace"), CAPABILITY)
    os.chown(r.path("home/user"), 1001, 1002)
    r.file("home/user/more", b"m", 0o600, 1001, 1002)
    r.file("usr/bin/x1", b"x", 0o4711)
    r.folder("usr/sbin")
    r.link("usr/bin/x1", "usr/sbin/x2", "bin/x3")


def again(root):
    r = Root(root)
    r.file("etc/back", b"back again", 0o600)
    r.remove("opt/opaque/new", "opt/twice", "usr/sbin", "etc/n\u00e4me")
    r.file("opt/twice/last", b"l")
    r.link("bin/busybox", "bin/ash")
    r.file("bin/su", b"another su", 0o4750, gid=6)
    r.symlink("usr/sbin", "bin")


def removed(root):
    r = Root(root)
    r.remove("usr/bin/x1", "etc/becomes-folder", "home/user/kept", "opt/twice/last")


# ---- looking ---------------------------------------------------------------------------------------------------------


def tree(root):
    """All that a process sees of each path; of hard links the name that comes first stands for all."""
    found, first = {}, {}
    paths = []
    for folder, folders, files in os.walk(root):
        paths += [os.path.join(folder, name) for name in folders + files]
    for path in sorted(paths):
        st = os.lstat(path)
        name = os.path.relpath(path, root)
        seen = {"mode": oct(st.st_mode), "owner": (st.st_uid, st.st_gid),
                "attributes": {a: os.getxattr(path, a, follow_symlinks=False) for a in sorted(os.listxattr(path, follow_symlinks=False))}}
        if not stat.S_ISDIR(st.st_mode):
            seen["file"] = first.setdefault((st.st_dev, st.st_ino), name)
        if stat.S_ISLNK(st.st_mode):
            seen["target"] = os.readlink(path)
        elif stat.S_ISREG(st.st_mode):
            with open(path, "rb") as f:
                seen["content"] = (st.st_size, int(st.st_mtime), hashlib.sha256(f.read()).hexdigest())
        found[name] = seen
    return found


def read_layers(archive):
    """The tars of an OCI archive's layers, lowest first, uncompressed."""
    with tarfile.open(archive) as t:
        def blob(descriptor):
            return t.extractfile(f"blobs/sha256/{descriptor['digest'][7:]}").read()
        [one] = json.load(t.extractfile("index.json"))["manifests"]
        tars = [blob(layer) for layer in json.loads(blob(one))["layers"]]
    return [gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data for data in tars]


def entries(data):
    path = f"{HOME}/tmp/layer.tar"
    with open(path, "wb") as f:
        f.write(data)
    with tarfile.open(path) as t:
        return t.getmembers()


def mounted(s, layers):
    point = f"{s.t.scratch}/merged"
    os.mkdir(point)
    lower = ":".join(f"{s.store}/layers/{name[7:]}" for name in reversed(layers))
    if subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"ro,lowerdir={lower}", point], check=False).returncode != 0:
        raise Skip("no overlayfs here")
    try:
        return tree(point)
    finally:
        run("umount", point)


def compare(t, driver):
    """Makes the image and compares the trees; the entries of its layers."""
    b = Buildah(t, driver)
    for change in (base, changed, again, removed):
        b.layer(change)
    wanted = b.tree()
    archive = f"{HOME}/image.tar"
    b("push", "--quiet", b.image(), f"oci-archive:{archive}")
    tars = read_layers(archive)
    equal(len(tars), 4, "layers")

    # Checks that the image has the expected files, so that the comparison is not one of empty trees.
    for name in ("etc/gone", "opt/gone", "opt/opaque/new", "opt/opaque/one", "opt/twice/sub", "etc/becomes-folder", "usr/bin/x1"):
        check(name not in wanted, f"{name} is gone for buildah")
    equal(wanted["bin/plain"]["mode"], oct(stat.S_IFREG | 0o6755), "setuid for buildah")
    equal(wanted["bin/nc"]["attributes"], {CAPABILITY: capability(10)}, "capability for buildah")
    equal(wanted["etc/motd"]["attributes"], {"user.note": b"\0binary\xff"}, "attribute for buildah")
    equal(wanted["usr/bin/env"]["file"], wanted["bin/sh"]["file"], "hard link for buildah")

    s = Source(t)
    os.mkdir(f"{s.store}/parts")
    image = s.good("--parts", f"{s.store}/parts", "--name", "localhost/buildah:1", source=archive)["images"][0]
    got = mounted(s, image["layers"])
    equal(sorted(got), sorted(wanted), "paths")
    equal({name: got[name] for name in wanted if got[name] != wanted[name]},
          {name: wanted[name] for name in wanted if got[name] != wanted[name]}, "what differs")

    # And back: buildah sees the same tree in the exported image.
    out = f"{HOME}/export.tar"
    with open(out, "wb"):
        pass
    lines = "".join(f"layer {name[7:]}\n" for name in image["layers"]) + "name localhost/back:1\n"
    subprocess.run([f"{t.build}/coracle-unpack", "--export", image["id"][7:], "--out", out, "--layers", f"{s.store}/layers", "--parts",
                    f"{s.store}/parts"], input=lines.encode(), stdout=subprocess.DEVNULL, check=True, timeout=60 * SLOW)
    back = b.tree(b("pull", "--quiet", f"oci-archive:{out}"))
    equal({name: back[name] for name in wanted if back.get(name) != wanted[name]},
          {name: wanted[name] for name in wanted if back.get(name) != wanted[name]}, "what differs in the export")
    equal(sorted(back), sorted(wanted), "paths of the export")
    return [entries(data) for data in tars]


def names(layer):
    return {os.path.normpath(e.name) for e in layer}


def test_vfs(t):
    """setuid, capabilities, hard links and whiteouts of four layers are as buildah sees them, also in an export"""
    layers = compare(t, "vfs")
    check(any(e.islnk() for e in layers[0]), "hard links in the lowest layer")
    check(any(f"SCHILY.xattr.{CAPABILITY}" in e.pax_headers for e in layers[0]), "capabilities in the lowest layer")
    for n, name in ((1, "etc/.wh.gone"), (1, "opt/.wh.gone"), (1, "opt/opaque/.wh.one"), (2, "opt/opaque/.wh.new"),
                    (3, "usr/bin/.wh.x1")):
        check(name in names(layers[n]), f"{name} in layer {n + 1}: {sorted(names(layers[n]))}")


def test_overlay(t):
    """the same with the driver overlay: a replaced folder is opaque in its layer"""
    probe = f"{t.scratch}/probe"
    for part in ("low", "up", "work", "all"):
        os.makedirs(f"{probe}/{part}")
    if subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={probe}/low,upperdir={probe}/up,workdir={probe}/work",
                       f"{probe}/all"], check=False).returncode != 0:
        raise Skip("no overlayfs here")
    run("umount", f"{probe}/all")
    layers = compare(t, "overlay")
    if not any(name.endswith("/.wh..wh..opq") for name in names(layers[1])):
        raise Skip("buildah compares whole trees here: no opaque folders")
    for n, name in ((1, "opt/opaque/.wh..wh..opq"), (1, "opt/twice/.wh..wh..opq"), (2, "opt/twice/.wh..wh..opq")):
        check(name in names(layers[n]), f"{name} in layer {n + 1}: {sorted(names(layers[n]))}")
