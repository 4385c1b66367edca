"""Starting and removing pods, against their parts run without an agent."""
import os
import statistics

from bench import Figure, Floor


def medians(steps):
    return {name: statistics.median(s[name] for s in steps) for name in steps[0]}


def bench_one_pod(b, quick):
    """Manifest renamed -> its process runs; and how long it takes to go."""
    floor, mine, theirs, mine_gone, theirs_gone, steps = Floor(b), [], [], [], [], []
    for i in range(5 if quick else 30):
        each, _ = b.start([b.pod(f"one-{i}")])
        mine += each.values()
        mine_gone.append(b.remove([f"one-{i}"]))
        ids, each, _, parts = floor.start(1, 1)
        theirs += each.values()
        theirs_gone.append(floor.remove(ids, 1))
        steps += parts
    yield Figure("one pod: manifest to process", "ms", mine, theirs, medians(steps))
    yield Figure("one pod: removed", "ms", mine_gone, theirs_gone)


def bench_many_pods(b, quick):
    """Many at once; the floor runs as many side by side as there are processors, and twice that: the better counts."""
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
