# SPDX-License-Identifier: Apache-2.0
"""volumes - NFS and iSCSI servers in this VM, and pods with their volumes.  Called by test_volumes.py."""
import os
import time

from coracle import check, container, equal, mount, pod, read, run, shell, until
from node import node

IQN = "iqn.2026-11.dev.coracle:disk"
EXPORT = "/srv/nfs"
RULE = ("-p", "tcp", "--dport", "2049", "-j", "DROP")
ANSWER_S = 0.05  # of `get pods`; emulation, and what else this machine does, come on top: see usual()


def mounts(part):
    return [line.split()[4] for line in read("/proc/self/mountinfo").splitlines() if part in line]


def volume(name, cls, source, **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "storageClassName": cls, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], **source, **spec}}


def claim(name, cls):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteMany"], "storageClassName": cls, "resources": {"requests": {"storage": "1Gi"}}}}


def user(name, text, claim_name=None, **source):
    source = source or {"persistentVolumeClaim": {"claimName": claim_name}}
    main = container(command=shell(text), volumeMounts=[mount("data", "/data")])
    return pod(name, main, volumes=[{"name": "data", **source}], terminationGracePeriodSeconds=1)


def failures(name):
    return [e["message"] for e in node.events(name) if e["type"] == "Warning"]


def running(*names):
    until(lambda: all(node.pod(n) is not None and node.pod(n)["status"]["phase"] == "Running" for n in names), 30,
          lambda: f"{names} run: {[failures(n) for n in names]}")


def begin():
    os.makedirs(EXPORT)
    with open("/etc/exports", "w", encoding="ascii") as f:
        f.write(f"{EXPORT} *(rw,sync,fsid=0,no_root_squash,no_subtree_check,insecure)\n")
    run("systemctl", "start", "nfs-server", timeout=200)
    run("truncate", "-s", "64M", "/srv/disk.img")
    run("systemctl", "start", "tgt", "iscsid", timeout=200)
    run("tgtadm", "--lld", "iscsi", "--op", "new", "--mode", "target", "--tid", "1", "-T", IQN)
    run("tgtadm", "--lld", "iscsi", "--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", "/srv/disk.img")
    run("tgtadm", "--lld", "iscsi", "--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")
    run("systemctl", "enable", "--now", "coracle.service")
    node.wait_active()
    node.import_image()


def sessions():
    return run("iscsiadm", "-m", "session", ok=False).stdout.split().count(IQN)


def iscsi():
    source = {"iscsi": {"targetPortal": "127.0.0.1", "iqn": IQN, "lun": 1, "fsType": "ext4"}}
    node.put("disk.yaml", volume("disk", "san", source), claim("disk", "san"))
    node.put("a.yaml", user("a", "echo kept > /data/file; sleep 1000", "disk"))
    node.put("b.yaml", user("b", "sleep 1000", "disk"))
    running("a", "b")
    place = f"/var/lib/kubelet/plugins/kubernetes.io/iscsi/iface-default/127.0.0.1:3260-{IQN}-lun-1"
    equal(mounts("/plugins/kubernetes.io/iscsi/"), [place], "the disk")
    equal(sessions(), 1, "sessions")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(sessions(), 1, "sessions of the pod that stays")
    node.remove("b.yaml")
    node.wait_gone("b")
    equal(mounts("kubernetes.io~iscsi") + mounts("/plugins/kubernetes.io/iscsi/"), [], "mounts")
    until(lambda: sessions() == 0, 10, "the end of the session")
    node.put("c.yaml", user("c", "cat /data/file; sleep 1000", **source))
    running("c")
    until(lambda: node.logs("c").strip() == "kept", 10, lambda: f"the data: {node.logs('c')}")
    node.remove("c.yaml", "disk.yaml")
    node.wait_gone("c")


def tgt(*words):
    run("tgtadm", "--lld", "iscsi", *words)


def more_target(tid, name, *, user=None):
    """Another target with a disk of its own."""
    run("truncate", "-s", "48M", f"/srv/disk{tid}.img")
    tgt("--op", "new", "--mode", "target", "--tid", str(tid), "-T", name)
    tgt("--op", "new", "--mode", "logicalunit", "--tid", str(tid), "--lun", "1", "-b", f"/srv/disk{tid}.img")
    tgt("--op", "bind", "--mode", "target", "--tid", str(tid), "-I", "ALL")
    if user:
        tgt("--op", "bind", "--mode", "account", "--tid", str(tid), "--user", user)


