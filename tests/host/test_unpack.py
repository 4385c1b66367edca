# SPDX-License-Identifier: Apache-2.0
"""coracle-unpack and the layers, manifests and archives of an attacker; without daemon and network. Each test
writes an OCI layout (or an archive) with Python's tarfile, which accepts every lie, and checks the result
below layers/ and everything around it.
"""
import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import struct
import subprocess
import tarfile
import time

from coracle import Skip, check, contains, equal

OPAQUE = "trusted.overlay.opaque"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def entry(name, data=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def folder(name, **fields):
    return entry(name, type=tarfile.DIRTYPE, mode=fields.pop("mode", 0o755), **fields)


def link(name, target, **fields):
    return entry(name, type=tarfile.SYMTYPE, linkname=target, **fields)


def hard(name, target):
    return entry(name, type=tarfile.LNKTYPE, linkname=target)


def device(name, major, minor, kind=tarfile.CHRTYPE):
    return entry(name, type=kind, devmajor=major, devminor=minor, mode=0o666)


def tar(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for info, data in entries:
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Source:
    """An OCI layout below the scratch folder, and the store that it is unpacked into."""

    def __init__(self, t):
        self.t = t
        self.dir = f"{t.scratch}/layout"
        self.store = f"{t.scratch}/store"
        self.runs = 0
        os.makedirs(f"{self.dir}/blobs/sha256")
        os.makedirs(f"{self.store}/layers")
        os.makedirs(f"{self.store}/work")
        with open(f"{self.dir}/oci-layout", "w", encoding="ascii") as f:
            f.write('{"imageLayoutVersion":"1.0.0"}')

    def blob(self, data):
        with open(f"{self.dir}/blobs/sha256/{digest(data)[7:]}", "wb") as f:
            f.write(data)
        return {"digest": digest(data), "size": len(data)}

    def json(self, kind, value):
        return {"mediaType": kind, **self.blob(json.dumps(value).encode())}

    def config(self, diff_ids, arch=None, **config):
        return {"architecture": arch or host_arch(), "os": "linux", "config": config,
                "rootfs": {"type": "layers", "diff_ids": diff_ids}}

    def manifest(self, layers, diff_ids=None, pack=lambda data: data, arch=None, **config):
        """Descriptor of a manifest for these layer tars."""
        diff_ids = diff_ids or [digest(data) for data in layers]
        return self.json("application/vnd.oci.image.manifest.v1+json", {
            "schemaVersion": 2,
            "config": self.json("application/vnd.oci.image.config.v1+json", self.config(diff_ids, arch, **config)),
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", **self.blob(pack(data))} for data in layers]})

    def index(self, *manifests, name="localhost/evil:1"):
        for m in manifests:
            if name:
                m.setdefault("annotations", {})["org.opencontainers.image.ref.name"] = name
        with open(f"{self.dir}/index.json", "w", encoding="ascii") as f:
            json.dump({"schemaVersion": 2, "manifests": manifests}, f)

    def run(self, *flags, source=None, pass_fds=()):
        self.runs += 1
        work = f"{self.store}/work/{self.runs}"
        os.mkdir(work)
        p = subprocess.run([f"{self.t.build}/coracle-unpack", "--source", source or self.dir, "--work", work, "--layers",
                            f"{self.store}/layers", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                           check=False, pass_fds=pass_fds)
        answer = json.loads(p.stdout)
        equal(p.returncode, 1 if "error" in answer else 0, f"exit status with {answer} {p.stderr}")
        check(b"\n" not in p.stderr.rstrip(b"\n"), f"one line on standard error: {p.stderr}")
        return answer

    def good(self, *flags, **kwargs):
        answer = self.run(*flags, **kwargs)
        check("images" in answer, f"success instead of {answer}")
        return answer

    def bad(self, code, *texts, flags=(), **kwargs):
        """The run fails as expected, and no layer got a name."""
        before = sorted(os.listdir(f"{self.store}/layers"))
        answer = self.run(*flags, **kwargs)
        equal(answer.get("code"), code, f"code of {answer}")
        for text in texts:
            contains(answer["error"], text, "error")
        equal(sorted(os.listdir(f"{self.store}/layers")), before, "named layers after a failure")

    def layer(self, *entries, flags=()):
        """Unpacks one layer and gives its folder."""
        data = tar(*entries)
        self.index(self.manifest([data]))
        self.good(*flags)
        return f"{self.store}/layers/{digest(data)[7:]}"

    def bad_layer(self, code, text, *entries, flags=()):
        self.index(self.manifest([tar(*entries)]))
        self.bad(code, "layer 1 of 1", text, flags=flags)


def host_arch():
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def other_arch():
    return "arm64" if host_arch() == "amd64" else "amd64"


# ---- paths ----------------------------------------------------------------------------------------------------------------


def test_climbing(t):
    """paths with .. are refused, absolute ones land inside of the layer"""
    s = Source(t)
    for name in ("../escape", "a/../../escape", "..", "a/..", "./../escape"):
        s.bad_layer("INVALID", 'contains ".."', entry(name, b"x"))
    root = s.layer(entry("/etc/coracle-escape", b"x"), entry(".//b//./c", b"y"))
    check(os.path.exists(f"{root}/etc/coracle-escape") and not os.path.exists("/etc/coracle-escape"), "stays inside")
    check(os.path.exists(f"{root}/b/c"), "a path with empty elements is cleaned")


def test_symlinks(t):
    """a symbolic link is stored as it is; a path through one stays inside of the layer, as in a chroot"""
    s = Source(t)
    outside = f"{t.scratch}/outside"
    os.mkdir(outside)
    with open(f"{outside}/victim", "w", encoding="ascii") as f:
        f.write("safe")
    for n, target in enumerate((outside, "../../../.." + outside, "x/../../../.." + outside, "//.." + outside)):
        root = s.layer(link("a", target), entry("a/victim", b"x"), entry(f"{n}"))
        equal(open(f"{root}{outside}/victim", encoding="ascii").read(), "x", f"through {target}")
    equal(open(f"{outside}/victim", encoding="ascii").read(), "safe", "the file behind the link")
    root = s.layer(link("f", f"{outside}/victim"), entry("f", b"replaced"), link("l", f"{outside}/victim"),
                   link("d", outside), folder("d"), entry("d/in", b"x"))
    equal(open(f"{outside}/victim", encoding="ascii").read(), "safe", "the file behind the link")
    equal(os.listdir(outside), ["victim"], "the folder behind the link")
    equal(os.readlink(f"{root}/l"), f"{outside}/victim", "the link's target")
    check(not os.path.islink(f"{root}/f") and os.path.isfile(f"{root}/d/in"), "later entries replace links")


def test_links_on_the_way(t):
    """a merged /usr: files shipped under bin/ land in usr/bin, links before or after their target, chains, whiteouts"""
    s = Source(t)
    root = s.layer(link("bin", "usr/bin"), folder("usr", mode=0o750), folder("usr/bin", mode=0o711), entry("bin/sh", b"sh"),
                   entry("usr/bin/env", b"env"), hard("bin/dash", "bin/sh"), hard("sbin/x", "/usr/bin/env"),
                   link("usr/sbin", "../bin"), entry("usr/sbin/init", b"i"), entry("bin/.wh.gone"), link("abs", "/usr/bin"),
                   entry("abs/sub/f", b"f"), entry("usr/bin/.wh..wh..opq"))
    equal(os.readlink(f"{root}/bin"), "usr/bin", "the link stays")
    equal(sorted(os.listdir(f"{root}/usr/bin")), ["dash", "env", "gone", "init", "sh", "sub"], "usr/bin")
    equal(stat.S_IMODE(os.stat(f"{root}/usr/bin").st_mode), 0o711, "its mode")
    check(is_whiteout(f"{root}/usr/bin/gone") and os.getxattr(f"{root}/usr/bin", OPAQUE) == b"y", "whiteouts through a link")
    equal(os.stat(f"{root}/usr/bin/dash").st_ino, os.stat(f"{root}/usr/bin/sh").st_ino, "a hard link through a link")
    root = s.layer(link("a", "b"), link("b", "c/"), link("c", "./d/../d"), entry("a/x", b"1"), entry("d/y", b"2"), link("top", "../.."),
                   entry("top/z", b"3"), link("self", "."), entry("self/self/w", b"4"))
    equal(sorted(os.listdir(f"{root}/d")), ["x", "y"], "through a chain to a folder that is not there yet")
    equal((os.path.isfile(f"{root}/z"), os.path.isfile(f"{root}/w")), (True, True), "links to the root")
    many = [link(f"l{n}", f"l{n + 1}") for n in range(60)]
    s.layer(*many, entry("l30/x"))
    s.bad_layer("INVALID", "more than 40 symbolic links", *many, entry("l10/x"))
    s.bad_layer("INVALID", "more than 40 symbolic links", link("a", "b"), link("b", "a"), entry("a/x"))
    s.bad_layer("INVALID", "more than 40 symbolic links", link("a", "a/a"), entry("a/x"))
    s.bad_layer("INVALID", "which is not a folder", link("a", "f"), entry("f", b"x"), entry("a/x"))
    s.bad_layer("INVALID", "an element of over 255 bytes", link("a", "e" * 256), entry("a/x"))
    s.bad_layer("INVALID", "longer than 4096 bytes", link("a", "e/" * 2000 + "a"), entry("a/" + "f/" * 100 + "x"))
    s.bad_layer("INVALID", "longer than 4096 bytes", link("e", "/" + "/".join(["g" * 200] * 20)), entry("e/" + "h" * 200 + "/x"))
    s.bad_layer("INVALID", "does not come before it", link("e", "/etc"), hard("a", "e/passwd"))


def test_borrowed_folders(t):
    """a folder that a layer needs but lacks gets the metadata it has in the layers below"""
    s = Source(t)
    low = tar(folder("tmp", mode=0o1777, uid=7, gid=8, mtime=1000), folder("opt", mode=0o700), folder("gone", mode=0o711),
              folder("a", mode=0o750), folder("a/b", mode=0o751, uid=3), link("var", "a"))
    other = tar(folder("tmp", mode=0o700))
    middle = tar(folder("opt", mode=0o2755, gid=9), entry(".wh.gone"), entry("x"))
    high = tar(entry("tmp/f", b"1"), entry("opt/f", b"2"), entry("gone/f", b"3"), entry("a/b/c/f", b"4"), entry("new/f", b"5"),
               entry("late/f"), folder("late", mode=0o555), entry("var/b/g"))

    def layers(*data):
        s.index(s.manifest(list(data)))
        return [f"{s.store}/layers/{x[7:]}" for x in s.good()["images"][0]["layers"]]

    def look(root, path):
        st = os.stat(f"{root}/{path}")
        return stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid

    got = layers(low, middle, high)
    top = got[2]
    equal(got[:2], [f"{s.store}/layers/{digest(x)[7:]}" for x in (low, middle)], "layers that bring their folders have their diff id")
    chain = digest(f"{digest(low)} {digest(middle)}".encode())
    equal(top, f"{s.store}/layers/{digest(f'{chain} {digest(high)}'.encode())[7:]}", "the other its chain id")
    equal((look(top, "tmp"), os.stat(f"{top}/tmp").st_mtime), ((0o1777, 7, 8), 1000), "/tmp as in the lowest layer")
    equal(look(top, "opt"), (0o2755, 0, 9), "of several layers the upper one counts")
    equal(look(top, "gone"), (0o755, 0, 0), "a folder that was removed counts no more")
    equal((look(top, "a"), look(top, "a/b"), look(top, "a/b/c")), ((0o750, 0, 0), (0o751, 3, 0), (0o755, 0, 0)), "nested")
    equal((look(top, "new"), look(top, "late")), ((0o755, 0, 0), (0o555, 0, 0)), "new, and brought after all")
    equal((look(top, "var"), look(top, "var/b")), ((0o750, 0, 0), (0o751, 3, 0)), "what is a link below, as containerd does it")
    equal(layers(low, middle, high), got, "found again")
    second = layers(other, high)
    equal(look(second[1], "tmp"), (0o700, 0, 0), "/tmp of another image")
    alone = layers(high)
    equal((alone, look(alone[0], "tmp")), ([f"{s.store}/layers/{digest(high)[7:]}"], (0o755, 0, 0)), "as the lowest layer")
    equal(layers(other, high), second, "the layer of the diff id is not taken for one on top of others")
    equal(layers(high, high, low)[::2], [alone[0], got[0]], "one layer at two heights")


def test_hard_links(t):
    """hard links reach only earlier entries of their layer"""
    s = Source(t)
    os.symlink("/etc", f"{t.scratch}/x")
    for target in ("/etc/passwd", "etc/passwd", "later"):
        s.bad_layer("INVALID", "does not come before it", hard("a", target), entry("later", b"x"))
    s.bad_layer("INVALID", 'contains ".."', hard("a", "../../../../etc/passwd"))
    s.bad_layer("INVALID", "is a folder", folder("d"), hard("a", "d"))
    s.bad_layer("INVALID", "no valid target", entry("a", b"x"), hard("a", "a"))
    s.bad_layer("INVALID", "does not come before it", entry(".wh.w"), hard("a", "w"))
    s.bad_layer("INVALID", "does not come before it", folder("d"), entry("d/f", b"x"), hard("d", "d/f"))
    root = s.layer(entry("f", b"x"), hard("g", "/f"), link("l", "/etc/passwd"), hard("m", "l"))
    equal(os.stat(f"{root}/g").st_ino, os.stat(f"{root}/f").st_ino, "inode of the hard link")
    equal(os.readlink(f"{root}/m"), "/etc/passwd", "a hard link to a symbolic link is the link")


def test_odd_names(t):
    """long names, control characters and bytes that are not UTF-8"""
    s = Source(t)
    s.bad_layer("INVALID", "over 255 bytes", entry("x" * 256))
    s.bad_layer("INVALID", "longer than 4096", entry("/".join(["y" * 200] * 21)))
    s.bad_layer("INVALID", "a?b", entry("a\nb"), entry("a\nb/c"))
    deep = "/".join(["d"] * 400)
    root = s.layer(entry("n\u00e4me", b"1"), entry(b"raw\xff".decode("utf-8", "surrogateescape"), b"2"), entry("z" * 255),
                   entry(deep + "/f"))
    names = sorted(os.listdir(os.fsencode(root)))
    equal(names, sorted(["n\u00e4me".encode(), b"raw\xff", b"z" * 255, b"d"]), "names")


def test_root_entry(t):
    """the root may be set but not replaced"""
    s = Source(t)
    for e in (entry(".", b"x"), link("/", "/etc"), hard(".", "a"), device("./", 1, 3)):
        s.bad_layer("INVALID", "the root folder", e)
    root = s.layer(folder("./", mode=0o700, uid=5, gid=6, mtime=1000), entry("a"))
    st = os.stat(root)
    equal((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, st.st_mtime), (0o700, 5, 6, 1000), "the root's attributes")


# ---- what is kept ------------------------------------------------------------------------------------------------------------


def test_attributes(t):
    """owner, mode with setuid, times, user.* and capabilities are kept; trusted.* and the rest are not"""
    s = Source(t)
    cap = bytes.fromhex("0100000200040000000000000000000000000000")  # net_bind_service, effective
    pax = {"SCHILY.xattr.user.note": "hello", "SCHILY.xattr.trusted.overlay.opaque": "y",
           "SCHILY.xattr.trusted.overlay.redirect": "/etc", "SCHILY.xattr.security.selinux": "x",
           "SCHILY.xattr.user.overlay.opaque": "y", "SCHILY.xattr.security.capability": cap.decode("latin-1")}
    e = entry("f", b"data", mode=0o4755, uid=1000, gid=70000, mtime=12345.5)
    e[0].pax_headers = pax
    d = folder("d", mode=0o1777, mtime=99, uid=3)
    d[0].pax_headers = {k: v for k, v in pax.items() if "capability" not in k}
    root = s.layer(d, entry("d/child", b"x", mtime=7), e, entry("d/p", type=tarfile.FIFOTYPE, mode=0o640, gid=9))
    st = os.stat(f"{root}/f")
    equal((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, st.st_mtime), (0o4755, 1000, 70000, 12345.5), "file")
    equal(sorted(os.listxattr(f"{root}/f")), ["security.capability", "user.note"], "the file's attributes")
    equal(os.getxattr(f"{root}/f", "user.note"), b"hello", "user.note")
    st = os.stat(f"{root}/d")
    equal((stat.S_IMODE(st.st_mode), st.st_uid, st.st_mtime), (0o1777, 3, 99), "folder, its time after its children's")
    equal(os.listxattr(f"{root}/d"), ["user.note"], "the folder's attributes")
    st = os.stat(f"{root}/d/p")
    equal((stat.S_ISFIFO(st.st_mode), stat.S_IMODE(st.st_mode), st.st_gid), (True, 0o640, 9), "named pipe")
    s.bad_layer("INVALID", "out of range", entry("f", uid=2**32 - 1))


def test_replacing(t):
    """later entries replace earlier ones; folders merge"""
    s = Source(t)
    root = s.layer(folder("a"), entry("a/b", b"old"), entry("a", b"now a file"), entry("c"), folder("c"), entry("c/d", b"1"),
                   folder("c", mode=0o700), folder("e"), entry("e/x/y/z", b"1"), link("e", "c"), entry("q", b"1"), entry("q", b"22"))
    equal(open(f"{root}/a", encoding="ascii").read(), "now a file", "file over folder")
    equal(open(f"{root}/c/d", encoding="ascii").read(), "1", "folder over folder")
    equal(stat.S_IMODE(os.stat(f"{root}/c").st_mode), 0o700, "the later mode")
    equal(os.readlink(f"{root}/e"), "c", "link over folder")
    equal(open(f"{root}/q", encoding="ascii").read(), "22", "file over file")


def test_devices(t):
    """only the devices that every container has are created; disks never"""
    s = Source(t)
    data = tar(device("jail/dev/null", 1, 3), device("disk", 8, 0, tarfile.BLKTYPE), device("mem", 1, 1),
               device("dev/sda", 8, 0, tarfile.BLKTYPE), hard("dev/sda1", "dev/sda"), device("fake-whiteout", 0, 0),
               device("null-block", 1, 3, tarfile.BLKTYPE))
    s.index(s.manifest([data]))
    answer = s.good()
    root = f"{s.store}/layers/{digest(data)[7:]}"
    equal(answer["skippedDevices"], 4, "devices left out, /dev not counted")
    equal(sorted(os.listdir(root)), ["dev", "jail"], "what is there")
    equal(os.listdir(f"{root}/dev"), [], "/dev")
    st = os.stat(f"{root}/jail/dev/null")
    equal((st.st_rdev, stat.S_IMODE(st.st_mode)), (os.makedev(1, 3), 0o666), "the null device")
    s.bad_layer("INVALID", "does not come before it", device("disk", 8, 0, tarfile.BLKTYPE), hard("x", "disk"))


# ---- whiteouts -----------------------------------------------------------------------------------------------------------------


def is_whiteout(path):
    st = os.lstat(path)
    return stat.S_ISCHR(st.st_mode) and st.st_rdev == 0


def test_whiteouts(t):
    """whiteouts become overlayfs' own, and never hide files of their own layer"""
    s = Source(t)
    root = s.layer(folder("d"), entry("d/.wh.gone"), entry("d/.wh..wh..opq"), entry(".wh.kept"), entry("kept", b"new"),
                   entry("first", b"1"), entry(".wh.first"), entry(".wh.tree"), folder("tree"), entry("tree/x"),
                   folder("again"), entry(".wh.again"), entry(".wh.below"), entry("below/f"), entry(".wh..wh.plnk/1.2", b"aufs"), entry(".wh..wh.aufs", b"aufs"))
    equal(sorted(os.listdir(root)), ["again", "below", "d", "first", "kept", "tree"], "names")
    check(is_whiteout(f"{root}/d/gone"), "a whiteout")
    equal(os.getxattr(f"{root}/d", OPAQUE), b"y", "opaque folder")
    equal(open(f"{root}/kept", encoding="ascii").read(), "new", "whiteout, then file")
    check(os.path.isfile(f"{root}/first"), "file, then whiteout")
    equal(os.getxattr(f"{root}/tree", OPAQUE), b"y", "whiteout, then folder: nothing of the lower one")
    equal(os.getxattr(f"{root}/again", OPAQUE), b"y", "folder, then whiteout")
    equal(os.getxattr(f"{root}/below", OPAQUE), b"y", "whiteout, then something below it")
    for name in (".wh.", ".wh..", ".wh..."):
        s.bad_layer("INVALID", "names no file", entry(name))
    s.bad_layer("INVALID", "through a whiteout", entry(".wh.x/y"))


def test_overlay(t):
    """the layers mounted by overlayfs show the intended tree"""
    s = Source(t)
    low = tar(folder("d"), entry("d/a", b"a"), entry("d/b", b"b"), folder("o"), entry("o/old"), entry("f", b"f"))
    high = tar(folder("d"), entry("d/.wh.a"), folder("o"), entry("o/.wh..wh..opq"), entry("o/new"), entry(".wh.f"))
    s.index(s.manifest([low, high]))
    layers = s.good()["images"][0]["layers"]
    equal(layers, [digest(low), digest(high)], "layers, lowest first")
    point = f"{t.scratch}/merged"
    os.mkdir(point)
    lower = ":".join(f"{s.store}/layers/{x[7:]}" for x in reversed(layers))
    p = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"ro,lowerdir={lower}", point], check=False)
    if p.returncode != 0:
        raise Skip("no overlayfs here")
    try:
        equal({x: sorted(os.listdir(f"{point}/{x}")) for x in sorted(os.listdir(point))}, {"d": ["b"], "o": ["new"]}, "merged")
    finally:
        subprocess.run(["umount", point], check=True)


def test_opaque_root(t):
    """an opaque root hides the layers below, a layer that comes twice counts once"""
    s = Source(t)
    a, b, c = tar(entry("a")), tar(entry(".wh..wh..opq"), entry("b")), tar(entry("c"))
    s.index(s.manifest([a, b, c]))
    equal(s.good()["images"][0]["layers"], [digest(b), digest(c)], "layers")
    s.index(s.manifest([a, c, a]))
    equal(s.good()["images"][0]["layers"], [digest(c), digest(a)], "layers")


# ---- lies about content ------------------------------------------------------------------------------------------------------------


def test_digests(t):
    """every digest and size is checked: blob, manifest, configuration, uncompressed layer"""
    s = Source(t)
    data = tar(entry("f", b"x" * 5000))
    good = s.manifest([data])
    path = f"{s.dir}/blobs/sha256/{digest(data)[7:]}"
    s.index(good)
    for wrong, text in ((data[:-512] + b"\1" * 512, "its content has the digest"), (data + b"\0", "is longer than"),
                        (data[:-512], "bytes, but its manifest says")):
        with open(path, "wb") as f:
            f.write(wrong)
        s.bad("DATA_LOSS", "layer 1 of 1", text)
    os.unlink(path)
    s.bad("NOT_FOUND", "layer 1 of 1", "No such file")
    os.mkfifo(path)
    s.bad("INVALID", "is not a file")
    os.unlink(path)
    with open(path, "wb") as f:
        f.write(data)
    s.index({**good, "size": good["size"] + 1})
    s.bad("DATA_LOSS", "instead of the announced")
    s.index({**good, "digest": digest(data)})
    s.bad("INVALID" if len(data) == good["size"] else "DATA_LOSS")
    s.index({**good, "digest": "sha256:../../../../etc/passwd"})
    s.bad("INVALID", "no SHA-256 digest")
    s.index(s.manifest([data], diff_ids=[digest(b"something else")]))
    s.bad("DATA_LOSS", "its uncompressed digest is")
    s.index(s.manifest([data], diff_ids=[digest(data)], pack=gzip.compress))
    s.good()


def test_compression(t):
    """gzip and zstd by content, what follows the stream is hashed, one level only"""
    s = Source(t)
    for n, pack in enumerate((gzip.compress, lambda d: gzip.compress(d[:700]) + gzip.compress(d[700:]),
                              lambda d: gzip.compress(d) + b"\0" * 100,
                              lambda d: subprocess.run(["zstd", "-q"], input=d, stdout=subprocess.PIPE, check=True).stdout)):
        data = tar(entry(f"f{n}", os.urandom(3000)))
        s.index(s.manifest([data], pack=pack))
        s.good()
    data = tar(entry("twice"))
    s.index(s.manifest([data], pack=lambda d: gzip.compress(gzip.compress(d))))
    s.bad("INVALID")
    s.index(s.manifest([data], pack=lambda d: gzip.compress(d)[:-20]))
    s.bad("DATA_LOSS", "its uncompressed digest is")
    s.index(s.manifest([data], pack=lambda d: b"\xfd7zXZ\0" + d))
    s.bad("INVALID", "xz")
    for broken in (b"no tar at all" * 100, data[:300], b"\x1f\x8b" + b"\xff" * 300):
        s.index(s.manifest([broken]))
        s.bad("DATA_LOSS" if broken[0] == 0x1f else "INVALID", "layer 1 of 1")
    for empty in (b"", b"\0" * 1024):
        s.index(s.manifest([empty]))
        s.good()


def test_bombs(t):
    """gzip, sparse and entry bombs end at their limit, quickly, and leave nothing"""
    s = Source(t)
    start = time.monotonic()
    sparse = tarfile.TarInfo("hole")
    sparse.size = 512
    sparse.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "hole",
                          "GNU.sparse.size": str(2**60), "GNU.sparse.numblocks": "1", "GNU.sparse.map": "0,512"}
    s.bad_layer("EXHAUSTED", "larger than the limit", (sparse, b"x" * 512))
    header = tarfile.TarInfo("huge")
    header.size = 2**42
    s.index(s.manifest([header.tobuf(tarfile.GNU_FORMAT) + b"\0" * 4096]))
    s.bad("EXHAUSTED", "larger than the limit")
    zeros = tar(entry("zeros", b"\0" * (64 << 20)))
    s.index(s.manifest([zeros], pack=gzip.compress))
    s.bad("EXHAUSTED", "larger than the limit", flags=("--max-bytes", str(32 << 20)))
    # Skipped data is counted too: here the data of an entry that is not a file.
    s.index(s.manifest([b"".join([entry(".wh..wh.x", b"\0" * (64 << 20))[0].tobuf(), b"\0" * (64 << 20)])], pack=gzip.compress))
    s.bad("EXHAUSTED", "larger than the limit", flags=("--max-bytes", str(1 << 20), "--max-entries", "100"))
    s.bad_layer("EXHAUSTED", "more files than", *[entry(f"f{i}") for i in range(50)], flags=("--max-entries", "40"))
    s.bad_layer("EXHAUSTED", "more files than", entry("/".join("abcdefghij")), flags=("--max-entries", "5"))
    check(time.monotonic() - start < 20, "quickly")
    s.bad_layer("EXHAUSTED", "no space left for images", entry("f", b"x"), flags=("--reserve-bytes", str(2**50)))


def test_full_disk(t):
    """a full disk is one clear error, and no layer has a name afterwards"""
    s = Source(t)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "full", s.store], check=True)
    try:
        os.mkdir(f"{s.store}/layers")
        os.mkdir(f"{s.store}/work")
        # A file that does not fit fails before its first byte; small files run into the end of the disk
        # itself.
        s.bad_layer("EXHAUSTED", "4 MiB are needed", entry("f", os.urandom(4 << 20)), flags=("--reserve-bytes", "0"))
        shutil.rmtree(f"{s.store}/work/1")
        s.bad_layer("EXHAUSTED", "No space left on device", *[entry(f"f{i}", os.urandom(100000)) for i in range(40)],
                    flags=("--reserve-bytes", "0"))
        s.bad_layer("EXHAUSTED", "no space left for images", entry("f", b"x"))
    finally:
        subprocess.run(["umount", s.store], check=True)


