# SPDX-License-Identifier: Apache-2.0
"""Volumes that the node mounts itself: local folders and disks, what is missing, and inline volumes that cannot be mounted."""
import os
import shutil

import coracle
from coracle import check, contains, equal, mounts_below, read, run, until
from test_claims import claim, phase, user


def volume(name, source, **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "storageClassName": "local", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source, **spec}}


def on_node(*names):
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(names)}]}]}}


def read_bytes(path, at, n):
    with open(path, "rb") as file:
        file.seek(at)
        return file.read(n)


def failures(node, name):
    return [e["message"] for e in node.events(name) if e["reason"] == "FailedMount"]


def usage_of(node, name):
    return [v for p in node.get("/stats/summary")["pods"] if p["podRef"]["name"] == name for v in p.get("volume", [])]


def test_local(t):
    """a local volume is bound to its pods with its group; a volume of another node is refused with kubelet's text; mount options apply or are refused"""
    node = t.node()
    node.import_image()
    disk = os.path.join(t.scratch, "disk")
    os.makedirs(disk)
    node.put("pv.yaml", volume("here", {"local": {"path": disk}}, nodeAffinity=on_node("test-node"), mountOptions=["noexec"]),
             volume("far", {"local": {"path": disk}}, nodeAffinity=on_node("another")))
    node.put("c.yaml", claim("data", storageClassName="local"), claim("bound", storageClassName="local", volumeName="far"))
    until(lambda: phase(node, "/api/v1/persistentvolumes/here") == "Bound", 20, "the binding")
    node.put("a.yaml", user("a", "data", "echo kept > /data/file; stat -c %g /data; sleep 1000",
                            securityContext={"fsGroup": 4000}))
    node.put("b.yaml", user("b", "bound"))
    node.wait_running("a")
    uid = node.pod("a").uid
    usage = until(lambda: [v for v in usage_of(node, "a") if "capacityBytes" in v], 15, "the volume is in /stats/summary")[0]
    disk_now = os.statvfs(disk)
    equal((usage["name"], usage["pvcRef"], usage["capacityBytes"], usage["inodes"]),
          ("data", {"name": "data", "namespace": "default"}, disk_now.f_blocks * disk_now.f_frsize, disk_now.f_files), "usage")
    check(0 < usage["usedBytes"] <= usage["capacityBytes"] and usage["availableBytes"] <= usage["capacityBytes"], f"usage: {usage}")
    equal([m for m in mounts_below(node.root_dir) if uid in m], [f"{node.root_dir}/pods/{uid}/volumes/kubernetes.io~local-volume/here"], "mounts")
    check(any(f"/{uid}/" in line and "noexec" in line for line in read("/proc/self/mountinfo").splitlines()), "the mount option does not act")
    until(lambda: node.logs("a").split() == ["4000"], 10, lambda: f"what the container sees: {node.logs('a')}")
    text = "NodeAffinity check failed for volume \"far\" : no matching NodeSelectorTerms"
    until(lambda: any(text in m for m in failures(node, "b")), 20, lambda: f"an event: {failures(node, 'b')}")
    node.kill()
    node.start()
    node.wait_running("a")
    node.remove("a.yaml", "b.yaml")
    node.wait_gone("a", "b")
    equal(mounts_below(node.root_dir), [], "mounts")
    equal(read(disk + "/file"), "kept\n", "the data")
    node.put("pv2.yaml", volume("odd", {"local": {"path": disk}}, mountOptions=["remount"], storageClassName="odd"))
    node.put("c2.yaml", claim("odd", storageClassName="odd"))
    node.put("d.yaml", user("d", "odd"))
    until(lambda: any('mount option "remount" is not allowed' in m for m in failures(node, "d")), 20, lambda: f"an event: {failures(node, 'd')}")


