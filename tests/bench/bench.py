# SPDX-License-Identifier: Apache-2.0
"""bench - the base of all scenarios: a daemon in a world of its own, the floor beside it, and figures.

The floor (floor.c) runs the parts of a pod without an agent: the same plugins, file systems, conmon and
runtime with the configuration that the agent itself wrote for a sample pod, which runs all the time.  A ratio
therefore compares the agent with the work that no agent can avoid, on the same machine in the same minute.
"""
import json
import os
import secrets
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{os.path.dirname(HERE)}/host")
from coracle import CGROUP_FS, UnixConnection, World, cgroup_v2, container, pod, processes, read, shell  # noqa: E402

SAMPLE = "sample"
SETTLE_MS = 10  # SRC_FOLDER_UNLINK_MS


def program(name):
    """The command of every container of the bench: it reports that it runs, then stays until it is asked to end."""
    return shell(f"trap 'exit 0' TERM; echo {name} > /bench/started; sleep 1000000 & wait")


class Figure:
    """One row: the measured values, and the floor of the same run."""

    def __init__(self, name, unit, values, floor=None, parts=None):
        self.name, self.unit, self.values, self.floor, self.parts = name, unit, sorted(values), sorted(floor or []), parts or {}

    def median(self):
        return statistics.median(self.values)

    def ratio(self):
        return self.median() / statistics.median(self.floor) if self.floor else None

    def json(self):
        row = {"name": self.name, "unit": self.unit, "n": len(self.values), "median": round(self.median(), 3),
               "p99": round(percentile(self.values, 99), 3), "min": round(self.values[0], 3), "max": round(self.values[-1], 3)}
        if self.floor:
            row |= {"floor": round(statistics.median(self.floor), 3), "ratio": round(self.ratio(), 3)}
        return row | ({"parts": self.parts} if self.parts else {})


def percentile(values, percent):
    return values[min(len(values) - 1, int(len(values) * percent / 100))]


