# SPDX-License-Identifier: Apache-2.0
"""pressure - a pod fills a disk as fast as the VM writes: it is evicted, nobody else is, and the node is well again; images go before pods."""
OPTIONS = {"disks": {"xfs": "xfs"}}
LONG_S = 600


def suite(t):
    vm = t.vm()

    def step(title, function, *args):
        with t.step(title):
            print(f"# {title}: {vm.call('pressure.' + function, *args, deadline=LONG_S)}", flush=True)

    with t.step("the VM boots"):
        vm.boot()
    step("pods run on XFS with project quotas", "begin", "xfs", "xfs")
    step("an image that nobody uses goes before a pod", "unused_image", "nodefs.available", 100)
    step("an emptyDir filled at full speed, a tenth of the disk as the threshold", "full_speed", "nodefs.available", 10)
