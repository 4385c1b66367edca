"""What stands in the cgroups of 80 pods, their classes and the node, against a table worked out by hand (limits_table.py)."""
import contextlib

import limits_check
import limits_table
from coracle import Skip, check, cgroup_v2, equal
from test_volumes_hugepages import pages


def with_settings(t, text):
    path = f"{t.scratch}/config.yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + text)
    node = t.node("--config", path)
    node.import_image()
    return node


def test_table(t):
    """cgroups of pods, containers, classes and node stand as the table says, over a restart of the agent, too"""
    node = t.node()
    node.import_image()
    restarts = []

    def after(batch):
        if restarts:
            return False
        restarts.append(batch)
        node.kill()
        node.start()
        for row in batch:
            p = node.wait_pod(row.name, lambda p: p.ready)
            limits_check.check_row(node, p, row, 100000, "max")
        return True

    check(len(limits_table.TABLE) >= 60, "at least 60 rows")
    limits_check.run_table(node, limits_table.TABLE, after=after)
    equal(node.stop(), 0, "exit code")


def test_tiers(t):
    """with reservations, MemoryQoS, a quota period and podPidsLimit: protection, throttling and all limits follow"""
    node = with_settings(t, limits_table.TIERS)
    limits_check.run_table(node, limits_table.TIERS_TABLE, 10000, 64, (500, 100, 1024), protects=True)
    equal(node.stop(), 0, "exit code")


def test_loose(t):
    """without quotas, enforcement and group kills there are none, but for pods whose annotation asks for these"""
    node = with_settings(t, limits_table.LOOSE)
    limits_check.run_table(node, limits_table.LOOSE_TABLE)
    equal(node.stop(), 0, "exit code")


def test_huge_pages(t):
    """every page size of the machine is limited to what is asked for, 0 where nothing is"""
    with contextlib.ExitStack() as stack:
        stack.enter_context(pages(8))
        node = t.node()
        node.import_image()
        if not cgroup_v2() and limits_check.folder(node, "hugetlb", "") is None:
            raise Skip("the hugetlb controller is mounted in no usual place here")
        limits_check.run_table(node, limits_table.HUGE)
        equal(node.stop(), 0, "exit code")


test_table.seconds = 120