def all_let_go(name):
    equal(mounts("kubernetes.io~iscsi") + mounts("/plugins/kubernetes.io/iscsi/"), [], "mounts")
    until(lambda: name not in run("iscsiadm", "-m", "session", ok=False).stdout.split(), 20, "the end of the sessions")
    check(name not in run("iscsiadm", "-m", "node", ok=False).stdout.split(), "records of the target are left")  # a discovery makes those of others, too


def secret(name, **data):
    return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/iscsi-chap", "metadata": {"name": name}, "stringData": data}


def chap():
    # Of the session: a wrong password is told, the right one mounts.
    name = IQN + ".chap"
    tgt("--op", "new", "--mode", "account", "--user", "us", "--password", "secret-of-us")
    more_target(2, name, user="us")
    keys = {"node.session.auth.username": "us", "node.session.auth.password": "secret-of-us"}
    source = {"targetPortal": "127.0.0.1", "iqn": name, "lun": 1, "fsType": "ext4", "chapAuthSession": True, "secretRef": {"name": "chap"}}
    node.put("secret.yaml", secret("chap", **{**keys, "node.session.auth.password": "another"}))
    node.put("a.yaml", user("a", "sleep 1000", iscsi=source))
    until(lambda: any("failed to attach disk" in m for m in failures("a")), 60, lambda: f"the refusal: {failures('a')}")
    check(not any("another" in m for m in failures("a")), "the password is in an event")
    node.put("secret.yaml", secret("chap", **keys))
    running("a")
    node.remove("a.yaml")
    node.wait_gone("a")
    all_let_go(name)
    # Of the discovery, too.
    tgt("--op", "new", "--mode", "account", "--user", "finder", "--password", "secret-of-finder")
    tgt("--op", "bind", "--mode", "account", "--user", "finder")
    finds = {"discovery.sendtargets.auth.username": "finder", "discovery.sendtargets.auth.password": "secret-of-finder"}
    node.put("b.yaml", user("b", "sleep 1000", iscsi=source))
    until(lambda: any("failed to sendtargets to portal" in m for m in failures("b")), 60, lambda: f"a discovery without a password: {failures('b')}")
    node.remove("b.yaml")
    node.wait_gone("b")
    node.put("secret.yaml", secret("chap", **keys, **finds))
    node.put("c.yaml", user("c", "sleep 1000", iscsi={**source, "chapAuthDiscovery": True}))
    running("c")
    node.remove("c.yaml", "secret.yaml")
    node.wait_gone("c")
    all_let_go(name)
    tgt("--op", "unbind", "--mode", "account", "--user", "finder")

def portals():
    """An initiator name, and two portals: one disk by two paths."""
    name = IQN + ".two"
    more_target(3, name)
    multipath = run("modprobe", "dm_multipath", ok=False).returncode == 0
    print(f"multipath: {'yes' if multipath else 'this kernel has none'}")
    if multipath:
        with open("/etc/multipath.conf", "w", encoding="ascii") as f:
            f.write("defaults {\n find_multipaths no\n user_friendly_names yes\n}\n")
        run("systemctl", "restart", "multipathd", timeout=200)
    source = {"targetPortal": "127.0.0.1", "portals": ["127.0.0.2"], "iqn": name, "lun": 1, "fsType": "ext4", "initiatorName": "iqn.2026-11.dev.coracle:node7"}
    node.put("d.yaml", user("d", "echo kept > /data/file; sleep 1000", iscsi=source))
    running("d")
    equal(run("iscsiadm", "-m", "session").stdout.count(name), 2, "sessions by two portals")
    check("iqn.2026-11.dev.coracle:node7" in run("tgtadm", "--lld", "iscsi", "--op", "show", "--mode", "target").stdout, "the initiator's name")
    line = next(line for line in read("/proc/self/mountinfo").splitlines() if "/plugins/kubernetes.io/iscsi/" in line)
    check(not multipath or "/dev/mapper/" in line or "/dev/dm-" in line, f"the disk over both paths: {line}")
    node.remove("d.yaml")
    node.wait_gone("d")
    all_let_go(name)
    if multipath:
        check("mpath" not in run("dmsetup", "ls", ok=False).stdout, "the disk over the paths is left")
        run("systemctl", "stop", "multipathd.socket", "multipathd", timeout=200)

