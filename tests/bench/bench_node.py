# SPDX-License-Identifier: Apache-2.0
"""A node that carries pods: memory, idling, changes, restarts of containers and of the agent, the socket."""
import os
import subprocess
import sys
import time

from bench import HERE, Figure
from coracle import UnixConnection, config_map, processes, read, until

sys.path.insert(0, f"{os.path.dirname(HERE)}/host")
from test_swaps import IN_MOVED_TO, Inotify, folder  # noqa: E402

FULL = 110
TRIMMED = 16  # seconds: the network of a new pod is checked after ten


def kib(pid, *keys):
    """The sum of fields of smaps_rollup."""
    rollup = dict(line.split(":", 1) for line in read(f"/proc/{pid}/smaps_rollup").splitlines()[1:])
    return sum(int(rollup[key].split()[0]) for key in keys)


def supervisors(b):
    return [p for p in processes() if os.path.basename(read(f"/proc/{p}/cmdline", "").split("\0")[0]) == "conmon"
            and b.scratch in read(f"/proc/{p}/cmdline", "")]


def memory(b, pods):
    pid = b.node.process.pid
    yield Figure(f"{pods} pods: agent's Pss", "MiB", [kib(pid, "Pss") / 1024])
    yield Figure(f"{pods} pods: agent's private memory", "MiB", [kib(pid, "Private_Clean", "Private_Dirty") / 1024])
    if pods:
        yield Figure(f"{pods} pods: Pss of a supervisor (conmon)", "MiB", [kib(p, "Pss") / 1024 for p in supervisors(b)])


def switches(pid):
    return int(read(f"/proc/{pid}/status").rpartition("\nvoluntary_ctxt_switches:")[2].split()[0])


def idle(b, pods, seconds):
    """Nothing is due: measures what the agent does all the same, in all its threads."""
    pid = b.node.process.pid

    def used():
        fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), \
            sum(switches(f"{pid}/task/{task}") for task in os.listdir(f"/proc/{pid}/task"))

    quiet(b)
    cpu, wakes = used()
    time.sleep(seconds)
    after = used()
    yield Figure(f"{pods} pods, {seconds} s idle: agent's CPU", "s", [after[0] - cpu])
    yield Figure(f"{pods} pods, {seconds} s idle: wake-ups a second", "1/s", [(after[1] - wakes) / seconds])


def quiet(b, deadline=30):
    """Waits until the agent has finished all earlier work, and has returned the memory for it (base/trimmer.h)."""
    pid = b.node.process.pid

    def still():
        before = switches(pid)
        time.sleep(1)
        return switches(pid) - before <= 1

    until(still, deadline, "an agent that rests")
    time.sleep(TRIMMED)


def propagation(b, names, rounds):
    """A ConfigMap's file is renamed into place -> the last pod's volume is switched."""
    pods = b.node.pods()
    watched, took = {folder(b.node, pods["default", n], "shared") for n in names}, []
    seen = Inotify()
    for path in watched:
        seen.add(path, IN_MOVED_TO)
    for number in range(1, rounds + 1):
        time.sleep(0.03)
        b.node.put(".next.yaml", config_map("shared", version=str(number), text="y" * 2000))
        start, left = time.monotonic(), set(watched)
        os.rename(f"{b.node.manifests}/.next.yaml", f"{b.node.manifests}/shared.yaml")
        while left:
            for at, path, name in seen.read(10):
                if name == "..data":
                    left.discard(path)
                    last = at
        took.append((last - start) * 1000)
    seen.close()
    return Figure(f"ConfigMap in {len(names)} pods: rename to last swap", "ms", took)


def restarts(b, names):
    """A container's process is killed -> the process of its next run runs.  These are first restarts, without a back-off."""
    took = []
    for name in names:
        pid = b.node.pid(b.node.pods()["default", name], "main")
        os.kill(pid, 9)
        start = time.monotonic_ns()
        took.append((b.wait_started([name])[name] - start) / 1e6)
    return Figure("killed container: exit to next process", "ms", took)


def requests(b, n):
    """GET /api/v1/pods, each over a connection of its own."""
    took = []
    begin = time.monotonic()
    for _ in range(n):
        start = time.monotonic()
        b.node.get("/api/v1/pods")
        took.append((time.monotonic() - start) * 1000)
    yield Figure(f"GET /api/v1/pods of {FULL} pods", "ms", took)
    yield Figure(f"GET /api/v1/pods of {FULL} pods: rate", "1/s", [n / (time.monotonic() - begin)])


def kept_requests(b, n):
    """The same over one kept connection."""
    took = []
    connection = UnixConnection(b.node.socket, 10)
    begin = time.monotonic()
    for _ in range(n):
        start = time.monotonic()
        connection.request("GET", "/api/v1/pods")
        connection.getresponse().read()
        took.append((time.monotonic() - start) * 1000)
    connection.close()
    yield Figure(f"GET /api/v1/pods of {FULL} pods, one connection", "ms", took)
    yield Figure(f"GET /api/v1/pods of {FULL} pods, one connection: rate", "1/s", [n / (time.monotonic() - begin)])


def bench_writer(b, quick):
    """The atomic writer alone, on a tmpfs."""
    for files in (1, 20, 200):
        argv = [f"{b.build}/tests/bench/writer", f"{b.scratch}/run/writer", str(files), "1" if quick else "3"]
        rates = [float(subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout) for _ in range(1 if quick else 5)]
        yield Figure(f"atomic writer alone, {files} files: swaps", "1/s", rates)


def agent_restart(b, times):
    took = []
    for _ in range(times):
        b.node.kill()
        start = time.monotonic()
        b.node.start()
        until(lambda: len(b.node.pods()) == FULL, 20, "all pods known")
        took.append((time.monotonic() - start) * 1000)
    b.join_cgroup(b.node.process.pid)
    return Figure(f"agent killed and started with {FULL} pods: all known", "ms", took)


def bench_node(b, quick):
    """The same node, filled step by step."""
    seconds, names = 10 if quick else 60, []
    b.node.put("shared.yaml", config_map("shared", version="0", text="y" * 2000))
    shared = {"name": "shared", "configMap": {"name": "shared"}}, {"name": "shared", "mountPath": "/shared"}
    quiet(b)
    yield from memory(b, 0)
    yield from idle(b, 0, seconds)
    for pods in (1, 10, 50, 100, FULL):
        fresh = [f"pod-{i}" for i in range(len(names), pods)]
        b.start([b.pod(n, shared) for n in fresh])
        names += fresh
        b.node.wait_running(*fresh, deadline=60)
        if pods in (1, 100):
            yield propagation(b, names, 20 if quick else 200)
        if pods not in (1, 100):
            quiet(b)
            yield from memory(b, pods)
    yield from idle(b, FULL, seconds)
    yield restarts(b, names[:10 if quick else 50])
    yield from requests(b, 50 if quick else 500)
    yield from kept_requests(b, 50 if quick else 500)
    yield agent_restart(b, 2 if quick else 10)


__all__ = ["bench_node", "bench_writer"]