def test_ratio(t):
    """a layer compressed far beyond any real one is treated as a bomb"""
    s = Source(t)
    tar_start = entry("zeros", b"")[0]
    tar_start.size = 8 << 30
    path = f"{t.scratch}/bomb.zst"
    with open(path, "wb") as out:
        with subprocess.Popen(["zstd", "-q", "-1"], stdin=subprocess.PIPE, stdout=out) as z:
            z.stdin.write(tar_start.tobuf(tarfile.GNU_FORMAT))
            for _ in range(1200):
                z.stdin.write(b"\0" * (1 << 20))
            z.stdin.close()
    with open(path, "rb") as f:
        bomb = f.read()
    s.index(s.manifest([tar()], diff_ids=[digest(b"never reached")], pack=lambda _: bomb))
    s.bad("INVALID", "decompression bomb")


# ---- tables of contents ------------------------------------------------------------------------------------------------------------


def test_platforms(t):
    """of several platforms the node's is chosen; without it, the error names the others"""
    s = Source(t)
    data = tar(entry("f"))
    mine = {**s.manifest([data], Cmd=["mine"]), "platform": {"os": "linux", "architecture": host_arch()}}
    other = {**s.manifest([data], arch=other_arch(), Cmd=["other"]), "platform": {"os": "linux", "architecture": other_arch()}}
    proof = {**s.manifest([data], Cmd=["attestation"]), "platform": {"os": "unknown", "architecture": "unknown"},
             "annotations": {"vnd.docker.reference.type": "attestation-manifest"}}
    nested = s.json("application/vnd.oci.image.index.v1+json", {"schemaVersion": 2, "manifests": [proof, other, mine]})
    s.index(nested)
    equal(s.good()["images"][0]["cmd"], ["mine"], "from a nested index")
    s.index(dict(other), dict(mine))
    equal(s.good()["images"][0]["cmd"], ["mine"], "from the index at the top")
    s.index(dict(other))
    s.bad("NOT_FOUND", f"no image for linux/{host_arch()}, only for linux/{other_arch()}")
    s.index(s.manifest([data], arch=other_arch()))
    s.bad("INVALID", f"the image is for linux/{other_arch()}")
    s.good("--platform", f"linux/{other_arch()}")
    deep = dict(mine)
    for _ in range(8):
        deep = s.json("application/vnd.oci.image.index.v1+json", {"schemaVersion": 2, "manifests": [deep]})
    s.index(deep)
    s.bad("INVALID", "nested too deeply")


