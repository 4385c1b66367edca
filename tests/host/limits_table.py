# SPDX-License-Identifier: Apache-2.0
"""limits_table - pods and the expected values of their cgroups, calculated by hand from kubelet's formulas.

    shares  cpu in thousandths * 1024 / 1000, at least 2         quota   cpu in thousandths * period / 1000, at least 1000
    weight  ceil(10^((l^2 + 125 l) / 612 - 7/34)), l = log2(shares); 2 shares or less: 1
    pod     max(regular + sidecars, each init container + the sidecars before it), spec.resources instead, overhead added;
            limited only where every container is
    memory  whole pages of 4096 bytes (the kernel rounds down)

A row: name, total requests of its pod (thousandths of a cpu, Mi), class, the pod's cgroup, its containers'
cgroups, the spec.  A cgroup is K(shares, weight, quota, memory); None: no limit.  oom: the bytes from which
the oom score is calculated (1000 - 1000 * bytes / memory of the node, 3 to 999), or the score itself for the
classes that have a fixed one: GUARANTEED, BEST_EFFORT.  The same table is used on cgroup v1 and v2; nothing
in it comes from the code it checks.
"""
import collections

from coracle import container

MI = 1 << 20
GUARANTEED, BEST_EFFORT = "guaranteed", "besteffort"

K = collections.namedtuple("K", "shares weight quota memory oom huge more", defaults=(0, 0, {}))
Row = collections.namedtuple("Row", "name asks qos pod containers spec")


def r(cpu=None, memory=None, **more):
    named = {"cpu": cpu, "memory": memory, "hugepages-2Mi": more.pop("huge", None), "ephemeral-storage": more.pop("storage", None)}
    return {k: v for k, v in named.items() if v is not None}


def resources(req, lim):
    return {k: v for k, v in (("requests", req), ("limits", lim)) if v is not None}


def c(req=None, lim=None, name="main"):
    return container(name, resources=resources(req, lim))


def init(req=None, lim=None, name="init"):
    return container(name, command=["/bin/true"], resources=resources(req, lim))


def sidecar(req=None, lim=None, name="side"):
    return container(name, resources=resources(req, lim), restartPolicy="Always")


def row(name, asks, qos, pod, containers, *regular, inits=(), **spec):
    if inits:
        spec["initContainers"] = list(inits)
    return Row(name, asks, qos, pod, containers if isinstance(containers, dict) else {"main": containers}, {"containers": list(regular), **spec})


B, G, U = "BestEffort", "Guaranteed", "Burstable"
NOTHING = K(2, 1, None, None, BEST_EFFORT)

