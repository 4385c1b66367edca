# SPDX-License-Identifier: Apache-2.0
"""Hostile layers and images: headers, sizes and numbers, many and deep entries, cut archives, absurd
configurations. The daemon names image, layer and entry, and keeps nothing of them."""
import gzip
import json
import os
import resource
import stat
import subprocess
import tarfile
import time

from coracle import SLOW, check, contains, container, equal, pod, until
from test_unpack import Source, archive, digest, docker, entry, folder, hard, host_arch, link, tar


def header(kind, size, at=0, field=b""):
    """A tar header of 512 bytes, with the raw bytes `field` at an offset: 108 uid, 116 gid, 124 size, 136 mtime."""
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, size
    raw = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    raw[at:at + len(field)] = field
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


def pax(*records):
    """An extended header with these (keyword, value) pairs, and its data."""
    lines = []
    for key, value in records:
        line = f" {key}={value}\n".encode()
        n = len(line) + len(str(len(line)))
        lines.append(str(n + (len(str(n)) > len(str(len(line))))).encode() + line)
    body = b"".join(lines)
    return header(b"x", len(body)) + body + b"\0" * (-len(body) % 512)


def raw_layer(s, data, pack=lambda d: d):
    s.index(s.manifest([data], pack=pack))


def squeeze(data):
    return gzip.compress(data, 1)


def test_header_bombs(t):
    """headers of any size and content end at once"""
    s = Source(t)
    good = tar(entry("f", b"1"))
    start = time.monotonic()
    for data, text in ((header(b"x", 1 << 40) + b"\0" * 4096, "too large"),
                       (pax(("comment", "c" * (64 << 20))) + good, "too large"),
                       (header(b"L", 64 << 20) + b"n" * (64 << 20) + good, "too large"),
                       (header(b"K", 64 << 20) + b"n" * (64 << 20) + good, "too large"),
                       (pax(*[("comment", "c")] * 300000) + good, "too large"),
                       (pax(("GNU.sparse.size", "1000000"), ("GNU.sparse.map", ",".join(["1,1"] * 2000000))) + good, "too large"),
                       ((header(b"x", 10) + b"10 a=bcde\n" + b"\0" * 502) * 20000 + good, "no name"),
                       ((header(b"g", 10) + b"10 a=bcde\n" + b"\0" * 502) * 20000 + good, "no name")):
        raw_layer(s, data, pack=squeeze)
        s.bad("INVALID", "layer 1 of 1", text)
    raw_layer(s, pax(*[(f"SCHILY.xattr.user.a{n}", "b") for n in range(30000)]) + good)
    s.bad("EXHAUSTED", "set attribute user.a", 'of "f"')
    raw_layer(s, pax(("SCHILY.xattr.user.a", "b" * 70000)) + good)
    s.bad("EXHAUSTED", 'set attribute user.a of "f"')
    check(time.monotonic() - start < 20 * SLOW, "quickly")


def test_numbers(t):
    """negative, huge and senseless sizes, owners and times"""
    s = Source(t)
    good = tar(entry("f", b"1"))
    for data, text in ((pax(("size", "-5")) + good, "size"), (pax(("size", "18446744073709551616")) + good, "size"),
                       (header(b"0", 0, 124, b"\xff" * 12) + b"\0" * 1024, "negative size"),
                       (header(b"0", 0, 108, b"\xff" * 8) + b"\0" * 1024, "owner -1:0"),
                       (header(b"0", 0, 116, b"\x80\0\0\1\0\0\0\0") + b"\0" * 1024, "out of range"),
                       (pax(("uid", "4294967295")) + good, "out of range")):
        raw_layer(s, data)
        s.bad("INVALID", "layer 1 of 1", text)
    for n, mtime in enumerate(("-4611686018427387904", "9223372036854775807", "1e30", "nan", "-1.5", "", "1.99999999999")):
        raw_layer(s, pax(("mtime", mtime), ("path", f"t{n}")) + good)
        s.good()
    raw_layer(s, header(b"0", 0, 136, b"\xff" * 12) + b"\0" * 1024)
    s.good()
    root = s.layer(entry("max", b"x", uid=2**32 - 2, gid=2**32 - 2, mode=0o7777))
    st = os.stat(f"{root}/max")
    equal((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)), (2**32 - 2, 2**32 - 2, 0o7777), "the greatest owner")