class Bench:
    """The world of a run: a node with its image, the sample pod, the floor, and a FIFO that reports running containers."""

    def __init__(self, scratch, build, flags=()):
        self.world = World(os.path.basename(scratch), scratch, build)
        self.world.remember()
        self.scratch, self.build = scratch, build
        self.started, self.came = {}, threading.Condition()
        os.makedirs(f"{scratch}/bench")
        os.mkfifo(f"{scratch}/bench/started", 0o666)
        threading.Thread(target=self.listen, daemon=True).start()
        self.node = self.world.node("--log-level", "info", *flags)
        self.node.import_image()
        self.cgroup = self.node.cgroup_root
        self.join_cgroup(self.node.process.pid)

    # -- pods of the agent

    def pod(self, name, *volumes, **more):
        """A manifest whose container reports when it runs; volumes are pairs of volume and mount."""
        told = ({"name": "bench", "hostPath": {"path": f"{self.scratch}/bench"}}, {"name": "bench", "mountPath": "/bench"})
        return pod(name, container("main", program(name), volumeMounts=[m for _, m in (told,) + volumes]),
                   volumes=[v for v, _ in (told,) + volumes], terminationGracePeriodSeconds=0, **more)

    def start(self, pods, gap=0.0, deadline=120):
        """Renames the manifests into the folder: {name: ms until its process ran}, ms for all."""
        for p in pods:
            with open(self.hidden(p), "w", encoding="ascii") as f:
                json.dump(p, f)
        renamed = {}
        for i, p in enumerate(pods):
            if i > 0 and gap:
                time.sleep(gap)
            renamed[p["metadata"]["name"]] = time.monotonic_ns()
            os.rename(self.hidden(p), f"{self.node.manifests}/{p['metadata']['name']}.json")
        try:
            ran = self.wait_started(renamed, deadline)
        except TimeoutError:
            left = next(n for n in renamed if n not in self.started)
            print(f"# {left} does not start: {json.dumps(self.node.get(f'/explain/default/{left}'))}", flush=True)
            raise
        return {n: (ran[n] - renamed[n]) / 1e6 for n in renamed}, (max(ran.values()) - min(renamed.values())) / 1e6

    def hidden(self, p):
        return f"{self.node.manifests}/.{p['metadata']['name']}"

    def remove(self, names):
        """Unlinks the manifests: ms until nothing of the pods is left, without the time a file may be away (editors do that)."""
        watch = self.watch(names[0]) if len(names) == 1 else None
        start = time.monotonic_ns()
        self.node.remove(*(f"{n}.json" for n in names))
        if watch is not None:
            while json.loads(watch.readline())["type"] != "DELETED":
                pass
        else:
            self.node.wait_gone(*names, deadline=120)
        return (time.monotonic_ns() - start) / 1e6 - SETTLE_MS

    def watch(self, name):
        """Of this pod alone, so that the pods beside it cost no time here."""
        connection = UnixConnection(self.node.socket, 120)
        connection.request("GET", f"/api/v1/namespaces/default/pods/{name}?watch=1")
        return connection.getresponse()

    # -- running containers

    def listen(self):
        with open(os.open(f"{self.scratch}/bench/started", os.O_RDWR), encoding="ascii") as fifo:
            for line in fifo:
                with self.came:
                    self.started[line.strip()] = time.monotonic_ns()
                    self.came.notify_all()

    def wait_started(self, names, deadline=120):
        with self.came:
            if not self.came.wait_for(lambda: all(n in self.started for n in names), deadline):
                raise TimeoutError(f"not running: {[n for n in names if n not in self.started]}")
            return {n: self.started.pop(n) for n in names}

    # -- CPU time

    def join_cgroup(self, pid):
        """Puts the agent, or the floor, below the cgroup whose CPU time is read: its children stay there or in cgroups below."""
        folder = f"{CGROUP_FS}{'' if cgroup_v2() else '/cpuacct'}{self.cgroup}/bench"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(pid))

    def cpu_ms(self):
        """CPU time used by all processes of the world, including those that have ended."""
        if cgroup_v2():
            usage = dict(line.split() for line in read(f"{CGROUP_FS}{self.cgroup}/cpu.stat").splitlines())
            return int(usage["usage_usec"]) / 1e3
        return int(read(f"{CGROUP_FS}/cpuacct{self.cgroup}/cpuacct.usage")) / 1e6

    def close(self):
        self.node.stop()


