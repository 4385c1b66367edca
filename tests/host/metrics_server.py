# SPDX-License-Identifier: Apache-2.0
"""metrics_server - what metrics-server makes of /metrics/resource, after its pkg/scraper/client/resource and pkg/storage.

A scrape is {"node": Point, "containers": {(namespace, pod, container): Point}}; usage() is what `kubectl top` shows of two of them.  It leaves out what
metrics-server leaves out: a pod one of whose containers has no CPU or memory, figures without a time, and containers started between the scrapes.
"""
import re
from dataclasses import dataclass

LINE = re.compile(r"^(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)(?: (?P<ms>-?\d+))?$")
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
FIELDS = {"node_cpu_usage_seconds_total": "cpu_s", "node_memory_working_set_bytes": "memory", "container_cpu_usage_seconds_total": "cpu_s",
          "container_memory_working_set_bytes": "memory", "container_start_time_seconds": "started_s"}


@dataclass
class Point:
    ms: int = 0
    cpu_s: float = 0
    memory: float = 0
    started_s: float = 0


def parse(text):
    """A scrape.  Raises ValueError for a line that is none and for usage without a time, which kubelet always gives: stricter than metrics-server may be."""
    node, containers = Point(), {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = LINE.match(line)
        if match is None:
            raise ValueError(f"no series: {line}")
        field = FIELDS.get(match["name"])
        if field is None:
            continue
        if match["ms"] is None and field != "started_s":
            raise ValueError(f"without a time: {line}")
        if match["name"].startswith("node_"):
            point = node
        else:
            labels = dict(LABEL.findall(match["labels"]))
            point = containers.setdefault((labels["namespace"], labels["pod"], labels["container"]), Point())
        setattr(point, field, float(match["value"]))
        if field != "started_s":
            point.ms = max(point.ms, int(match["ms"]))
    pods = {key[:2] for key, point in containers.items() if point.cpu_s == 0 or point.memory == 0}
    return {"node": node, "containers": {key: point for key, point in containers.items() if key[:2] not in pods}}


def usage(before, after):
    """{"node" or (namespace, pod, container): (processors, bytes)}"""
    points = {"node": (before["node"], after["node"])}
    points |= {key: (before["containers"][key], point) for key, point in after["containers"].items() if key in before["containers"]}
    return {key: ((b.cpu_s - a.cpu_s) / ((b.ms - a.ms) / 1000), b.memory) for key, (a, b) in points.items()
            if b.ms > a.ms and b.cpu_s >= a.cpu_s and b.started_s * 1000 <= a.ms}
