# SPDX-License-Identifier: Apache-2.0
"""In-place resize: cpu and memory of running pods, upwards and downwards, what has to wait, and kill -9 in between."""
import os

from coracle import cgroup_v2, check, container, contains, equal, pod, read, shell, until

CPUS = os.sysconf("SC_NPROCESSORS_ONLN")
MIB = 1 << 20
QUICK = {"terminationGracePeriodSeconds": 0}
# Keeps the first argument in memory, as shared memory, until USR1.
HOG = ("trap 'exit 0' TERM; trap 'rm -f /dev/shm/x' USR1; dd if=/dev/zero of=/dev/shm/x bs=1048576 count=%d 2>/dev/null; "
       "echo full; while true; do sleep 0.1; done")


def sized(name, cpu, memory, request=None, **more):
    resources = {"limits": {"cpu": cpu, "memory": memory}}
    if request:
        resources["requests"] = request
    return container(name, resources=resources, **more)


def amounts(folder_of):
    """(cpu quota in us, cpu weight or shares, memory limit) of a cgroup; folder_of: controller -> folder."""
    if cgroup_v2():
        folder = folder_of("memory")
        return read(folder + "/cpu.max").split()[0], int(read(folder + "/cpu.weight")), read(folder + "/memory.max").strip()
    cpu, memory = folder_of("cpu"), folder_of("memory")
    return (read(cpu + "/cpu.cfs_quota_us").strip(), int(read(cpu + "/cpu.shares")),
            read(memory + "/memory.limit_in_bytes").strip())


def of_container(node, p, name=None):
    return amounts(lambda controller: node.container_cgroup(p, controller, name))


def of_pod(node, p, name=None):
    return amounts(lambda controller: os.path.dirname(node.container_cgroup(p, controller, name)))


def memory_is(node, p, mib, name=None):
    return until(lambda: of_container(node, p, name)[2] == str(mib * MIB), 10,
                 lambda: f"{mib} MiB in the container's cgroup, it has {of_container(node, p, name)}")


def settled(p):
    return not p.condition("PodResizeInProgress") and not p.condition("PodResizePending")


def resized(node, name, cpu):
    """Waits until the status shows these cpu limits as actual and nothing is under way."""
    return node.wait_pod(name, lambda p: settled(p) and p.container().get("resources", {}).get("limits", {}).get("cpu") == cpu,
                         what=f"{name} resized to {cpu}")


def start(t, *flags):
    node = t.node(*flags)
    node.import_image()
    return node


def test_up_and_down(t):
    """limits and requests of a running pod change in its cgroups, upwards and downwards, without a restart"""
    node = start(t)
    node.put("a.yaml", pod("a", sized("main", "200m", "64Mi"), **QUICK))
    a = node.wait_running("a")
    pid = node.pid(a)
    before = of_container(node, a)
    equal((before[0], before[2]), ("20000", str(64 * MIB)), "before")
    for cpu, memory in (("300m", 128), ("100m", 32), ("250m", 32)):
        node.put("a.yaml", pod("a", sized("main", cpu, f"{memory}Mi"), **QUICK))
        p = resized(node, "a", cpu)
        equal((p.uid, p.container_id(), p.restarts(), node.pid(p)), (a.uid, a.container_id(), 0, pid), "the same container")
        quota = str(int(cpu[:-1]) * 100)
        equal(of_container(node, p)[0::2], (quota, str(memory * MIB)), f"the container at {cpu}")
        equal(of_pod(node, p), of_container(node, p), f"the pod at {cpu}")
        status = p.container()
        equal(status["resources"], {"limits": {"cpu": cpu, "memory": f"{memory}Mi"}, "requests": {"cpu": cpu, "memory": f"{memory}Mi"}},
              "resources")
        equal(status["allocatedResources"], {"cpu": cpu, "memory": f"{memory}Mi"}, "allocatedResources")
    events = [(e["type"], e["reason"], e["message"]) for e in node.events("a") if e["reason"].startswith("Resize")]
    one = '{"containers":[{"name":"main","resources":{"limits":{"cpu":"300m","memory":"128Mi"},"requests":{"cpu":"300m","memory":"128Mi"}}}]}'
    equal(events[:2], [("Normal", "ResizeStarted", "Pod resize started: " + one), ("Normal", "ResizeCompleted", "Pod resize completed: " + one)],
          "events")
    node.stop()


def test_pod_level(t):
    """a limit of the whole pod reaches containers without their own limit, upwards and downwards"""
    node = start(t)

    def put(cpu, memory):
        node.put("a.yaml", pod("a", container("x"), sized("y", "50m", "32Mi"), resources={"limits": {"cpu": cpu, "memory": memory}}, **QUICK))
    put("200m", "64Mi")
    a = node.wait_running("a")
    equal(of_container(node, a, "x")[0::2], ("20000", str(64 * MIB)), "before")
    for cpu, memory in ((300, 96), (100, 48)):
        put(f"{cpu}m", f"{memory}Mi")
        memory_is(node, a, memory, "x")
        a = node.wait_pod("a", settled)
        equal(of_container(node, a, "x")[0], str(cpu * 100), f"quota of the one without limits, the pod at {cpu}m")
        equal(of_pod(node, a, "x")[0::2], (str(cpu * 100), str(memory * MIB)), f"the pod at {cpu}m")
        equal(of_container(node, a, "y")[0::2], ("5000", str(32 * MIB)), "the one with its own")
    equal([node.pod("a").restarts(c) for c in "xy"], [0, 0], "restarts")
    node.stop()