def test_names(t):
    """names come from the annotations or the caller; several images need their own"""
    s = Source(t)
    one, two = s.manifest([tar(entry("one"))]), s.manifest([tar(entry("two"))])
    s.index(dict(one), name=None)
    s.bad("INVALID", "without a name")
    equal(s.good("--name", "busybox")["images"][0]["names"],
          [{"name": "docker.io/library/busybox:latest", "ref": digest(b"docker.io/library/busybox:latest")[7:]}], "given name")
    s.index(dict(one), name="1.2.3")
    s.bad("INVALID", "without a name")
    s.index({**one, "annotations": {"io.containerd.image.name": "docker.io/library/a:1"}}, name="1")
    equal(s.good()["images"][0]["names"][0]["name"], "docker.io/library/a:1", "containerd's annotation comes first")
    named = [{**m, "annotations": {"org.opencontainers.image.ref.name": f"localhost/{n}:1"}}
             for m, n in ((one, "a"), (two, "b"), (one, "c"))]
    s.index(*named, name=None)
    equal([[n["name"] for n in i["names"]] for i in s.good()["images"]],
          [["localhost/a:1", "localhost/c:1"], ["localhost/b:1"]], "two images, one with two names")
    s.bad("INVALID", "holds 2 images", flags=("--name", "x"))
    s.index(dict(one), name="localhost/UPPER:1")
    s.bad("INVALID", "must be lowercase")


