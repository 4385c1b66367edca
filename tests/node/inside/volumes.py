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
    return run("iscsiadm", "-m", "session", ok=False).stdout.count(IQN)


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


def nfs():
    source = {"nfs": {"server": "127.0.0.1", "path": "/"}}
    node.put("share.yaml", volume("share", "nfs", source, mountOptions=["nfsvers=4.2", "noatime"]), claim("share", "nfs"))
    node.put("stays.yaml", user("stays", "while true; do date +%s > /data/stays; sleep 1; done", "share"))
    node.put("goes.yaml", user("goes", "while true; do date +%s > /data/goes; sleep 1; done", nfs={"server": "127.0.0.1", "path": "/"}))
    node.put("reads.yaml", user("reads", "touch /data/x && echo written || echo refused; sleep 1000",
                                nfs={"server": "127.0.0.1", "path": "/", "readOnly": True}))
    running("stays", "goes", "reads")
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
    removed = False
    while time.monotonic() - start < seconds:
        answers.append(answer())
        if not removed and time.monotonic() - start > 5:
            node.remove("goes.yaml", "waits.yaml")
            removed = True
        time.sleep(0.2)
    running("other")
    node.wait_gone("goes", "waits")
    left = [m for m in mounts("nfs4") if "stays" not in m and "share" not in m and "pods" in m]
    equal(left, [], "mounts of pods that are gone")
    answers.sort()
    median = answers[len(answers) // 2]
    print(f"{len(answers)} answers while the server was frozen, in ms: median {median * 1000:.0f}, most {answers[-1] * 1000:.0f}; "
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
