# SPDX-License-Identifier: Apache-2.0
"""Processors of their own: cpusets of containers, what is shared, the state file, restarts, and settings that do not fit."""
import json
import os

import devices
from coracle import cgroup_v2, check, container, contains, equal, pod, read, run, until

CPUS = os.sysconf("SC_NPROCESSORS_ONLN")
FLAGS = ("--cpu-manager-policy", "static", "--reserved-cpus", "0")


def cpus_of(node, p, name=None):
    return read(node.container_cgroup(p, "cpuset", name) + "/cpuset.cpus").strip()


def count(text):
    ends = [[int(n) for n in part.split("-")] for part in text.split(",") if part]
    return sum(end[-1] - end[0] + 1 for end in ends)


def wait_cpus(node, p, number, what):
    until(lambda: count(cpus_of(node, p)) == number, 20, lambda: f"{what}: {number} processors, not {cpus_of(node, p)}")


def quota(node, p):
    folder = node.container_cgroup(p, "cpu")
    return read(folder + "/cpu.max").split()[0] if cgroup_v2() else read(folder + "/cpu.cfs_quota_us").strip()


def state(node):
    return json.loads(read(node.root_dir + "/cpu_manager_state"))


def memory_limit(node, p):
    return read(node.container_cgroup(p, "memory") + ("/memory.max" if cgroup_v2() else "/memory.limit_in_bytes")).strip()


def sized(name, cpu, memory="32Mi", **more):
    return container(name, resources={"limits": {"cpu": cpu, "memory": memory}}, **more)


def test_exclusive(t):
    """a Guaranteed pod gets whole processors exclusively, others share the rest, also over a kill of the agent"""
    if CPUS < 2:
        return
    node = t.node(*FLAGS)
    node.import_image()
    node.put("shared.yaml", pod("shared", containers=[container("main")]))
    shared = node.wait_running("shared")
    wait_cpus(node, shared, CPUS, "shared alone")

    node.put("own.yaml", pod("own", containers=[sized("main", "1")]))
    own = node.wait_running("own")
    wait_cpus(node, own, 1, "own")
    check(cpus_of(node, own) != "0", "the reserved processor is not given")
    wait_cpus(node, shared, CPUS - 1, "shared beside own")
    check(quota(node, own) in ("-1", "max"), lambda: f"own has no quota: {quota(node, own)}")
    given = cpus_of(node, own)
    equal(state(node)["entries"], {own.uid: {"main": given}}, "the state file")

    node.kill()
    node.start()
    own = node.wait_running("own")
    equal((cpus_of(node, own), own.restarts()), (given, 0), "own after a kill of the agent")
    equal(state(node)["entries"], {own.uid: {"main": given}}, "the state file after a kill")

    node.put("own.yaml", pod("own", containers=[sized("main", "1", "48Mi")]))
    until(lambda: memory_limit(node, own) == str(48 << 20), 20, "its memory can be resized")
    equal((cpus_of(node, own), quota(node, own) in ("-1", "max")), (given, True), "own after a resize of its memory")
    node.put("own.yaml", pod("own", containers=[sized("main", "500m", "48Mi")]))
    own = node.wait_pod("own", lambda p: p.condition("PodResizePending"), what="a resize that is refused")
    equal((own.condition("PodResizePending")["reason"], own.condition("PodResizePending")["message"]),
          ("Infeasible", "Resize is infeasible for Guaranteed Pods alongside CPU Manager policy \"static\""), "why")
    equal(cpus_of(node, own), given, "own after the refusal")
    node.finish(own)
    shared = node.wait_running("shared")
    wait_cpus(node, shared, CPUS, "shared after own")
    equal(state(node).get("entries", {}), {}, "the state file at the end")
    node.stop()


def test_shown(t):
    """processors of a container are in podresources, in the metrics and in the map of `describe node`"""
    if CPUS < 2:
        return
    node = t.node(*FLAGS)
    node.import_image()
    client = devices.Client()
    allocatable = [str(n) for n in range(1, CPUS)]
    equal(client.podresources(node, "GetAllocatableResources"), {"response": {"cpu_ids": allocatable}}, "what can be given")

    node.put("own.yaml", pod("own", containers=[sized("main", "1")]))
    own = node.wait_running("own")
    given = cpus_of(node, own, "main")
    equal(client.podresources(node, "Get", pod_name="own", pod_namespace="default")["response"]["pod_resources"]["containers"],
          [{"name": "main", "cpu_ids": [given]}], "podresources")
    node_map = node.cli("describe", "node").stdout.partition("NUMA nodes:")[2].split("\n")[3:]
    rows = [row.split() for row in node_map if row.strip()]
    contains(rows, ["0", "0", "-", "<reserved>"], "the map of the node")
    check(any(row[1:] == [given, "-", "default/own", "(main)"] for row in rows), lambda: f"the map of the node: {rows}")
    metrics = node.request("GET", "/metrics")[1].decode().split("\n")
    for line in ("kubelet_cpu_manager_pinning_requests_total 1", "kubelet_cpu_manager_exclusive_cpu_allocation_count 1",
                 f"kubelet_cpu_manager_shared_pool_size_millicores {1000 * (CPUS - 2)}",
                 "kubelet_cpu_manager_pinning_errors_total 0"):
        contains(metrics, line, "metrics")
    client.close()
    node.stop()


def test_not_isolated(t):
    """isolateExclusiveCPUs on cgroup v1: containers run on their processors, and the node says what is missing"""
    if CPUS < 2 or cgroup_v2():  # there tests/node/inside/numa.py has it
        return
    node = t.node(*FLAGS, "--isolate-exclusive-cpus")
    node.import_image()
    node.put("own.yaml", pod("own", containers=[sized("main", "1")]))
    own = node.wait_running("own")
    wait_cpus(node, own, 1, "own")
    why = "it needs cgroup v2"
    contains(node.cli("explain", "node").stdout, why, "explain node")
    contains(node.cli("explain", "pod", "own").stdout, f"not isolated: {why}", "explain pod")
    contains(node.cli("describe", "node").stdout, f"default/own (main), not isolated: {why}", "the map of the nodes")
    equal(node.log().count("cannot isolate processors of containers on this machine"), 1, "lines of the log about it")
    node.kill()
    node.start()
    node.wait_running("own")
    until(lambda: why in node.cli("explain", "pod", "own").stdout, 20, "explain pod after a restart")


def test_failed_start(t):
    """an agent that finds no OCI runtime ends with an error, also where containers with processors of their own run"""
    if CPUS < 2:
        return
    node = t.node(*FLAGS)
    node.import_image()
    node.put("own.yaml", pod("own", containers=[sized("main", "1")]))
    node.wait_running("own")
    node.kill()
    ended = run(*node.argv(), "--runtime", "/bin/false", ok=False, timeout=60)
    equal(ended.returncode, 1, "exit code")
    node.start()
    node.wait_running("own")