def test_broken_tables(t):
    """broken indexes, manifests and configurations are refused with a reason"""
    s = Source(t)
    for text, part in (("", "index.json"), ("[]", "manifests"), ('{"manifests": 1}', "manifests"), ("{" * 5000, "index.json"),
                       ('{"manifests": [1]}', "no SHA-256"), ('{"manifests": []}', "no image for")):
        with open(f"{s.dir}/index.json", "w", encoding="ascii") as f:
            f.write(text)
        s.bad("NOT_FOUND" if text.endswith("[]}") else "INVALID", part)
    data = tar(entry("f"))
    layer = {"mediaType": "application/vnd.oci.image.layer.v1.tar", **s.blob(data)}

    def manifest(config, layers, **more):
        return s.json("application/vnd.oci.image.manifest.v1+json", {"schemaVersion": 2, "config": config, "layers": layers, **more})

    kind = "application/vnd.oci.image.config.v1+json"
    config = s.json(kind, s.config([digest(data)]))
    for m, part in ((manifest(config, []), "the manifest has 0 layers"), (manifest(config, [layer] * 2), "the manifest has 2 layers"),
                    (manifest({**config, "mediaType": "application/vnd.cncf.helm.config.v1+json"}, [layer]), "not a container image"),
                    (manifest(config, [{**layer, "mediaType": "text/plain"}]), "not a file system layer"),
                    (manifest(config, [layer], schemaVersion=1), "schema version 2"),
                    (manifest(s.json(kind, {"rootfs": {}}), []), "has no layers"),
                    (manifest(s.json(kind, s.config(["sha256:0"])), [layer]), "diff_ids[0]"),
                    (manifest(s.json(kind, s.config([digest(data)] * 200)), [layer] * 200), "the limit is 128"),
                    (manifest(s.json(kind, s.config([digest(data)], Env="A=b")), [layer]), "Env is not a list"),
                    (manifest(s.json(kind, s.config([digest(data)], Cmd=[1])), [layer]), "Cmd[0] is not a string"),
                    (manifest(s.json(kind, s.config([digest(data)], User=0)), [layer]), "User is not a string"),
                    (manifest(s.json(kind, ["x"]), [layer]), "is not a JSON object")):
        s.index(m)
        s.bad("EXHAUSTED" if "limit" in part else "INVALID", part)
    s.index(manifest(config, [{**layer, "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip+encrypted"}]))
    s.bad("UNIMPLEMENTED", "encrypted")
    s.index({**s.blob(b" " * (5 << 20)), "mediaType": "application/vnd.oci.image.manifest.v1+json"})
    s.bad("EXHAUSTED", "more than")