def test_local_disk(t):
    """a local disk is formatted once, mounted once for two pods, and released with the last; its data stays"""
    node = t.node()
    node.import_image()
    file = os.path.join(t.scratch, "disk.img")
    with open(file, "wb") as image:
        image.truncate(64 << 20)
    device = run("losetup", "-f", "--show", file).stdout.strip()
    try:
        node.put("pv.yaml", volume("disk", {"local": {"path": device, "fsType": "ext4"}}))
        node.put("c.yaml", claim("data", storageClassName="local"))
        node.put("a.yaml", user("a", "data", "echo kept > /data/file; sleep 1000"))
        node.put("b.yaml", user("b", "data"))
        node.wait_running("a", "b")
        shared = f"{node.root_dir}/plugins/kubernetes.io/local-volume/mounts/disk"
        equal(len([m for m in mounts_below(node.root_dir) if m == shared]), 1, "mounts of the disk")
        node.remove("a.yaml")
        node.wait_gone("a")
        check(shared in mounts_below(node.root_dir), "the disk of the other pod was unmounted")
        node.remove("b.yaml")
        node.wait_gone("b")
        equal(mounts_below(node.root_dir), [], "mounts")
        equal(os.listdir(os.path.dirname(shared)), [], "folders of disks")
        node.put("c.yaml", claim("data", storageClassName="local"))
        node.put("a.yaml", user("a", "data", "cat /data/file; sleep 1000"))
        node.wait_running("a")
        until(lambda: "kept" in node.logs("a"), 10, "the data")
        node.remove("a.yaml")
        node.wait_gone("a")
    finally:
        run("losetup", "-d", device)


def test_block_device(t):
    """A local disk as a block device: the container has the device, and only that; a volume of the other mode is told"""
    node = t.node()
    node.import_image()
    file = os.path.join(t.scratch, "disk.img")
    with open(file, "wb") as image:
        image.write(b"what is on the disk".ljust(1 << 20, b"\0"))
    device = run("losetup", "-f", "--show", file).stdout.strip()
    try:
        node.put("pv.yaml", volume("disk", {"local": {"path": device}}, volumeMode="Block"))
        node.put("c.yaml", claim("data", storageClassName="local", volumeMode="Block"))
        script = "head -c 19 /dev/disk; echo; printf written | dd of=/dev/disk bs=512 seek=1 conv=notrunc 2> /dev/null; sync; sleep 1000"
        main = coracle.container(command=coracle.shell(script), volumeDevices=[{"name": "data", "devicePath": "/dev/disk"}])
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        node.put("a.yaml", coracle.pod("a", main, volumes=volumes, terminationGracePeriodSeconds=1))
        node.wait_running("a")
        until(lambda: "what is on the disk" in node.logs("a"), 10, lambda: f"what the container reads: {node.logs('a')}")
        until(lambda: read_bytes(file, 512, 7) == b"written", 10, "what the container writes")
        node.put("b.yaml", user("b", "data"))
        until(lambda: any("volumeMode Block" in m for m in failures(node, "b")), 20, lambda: f"an event: {failures(node, 'b')}")
        node.remove("a.yaml", "b.yaml")
        node.wait_gone("a", "b")
    finally:
        run("losetup", "-d", device)


def test_missing_programs(t):
    """a missing program is reported with its package; such a pod can be removed, and others start"""
    node = t.node()
    node.import_image()
    sources = {"nfs": {"nfs": {"server": "127.0.0.1", "path": "/none"}},
               "iscsi": {"iscsi": {"targetPortal": "127.0.0.1:1", "iqn": "iqn.2026-11.test:disk", "lun": 0}}}
    for name, source in sources.items():
        node.put(f"{name}.yaml", coracle.pod(name, coracle.container(volumeMounts=[coracle.mount("v", "/v")]), volumes=[{"name": "v", **source}],
                                             terminationGracePeriodSeconds=0))
    node.put("other.yaml", coracle.pod("other", coracle.container()))
    for name, program, package, step in (("nfs", "mount.nfs", "nfs-common", "SetUp"), ("iscsi", "iscsiadm", "open-iscsi", "WaitForAttach")):
        until(lambda: failures(node, name), 30, "an event")
        if shutil.which(program) is None:
            contains(failures(node, name)[0], f'MountVolume.{step} failed for volume "v" : program {program} is missing on this node: install {package}')
    node.wait_running("other")
    node.remove("nfs.yaml", "iscsi.yaml")
    node.wait_gone("nfs", "iscsi")


WWN = "500a0982991b8dc5"