def test_limits_come_and_go(t):
    """limits of a Burstable pod can be added and removed; containers of a pod change in parallel"""
    node = start(t)
    none = {"cpu": "100m", "memory": "16Mi"}
    node.put("a.yaml", pod("a", sized("x", "400m", "64Mi", none), sized("y", "100m", "32Mi", none), **QUICK))
    a = node.wait_running("a")
    node.put("a.yaml", pod("a", sized("x", "100m", "32Mi", none), sized("y", "500m", "96Mi", {"cpu": "200m", "memory": "16Mi"}), **QUICK))
    memory_is(node, a, 96, "y")
    memory_is(node, a, 32, "x")
    a = node.wait_pod("a", settled)
    equal((of_container(node, a, "x")[0], of_container(node, a, "y")[0], of_pod(node, a, "x")[0]), ("10000", "50000", "60000"), "quotas")
    equal(of_pod(node, a, "x")[2], str(128 * MIB), "memory of the pod")
    node.put("a.yaml", pod("a", container("x", resources={"requests": none}), sized("y", "500m", "96Mi", none), **QUICK))
    unlimited = "max" if cgroup_v2() else "-1"
    until(lambda: of_container(node, a, "x")[0] == unlimited, 10, "no quota")
    equal(of_pod(node, a, "x")[0], unlimited, "the pod's quota")
    equal([node.pod("a").restarts(c) for c in "xy"], [0, 0], "restarts")
    node.stop()


def test_restart_where_the_policy_says_so(t):
    """a container with resizePolicy RestartContainer is restarted with its new limits; the other one keeps running"""
    node = start(t)
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}, {"resourceName": "cpu", "restartPolicy": "NotRequired"}]

    def spec(cpu, memory):
        return pod("a", sized("again", cpu, memory, resizePolicy=policy), sized("stays", cpu, memory), **QUICK)

    node.put("a.yaml", spec("100m", "32Mi"))
    a = node.wait_running("a")
    node.put("a.yaml", spec("200m", "32Mi"))  # a change of cpu alone needs no restart
    until(lambda: of_container(node, a, "again")[0] == "20000", 10, "the new quota")
    node.put("a.yaml", spec("200m", "64Mi"))
    now = node.wait_pod("a", lambda p: p.restarts("again") == 1 and p.state("again")[0] == "running" and settled(p))
    memory_is(node, now, 64, "again")
    memory_is(node, now, 64, "stays")
    equal((now.uid, now.container_id("stays"), now.restarts("stays")), (a.uid, a.container_id("stays"), 0), "the other one")
    equal(of_pod(node, now, "stays")[2], str(128 * MIB), "the pod")
    node.put("a.yaml", spec("200m", "32Mi"))  # and back
    now = node.wait_pod("a", lambda p: p.restarts("again") == 2 and p.state("again")[0] == "running" and settled(p))
    equal(of_pod(node, now, "stays")[2], str(64 * MIB), "the pod")
    check(not any(e["reason"] == "ResizeError" for e in node.events("a")), lambda: f"events: {node.events('a')}")
    check(any(e["reason"] == "Killing" and e["message"] == "Container again resize requires restart" for e in node.events("a")),
          lambda: f"events: {node.events('a')}")
    node.stop()


def test_deferred_and_infeasible(t):
    """a resize that does not fit waits with kubelet's text, and is done when another pod has ended; the rest of the edit does not wait"""
    node = start(t)
    node.put("other.yaml", pod("other", container(resources={"requests": {"cpu": f"{CPUS * 500}m"}}), **QUICK))
    request = {"memory": "16Mi"}

    def asks(cpu, label="1"):
        return pod("a", container(resources={"requests": {"cpu": cpu, **request}}), labels={"v": label}, **QUICK)

    node.put("a.yaml", asks("100m"))
    a = node.wait_running("a", "other")
    node.put("a.yaml", asks(f"{CPUS * 600}m", "2"))
    p = node.wait_pod("a", lambda p: p.condition("PodResizePending"))
    condition = p.condition("PodResizePending")
    text = f"Node didn't have enough resource: cpu, requested: {CPUS * 600}, used: {CPUS * 500}, capacity: {CPUS * 1000}"
    equal((condition["status"], condition["reason"], condition["message"]), ("True", "Deferred", text), "the condition")
    equal((p["metadata"]["labels"]["v"], p["spec"]["containers"][0]["resources"]["requests"]["cpu"]), ("2", f"{CPUS * 600}m"), "the spec")
    equal((p.container()["allocatedResources"]["cpu"], p.container()["resources"]["requests"]["cpu"]), ("100m", "100m"), "what it has")
    contains(node.cli("explain", "pod", "a").stdout, text, "explain")
    contains(next(e["message"] for e in node.events("a") if e["reason"] == "ResizeDeferred"), "Pod resize OutOfcpu: {", "event")
    node.kill()
    node.start()
    equal(node.wait_pod("a", lambda p: p.condition("PodResizePending")).condition("PodResizePending")["message"], text, "after a restart")
    node.put("a.yaml", asks(f"{CPUS * 5}", "2"))
    condition = node.wait_pod("a", lambda p: p.condition("PodResizePending").get("reason") == "Infeasible").condition("PodResizePending")
    equal(condition["message"], f"Node didn't have enough capacity: cpu, requested: {CPUS * 5000}, capacity: {CPUS * 1000}", "infeasible")
    node.put("a.yaml", asks(f"{CPUS * 600}m", "2"))
    node.wait_pod("a", lambda p: p.condition("PodResizePending").get("reason") == "Deferred")
    node.remove("other.yaml")
    p = node.wait_pod("a", lambda p: settled(p) and p.container()["allocatedResources"]["cpu"] == f"{CPUS * 600}m")
    equal((p.uid, p.container_id(), p.restarts()), (a.uid if a.name == "a" else p.uid, p.container_id(), 0), "the same pod")
    node.stop()