class Floor:
    """The parts of the sample pod, run by floor.c."""

    def __init__(self, bench):
        self.bench = bench
        sample = bench.pod(SAMPLE)
        bench.start([sample])
        self.path = f"{bench.scratch}/parts.json"
        with open(self.path, "w", encoding="utf-8") as f:
            json.dump(self.parts(bench.node.wait_running(SAMPLE)), f)

    def parts(self, p):
        s, cid = self.bench.scratch, p.container_id("main")
        base = f"{s}/run/floor"  # a tmpfs, as the agent's own
        for folder in ("ns", "bundles", "exits", "logs", "oci"):
            os.makedirs(f"{base}/{folder}")
        os.makedirs(f"{s}/floor")
        bundle, layer = f"{base}/bundles/@ID@", f"{s}/floor/@ID@"
        config = json.loads(read(f"{s}/run/containers/{cid}/config.json"))
        config["linux"]["cgroupsPath"] = f"{self.bench.cgroup}/floor/@ID@"
        for namespace in config["linux"]["namespaces"]:
            namespace.pop("path", None)
            if namespace["type"] == "network":
                namespace["path"] = f"{base}/ns/@ID@"
        config["process"]["args"] = program("@ID@")
        argv, env = self.conmon(cid)
        replace = {f"{s}/run/containers/{cid}": bundle, f"{s}/run/exits": f"{base}/exits", f"{s}/run/oci": f"{base}/oci", cid: "@ID@"}
        for old, new in replace.items():
            argv, env = [a.replace(old, new) for a in argv], [e.replace(old, new) for e in env]
        argv = [f"k8s-file:{base}/logs/@ID@.log" if a.startswith("k8s-file:") else a for a in argv]
        runtime = [argv[argv.index("--runtime") + 1]] + [a[len("--runtime-arg="):] for a in argv if a.startswith("--runtime-arg=")]
        return {"netns": f"{base}/ns/@ID@", "bundle": bundle, "layer": layer, "rootfs": f"{bundle}/rootfs",
                "overlay": f"lowerdir={':'.join(self.layers())},upperdir={layer}/upper,workdir={layer}/work,volatile",
                "folders": [bundle, f"{bundle}/rootfs", layer, f"{layer}/upper", f"{layer}/work"],
                "config": json.dumps(config), "conmon": argv, "env": env, "start": runtime + ["start", "@ID@"],
                "delete": runtime + ["delete", "--force", "@ID@"], "plugins": self.plugins(),
                "pluginEnv": [f"CNI_PATH={':'.join(self.plugin_dirs())}", "CNI_CONTAINERID=@ID@", "CNI_IFNAME=eth0",
                              f"CNI_NETNS={base}/ns/@ID@", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                              "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=@ID@;K8S_POD_INFRA_CONTAINER_ID=@ID@;K8S_POD_UID=@ID@"]}

    def conmon(self, cid):
        """(argv, environment) of the sample's conmon."""
        for pid in processes():
            argv = read(f"/proc/{pid}/cmdline", "").split("\0")[:-1]
            if argv and os.path.basename(argv[0]) == "conmon" and cid in argv:
                env = [e for e in read(f"/proc/{pid}/environ").split("\0") if e]
                return [a for a in argv if a], env
        raise LookupError("no conmon of the sample pod")

    def layers(self):
        below = f"{self.bench.scratch}/state/images/layers"
        found = [folder for folder, names, _ in os.walk(below) if "bin" in names and folder.count("/") <= below.count("/") + 3]
        return found[:1]

    def plugin_dirs(self):
        return [d for d in ("/opt/cni/bin", "/usr/lib/cni") if os.path.isdir(d)]

    def plugins(self):
        with open(f"{self.bench.scratch}/cni/10-coracle.conflist", encoding="utf-8") as f:
            conflist = json.load(f)
        found = []
        for conf in conflist["plugins"]:
            conf |= {"name": conflist["name"], "cniVersion": conflist["cniVersion"]}
            if "ipam" in conf:
                conf["ipam"]["dataDir"] = f"{self.bench.scratch}/state/cni/networks"
            path = next(f"{d}/{conf['type']}" for d in self.plugin_dirs() if os.path.exists(f"{d}/{conf['type']}"))
            found.append({"name": conf["type"], "path": path, "conf": json.dumps(conf)})
        return found

    def run(self, verb, ids, parallel):
        argv = [f"{self.bench.build}/tests/bench/floor", self.path, verb, str(parallel)] + ids
        result = subprocess.run(argv, preexec_fn=lambda: self.bench.join_cgroup(os.getpid()), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, text=True, check=True, timeout=300)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def start(self, n, parallel):
        """(ids, {id: ms until its process ran}, ms for all, [{step: ms}])"""
        ids = [secrets.token_hex(32) for _ in range(n)]
        told = self.run("add", ids, parallel)
        ran = self.bench.wait_started(ids)
        began = {t["id"]: t["began"] for t in told}
        each = {i: (ran[i] - began[i]) / 1e6 for i in ids}
        return ids, each, (max(ran.values()) - min(began.values())) / 1e6, [{k: v / 1e6 for k, v in t["steps"].items()} for t in told]

    def remove(self, ids, parallel):
        start = time.monotonic_ns()
        self.run("del", ids, parallel)
        return (time.monotonic_ns() - start) / 1e6


__all__ = ["Bench", "Figure", "Floor", "percentile", "until"]