def block():
    name = IQN + ".raw"
    more_target(4, name)
    node.put("raw.yaml", volume("raw", "raw", {"iscsi": {"targetPortal": "127.0.0.1", "iqn": name, "lun": 1}}, volumeMode="Block"),
             {**claim("raw", "raw"), "spec": {**claim("raw", "raw")["spec"], "volumeMode": "Block"}})
    main = container(command=shell("printf written | dd of=/dev/disk bs=512 seek=9000 conv=notrunc; sync; sleep 1000"),
                     volumeDevices=[{"name": "data", "devicePath": "/dev/disk"}])
    node.put("e.yaml", pod("e", main, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "raw"}}], terminationGracePeriodSeconds=1))
    running("e")

    def written():
        with open("/srv/disk4.img", "rb") as f:
            f.seek(9000 * 512)
            return f.read(7) == b"written"
    until(written, 30, "what the container writes")
    node.remove("e.yaml", "raw.yaml")
    node.wait_gone("e")
    all_let_go(name)


HOLD = "/run/hold"
# A real program with a stop before or after it, where the arguments have the word.
WRAPPER = """#!/bin/sh
word=$(cat /run/hold/word 2> /dev/null) hit=
case "$* " in *"$word "*) [ -z "$word" ] || hit=1 ;; esac
[ -z "$hit" ] || [ -e /run/hold/after ] || { touch /run/hold/reached; sleep 1000; }
@REAL@ "$@"; code=$?
[ -z "$hit" ] || { touch /run/hold/reached; sleep 1000; }
exit $code
"""


def hold(word, after):
    for name in ("word", "after", "reached"):
        if os.path.exists(f"{HOLD}/{name}"):
            os.unlink(f"{HOLD}/{name}")
    if word is None:
        return
    if after:
        open(f"{HOLD}/after", "w", encoding="ascii").close()
    with open(f"{HOLD}/word", "w", encoding="ascii") as f:
        f.write(word)


def kill_agent():
    before = node.main_pid
    run("systemctl", "kill", "-s", "KILL", "--kill-whom=main", "coracle")
    return before


def iscsi_kills():
    os.makedirs(HOLD)
    for name, real in (("iscsiadm", "/usr/sbin/iscsiadm"), ("mount", "/usr/bin/mount")):
        with open(f"/usr/local/sbin/{name}", "w", encoding="ascii") as f:
            f.write(WRAPPER.replace("@REAL@", real))
        os.chmod(f"/usr/local/sbin/{name}", 0o755)
    inline = {"iscsi": {"targetPortal": "127.0.0.1", "iqn": IQN, "lun": 1, "fsType": "ext4"}}
    folder = "/var/lib/kubelet/plugins/kubernetes.io/iscsi/iface-default"
    steps = [("--discover", False, False), ("--login", False, False), ("--login", True, True), ("--login", True, False), (f"{IQN}-lun-1", False, False),
             (f"{IQN}-lun-1", True, True), ("--logout", False, False), ("--logout", True, False), ("-o delete", False, False)]
    for number, (word, after, stays) in enumerate(steps):
        what, name = f"{word} {'after' if after else 'before'} {'(the pod stays)' if stays else ''}", f"k{number}"
        ends = word in ("--logout", "-o delete")
        node.put(f"{name}.yaml", user(name, "sleep 1000", **inline))
        if ends:
            running(name)
            hold(word, after)
            node.remove(f"{name}.yaml")
        else:
            hold(word, after)
        until(lambda: os.path.exists(f"{HOLD}/reached"), 60, f"{what} is reached")  # noqa: B023
        before = kill_agent()
        hold(None, False)
        if not ends and not stays:
            node.remove(f"{name}.yaml")
        node.wait_active(before)
        if stays:
            running(name)
            equal(sessions(), 1, f"{what}: sessions")
            equal(len(mounts("/plugins/kubernetes.io/iscsi/")), 1, f"{what}: mounts of the disk")
            node.remove(f"{name}.yaml")
        until(lambda: node.pod(name) is None, 60, f"{what}: the pod is gone")  # noqa: B023
        all_let_go(IQN)
        equal(os.listdir(folder) if os.path.isdir(folder) else [], [], f"{what}: folders of disks")
        print(f"killed at {what}: nothing is left")
    for name in ("iscsiadm", "mount"):
        os.unlink(f"/usr/local/sbin/{name}")