def fc_link(t, name, device):
    """A disk of a Fibre Channel network as udev names it; the disk itself is a loop device."""
    os.makedirs("/dev/disk/by-path", exist_ok=True)
    path = f"/dev/disk/by-path/{os.path.basename(t.scratch)}-fc-0x{name}-lun-3"
    os.symlink(device, path)
    return path


def fc_volume(name, mode="Filesystem", wwn=WWN):
    return volume(name, {"fc": {"targetWWNs": [wwn], "lun": 3, "fsType": "ext4"}}, volumeMode=mode, storageClassName="fc")


def test_fc(t):
    """A disk of fc: found by its WWN, formatted, mounted once for two pods; then as a block device, which containers get; nothing is left"""
    node = t.node()
    node.import_image()
    file = os.path.join(t.scratch, "disk.img")
    with open(file, "wb") as image:
        image.truncate(64 << 20)
    device = run("losetup", "-f", "--show", file).stdout.strip()
    wwn = WWN[:8] + f"{os.getpid() % 0xffffffff:08x}"
    link = fc_link(t, wwn, device)
    place = f"{node.root_dir}/plugins/kubernetes.io/fc"
    try:
        node.put("pv.yaml", fc_volume("disk", wwn=wwn))
        node.put("c.yaml", claim("data", storageClassName="fc", volumeName="disk"))
        for name in "ab":
            node.put(f"{name}.yaml", user(name, "data", "echo kept > /data/file; sync; sleep 1000"))
        node.wait_running("a", "b")
        equal([m for m in mounts_below(node.root_dir) if m.startswith(place)], [f"{place}/{wwn}-lun-3"], "the disk")
        node.remove("a.yaml", "b.yaml")
        node.wait_gone("a", "b")
        equal(mounts_below(node.root_dir), [], "mounts")
        equal(os.listdir(place), [], "folders of disks")
        node.remove("c.yaml", "pv.yaml")
        node.put("pv2.yaml", fc_volume("raw", "Block", wwn))
        node.put("c2.yaml", claim("raw", storageClassName="fc", volumeName="raw", volumeMode="Block"))
        script = "printf %d $((0x$(dd if=/dev/disk bs=1 skip=1080 count=2 2> /dev/null | od -An -tx2 | tr -d ' '))); sleep 1000"
        main = coracle.container(command=coracle.shell(script), volumeDevices=[{"name": "data", "devicePath": "/dev/disk"}])
        for name in "cd":
            node.put(f"{name}.yaml", coracle.pod(name, main, terminationGracePeriodSeconds=0,
                                                 volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "raw"}}]))
        node.wait_running("c", "d")
        until(lambda: node.logs("c") == str(0xef53), 10, lambda: f"the mark of ext4 that the container reads: {node.logs('c')}")
        uid, folder = node.pod("c").uid, f"{place}/volumeDevices/{wwn}-lun-3"
        check(f"{folder}/{uid}" in mounts_below(node.root_dir), f"the device is bound: {mounts_below(node.root_dir)}")
        equal(os.readlink(f"{node.root_dir}/pods/{uid}/volumeDevices/kubernetes.io~fc/raw"), f"{folder}/{uid}", "the link")
        words = 'MapVolume.MapPodDevice succeeded for volume "raw" '
        equal(sorted(e["message"] for e in node.events("c") if e["reason"] == "SuccessfulMountVolume"),
              [f'{words}globalMapPath "{folder}"', f'{words}volumeMapPath "{node.root_dir}/pods/{uid}/volumeDevices/kubernetes.io~fc"'], "events")
        node.kill()
        node.start()
        node.wait_running("c", "d")
        node.remove("c.yaml")
        node.wait_gone("c")
        equal(len(os.listdir(folder)), 1, "the other pod's device")
        node.remove("d.yaml")
        node.wait_gone("d")
        equal(mounts_below(node.root_dir), [], "mounts")
        equal(os.listdir(f"{place}/volumeDevices"), [], "folders of devices")
        node.put("e.yaml", user("e", "raw"))
        until(lambda: any("volumeMode Block, but is specified in volumeMounts" in m for m in failures(node, "e")), 20, lambda: f"{failures(node, 'e')}")
    finally:
        os.unlink(link)
        for folder in ("/dev/disk/by-path", "/dev/disk"):
            if not os.listdir(folder):  # it was made for this test
                os.rmdir(folder)
        run("losetup", "-d", device)