def test_many_and_deep(t):
    """100,000 entries in bounded time and memory, paths of 4,000 bytes, big trees replaced"""
    s = Source(t)
    subprocess.run(["mount", "-t", "tmpfs", "many", s.store], check=True)  # only our own part is measured
    try:
        many_and_deep(t, s)
    finally:
        subprocess.run(["umount", s.store], check=True)


def many_and_deep(t, s):
    os.mkdir(f"{s.store}/layers")
    os.mkdir(f"{s.store}/work")
    deep = "/".join(["d"] * 2000)
    for entries in ([entry(f"a/{n % 100}/f{n}") for n in range(100000)], [entry("f", b"x")] * 100000,
                    [e for n in range(50000) for e in (folder(f"p{n}"), entry(f".wh.p{n}"))],
                    [entry(f"{deep}/f", b"1")], [entry(f"{deep[:1000]}f", b"1"), entry("d", b"2")],
                    [e for _ in range(10) for e in (entry(f"q/{deep[:100]}f", b"1"), link("q", "."))][:-1]):
        raw_layer(s, tar(*entries), pack=squeeze)
        os.mkdir(f"{s.store}/work/m")
        start = time.monotonic()
        p = subprocess.Popen([f"{t.build}/coracle-unpack", "--source", s.dir, "--work", f"{s.store}/work/m", "--layers",
                              f"{s.store}/layers"], stdout=subprocess.PIPE)
        answer = json.loads(p.stdout.read())
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = status
        check("images" in answer and status == 0, f"success instead of {answer}")
        check(time.monotonic() - start < 60 * SLOW, "bounded time")
        os.rmdir(f"{s.store}/work/m")
        if SLOW == 1:  # includes the fork of this process, until it executes another program
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            check(usage.ru_maxrss < own + 200 * 1024, f"{usage.ru_maxrss} KiB")


def test_cut(t):
    """an archive that ends anywhere before its last entry does is refused"""
    s = Source(t)
    good = tar(entry("a", b"1" * 2000), folder("b"), entry("b/c", b"2" * 600))
    end = 512 + 2048 + 512 + 512 + 600  # the padding of the last file belongs to no entry
    for cut in [*range(100, end, 300), end - 1]:
        raw_layer(s, good[:cut])
        if cut in (512 + 2048, 512 + 2048 + 512):  # a cut between two entries is a valid tar; only the digest shows it
            continue
        s.bad("INVALID", "layer 1 of 1")
    m = s.manifest([good], diff_ids=[digest(good)], pack=lambda d: d[:2560])
    s.index(m)
    s.bad("DATA_LOSS", "its uncompressed digest is")


def test_absurd_configurations(t):
    """valid and invalid configurations"""
    s = Source(t)
    data = tar(entry("f"))
    kind = "application/vnd.oci.image.config.v1+json"

    def with_config(text):
        layer = {"mediaType": "application/vnd.oci.image.layer.v1.tar", **s.blob(data)}
        s.index(s.json("application/vnd.oci.image.manifest.v1+json", {
            "schemaVersion": 2, "config": {"mediaType": kind, **s.blob(text.encode())}, "layers": [layer]}))

    base = s.config([digest(data)])
    for change, code, text in (({"Env": ["A=\0b"]}, "INVALID", "image configuration"), ({"Env": [None]}, "INVALID", "Env[0] is not a string"),
                               ({"Env": {"A": "b"}}, "INVALID", "Env is not a list"), ({"User": ["0"]}, "INVALID", "User is not a string"),
                               ({"Cmd": "sh"}, "INVALID", "Cmd is not a list"), ({"WorkingDir": 1}, "INVALID", "WorkingDir"),
                               ({"Volumes": ["/a"]}, "INVALID", "Volumes is not an object"),
                               ({"Volumes": {"/a": {}, "/b/../../c": {}}}, "INVALID", 'Volumes: "/b/../../c" is not a path in the image'),
                               ({"Volumes": {"/a\nb": {}}}, "INVALID", "has control characters"),
                               ({"Volumes": {"/" + "v" * 256: {}}}, "INVALID", "is not a path in the image"),
                               ({"Volumes": {"/v" * 2048: {}}}, "INVALID", "Volumes: a path has 4096 bytes, the limit is 4094"),
                               ({"Volumes": {f"/{n}": {} for n in range(101)}}, "EXHAUSTED", "Volumes has 101 entries, the limit is 100"),
                               ({"Cmd": ["x" * (5 << 20)]}, "EXHAUSTED", "more than")):
        with_config(json.dumps({**base, "config": change}))
        s.bad(code, text)
    for text in ("{", "[]", "null", '{"rootfs":{"diff_ids":["x"]},"rootfs":{}}', json.dumps(base)[:-1], "\xff"):
        with_config(text)
        s.bad("INVALID", "image configuration")
    with_config(json.dumps({**base, "config": None, "history": "x", "os": "linux"}))
    equal([k for k in s.good()["images"][0] if k in ("env", "cmd", "user")], [], "an empty configuration")
    big = {"Cmd": ["x" * (1 << 20)] * 3, "Env": ["=", "A", "A=1", "A=2"], "User": "-1:nobody:x", "WorkingDir": "../..", "StopSignal": "SIGWHAT",
           "Volumes": {"/": {}, "": {}, "rel/": None, "//a//./b/": {}, "/proc": {}}}
    with_config(json.dumps({**base, "config": big}))
    record = s.good()["images"][0]
    equal(len(record["cmd"]), 3, "3 MiB of arguments")
    equal(sorted(record["volumes"]), ["/a/b", "/proc", "/rel"], "volumes")


