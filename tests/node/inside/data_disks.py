# SPDX-License-Identifier: Apache-2.0
"""data_disks - the agent's folders on a disk of their own: XFS and ext4, with project quotas; huge pages.  Called by test_disks.py."""
import os
import re

import coracle
import images
import sound
from coracle import check, contains, container, equal, pod, read, run, shell, until
from node import node

DROPIN = "/etc/systemd/system/coracle.service.d"
IMAGE = "localhost/attributes:1"
MAGIC = {"xfs": "0x58465342", "ext4": "0xef53"}
CAPABILITY = bytes.fromhex("0100000200200000" + "00" * 12)  # cap_net_raw=ep


def place(fs):
    node.state_dir, node.root_dir = f"/mnt/{fs}/coracle", f"/mnt/{fs}/kubelet"


def quotas(fs):
    """The disk is there with project quotas that count and stop."""
    contains(run("findmnt", "-n", "-o", "FSTYPE,OPTIONS", f"/mnt/{fs}").stdout, "prjquota", "mount options")
    folder = f"/mnt/{fs}/limited"
    os.mkdir(folder)
    run("chattr", "-p", "1234", "+P", folder)
    run("setquota", "-P", "1234", "0", "1024", "0", "0", f"/mnt/{fs}")
    os.chown(folder, 65534, 65534)  # whoever may raise resource limits is not stopped on ext4
    result = coracle.as_nobody("dd", "if=/dev/zero", f"of={folder}/big", "bs=64k", "count=32", "conv=fsync", ok=False)
    check(result.returncode != 0 and 0 < os.path.getsize(f"{folder}/big") <= 1 << 20, lambda: f"2 MiB into 1 MiB: {result.stderr}")
    contains(run("repquota", "-P", "-n", f"/mnt/{fs}").stdout, "#1234", "repquota")
    os.unlink(f"{folder}/big")
    os.rmdir(folder)


def begin(fs):
    """The service with its state and its pods' folders there; a pod of an image with attributes."""
    place(fs)
    start = re.search(r"^ExecStart=(.*)$", read("/usr/lib/systemd/system/coracle.service"), re.MULTILINE).group(1)
    os.makedirs(DROPIN, exist_ok=True)
    with open(f"{DROPIN}/disk.conf", "w", encoding="ascii") as f:
        f.write(f"[Unit]\nRequiresMountsFor=/mnt/{fs}\n[Service]\nExecStart=\n"
                f"ExecStart={start} --state-dir {node.state_dir} --root-dir {node.root_dir}\n")
    run("systemctl", "daemon-reload")
    run("systemctl", "enable", "--now", "coracle.service")
    node.wait_active()
    images.write("/run/attributes.tar", IMAGE, images.entry("tool", b"#!/bin/sh\nid -u\n", mode=0o4755),
                 images.entry("group", b"", mode=0o2755, uid=1000, gid=2000), images.entry("sticky", mode=0o1777, type=b"5"),
                 images.entry("ping", b"", mode=0o755, xattrs={"security.capability": CAPABILITY.decode("latin-1")}),
                 images.entry("tagged", b"", xattrs={"user.colour": "blue", "trusted.secret": "yes"}))
    node.import_image()
    node.import_image("/run/attributes.tar")
    keep = {"volumeMounts": [{"name": "keep", "mountPath": "/keep"}]}
    node.put("a.yaml", pod("a", {**container(command=shell("echo x >> /keep/starts; sync; " + coracle.STAY[2]), **keep), "image": IMAGE},
                           volumes=[{"name": "keep", "emptyDir": {}}]))
    node.put("b.yaml", pod("b", container(command=shell("echo done"), **keep), restartPolicy="Never",
                           volumes=[{"name": "keep", "emptyDir": {"sizeLimit": "1Mi"}}]))
    a = node.wait_running("a", deadline=40)
    node.wait_phase("b", "Succeeded")
    contains(run("stat", "-f", "-c", "%t", node.state_dir).stdout, MAGIC[fs][2:], "file system of the state")
    attributes(a)
    sound.wait()
    os.sync()
    return a.uid


def attributes(p):
    """Modes, owners and extended attributes as the image has them."""
    root = f"{node.run_dir}/containers/{p.container_id()}/rootfs"
    seen = {name: (oct(s.st_mode & 0o7777), s.st_uid, s.st_gid) for name in ("tool", "group", "sticky", "ping")
            for s in [os.stat(f"{root}/{name}")]}
    equal(seen, {"tool": ("0o4755", 0, 0), "group": ("0o2755", 1000, 2000), "sticky": ("0o1777", 0, 0), "ping": ("0o755", 0, 0)}, "modes")
    equal(os.getxattr(f"{root}/ping", "security.capability"), CAPABILITY, "capabilities of a file")
    equal(os.getxattr(f"{root}/tagged", "user.colour"), b"blue", "user attribute")
    with open(f"{root}/written", "wb") as f:  # the upper layer
        f.write(b"1")


def after(fs, uid):
    """After a reset: the same from what the disk holds."""
    place(fs)
    node.wait_active()
    a = node.wait_pod("a", lambda p: p.ready and p.restarts() == 1, 60, "the pod is back")
    equal(a.uid, uid, "uid")
    until(lambda: node.enter(a, "cat", "/keep/starts").stdout == "x\nx\n", 10, "the emptyDir's file")
    attributes(a)
    equal(node.pod("b").phase, "Succeeded", "the pod that was done")
    sound.wait()


def end(fs):
    """Nothing of the pods is left on the disk."""
    place(fs)
    pods = list(node.pods().values())
    node.remove("a.yaml", "b.yaml")
    node.watch(lambda now: not now, 40, "all pods gone")
    for p in pods:
        node.wait_no_traces(p)
    sound.wait()
    run("systemctl", "disable", "--now", "coracle.service")
    run("systemctl", "stop", "coracle-pods.service", timeout=60)
    run("umount", f"/mnt/{fs}")  # no mount and no open file holds it
    run("mount", f"/mnt/{fs}")


def huge_pages(pages):
    """The VM has them, a container's cgroup has their controller, and its limit holds."""
    equal(int(re.search(r"HugePages_Total:\s+(\d+)", read("/proc/meminfo")).group(1)), pages, "huge pages")
    folder = node.container_cgroup(node.pod("a"), "hugetlb")
    file = f"{folder}/hugetlb.2MB." + ("max" if coracle.cgroup_v2() else "limit_in_bytes")
    with open(file, "w", encoding="ascii") as f:
        f.write(str(4 << 20))
    equal(int(read(file)), 4 << 20, "limit")
