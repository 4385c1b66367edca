# SPDX-License-Identifier: Apache-2.0
"""Pods with devices of a device plugin, against the same pods without: time, processor, memory; what an idle plugin costs."""
import os
import sys

from bench import HERE, Figure
from bench_node import FULL, idle, kib, quiet

sys.path.insert(0, f"{os.path.dirname(HERE)}/host")
import devices  # noqa: E402


def cpu_ms(pid):
    """CPU time of a process."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def bench_devices(b, quick):
    """A full node at once, each pod with two devices; floor: without, in turns.  The plugin runs beside, on python3-grpcio."""
    count, rounds = FULL - 1, 2 if quick else 6  # and the sample pod
    plugin = devices.plugin_at_work(b.node, "--preferred", "--device", "/dev/null:/dev/x:rw", name="bench", devices=2 * FULL)
    took, cpu, pss, plugins = {True: [], False: []}, {True: [], False: []}, {True: [], False: []}, []
    agent = b.node.process.pid
    yield from connected(b, 1, quick)
    for i in range(rounds):
        for has in (True, False) if i % 2 else (False, True):
            pods = [b.pod(f"dev-{i}-{k}-{has}".lower()) for k in range(count)]
            for p in pods if has else ():
                p["spec"]["containers"][0]["resources"] = {"limits": {devices.RESOURCE: "2"}}
            before, own = b.cpu_ms(), cpu_ms(plugin.process.pid)
            took[has].append(b.start(pods)[1])
            cpu[has].append((b.cpu_ms() - before) / count)
            if has:
                plugins.append((cpu_ms(plugin.process.pid) - own) / count)
            quiet(b)
            pss[has].append(kib(agent, "Pss") / 1024)
            if has and len(took[has]) == rounds:
                yield from connected(b, FULL, quick)
            b.remove([p["metadata"]["name"] for p in pods])
    yield Figure(f"{count} pods with two devices each; floor: without", "ms", took[True], took[False])
    yield Figure(f"{count} pods with two devices: CPU of each, agent and tools", "ms", cpu[True], cpu[False])
    yield Figure(f"{count} pods with two devices: CPU of each, plugin", "ms", plugins)
    yield Figure(f"{count} pods with two devices: agent's Pss; floor: without", "MiB", pss[True], pss[False])
    plugin.stop()


def connected(b, pods, quick):
    """Memory and idling with the plugin."""
    yield Figure(f"{pods} pods, a plugin connected: agent's Pss", "MiB", [kib(b.node.process.pid, "Pss") / 1024])
    for figure in idle(b, pods, 10 if quick else 60):
        figure.name += ", a plugin connected"
        yield figure


__all__ = ["bench_devices"]