def test_daemon_keeps_nothing(t):
    """the daemon names image, layer and entry, keeps nothing of what failed, and goes on"""
    s = Source(t)
    node = t.node()
    good = tar(folder("bin"), entry("bin/f", b"1"))

    def refused(data, *texts):
        path = f"{t.scratch}/evil.tar"
        s.index(s.manifest([good, data]), name="localhost/evil:1")
        subprocess.run(["tar", "-C", s.dir, "-cf", path, "oci-layout", "index.json", "blobs"], check=True)
        result = node.cli("image", "import", path, ok=False)
        check(result.returncode != 0, "imported")
        for text in ("evil", *texts):
            contains(result.stdout + result.stderr, text, "image import")

    refused(tar(entry("../../escape", b"x")), "layer 2 of 2", "../../escape")
    refused(tar(link("a", "a"), entry("a/b")), "layer 2 of 2", '"a/b"')
    refused(header(b"x", 1 << 40) + b"\0" * 1024, "layer 2 of 2", "too large")
    refused(tar(hard("h", "/etc/shadow")), "layer 2 of 2", '"h"')
    store = [p for p, names, _ in os.walk(t.scratch) if os.path.basename(p) == "layers" and "images" in os.listdir(os.path.dirname(p))]
    store = [p for p in store if p != f"{s.store}/layers"]
    equal(len(store), 1, f"image stores {store}")
    equal(os.listdir(store[0]), [], "layers in the store")
    tmp = os.path.join(os.path.dirname(store[0]), "tmp")
    until(lambda: set(os.listdir(tmp)) <= {"blobs"}, 10, lambda: f"an empty tmp; it holds {os.listdir(tmp)}")
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.wait_running("a")
    node.stop()


test_many_and_deep.seconds = 60


def test_absurd_images_run(t):
    """a container of an image with an absurd configuration is refused with a reason or runs; the node goes on"""
    with tarfile.open(os.environ["CORACLE_TEST_IMAGE"]) as image:
        names = image.getnames()
        blobs = {n: image.extractfile(n).read() for n in names if image.getmember(n).isfile()}
    node = t.node()
    layers = layers_of(blobs)
    for n, (change, words) in enumerate((({"User": "nobody:::"}, "user"), ({"User": "-7"}, "user"), ({"User": "4294967296"}, "user"),
                                         ({"User": "no-such-user"}, "user"), ({"WorkingDir": "not/absolute"}, ""),
                                         ({"Env": ["NOVALUE", "=x", "PATH=/bin:/usr/bin"]}, None), ({"StopSignal": "SIGWHAT"}, None),
                                         ({"Volumes": {"/proc": {}, "/dev": {}, "/etc/resolv.conf": {}, "/": {}}}, None),
                                         ({"Volumes": {"/bin/sh": {}}}, 'volume "/bin/sh" of the image: open /bin/sh: Not a directory'),
                                         ({"Cmd": ["sleep", "1000"], "Entrypoint": []}, None))):
        config = {"architecture": host_arch(), "os": "linux", "config": {"Cmd": ["sleep", "1000"], "Env": ["PATH=/bin"], **change},
                  "rootfs": {"type": "layers", "diff_ids": [digest(x) for x in layers]}}
        members = docker(layers, config=config, RepoTags=[f"localhost/absurd{n}:1"])
        node.import_image(archive(t, *members))
        spec = pod(f"p{n}", container(image=f"localhost/absurd{n}:1", command=None))
        node.put(f"p{n}.yaml", spec)
        if words is None:
            node.wait_running(f"p{n}")
        elif words:
            found = node.wait_pod(f"p{n}", lambda p: p.state()[0] == "waiting" and p.state()[1].get("message"))
            contains(found.state()[1]["message"], words)
        node.remove(f"p{n}.yaml")
        node.wait_gone(f"p{n}")
    node.stop()


