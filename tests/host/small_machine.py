# SPDX-License-Identifier: Apache-2.0
"""small_machine - what makes a test's world look like a small machine of its own: memory, disks, images."""
import gzip
import hashlib
import io
import json
import os
import tarfile

import coracle
from coracle import read, run

CLONE_NEWCGROUP = 0x02000000
DISK_MIB = 1500


def enter_cgroup_namespace(t):
    """A cgroup of the test's own becomes the root of each hierarchy, as a container or a node VM sees it."""
    mounts = {}
    for line in read("/proc/self/mountinfo").splitlines():
        fields = line.split()
        dash = fields.index("-")
        if fields[dash + 1] in ("cgroup", "cgroup2") and fields[4].startswith(coracle.CGROUP_FS):
            options = [o for o in fields[dash + 3].split(",") if o not in ("rw", "ro")]
            mounts[fields[4]] = (fields[dash + 1], ["none" if o == "xattr" else o for o in options])
    for root in mounts:
        folder = f"{root}/{t.name}"
        os.makedirs(folder, exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):
            if os.path.exists(f"{folder}/{file}") and not read(f"{folder}/{file}").strip():
                with open(f"{folder}/{file}", "w", encoding="ascii") as f:
                    f.write(read(f"{root}/{file}").strip())
        with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(os.getpid()))
    coracle._libc_call("unshare", CLONE_NEWCGROUP)  # pylint: disable=protected-access
    for point, (kind, options) in mounts.items():
        run("umount", "-l", point)
        flags = ["-o", ",".join(options)] if kind == "cgroup" else []
        run("mount", "-t", kind, *flags, "none", point)


def hide_available(t):
    """/proc/meminfo without MemAvailable, which is of the whole machine."""
    lines = [line for line in read("/proc/meminfo").splitlines() if not line.startswith("MemAvailable")]
    with open(f"{t.scratch}/meminfo", "w", encoding="ascii") as f:
        f.write("\n".join(lines) + "\n")
    run("mount", "--bind", f"{t.scratch}/meminfo", "/proc/meminfo")


def make_disk(t, name):
    image, point = f"{t.scratch}/{name}.img", f"{t.scratch}/{name}"
    os.makedirs(point)
    with open(image, "wb") as f:
        f.truncate(DISK_MIB << 20)
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", image, timeout=60)
    run("mount", "-o", "loop", image, point)
    return point


def make_image(path, name, files, compressed=False):
    """An OCI archive of one layer with these files {path: bytes}, each executable, and /tmp."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(folder)
        for file, data in files.items():
            info = tarfile.TarInfo(file)
            info.size, info.mode = len(data), 0o755
            tar.addfile(info, io.BytesIO(data))
    blobs = {}

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"digest": f"sha256:{digest}", "size": len(data)}
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    tar = layer.getvalue()
    layer = blob(gzip.compress(tar, 1) if compressed else tar)
    config = blob(json.dumps({"architecture": arch, "os": "linux", "config": {"Cmd": ["/hog"]},
                              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}"]}}).encode())
    kind = "application/vnd.oci.image"
    manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json",
                                "config": {"mediaType": f"{kind}.config.v1+json", **config},
                                "layers": [{"mediaType": f"{kind}.layer.v1.tar" + ("+gzip" if compressed else ""), **layer}]}).encode())
    index = {"schemaVersion": 2, "manifests": [{"mediaType": f"{kind}.manifest.v1+json", **manifest,
                                                "annotations": {"org.opencontainers.image.ref.name": name}}]}
    with tarfile.open(path, "w") as tar:
        for file, data in {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode(),
                           **{f"blobs/sha256/{d}": b for d, b in blobs.items()}}.items():
            info = tarfile.TarInfo(file)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