def test_memory_in_use(t):
    """a memory limit is not lowered below the usage: nothing is killed, the condition reports it, and it is done when there is room"""
    node = start(t)
    shm = {"volumes": [{"name": "m", "emptyDir": {"medium": "Memory"}}], **QUICK}

    def spec(memory):
        return pod("a", sized("main", "200m", memory, command=shell(HOG % 40), volumeMounts=[{"name": "m", "mountPath": "/dev/shm"}]), **shm)

    node.put("a.yaml", spec("128Mi"))
    a = node.wait_running("a")
    until(lambda: "full" in node.logs("a"), 20, "the memory is in use")
    node.put("a.yaml", spec("24Mi"))
    p = node.wait_pod("a", lambda p: p.condition("PodResizeInProgress").get("reason") == "Error")
    message = p.condition("PodResizeInProgress")["message"]
    contains(message, f"cannot decrease memory limits: [attempting to set pod memory limit ({24 * MIB}) below current usage (", "message")
    contains(message, f'attempting to set container "main" memory limit ({24 * MIB}) below current usage (', "message")
    equal(of_container(node, a)[2], str(128 * MIB), "the limit in force")
    equal(p.container()["resources"]["limits"]["memory"], "128Mi", "the limit that is shown")
    node.kill()
    node.start()
    p = node.wait_pod("a", lambda p: p.condition("PodResizeInProgress").get("reason") == "Error", what="after a restart")
    equal((of_container(node, p)[2], of_pod(node, p)[2]), (str(128 * MIB), str(128 * MIB)), "the limits in force")
    os.kill(node.pid(a), 10)  # USR1
    p = node.wait_pod("a", settled, deadline=30)
    equal((of_container(node, p)[2], of_pod(node, p)[2]), (str(24 * MIB), str(24 * MIB)), "the new limits")
    equal((p.container_id(), p.restarts()), (a.container_id(), 0), "the same container")
    node.stop()


def test_killed_amid_resizes(t):
    """an agent that is killed again and again while limits change ends with the manifest's in every cgroup"""
    node = start(t)

    def spec(n):
        return pod("a", *[sized(f"c{i}", f"{100 + n * 10 + i}m", f"{32 + n + i}Mi") for i in range(4)], **QUICK)

    node.put("a.yaml", spec(0))
    a = node.wait_running("a")
    for n in range(1, 9):
        node.put("a.yaml", spec(n if n % 2 else -n))
        node.kill()
        node.start(wait=n % 2 == 0)
        if n % 2:
            until(lambda: os.path.exists(node.socket), 10, "the socket")
    node.put("a.yaml", spec(20))

    def done():
        p = node.pod("a")
        return p if p is not None and settled(p) and p.container("c3").get("resources", {}).get("limits", {}).get("memory") == "55Mi" else None

    p = until(done, 30, "the last manifest")
    for i in range(4):
        equal(of_container(node, p, f"c{i}")[0::2], (str((300 + i) * 100), str((52 + i) * MIB)), f"c{i}")
        equal((p.container_id(f"c{i}"), p.restarts(f"c{i}")), (a.container_id(f"c{i}"), 0), f"c{i} is the same")
    equal(of_pod(node, p, "c0")[0::2], (str(1206 * 100), str(214 * MIB)), "the pod")
    node.stop()


def test_what_cannot_change_in_place(t):
    """another QoS class needs a new pod, and the log has the reason"""
    node = start(t)
    node.put("a.yaml", pod("a", sized("main", "200m", "64Mi"), **QUICK))
    a = node.wait_running("a")
    node.put("a.yaml", pod("a", sized("main", "200m", "64Mi", {"cpu": "100m", "memory": "64Mi"}), **QUICK))
    node.wait_pod("a", lambda p: p.uid != a.uid and p.state()[0] == "running", what="the new pod")
    contains(node.log(), "change the QoS class from Guaranteed to Burstable")
    node.stop()