TABLE = [
    # ---- BestEffort
    row("be-plain", (0, 0), B, NOTHING, NOTHING, c()),
    row("be-two", (0, 0), B, NOTHING, {"a": NOTHING, "b": NOTHING}, c(name="a"), c(name="b")),
    row("be-zero-requests", (0, 0), B, NOTHING, NOTHING, c(r("0", "0"))),
    row("be-zero-limits", (0, 0), B, NOTHING, NOTHING, c(None, r("0", "0"))),
    row("be-storage", (0, 0), B, NOTHING, NOTHING, c(r(storage="1Mi"))),
    row("be-init", (0, 0), B, NOTHING, NOTHING, c(), inits=[init()]),
    row("be-sidecar", (0, 0), B, NOTHING, {"main": NOTHING, "side": NOTHING}, c(), inits=[sidecar()]),
    row("be-overhead", (50, 0), B, NOTHING, NOTHING, c(), overhead=r("50m")),
    # ---- Guaranteed
    row("g-limits-only", (100, 64), G, K(102, 17, 10000, 67108864), K(102, 17, 10000, 67108864, GUARANTEED), c(None, r("100m", "64Mi"))),
    row("g-both", (200, 32), G, K(204, 29, 20000, 33554432), K(204, 29, 20000, 33554432, GUARANTEED), c(r("200m", "32Mi"), r("200m", "32Mi"))),
    row("g-half-given", (200, 32), G, K(204, 29, 20000, 33554432), K(204, 29, 20000, 33554432, GUARANTEED), c(r(None, "32Mi"), r("200m", "32Mi"))),
    row("g-two", (250, 48), G, K(256, 35, 25000, 50331648),
        {"a": K(102, 17, 10000, 33554432, GUARANTEED), "b": K(153, 24, 15000, 16777216, GUARANTEED)},
        c(None, r("100m", "32Mi"), "a"), c(None, r("150m", "16Mi"), "b")),
    row("g-half-cpu", (500, 32), G, K(512, 59, 50000, 33554432), K(512, 59, 50000, 33554432, GUARANTEED), c(None, r("500m", "32Mi"))),
    row("g-one-cpu", (1000, 32), G, K(1024, 100, 100000, 33554432), K(1024, 100, 100000, 33554432, GUARANTEED), c(None, r("1", "32Mi"))),
    row("g-one-and-a-half", (1500, 32), G, K(1536, 138, 150000, 33554432), K(1536, 138, 150000, 33554432, GUARANTEED), c(None, r("1500m", "32Mi"))),
    row("g-odd-bytes", (200, 29), G, K(204, 29, 20000, 29999104), K(204, 29, 20000, 29999104, GUARANTEED), c(None, r("200m", "30000001"))),
    row("g-decimal", (250, 39), G, K(256, 35, 25000, 39997440), K(256, 35, 25000, 39997440, GUARANTEED), c(None, r("0.25", "40M"))),
    row("g-fraction-of-gi", (333, 32), G, K(340, 43, 33300, 33554432), K(340, 43, 33300, 33554432, GUARANTEED), c(None, r("333m", "0.03125Gi"))),
    row("g-rounded-up", (101, 32), G, K(103, 18, 10100, 33554432), K(103, 18, 10100, 33554432, GUARANTEED), c(None, r("0.1005", "32Mi"))),
    row("g-init-equal", (100, 32), G, K(102, 17, 10000, 33554432), K(102, 17, 10000, 33554432, GUARANTEED),
        c(None, r("100m", "32Mi")), inits=[init(None, r("100m", "32Mi"))]),
    row("g-init-larger", (200, 48), G, K(204, 29, 20000, 50331648), K(102, 17, 10000, 33554432, GUARANTEED),
        c(None, r("100m", "32Mi")), inits=[init(None, r("200m", "48Mi"))]),
    row("g-init-each-larger", (300, 48), G, K(307, 40, 30000, 50331648), K(102, 17, 10000, 33554432, GUARANTEED),
        c(None, r("100m", "32Mi")), inits=[init(None, r("300m", "16Mi"), "i1"), init(None, r("100m", "48Mi"), "i2")]),
    row("g-sidecar", (200, 48), G, K(204, 29, 20000, 50331648),
        {"main": K(102, 17, 10000, 33554432, GUARANTEED), "side": K(102, 17, 10000, 16777216, GUARANTEED)},
        c(None, r("100m", "32Mi")), inits=[sidecar(None, r("100m", "16Mi"))]),
    row("g-overhead", (150, 48), G, K(153, 24, 15000, 50331648), K(102, 17, 10000, 33554432, GUARANTEED),
        c(None, r("100m", "32Mi")), overhead=r("50m", "16Mi")),
    # ---- Burstable: requests alone, each size of weight
    row("b-1m", (1, 0), U, K(2, 1, None, None), K(2, 1, None, None), c(r("1m"))),
    row("b-2m", (2, 0), U, K(2, 1, None, None), K(2, 1, None, None), c(r("2m"))),
    row("b-3m", (3, 0), U, K(3, 2, None, None), K(3, 2, None, None), c(r("3m"))),
    row("b-10m", (10, 0), U, K(10, 4, None, None), K(10, 4, None, None), c(r("10m"))),
    row("b-25m", (25, 0), U, K(25, 6, None, None), K(25, 6, None, None), c(r("25m"))),
    row("b-50m", (50, 0), U, K(51, 11, None, None), K(51, 11, None, None), c(r("50m"))),
    row("b-75m", (75, 0), U, K(76, 14, None, None), K(76, 14, None, None), c(r("75m"))),
    row("b-250m", (250, 0), U, K(256, 35, None, None), K(256, 35, None, None), c(r("250m"))),
    row("b-750m", (750, 0), U, K(768, 80, None, None), K(768, 80, None, None), c(r("750m"))),
    row("b-1", (1000, 0), U, K(1024, 100, None, None), K(1024, 100, None, None), c(r("1"))),
    row("b-1800m", (1800, 0), U, K(1843, 160, None, None), K(1843, 160, None, None), c(r("1.8"))),
    row("b-memory", (0, 32), U, K(2, 1, None, None), K(2, 1, None, None, 32 * MI), c(r(None, "32Mi"))),
    row("b-both", (100, 128), U, K(102, 17, None, None), K(102, 17, None, None, 128 * MI), c(r("100m", "128Mi"))),
    row("b-two-requests", (150, 48), U, K(153, 24, None, None), {"a": K(102, 17, None, None, 32 * MI), "b": K(51, 11, None, None, 16 * MI)},
        c(r("100m", "32Mi"), name="a"), c(r("50m", "16Mi"), name="b")),
    # ---- Burstable: limits
    row("b-limit-cpu", (150, 0), U, K(153, 24, 15000, None), K(153, 24, 15000, None), c(None, r("150m"))),
    row("b-limit-memory", (0, 64), U, K(2, 1, None, 67108864), K(2, 1, None, 67108864, 64 * MI), c(None, r(None, "64Mi"))),
    row("b-between", (50, 32), U, K(51, 11, 20000, 134217728), K(51, 11, 20000, 134217728, 32 * MI), c(r("50m", "32Mi"), r("200m", "128Mi"))),
    row("b-many-cpus", (50, 0), U, K(51, 11, 350000, None), K(51, 11, 350000, None), c(r("50m"), r("3500m"))),
    row("b-more-than-the-node", (0, 16), U, K(2, 1, None, 1099511627776), K(2, 1, None, 1099511627776, 16 * MI), c(r(None, "16Mi"), r(None, "1Ti"))),
    row("b-cpu-limit-memory-request", (200, 32), U, K(204, 29, 20000, None), K(204, 29, 20000, None, 32 * MI), c(r(None, "32Mi"), r("200m"))),
    row("b-one-limits-memory", (0, 32), U, K(2, 1, None, None), {"a": K(2, 1, None, 33554432, 32 * MI), "b": K(2, 1, None, None)},
        c(None, r(None, "32Mi"), "a"), c(name="b")),
    row("b-one-limits-cpu", (150, 0), U, K(153, 24, None, None), {"a": K(102, 17, 10000, None), "b": K(51, 11, None, None)},
        c(None, r("100m"), "a"), c(r("50m"), name="b")),
    row("b-limits-of-different-kinds", (200, 32), U, K(204, 29, 20000, None), {"a": K(102, 17, 10000, 33554432, 32 * MI), "b": K(102, 17, 10000, None)},
        c(None, r("100m", "32Mi"), "a"), c(None, r("100m"), "b")),
    row("b-one-of-three", (100, 112), U, K(102, 17, None, None),
        {"a": K(30, 7, None, None, 64 * MI), "b": K(2, 1, None, None), "d": K(71, 13, 7000, 50331648, 48 * MI)},
        c(r("30m", "64Mi"), name="a"), c(name="b"), c(None, r("70m", "48Mi"), "d")),
    row("b-limit-of-zero", (100, 32), U, K(102, 17, None, 50331648), {"a": K(102, 17, 10000, 33554432, 32 * MI), "b": K(2, 1, None, 16777216)},
        c(None, r("100m", "32Mi"), "a"), c(r("0", "0"), r("0", "16Mi"), "b")),
    # ---- init containers and sidecars
    row("b-init-peak", (300, 0), U, K(307, 40, None, None), K(102, 17, None, None), c(r("100m")), inits=[init(r("300m"))]),
    row("b-init-below", (150, 0), U, K(153, 24, None, None), {"a": K(102, 17, None, None), "b": K(51, 11, None, None)},
        c(r("100m"), name="a"), c(r("50m"), name="b"), inits=[init(r("120m"))]),
    row("b-init-memory-limit", (0, 96), U, K(2, 1, None, 100663296), K(2, 1, None, 33554432, 32 * MI),
        c(None, r(None, "32Mi")), inits=[init(None, r(None, "96Mi"))]),
    row("b-init-unlimited", (100, 32), U, K(102, 17, None, None), K(102, 17, 10000, 33554432, 32 * MI),
        c(None, r("100m", "32Mi")), inits=[init()]),
    row("b-sidecar-sum", (50, 32), U, K(51, 11, None, None), {"main": K(30, 7, None, None, 16 * MI), "side": K(20, 6, None, None, 16 * MI)},
        c(r("30m", "16Mi")), inits=[sidecar(r("20m", "16Mi"))]),
    row("b-sidecar-then-init", (350, 0), U, K(358, 45, None, None), {"main": K(51, 11, None, None), "side": K(102, 17, None, None)},
        c(r("50m")), inits=[sidecar(r("100m")), init(r("250m"))]),
    row("b-init-then-sidecar", (250, 0), U, K(256, 35, None, None), {"main": K(51, 11, None, None), "side": K(102, 17, None, None)},
        c(r("50m")), inits=[init(r("250m")), sidecar(r("100m"))]),
    row("b-two-sidecars", (150, 0), U, K(153, 24, None, None), {"main": K(10, 4, None, None), "s1": K(51, 11, None, None), "s2": K(51, 11, None, None)},
        c(r("10m")), inits=[sidecar(r("50m"), name="s1"), sidecar(r("50m"), name="s2"), init(r("50m"))]),
    row("b-sidecar-limits", (30, 32), U, K(30, 7, 30000, 58720256),
        {"main": K(20, 6, 20000, 33554432, 16 * MI), "side": K(10, 4, 10000, 25165824, 16 * MI)},
        c(r("20m", "16Mi"), r("200m", "32Mi")), inits=[sidecar(r("10m", "16Mi"), r("100m", "24Mi"))]),
    row("b-sidecar-unlimited", (20, 16), U, K(20, 6, None, None), {"main": K(20, 6, 20000, 33554432, 16 * MI), "side": K(2, 1, None, None, 16 * MI)},
        c(r("20m", "16Mi"), r("200m", "32Mi")), inits=[sidecar()]),
    row("b-sidecar-is-not-killed-first", (0, 144), U, K(2, 1, None, None), {"main": K(2, 1, None, None, 128 * MI), "side": K(2, 1, None, None, 128 * MI)},
        c(r(None, "128Mi")), inits=[sidecar(r(None, "16Mi"))]),
    row("b-overhead", (150, 0), U, K(153, 24, None, None), K(102, 17, None, None), c(r("100m")), overhead=r("50m")),
    row("b-overhead-limits", (100, 48), U, K(102, 17, 25000, 67108864), K(51, 11, 20000, 50331648, 32 * MI),
        c(r("50m", "32Mi"), r("200m", "48Mi")), overhead=r("50m", "16Mi")),
    # ---- resources of the pod
    row("p-guaranteed", (200, 64), G, K(204, 29, 20000, 67108864), K(204, 29, 20000, 67108864, GUARANTEED), c(), resources={"limits": r("200m", "64Mi")}),
    row("p-and-containers", (60, 64), U, K(61, 12, 12000, 100663296),
        {"main": K(122, 20, 12000, 100663296, 28 * MI), "own": K(10, 4, 10000, 16777216, 36 * MI)},
        c(), c(r("10m", "8Mi"), r("100m", "16Mi"), "own"), resources=resources(r("60m", "64Mi"), r("120m", "96Mi"))),
    row("p-requests", (100, 32), U, K(102, 17, None, None), K(2, 1, None, None, 32 * MI), c(), resources={"requests": r("100m", "32Mi")}),
    row("p-limit-memory", (0, 64), U, K(2, 1, None, 67108864), K(2, 1, None, 67108864, 64 * MI), c(), resources={"limits": r(None, "64Mi")}),
    row("p-more-than-containers", (300, 0), U, K(307, 40, 40000, None), {"a": K(102, 17, 40000, None), "b": K(102, 17, 40000, None)},
        c(r("100m"), name="a"), c(r("100m"), name="b"), resources=resources(r("300m"), r("400m"))),
    row("p-init", (200, 0), U, K(204, 29, None, None), K(51, 11, None, None), c(r("50m")), inits=[init(r("150m"))], resources={"requests": r("200m")}),
    row("p-overhead", (150, 48), G, K(153, 24, 15000, 50331648), K(102, 17, 10000, 33554432, GUARANTEED), c(),
        resources={"limits": r("100m", "32Mi")}, overhead=r("50m", "16Mi")),
]