def test_record(t):
    """the record has the fields of the configuration"""
    s = Source(t)
    data = tar(entry("f", b"12345"), entry("g", b"678"))
    m = s.manifest([data], Env=["A=b", "C=\u00e4"], Entrypoint=["/e"], Cmd=["c", ""], User="7:8", WorkingDir="/w", StopSignal="SIGQUIT",
                   Volumes={"/data": {}})
    s.index(m)
    for _ in range(2):  # unpacked, then found
        i = s.good()["images"][0]
        equal({k: i[k] for k in ("env", "entrypoint", "cmd", "user", "workingDir", "stopSignal", "volumes", "sizeBytes", "digest")},
              {"env": ["A=b", "C=\u00e4"], "entrypoint": ["/e"], "cmd": ["c", ""], "user": "7:8", "workingDir": "/w",
               "stopSignal": "SIGQUIT", "volumes": ["/data"], "sizeBytes": 8, "digest": m["digest"]}, "record")


# ---- archives ------------------------------------------------------------------------------------------------------------------------


def archive(t, *entries, pack=lambda d: d):
    path = f"{t.scratch}/archive.tar"
    with open(path, "wb") as f:
        f.write(pack(tar(*entries)))
    return path


def docker(layers, config=None, **more):
    """Members of a docker archive, old style: layers in folders, the second onwards as links to the first where equal."""
    config = config or {"architecture": host_arch(), "os": "linux", "config": {"Cmd": ["x"]},
                        "rootfs": {"type": "layers", "diff_ids": [digest(d) for d in layers]}}
    raw = json.dumps(config).encode()
    name = f"{digest(raw)[7:]}.json"
    members, paths = [entry(name, raw)], []
    for n, data in enumerate(layers):
        members += [folder(f"l{n}"), link(f"l{n}/layer.tar", f"../l{layers.index(data)}/layer.tar")
                    if layers.index(data) < n else entry(f"l{n}/layer.tar", data)]
        paths.append(f"l{n}/layer.tar")
    table = [{"Config": name, "RepoTags": ["evil:1", "localhost/evil:2"], "Layers": paths, **more}]
    return members + [entry("manifest.json", json.dumps(table).encode())]