def nfs():
    source = {"nfs": {"server": "127.0.0.1", "path": "/"}}
    node.put("share.yaml", volume("share", "nfs", source, mountOptions=["nfsvers=4.2", "noatime"]), claim("share", "nfs"))
    node.put("stays.yaml", user("stays", "while true; do date +%s > /data/stays; sleep 1; done", "share"))
    node.put("goes.yaml", user("goes", "while true; do date +%s > /data/goes; sleep 1; done", nfs={"server": "127.0.0.1", "path": "/"}))
    node.put("reads.yaml", user("reads", "touch /data/x && echo written || echo refused; sleep 1000",
                                nfs={"server": "127.0.0.1", "path": "/", "readOnly": True}))
    running("stays", "goes", "reads")
    until(lambda: any("capacityBytes" in v for p in node.get("/stats/summary")["pods"] if p["podRef"]["name"] == "stays" for v in p.get("volume", [])), 30,
          "the figures of the volume")
    until(lambda: os.path.exists(f"{EXPORT}/stays") and os.path.exists(f"{EXPORT}/goes"), 20, "what the pods write")
    until(lambda: "refused" in node.logs("reads"), 10, lambda: f"the read-only volume: {node.logs('reads')}")
    line = next(line for line in read("/proc/self/mountinfo").splitlines() if "/kubernetes.io~nfs/share " in line)
    check("noatime" in line and "vers=4.2" in line, line)
    node.remove("reads.yaml")
    node.wait_gone("reads")


def freeze():
    for table in ("INPUT", "OUTPUT"):
        run("iptables", "-I", table, *RULE)


def thaw():
    for table in ("INPUT", "OUTPUT"):
        run("iptables", "-D", table, *RULE)


def answer():
    before = time.monotonic()
    node.get("/api/v1/pods")
    return time.monotonic() - before


def usual():
    """How long an answer takes here while nothing is frozen."""
    return sorted(answer() for _ in range(20))[10]


def frozen(seconds):
    before = usual()
    freeze()
    start, answers = time.monotonic(), []
    node.put("other.yaml", pod("other", container(), terminationGracePeriodSeconds=1))
    node.put("waits.yaml", user("waits", "sleep 1000", nfs={"server": "127.0.0.1", "path": "/"}))
    removed = gone = None
    while time.monotonic() - start < seconds:
        answers.append(answer())
        if not removed and time.monotonic() - start > 5:
            node.cli("delete", "pod", "goes", "--force", "--grace-period=0", "--wait=false")
            node.remove("waits.yaml")
            removed = time.monotonic()
        if removed and not gone and node.pod("goes") is None:
            gone = time.monotonic() - removed
        time.sleep(0.2)
    check(gone, "the pod that was deleted by force is in the list while the server is frozen")
    print(f"the pod that was deleted by force was gone after {gone:.1f} s")
    running("other")
    node.wait_gone("goes", "waits")
    left = [m for m in mounts("nfs4") if "stays" not in m and "share" not in m and "pods" in m]
    equal(left, [], "mounts of pods that are gone")
    answers.sort()
    median = answers[len(answers) // 2]
    figures = {p["podRef"]["name"]: v for p in node.get("/stats/summary")["pods"] for v in p.get("volume", []) if v["name"] == "data"}
    check(figures.get("stays", {}).get("capacityBytes", 0) > 0, f"the last figures of the frozen volume: {figures}")
    print(f"{len(answers)} answers while the server was frozen, in ms: median {median * 1000:.0f}, 99% {answers[len(answers) * 99 // 100] * 1000:.0f}, "
          f"most {answers[-1] * 1000:.0f}; "
          f"median before {before * 1000:.0f}")
    check(median < ANSWER_S + 4 * before, f"answers took {median} s, before {before} s")


def thawed():
    thaw()
    before = os.stat(f"{EXPORT}/stays").st_mtime
    until(lambda: os.stat(f"{EXPORT}/stays").st_mtime > before, 60, "the pod that stayed writes again")
    node.put("again.yaml", user("again", "sleep 1000", nfs={"server": "127.0.0.1", "path": "/"}))
    running("again")
    node.remove("again.yaml")
    node.wait_gone("again")
