# SPDX-License-Identifier: Apache-2.0
"""What a node costs as its pods grow from 10 to 1,000: every figure at each size, and the exponent that fits them.

An exponent of 1 is a cost in proportion to the pods, 0 one that does not depend on them.  A bridge has 1,023 ports, so a
node with one bridge has no more pods than that, and the agent takes at most 1,000: at the largest size, the pod that is
started beside the others is the last of them.  The pods end with the bench: their removal is not measured here.
"""
import http.client
import math
import os
import statistics
import time

from bench import Figure
from bench_node import kib, quiet
from coracle import read, until

SIZES = (10, 30, 100, 300, 1000)
MOST = 1000  # CONFIG_PODS_MAX


def exponent(points):
    """Of the power of n that fits {n: value} best, by least squares of the logarithms."""
    xs, ys = [math.log(n) for n in points], [math.log(max(v, 1e-9)) for v in points.values()]
    x, y = statistics.mean(xs), statistics.mean(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def timed(function, times):
    """Milliseconds of a call, median."""
    took = []
    for _ in range(times):
        start = time.monotonic()
        function()
        took.append((time.monotonic() - start) * 1000)
    return statistics.median(took)


def cpu_ms(b):
    """Of the agent itself, without its children."""
    fields = read(f"/proc/{b.node.process.pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def restart(b, pods):
    """Milliseconds, and those of a processor, of the agent itself."""
    b.node.kill()
    start = time.monotonic()
    b.node.start()
    until(lambda: running(b) == pods, 60, "all pods known")
    took = (time.monotonic() - start) * 1000, cpu_ms(b)
    b.join_cgroup(b.node.process.pid)
    return took


def running(b):
    """Counted in the text: to decode all of it would take longer than the answer."""
    return b.node.request("GET", "/api/v1/pods", timeout=60)[1].count(b'"phase":"Running"')


def one_more(b, times):
    """Start and removal of a pod beside all the others: ms, median."""
    starts, ends = [], []
    for i in range(times):
        each, _ = b.start([b.pod(f"more-{i}")])
        starts += each.values()
        ends.append(b.remove([f"more-{i}"]))
    return statistics.median(starts), statistics.median(ends)


def measure(b, pods, times):
    """{(figure, unit): value} of a node that has so many pods."""
    quiet(b, 300)
    pid = b.node.process.pid
    found = {("agent's Pss", "MiB"): kib(pid, "Pss") / 1024}
    found["one more pod: manifest to process", "ms"], found["one more pod: removed", "ms"] = one_more(b, times)
    found["GET /api/v1/pods", "ms"] = timed(lambda: b.node.request("GET", "/api/v1/pods", timeout=60), times)
    found["GET /metrics", "ms"] = timed(lambda: b.node.request("GET", "/metrics", timeout=60), times)
    found["GET /metrics", "KiB"] = len(b.node.request("GET", "/metrics", timeout=60)[1]) / 1024
    found["GET /stats/summary", "ms"] = timed(lambda: b.node.request("GET", "/stats/summary", timeout=60), times)
    restarts = [restart(b, pods) for _ in range(min(times, 3))]
    found["agent killed and started: all known", "ms"] = statistics.median(took for took, _ in restarts)
    found["agent killed and started: CPU of the agent", "ms"] = statistics.median(own for _, own in restarts)
    return found


def fill(b, names, pods):
    """Starts what is missing: ms of a processor of the agent itself for each pod, ms for each."""
    fresh = [f"grow-{i}" for i in range(len(names), pods)]
    before, start = cpu_ms(b), time.monotonic()
    for at in range(0, len(fresh), 100):
        b.start([b.pod(n) for n in fresh[at:at + 100]], deadline=600)
    names += fresh
    took, own = (time.monotonic() - start) * 1000, cpu_ms(b) - before
    until(lambda: running(b) == pods, 120, "all pods running")
    return own / len(fresh), took / len(fresh)


def bench_growth(b, quick):
    """A node filled step by step; each figure is that of the largest size."""
    points, names = {}, []
    for pods in SIZES[:3] if quick else SIZES:
        try:
            own, each = fill(b, names, min(pods, MOST - 1))
            found = {("pods started 100 at once: each", "ms"): each, ("pods started 100 at once: CPU of the agent for each", "ms"): own}
            found |= measure(b, len(names), 3 if quick else 7)
        except (AssertionError, OSError, http.client.HTTPException) as e:  # what was measured before counts all the same
            print(f"# {pods} pods could not be measured: {e!r:.200}", flush=True)
            break
        for key, value in found.items():
            points.setdefault(key, {})[pods] = value
    for (name, unit), values in points.items():
        yield Figure(f"{max(values):,} pods, {name}", unit, [values[max(values)]],
                     parts={"pods": {str(n): v for n, v in values.items()}, "exponent": {"of pods": exponent(values)}})


bench_growth.flags = ("--max-pods", str(MOST))

__all__ = ["bench_growth"]
