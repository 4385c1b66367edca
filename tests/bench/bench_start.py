# SPDX-License-Identifier: Apache-2.0
"""Starting and removing pods, against their parts run without an agent."""
import json
import os
import re
import statistics

from bench import Figure, Floor
from coracle import config_map, until


def medians(steps):
    return {name: statistics.median(s[name] for s in steps) for name in steps[0]}


def step_sums(b):
    """{step: (seconds, starts)} of the agent's own record of what starts took."""
    found = {}
    for word, step, value in re.findall(r'^coracle_pod_start_step_duration_seconds_(sum|count){step="([a-z]+)"} (\S+)$',
                                        b.node.request("GET", "/metrics")[1].decode(), re.MULTILINE):
        found.setdefault(step, {})[word] = float(value)
    return {step: (of["sum"], of["count"]) for step, of in found.items()}


def step_means(before, after):
    """ms that each step took on average between the two; steps overlap."""
    return {step: (after[step][0] - before[step][0]) * 1000 / (after[step][1] - before[step][1])
            for step in after if after[step][1] > before[step][1]}


def over(told):
    """The runtime's start may return after the process has begun; a step is told once it has ended."""
    return told if "ran after" in told and ", start " in told else None


def timeline(b, name):
    """{step: (begin, end)} of a pod's start, ms from when the agent saw it."""
    told = until(lambda: over(json.dumps(b.node.get(f"/explain/default/{name}"))), 10, "the end of the pod's start")
    return {step: (float(begin), float(end)) for step, begin, end in re.findall(r"([a-z]+) (\d+\.\d)-(\d+\.\d)", told)}


def shares(b, name):
    """{plugin: ms} of the attachment of a pod to its network."""
    told = re.search(r"ready \(([^)]*) ms\)", json.dumps(b.node.get(f"/explain/default/{name}")))
    return {plugin: float(ms) for plugin, ms in re.findall(r"([\w-]+) ([\d.]+)", told.group(1))} if told else {}


def spans(lines):
    """{step: "begin+length"}, medians."""
    steps = [step for step in lines[0] if all(step in one for one in lines)]
    begins = {step: statistics.median(one[step][0] for one in lines) for step in steps}
    return {step: f"{begins[step]:.2f}+{statistics.median(one[step][1] - one[step][0] for one in lines):.2f}" for step in steps}


def bench_one_pod(b, quick):
    """Manifest renamed -> its process runs; and the time that its removal takes."""
    floor, mine, theirs, mine_gone, theirs_gone, steps, lines, plugins = Floor(b), [], [], [], [], [], [], []
    before = step_sums(b)
    for i in range(5 if quick else 30):
        each, _ = b.start([b.pod(f"one-{i}")])
        mine += each.values()
        lines.append(timeline(b, f"one-{i}"))
        plugins.append(shares(b, f"one-{i}"))
        mine_gone.append(b.remove([f"one-{i}"]))
        ids, each, _, parts = floor.start(1, 1)
        theirs += each.values()
        theirs_gone.append(floor.remove(ids, 1))
        steps += parts
    yield Figure("one pod: manifest to process", "ms", mine, theirs,
                 {"floor": medians(steps), "agent": step_means(before, step_sums(b)), "timeline": spans(lines), "plugins": medians(plugins)})
    yield Figure("one pod: removed", "ms", mine_gone, theirs_gone)


def bench_config_volume(b, quick):
    """What a ConfigMap volume adds to the start of a pod: the same pod with and without, in turns."""
    b.node.put("shared.yaml", config_map("shared", **{f"key-{i}": "y" * 200 for i in range(20)}))
    volume = {"name": "shared", "configMap": {"name": "shared"}}, {"name": "shared", "mountPath": "/shared"}
    b.start([b.pod("warm", volume)])
    took = {True: [], False: []}
    for i in range(5 if quick else 30):
        for has in (True, False) if i % 2 else (False, True):
            took[has] += b.start([b.pod(f"volume-{i}-{has}".lower(), *([volume] if has else []))])[0].values()
            b.remove([f"volume-{i}-{has}".lower()])
    yield Figure("one pod with a ConfigMap volume of 20 files, floor: without", "ms", took[True], took[False])


def bench_gaps(b, quick):
    """Ten pods, one every so many ms: each from its manifest to its process; if they do not overlap, the floor is a single one."""
    floor = Floor(b)
    for gap in (0, 100, 300):
        mine, theirs = [], []
        for i in range(1 if quick else 5):
            names = [f"gap-{gap}-{i}-{k}" for k in range(10)]
            mine += b.start([b.pod(name) for name in names], gap / 1000)[0].values()
            b.remove(names)
            for _ in range(2 if gap else 0):
                ids, each, _, _ = floor.start(1, 1)
                theirs += each.values()
                floor.remove(ids, 1)
        yield Figure(f"10 pods, {gap} ms between them: each", "ms", mine, theirs)


def bench_many_pods(b, quick):
    """Many at once.  The floor runs as many side by side as there are processors, and twice as many; the better result is used."""
    floor = Floor(b)
    cpus = os.cpu_count()
    for n in (10, 50) if quick else (10, 50, 100):
        mine, theirs, cpu, floor_cpu, gone, floor_gone = [], [], [], [], [], []
        for i in range(1 if quick else 3):
            names = [f"many-{n}-{i}-{k}" for k in range(n)]
            before = b.cpu_ms()
            mine.append(b.start([b.pod(name) for name in names])[1])
            cpu.append((b.cpu_ms() - before) / n)
            gone.append(b.remove(names))
            for parallel in (cpus, 2 * cpus):
                before = b.cpu_ms()
                ids, _, wall, _ = floor.start(n, parallel)
                theirs.append(wall)
                floor_cpu.append((b.cpu_ms() - before) / n)
                floor_gone.append(floor.remove(ids, parallel))
        yield Figure(f"{n} pods at once: all processes run", "ms", mine, theirs)
        yield Figure(f"{n} pods at once: CPU of each", "ms", cpu, floor_cpu)
        yield Figure(f"{n} pods removed at once", "ms", gone, floor_gone)