def test_docker_archive(t):
    """docker archives, plain and compressed, with layers shared by links"""
    s = Source(t)
    a, b = tar(entry("a")), tar(entry("b"))
    for pack in (lambda d: d, gzip.compress):
        i = s.good(source=archive(t, *docker([a, b, a]), pack=pack))["images"][0]
        equal([n["name"] for n in i["names"]], ["docker.io/library/evil:1", "localhost/evil:2"], "names")
        equal((i["layers"], i["digest"]), ([digest(b), digest(a)], i["id"]), "layers; no manifest, so the id")
    other = {"architecture": host_arch(), "os": "linux", "rootfs": {"type": "layers", "diff_ids": [digest(tar(entry("other")))]}}
    s.bad("DATA_LOSS", "its uncompressed digest is", source=archive(t, *docker([tar(entry("c"))], config=other)))
    for layers, part in ((["/etc/passwd"], "not a path inside"), (["../../x"], "not a path inside"), (["missing"], "No such file"), ([1], "Layers[0]"),
                         ([], "it has 0 layers")):
        s.bad("NOT_FOUND" if layers == ["missing"] else "INVALID", part, source=archive(t, *docker([tar(entry("d"))], Layers=layers)))
    secret = archive(t, link("l0", "/etc"), *docker([tar(entry("e"))], Layers=["l0/passwd"])[:1],
                     *docker([tar(entry("e"))], Layers=["out"])[-1:], link("out", "/etc/passwd"))
    s.bad("PERMISSION", "leaves its root", source=secret)
    members = docker([tar(entry("g"))])
    members[0] = (members[0][0], members[0][1].replace(b"linux", b"linuy"))
    s.bad("DATA_LOSS", "its content has the digest", source=archive(t, *members))