def import_with_volumes(t, node):
    """The test image with folders that it declares as volumes, as localhost/volumes:1."""
    with tarfile.open(os.environ["CORACLE_TEST_IMAGE"]) as image:
        blobs = {m.name: image.extractfile(m).read() for m in image if m.isfile()}
    top = tar(folder("data"), entry("data/f", b"of the image\n"), folder("mine"), entry("mine/hidden", b"x"), folder("run"), link("var-run", "/run"))
    layers = layers_of(blobs) + [top]
    config = {"architecture": host_arch(), "os": "linux", "rootfs": {"type": "layers", "diff_ids": [digest(x) for x in layers]},
              "config": {"Cmd": ["sleep", "1000"], "Env": ["PATH=/bin"],
                         "Volumes": {"/data": {}, "/var/new": {}, "/mine": {}, "/var-run/sock": {}, "/etc": {}}}}
    node.import_image(archive(t, *docker(layers, config=config, RepoTags=["localhost/volumes:1"])))


def write_to_volumes(node, name, read_only, **more):
    """The output of a container of that image that writes to each of its volumes and to its root."""
    script = ("exec 2>&1; cd /; cat data/f; for f in data/x var/new/x run/sock/x etc/x mine/x y; do touch $f && echo $f; done; ls mine;"
              "grep -c ' /mine ' /proc/self/mounts; stat -c %a:%u:%g var/new; cat /etc/hostname")
    node.put(f"{name}.yaml", pod(name, container(
        image="localhost/volumes:1", command=["sh", "-c", script], volumeMounts=[{"name": "mine", "mountPath": "/mine"}],
        securityContext={"readOnlyRootFilesystem": read_only}), restartPolicy="Never", volumes=[{"name": "mine", "emptyDir": {}}], **more))
    node.wait_pod(name, lambda p: p.phase in ("Succeeded", "Failed"), what=f"the end of {name}")
    return node.logs(name)


VOLUMES_WRITTEN = "of the image\ndata/x\nvar/new/x\nrun/sock/x\netc/x\nmine/x\n"


def test_volumes_of_an_image(t):
    """a folder that the image declares as a volume exists, and is writable when the root is not; the pod's own mounts have precedence"""
    node = t.node()
    import_with_volumes(t, node)
    equal(write_to_volumes(node, "ro", True), VOLUMES_WRITTEN + "touch: y: Read-only file system\nx\n1\n755:0:0\nro\n", "with a read-only root")
    equal(write_to_volumes(node, "rw", False), VOLUMES_WRITTEN + "y\nx\n1\n755:0:0\nrw\n", "with a writable root")
    node.stop()


def layers_of(blobs):
    """The uncompressed layers of the test image, whichever form its archive has."""
    if "manifest.json" in blobs:
        table = json.loads(blobs["manifest.json"])[0]
        return [blobs[name] for name in table["Layers"]]
    index = json.loads(blobs["index.json"])
    manifest = json.loads(blobs["blobs/sha256/" + index["manifests"][0]["digest"][7:]])
    found = [blobs["blobs/sha256/" + layer["digest"][7:]] for layer in manifest["layers"]]
    return [gzip.decompress(x) if x[:2] == b"\x1f\x8b" else x for x in found]
