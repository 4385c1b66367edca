# SPDX-License-Identifier: Apache-2.0
"""The agent is killed while a pod that it evicted takes its time to end: the next agent waits for that pod, and no other goes."""
from coracle import check, container, equal, mount, pod, shell, until
from test_eviction import MIB, full, hog, small_disk, small_node

STUBBORN = "trap '' TERM; while true; do sleep 3600 & wait $!; done"
SOFT = ("--eviction-soft=nodefs.available<100Mi", "--eviction-soft-grace-period=nodefs.available=500ms", "--eviction-max-pod-grace-period=12",
        "--eviction-pressure-transition-period=1s")


def restart_amid(node, *innocents):
    """Kills the agent while `big` ends, and looks at who is left when it has ended."""
    until(lambda: any(e["reason"] == "Evicted" for e in node.events("big")), 30, "big is evicted")
    check(node.container_pids(node.pod("big")), "big has ended too early for this test")
    before = {name: (node.pod(name).container_id(), node.pod(name).restarts()) for name in innocents}
    node.kill()
    node.start()
    big = node.wait_phase("big", "Failed", deadline=40)
    equal((big.status["reason"], big.state()[1]["exitCode"]), ("Evicted", 137), "big")
    for name in innocents:
        equal(node.pod(name).phase, "Running", name)
        equal((node.pod(name).container_id(), node.pod(name).restarts()), before[name], name)
        check(not any(e["reason"] == "Evicted" for e in node.events(name)), f"{name} was evicted")
    items = [i for i in node.get("/evictions")["items"] if i.get("victims")]
    equal([[v["pod"] for v in i["victims"]] for i in items], [["default/big"]], "decisions")
    until(lambda: node.get("/evictions")["items"][-1].get("outcome"), 10, "its end is recorded")


def test_memory(t):
    """memory: the next agent knows that the pod's memory is about to be released"""
    node = small_node(t, "--eviction-pressure-transition-period=1s")
    for name in ("one", "two"):
        node.put(f"{name}.yaml", hog(name, 60))
    full(node, "one", "two")
    # Slowly, so that it is asked to end and has two seconds.
    slowly = f"trap '' TERM; for i in $(seq 600); do head -c {MIB} /dev/zero >> /m/x; sleep 0.04; done; "
    node.put("big.yaml", hog("big", 0, after=slowly, restartPolicy="Never"))
    restart_amid(node, "one", "two")
    node.finish(*(node.pod(n) for n in ("one", "two", "big")))
    node.stop()


def test_disk(t):
    """disk: the next agent knows what the pod had when it was chosen"""
    with small_disk(t, "kubelet", 256):
        node = t.node("--eviction-hard=nodefs.available<1Mi", *SOFT)
        node.import_image()
        e, disk = [mount("e", "/e")], [{"name": "e", "emptyDir": {}}]
        for name, size in (("one", 20), ("two", 20)):
            fill = f"head -c {size * MIB} /dev/zero > /e/x; echo full; {STUBBORN}"
            node.put(f"{name}.yaml", pod(name, container(command=shell(fill), volumeMounts=e), volumes=disk, terminationGracePeriodSeconds=1))
        full(node, "one", "two")
        fill = f"head -c {120 * MIB} /dev/zero > /e/x; {STUBBORN}"
        node.put("big.yaml", pod("big", container(command=shell(fill), volumeMounts=e), volumes=disk, restartPolicy="Never", terminationGracePeriodSeconds=12))
        restart_amid(node, "one", "two")
        node.finish(*(node.pod(n) for n in ("one", "two", "big")))
        node.stop()