# Huge pages of 2 MiB: the machine must have eight.  Sizes that are not requested are 0 in every row of every
# table.
HUGE = [
    row("h-one", (100, 32), G, K(102, 17, 10000, 33554432, huge=4 * MI), K(102, 17, 10000, 33554432, GUARANTEED, 4 * MI), c(None, r("100m", "32Mi", huge="4Mi"))),
    row("h-two", (200, 32), G, K(204, 29, 20000, 33554432, huge=4 * MI),
        {"a": K(102, 17, 10000, 16777216, GUARANTEED, 2 * MI), "b": K(102, 17, 10000, 16777216, GUARANTEED, 2 * MI)},
        c(None, r("100m", "16Mi", huge="2Mi"), "a"), c(None, r("100m", "16Mi", huge="2Mi"), "b")),
    row("h-one-of-two", (200, 32), G, K(204, 29, 20000, 33554432, huge=2 * MI),
        {"a": K(102, 17, 10000, 16777216, GUARANTEED, 2 * MI), "b": K(102, 17, 10000, 16777216, GUARANTEED, 0)},
        c(None, r("100m", "16Mi", huge="2Mi"), "a"), c(None, r("100m", "16Mi"), "b")),
    row("h-init", (100, 32), G, K(102, 17, 10000, 33554432, huge=4 * MI), K(102, 17, 10000, 33554432, GUARANTEED, 2 * MI),
        c(None, r("100m", "32Mi", huge="2Mi")), inits=[init(None, r("100m", "32Mi", huge="4Mi"))]),
    row("h-pod-level", (100, 32), G, K(102, 17, 10000, 33554432, huge=2 * MI), K(102, 17, 10000, 33554432, GUARANTEED, 2 * MI),
        c(), resources={"limits": r("100m", "32Mi", huge="2Mi")}),
]