def test_oci_archive(t):
    """an OCI archive is read like its folder; anything else is refused"""
    s = Source(t)
    data = tar(entry("f"))
    s.index(s.manifest([data]))
    path = f"{t.scratch}/oci.tar"
    subprocess.run(["tar", "-C", s.dir, "-cf", path, "oci-layout", "index.json", "blobs"], check=True)
    s.good(source=path)
    s.bad("INVALID", "neither index.json nor manifest.json", source=archive(t, entry("x", b"y")))
    s.bad("INVALID", 'contains ".."', source=archive(t, entry("../../x", b"y")))
    s.bad("INVALID", "not allowed here", source=archive(t, device("null", 1, 3)))
    with open(path, "wb") as f:
        f.write(b"hello" * 1000)
    s.bad("INVALID", "archive", source=path)
    s.bad("NOT_FOUND", "No such file", source=f"{t.scratch}/nothing")
    s.bad("INVALID", "neither a folder nor a file", source="/dev/null")
    s.bad("INVALID", "neither index.json nor manifest.json", source=t.build)


def test_progress(t):
    """bytes and layers, even found ones, are counted in the page that --progress names"""
    s = Source(t)
    s.index(s.manifest([tar(entry("a", b"x" * 1000)), tar(entry("b", b"y" * 500), entry("c", b"z"))]))
    for counted in ((1501, 2, 2), (0, 2, 2)):  # unpacked, then found
        page = os.memfd_create("progress", os.MFD_ALLOW_SEALING)
        os.truncate(page, struct.calcsize("=QII"))
        os.set_inheritable(page, True)
        s.good("--progress", str(page), pass_fds=(page,))
        equal(struct.unpack("=QII", os.pread(page, 16, 0)), counted, "bytes, layers, of layers")
        os.close(page)
    for bad, text in (("2", "--progress"), ("x", "--progress"), ("900", "map --progress")):
        contains(s.run("--progress", bad)["error"], text, "error")


