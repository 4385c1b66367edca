# SPDX-License-Identifier: Apache-2.0
"""Usage of pods: /stats/summary, /metrics and `coracle top`, compared with the kernel's own files."""
import contextlib
import json
import os
import re

from coracle import cgroup_v2, check, container, contains, equal, pod, read, run, shell, until

HOG = "x=$(head -c 8000000 /dev/zero | tr '\\0' a); echo full; while true; do sleep 3600 & wait $!; done"


def hog():
    """A container that uses some 8 MB; it requests a processor, so that it gets there even on a busy machine."""
    return container("hog", command=shell(HOG), resources={"requests": {"cpu": "500m"}, "limits": {"memory": "64Mi"}})


def summary(node, basic=False):
    return node.get("/stats/summary" + ("?only_cpu_and_memory=true" if basic else ""))


def of_pod(stats, name):
    found = [p for p in stats["pods"] if p["podRef"]["name"] == name]
    equal(len(found), 1, f"{name} in the summary")
    return found[0]


def metric(text, name, **labels):
    """The value of a metric with (at least) these labels."""
    for line in text.splitlines():
        match = re.fullmatch(rf"{name}(?:{{(.*)}})? ([0-9.]+)(?: [0-9]{{13}})?", line)
        if match and all(f'{k}="{v}"' in (match.group(1) or "") for k, v in labels.items()):
            return float(match.group(2))
    return None


def working_set(node, a, name):
    """usage less inactive file cache, from the files themselves"""
    folder = node.container_cgroup(a, "memory", name)
    usage = int(read(f"{folder}/memory.current" if cgroup_v2() else f"{folder}/memory.usage_in_bytes"))
    key = "inactive_file" if cgroup_v2() else "total_inactive_file"
    return max(0, usage - int(re.search(rf"^{key} (\d+)$", read(f"{folder}/memory.stat"), re.MULTILINE).group(1)))


def test_summary(t):
    """/stats/summary has kubelet's format and the kernel's numbers, and rates from the first request on"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container("busy", command=shell("while true; do true; done"), resources={"limits": {"cpu": "300m"}}),
                           hog(),
                           terminationGracePeriodSeconds=0))
    a = node.wait_running("a")
    until(lambda: "full" in node.logs("a", "hog"), 60, "memory of the hog in use")
    stats = summary(node)
    top = of_pod(stats, "a")
    equal(top["podRef"], {"name": "a", "namespace": "default", "uid": a.uid}, "podRef")
    equal(sorted(c["name"] for c in top["containers"]), ["busy", "hog"], "containers")
    by_name = {c["name"]: c for c in top["containers"]}
    busy, hog_ = by_name["busy"], by_name["hog"]
    check(30e6 < busy["cpu"]["usageNanoCores"] < 600e6, lambda: f"300m give {busy['cpu']}")
    check(hog_["cpu"]["usageNanoCores"] < 200e6, lambda: f"one that sleeps: {hog_['cpu']}")
    memory = hog_["memory"]
    check(abs(memory["workingSetBytes"] - working_set(node, a, "hog")) < 4 << 20, lambda: f"{memory}, {working_set(node, a, 'hog')}")
    check(memory["rssBytes"] > 7 << 20, lambda: f"rss: {memory}")
    equal(memory["availableBytes"], (64 << 20) - memory["workingSetBytes"], "available of 64Mi")
    check("availableBytes" not in busy["memory"], lambda: f"no limit, nothing available: {busy['memory']}")
    check(memory["pageFaults"] > 1000 and "majorPageFaults" in memory, lambda: f"faults: {memory}")
    check(top["memory"]["workingSetBytes"] > memory["workingSetBytes"] * 0.9, lambda: f"the pod: {top['memory']}")
    check(top["cpu"]["usageCoreNanoSeconds"] >= busy["cpu"]["usageCoreNanoSeconds"], lambda: f"the pod: {top['cpu']}")
    equal(top["network"]["name"], "eth0", "network")
    check(top["network"]["interfaces"][0]["rxBytes"] >= 0, "interfaces")
    processes = len(node.container_pids(a, "busy")) + len(node.container_pids(a, "hog"))
    equal(top["process_stats"]["process_count"], processes, "processes")
    logs = hog_["logs"]
    check(0 < logs["usedBytes"] < 1 << 20 and logs["inodesUsed"] == 1 and logs["capacityBytes"] > 0, lambda: f"logs: {logs}")
    machine = stats["node"]
    equal(machine["nodeName"], "test-node", "nodeName")
    total = int(re.search(r"MemTotal: +(\d+)", read("/proc/meminfo")).group(1)) * 1024
    equal(machine["memory"]["availableBytes"] + machine["memory"]["workingSetBytes"], total, "memory of the node")
    check(machine["cpu"]["usageNanoCores"] > 0 and machine["fs"]["capacityBytes"] > 0 and machine["rlimit"]["maxpid"] > 0, lambda: f"{machine}")
    pods = [c for c in machine["systemContainers"] if c["name"] == "pods"][0]
    check(pods["memory"]["workingSetBytes"] >= memory["workingSetBytes"], lambda: f"all pods: {pods}")
    node.stop()


def held(node):
    """Files of removed cgroups that the agent has open."""
    found = []
    for fd in os.listdir(f"/proc/{node.process.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(f"/proc/{node.process.pid}/fd/{fd}"))
    return [path for path in found if path.endswith("(deleted)") and "cgroup" in path]


def test_rate_follows(t):
    """a second question gives the rate between the two; a container that starts in between is waited for"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", terminationGracePeriodSeconds=0))
    node.wait_running("a")
    summary(node, True)
    node.put("b.yaml", pod("b", container(command=shell("while true; do true; done"), resources={"limits": {"cpu": "200m"}}),
                           terminationGracePeriodSeconds=0))
    node.wait_running("b")
    both = summary(node, True)
    for name in ("a", "b"):
        check("usageNanoCores" in of_pod(both, name)["containers"][0]["cpu"], lambda: f"{name}: {both}")  # pylint: disable=cell-var-from-loop
    check("network" not in of_pod(both, "b") and "swap" not in both["node"], "only cpu and memory")
    files = metric(node.request("GET", "/metrics")[1].decode(), "coracle_usage_open_files")
    node.remove("b.yaml")
    node.wait_gone("b")
    equal([p["podRef"]["name"] for p in summary(node, True)["pods"]], ["a"], "pods after the removal")
    after = metric(node.request("GET", "/metrics")[1].decode(), "coracle_usage_open_files")
    equal(files - after, 8, "files that were open for the pod and its container")
    until(lambda: not held(node), 5, lambda: f"no cgroup file of the pod that is gone is open: {held(node)}")
    node.stop()


