# SPDX-License-Identifier: Apache-2.0
"""volumes - NFS by the kernel's server, frozen for a while, and iSCSI by tgt: what is mounted, who waits, and what ends.  TEXTs choose among the steps."""
PACKAGES = "nfs-kernel-server nfs-common open-iscsi tgt multipath-tools"
OPTIONS = {"memory": 1152, "cpus": 2}
NFS = ("nfs", "frozen", "thawed")  # each needs those before it
STEPS = [
    ("iSCSI: a disk is formatted, two pods share it, the session ends with the last, the data stays", "iscsi", 600),
    ("iSCSI: CHAP of the session and of the discovery; a wrong password is told", "chap", 600),
    ("iSCSI: an initiator name of its own and two portals: one disk by two paths, with multipath", "portals", 400),
    ("iSCSI: a block device", "block", 400),
    ("iSCSI: the agent is killed at each step of login, mount and logout: nothing is left, nothing is there twice", "iscsi_kills", 1500),
    ("NFS: a PersistentVolume with mount options, an inline volume, read-only", "nfs", 400),
    ("NFS: the server is frozen: the node answers, other pods start, a frozen pod is deleted by force", "frozen", 600),
    ("NFS: the server is back: the pod that stayed goes on, and the volume is mounted again", "thawed", 400),
]


def suite(t):
    vm = t.vm()
    chosen = [step for step in STEPS if not t.words or any(word in step[0] for word in t.words)]
    with t.step("the VM boots"):
        vm.boot()
    with t.step("the servers and the service run"):
        vm.call("volumes.begin", deadline=400)
    for title, function, deadline in chosen:
        with t.step(title):
            vm.call(f"volumes.{function}", *((60 if t.long else 30,) if function == "frozen" else ()), deadline=deadline)
    if not {function for _, function, _ in chosen} >= set(NFS):
        return
    with t.step("NFS: the server is frozen again: systemctl poweroff ends the pod and the machine"):
        vm.call("volumes.freeze", deadline=200)
        vm.poweroff()