# Another node: settings, and rows for them.  `more` are files of cgroup v2.
TIERS = """
podPidsLimit: 64
cpuCFSQuotaPeriod: 10ms
systemReserved: {cpu: 200m, memory: 64Mi, pid: "1000"}
kubeReserved: {cpu: 300m, memory: 36Mi, pid: "24"}
featureGates: {MemoryQoS: true}
memoryReservationPolicy: TieredReservation
memoryThrottlingFactor: 0.5
"""
TIERS_TABLE = [
    row("t-guaranteed", (200, 32), G, K(204, 29, 2000, 33554432, more={"memory.min": 33554432, "memory.low": 0}),
        K(204, 29, 2000, 33554432, GUARANTEED, more={"memory.min": 33554432, "memory.low": 0, "memory.high": "max"}), c(None, r("200m", "32Mi"))),
    row("t-burstable", (50, 32), U, K(51, 11, 2000, 67108864, more={"memory.min": 0, "memory.low": 33554432}),
        K(51, 11, 2000, 67108864, 32 * MI, more={"memory.min": 0, "memory.low": 33554432, "memory.high": 50331648}),
        c(r("50m", "32Mi"), r("200m", "64Mi"))),
    row("t-two", (0, 64), U, K(2, 1, None, 117440512, more={"memory.low": 67108864}),
        {"a": K(2, 1, None, 100663296, 48 * MI, more={"memory.low": 50331648, "memory.high": 75497472}),
         "b": K(2, 1, None, 16777216, 16 * MI, more={"memory.low": 16777216, "memory.high": "max"})},
        c(r(None, "48Mi"), r(None, "96Mi"), "a"), c(None, r(None, "16Mi"), "b")),
    row("t-besteffort", (0, 0), B, NOTHING._replace(more={"memory.min": 0, "memory.low": 0}),
        NOTHING._replace(more={"memory.min": 0, "memory.low": 0, "memory.high": "max"}), c()),
]

LOOSE = """
cpuCFSQuota: false
singleProcessOOMKill: true
enforceNodeAllocatable: [none]
systemReserved: {cpu: 500m, memory: 64Mi, pid: "1000"}
"""
ONE, ALL = {"memory.oom.group": 0}, {"memory.oom.group": 1}
LOOSE_TABLE = [
    row("l-no-quota", (100, 32), G, K(102, 17, None, 33554432, more=ONE), K(102, 17, None, 33554432, GUARANTEED, more=ONE), c(None, r("100m", "32Mi"))),
    row("l-container", (0, 0), B, NOTHING._replace(more=ONE), NOTHING._replace(more=ALL), c(), annotations={"coracle.dev/oom-kill": "container"}),
    row("l-pod", (0, 0), B, NOTHING._replace(more=ALL), NOTHING._replace(more=ALL), c(), annotations={"coracle.dev/oom-kill": "pod"}),
    row("l-process", (0, 0), B, NOTHING._replace(more=ONE), NOTHING._replace(more=ONE), c(), annotations={"coracle.dev/oom-kill": "process"}),
]