def test_metrics(t):
    """/metrics, /metrics/cadvisor and /metrics/resource name everything as kubelet and cAdvisor do"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", hog(), terminationGracePeriodSeconds=0))
    a = node.wait_running("a")
    until(lambda: "full" in node.logs("a", "hog"), 60, "memory of the hog in use")
    labels = {"namespace": "default", "pod": "a", "container": "hog"}
    pages = {}
    for path in ("/metrics", "/metrics/cadvisor", "/metrics/resource"):
        code, body = node.request("GET", path)
        equal(code, 200, path)
        pages[path] = body.decode()
        well_formed(path, pages[path])
    for path in ("/metrics", "/metrics/cadvisor", "/metrics/resource"):
        text = pages[path]
        check(metric(text, "container_cpu_usage_seconds_total", **labels) > 0, f"cpu in {path}")
        value = metric(text, "container_memory_working_set_bytes", **labels)
        check(abs(value - working_set(node, a, "hog")) < 4 << 20, lambda: f"working set in {path}: {value}")  # pylint: disable=cell-var-from-loop
        check(metric(text, "container_start_time_seconds", **labels) > 1e9, f"start time in {path}")
    text = pages["/metrics/cadvisor"]
    equal(metric(text, "container_spec_memory_limit_bytes", **labels), 64 << 20, "limit")
    equal(metric(text, "container_spec_memory_limit_bytes", id="/"), 0, "no limit")
    equal(metric(text, "container_processes", **labels), len(node.container_pids(a, "hog")), "processes")
    check(metric(text, "container_memory_usage_bytes", container="", pod="a") > 7 << 20, "the pod's own line")
    check(metric(text, "container_network_transmit_bytes_total", pod="a", interface="eth0") is not None, "network")
    equal(metric(text, "machine_cpu_cores"), os.cpu_count(), "machine_cpu_cores")
    contains(text, f'id="{node.cgroup_root}/kubepods/burstable"', "classes")
    text = pages["/metrics/resource"]
    check(metric(text, "node_cpu_usage_seconds_total") > 0 and metric(text, "pod_memory_working_set_bytes", pod="a") > 7 << 20, text)
    equal(metric(text, "resource_scrape_error"), 0, "resource_scrape_error")
    text = pages["/metrics"]
    equal((metric(text, "kubelet_running_pods"), metric(text, "kubelet_running_containers", container_state="running")), (1, 1), "running")
    equal(metric(text, "kubelet_pod_start_duration_seconds_count"), 1, "pod starts")
    for step in ("admission", "namespaces", "network", "volumes", "create", "start"):
        equal(metric(text, "coracle_pod_start_step_duration_seconds_count", step=step), 1, f"starts with the step {step}")
    start = [line for line in node.cli("explain", "pod", "a").stdout.splitlines() if line.split()[:1] == ["start"]][0]
    check(re.search(r"admission [0-9.]+-[0-9.]+, namespaces .* network .* create .* start [0-9.]+-[0-9.]+ ms .* ran after [0-9.]+ ms", start), start)
    check(metric(text, "process_open_fds") > 5 and metric(text, "process_resident_memory_bytes") > 1 << 20, "process_*")
    node.put("b.yaml", pod("b", container(command=["false"]), terminationGracePeriodSeconds=0))
    until(lambda: node.pod("b") and node.pod("b").state()[1].get("reason") == "CrashLoopBackOff", 20, "a container that waits")
    text = node.request("GET", "/metrics")[1].decode()
    equal((metric(text, "kubelet_running_pods"), metric(text, "kubelet_running_containers", container_state="running")), (2, 1), "a sandbox runs, too")
    node.stop()


def well_formed(path, text):
    """The lines of each name are together below one TYPE, and no line occurs twice; usage in /metrics/resource has a time."""
    seen, names, current = set(), set(), ""
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            current = line.split()[2]
            check(current not in names, lambda: f"{path}: {current} comes twice")  # pylint: disable=cell-var-from-loop
            names.add(current)
        elif not line.startswith("#"):
            match = re.fullmatch(r'([a-z_]+)(_bucket|_sum|_count)?({([a-z_]+="(\\.|[^"\\])*",?)*})? (?:-?[0-9.]+|\+Inf)( [0-9]{13})?', line)
            check(match and line.startswith(current), lambda: f"{path}: {line!r} below {current}")  # pylint: disable=cell-var-from-loop
            timed = path == "/metrics/resource" and current.endswith(("_cpu_usage_seconds_total", "_working_set_bytes")) or match[6]
            check(bool(match[6]) == bool(timed), lambda: f"{path}: a time? {line!r}")  # pylint: disable=cell-var-from-loop
            series = line.removesuffix(match[6] or "").rpartition(" ")[0]
            check(series not in seen, lambda: f"{path}: {line!r} comes twice")  # pylint: disable=cell-var-from-loop
            seen.add(series)
    check(len(names) > 5, f"{path}: {names}")


def test_top(t):
    """`coracle top` shows pods, containers and the node as kubectl does, sorted as asked"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container("busy", command=shell("while true; do true; done"), resources={"limits": {"cpu": "300m"}}),
                           labels={"app": "a"}, terminationGracePeriodSeconds=0))
    node.put("b.yaml", pod("b", hog(), container("idle"), terminationGracePeriodSeconds=0))
    b = node.wait_running("a", "b")
    until(lambda: "full" in node.logs("b", "hog"), 60, "memory of the hog in use")
    lines = node.cli("top", "pods").stdout.splitlines()
    equal(lines[0].split(), ["NAME", "CPU(cores)", "MEMORY(bytes)"], "headers")
    rows = {line.split()[0]: line.split()[1:] for line in lines[1:]}
    equal(list(rows), ["a", "b"], "rows by name")
    check(30 < int(rows["a"][0].removesuffix("m")) < 600 and int(rows["b"][1].removesuffix("Mi")) >= 7, lambda: f"{rows}")
    equal([line.split()[0] for line in node.cli("top", "pods", "--sort-by=memory", "--no-headers").stdout.splitlines()], ["b", "a"], "by memory")
    equal([line.split()[0] for line in node.cli("top", "pod", "--sort-by=cpu", "-A", "--no-headers").stdout.splitlines()], ["default"] * 2, "-A")
    equal([line.split()[:2] for line in node.cli("top", "pods", "--containers").stdout.splitlines()],
          [["POD", "NAME"], ["a", "busy"], ["b", "hog"], ["b", "idle"]], "containers")
    equal([line.split()[0] for line in node.cli("top", "pods", "-l", "app=a").stdout.splitlines()], ["NAME", "a"], "selector")
    lines = node.cli("top", "pods", "--sum").stdout.splitlines()
    check(int(lines[-1].split()[-1].removesuffix("Mi")) >= 7, lambda: f"sum: {lines}")
    one = json.loads(node.cli("top", "pods", "b", "-o", "json").stdout)
    equal((one["kind"], one["metadata"]["name"], [c["name"] for c in one["containers"]]), ("PodMetrics", "b", ["hog", "idle"]), "json")
    lines = node.cli("top", "node").stdout.splitlines()
    equal(lines[0].split(), ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"], "headers of the node")
    check(re.fullmatch(r"test-node +[1-9]\d*m +\d+% +[1-9]\d*Mi +\d+% *", lines[1]), lambda: f"{lines}")
    wrong = node.cli("top", "pods", "nobody", ok=False)
    equal(wrong.returncode, 5, "a pod that is not there")
    contains(wrong.stderr, 'pods "nobody" not found')
    equal(node.cli("top", "pods", "-n", "other").stderr, "No resources found in other namespace.\n", "another namespace")
    node.stop()


def oom_events(node, name):
    return [e for e in node.events(name) if e["reason"] == "OOMKilling"]


def test_oom_is_described(t):
    """`describe` shows pid and name of an OOM-killed process, and its container has the reason OOMKilled"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=shell("sleep 0.2; tail /dev/zero"), resources={"limits": {"memory": "16Mi"}}),
                           restartPolicy="Never"))
    a = node.wait_phase("a", "Failed")
    equal((a.state()[1]["reason"], a.state()[1]["exitCode"]), ("OOMKilled", 137), "state")
    event = until(lambda: oom_events(node, "a"), 5, "the event")[0]
    equal((event["type"], event["involvedObject"]["fieldPath"]), ("Warning", "spec.containers{main}"), "event")
    check(re.search(r"^Memory cgroup out of memory: Killed process \d+ \((tail|sh)\), anon-rss:\d+kB, file-rss:\d+kB, shmem-rss:\d+kB", event["message"]),
          lambda: event["message"])
    contains(node.cli("describe", "pod", "a").stdout, event["message"], "describe")
    node.stop()


def test_oom_of_a_child(t):
    """the kill of a child in a container that lives on is reported at once, by its own name, however hostile"""
    node = t.node()
    node.import_image()
    evil = "x) total-vm:1kB"  # 15 bytes, what the kernel keeps
    node.put("a.yaml", pod("a", container(
        command=shell(f"cp /bin/busybox '/tmp/{evil}'; ln -s '/tmp/{evil}' /tmp/run; while true; do (echo 1000 > /proc/self/oom_score_adj; "
                      f"exec -a tail '/tmp/{evil}' /dev/zero); sleep 1000 & wait $!; done"),
        resources={"limits": {"memory": "16Mi"}}), terminationGracePeriodSeconds=0),
        )
    node.wait_running("a")
    message = until(lambda: oom_events(node, "a"), 20, lambda: f"the event; {node.logs('a')}")[0]["message"]
    contains(message, f"({evil}), anon-rss:", "message")
    if not cgroup_v2():  # there the whole container is killed, as kubelet requests
        equal(node.pod("a").restarts(), 0, "restarts")
    node.stop()


def test_oom_without_a_log(t):
    """if the kernel's log cannot be read, a kill is still reported, with the reason why the process is unknown"""
    run("mount", "--bind", "/dev/null", "/dev/kmsg")
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container(command=shell("tail /dev/zero"), resources={"limits": {"memory": "16Mi"}}), restartPolicy="Never"))
    equal(node.wait_phase("a", "Failed").state()[1]["reason"], "OOMKilled", "reason")
    message = until(lambda: oom_events(node, "a"), 5, "the event")[0]["message"]
    check(re.fullmatch(r"Memory cgroup out of memory: \d+ process(es were| was) killed; unknown which: cannot wait for /dev/kmsg", message),
          lambda: message)
    contains(node.cli("explain", "node").stdout, "killed processes", "explain node")
    node.stop()