# ---- confinement ------------------------------------------------------------------------------------------------------------------


def test_confined(t):
    """while it reads, the helper has few capabilities, no new privileges and a filter"""
    s = Source(t)
    # A slow reader of its output keeps it alive: the pipe to us is full before the record is out.
    big = s.manifest([tar(entry("g"))], Env=[f"V{i}=" + "x" * 1000 for i in range(500)])
    s.index(big)
    os.mkdir(f"{s.store}/work/slow")
    p = subprocess.Popen([f"{t.build}/coracle-unpack", "--source", s.dir, "--work", f"{s.store}/work/slow", "--layers",
                          f"{s.store}/layers"], stdout=subprocess.PIPE)
    p.stdout.read(1)
    with open(f"/proc/{p.pid}/status", encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    limits = open(f"/proc/{p.pid}/limits", encoding="ascii").read()
    p.stdout.read()
    equal(p.wait(), 0, "exit status")
    chown, dac, fowner, fsetid, mknod, setfcap, sys_admin = 0, 1, 3, 4, 27, 31, 21
    allowed = sum(1 << c for c in (chown, dac, fowner, fsetid, mknod, setfcap, sys_admin))
    equal(int(status["CapEff"], 16) & ~allowed, 0, "capabilities beyond the list")
    equal(int(status["CapBnd"], 16) & ~allowed, 0, "bounding set beyond the list")
    equal(status["NoNewPrivs"], "1", "no_new_privs")
    contains(limits, "Max core file size        1 ", "limits")
    if not t.build.endswith("address-undefined"):
        equal(status["Seccomp"], "2", "seccomp filter")
