# SPDX-License-Identifier: Apache-2.0
"""idmapped - project quotas under the users of a user namespace, as a pod with hostUsers: false has them.  Called by test_quota.py.

Pods with hostUsers: false also need a tmpfs with mapped ids, which kernels before Linux 6.3 do not have (that of Debian 12 is 6.1); where it can be,
test_storage.py runs such pods. XFS, ext4 and overlayfs can be mapped here, so what quotas do there is shown without a pod: a tree mounted with an id
mapping as the agent does it, a writable layer of overlayfs above mapped ones, and programs in the user namespace."""
import contextlib
import ctypes
import errno
import os
import subprocess
import sys

import quota
from coracle import check, equal, run, until
from quota import MIB, tool, usage

FIRST_ID, IDS = 100000, 65536
# Numbers of asm-generic/unistd.h; flags of linux/mount.h and linux/fcntl.h.
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH, MOUNT_ATTR_IDMAP = 1, 4, 0x100000
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000


class MountAttr(ctypes.Structure):
    _fields_ = [("attr_set", ctypes.c_uint64), ("attr_clr", ctypes.c_uint64), ("propagation", ctypes.c_uint64), ("userns_fd", ctypes.c_uint64)]


def call(number, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(number), *args)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"system call {number}: {os.strerror(code)}")
    return result


@contextlib.contextmanager
def users():
    """A process that holds a user namespace with a block of ids."""
    with subprocess.Popen(["unshare", "--user", "sleep", "3600"]) as process:
        try:
            own = os.readlink("/proc/self/ns/user")
            until(lambda: os.readlink(f"/proc/{process.pid}/ns/user") != own, 10, "a user namespace")
            for file in ("uid_map", "gid_map"):
                with open(f"/proc/{process.pid}/{file}", "w", encoding="ascii") as f:
                    f.write(f"0 {FIRST_ID} {IDS}")
            yield process.pid
        finally:
            process.kill()


@contextlib.contextmanager
def mapped(source, target, holder):
    """`source` at `target` with the ids of that namespace: 0 there is 0 on the disk."""
    os.makedirs(target, exist_ok=True)
    tree = call(OPEN_TREE, AT_FDCWD, source.encode(), OPEN_TREE_CLONE)
    namespace = os.open(f"/proc/{holder}/ns/user", os.O_RDONLY)
    attributes = MountAttr(attr_set=MOUNT_ATTR_IDMAP, userns_fd=namespace)
    call(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, ctypes.byref(attributes), ctypes.sizeof(attributes))
    call(MOVE_MOUNT, tree, b"", AT_FDCWD, target.encode(), MOVE_MOUNT_F_EMPTY_PATH)
    os.close(namespace)
    os.close(tree)
    try:
        yield target
    finally:
        run("umount", target)


def inside(holder, *argv, ok=True):
    """As root of the user namespace."""
    return run("nsenter", f"--user=/proc/{holder}/ns/user", *argv, ok=ok)


def uses(fs, number, folder, disk, owner, holder):
    """Written in `folder` by root of the namespace: counted, limited, and not to be moved elsewhere.  `disk`: the same as it is on the disk."""
    refused = errno.ENOSPC if fs == "xfs" else errno.EDQUOT
    inside(holder, "dd", "if=/dev/zero", f"of={folder}/file", "bs=64k", "count=20", "conv=fsync")
    equal((os.stat(f"{disk}/file").st_uid, os.stat(f"{folder}/file").st_uid), (owner, FIRST_ID), "owner on the disk, and as seen")
    equal(quota.project(f"{disk}/file"), number, "project")
    for argv in (["-p", "77", f"{folder}/file"], ["-p", "0", f"{folder}/file"], ["-P", folder]):
        result = inside(holder, "chattr", *argv, ok=False)
        check(result.returncode != 0, lambda r=result: f"changed: {r}")
    inside(holder, "touch", f"{folder}/later")
    equal([quota.project(f"{disk}/{name}") for name in ("file", "later")], [number] * 2, "projects after tries to change them")
    tool("set", f"/mnt/{fs}", number, 16 * MIB, 0, 0)
    before = usage(fs, number)["bytes"]
    code, done, _ = (int(x) for x in inside(holder, sys.executable, "-c", quota.HOG, folder).stdout.split())
    equal(code, refused, "errno of a hog of removed files")
    check(13 * MIB <= done <= 16 * MIB - before, lambda: f"{done} bytes of 16 MiB, {before} were used")
    until(lambda: usage(fs, number)["bytes"] == before, 20, "its files are gone")
    tool("set", f"/mnt/{fs}", number, 0, 0, 0)


def counted(fs):
    """A volume and a layer."""
    with users() as holder, quota.trees(fs, "volume", "layer") as ((volume, first), (layer, second)):
        with mapped(volume, "/run/idmapped/volume", holder) as at:
            uses(fs, first, at, volume, 0, holder)
        equal(usage(fs, first)["bytes"], quota.du(volume), "usage of the volume is du's")
        for name in (f"{layer}/upper", f"{layer}/work", f"/mnt/{fs}/lower", "/run/idmapped/root"):
            os.makedirs(name, exist_ok=True)
        os.chown(f"{layer}/upper", FIRST_ID, FIRST_ID)  # as the agent: layers of the image are mapped, the writable one is not
        with mapped(f"/mnt/{fs}/lower", "/run/idmapped/lower", holder) as lower:
            run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={layer}/upper,workdir={layer}/work", "/run/idmapped/root")
            try:
                uses(fs, second, "/run/idmapped/root", f"{layer}/upper", FIRST_ID, holder)
            finally:
                run("umount", "/run/idmapped/root")
        equal(usage(fs, second)["bytes"], quota.du(layer), "usage of the layer is du's")
