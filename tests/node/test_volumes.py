# SPDX-License-Identifier: Apache-2.0
"""volumes - NFS by the kernel's server, frozen for a while, and iSCSI by tgt: what is mounted, who waits, and what ends."""
PACKAGES = "nfs-kernel-server nfs-common open-iscsi tgt"
OPTIONS = {"memory": 1152, "cpus": 2}


def suite(t):
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    with t.step("the servers and the service run"):
        vm.call("volumes.begin", deadline=400)
    with t.step("iSCSI: a disk is formatted, two pods share it, the session ends with the last, the data stays"):
        vm.call("volumes.iscsi", deadline=600)
    with t.step("NFS: a PersistentVolume with mount options, an inline volume, read-only"):
        vm.call("volumes.nfs", deadline=400)
    with t.step("the server is frozen: the node answers, other pods start, a frozen pod is deleted by force"):
        vm.call("volumes.frozen", 60 if t.long else 30, deadline=600)
    with t.step("the server is back: the pod that stayed goes on, and the volume is mounted again"):
        vm.call("volumes.thawed", deadline=400)
    with t.step("the server is frozen again: systemctl poweroff ends the pod and the machine"):
        vm.call("volumes.freeze", deadline=200)
        vm.poweroff()
