# SPDX-License-Identifier: Apache-2.0
"""joined_node - the daemon, its coracle-kube and a scripted apiserver, with the clues that tests of the apiserver's faults look at."""
import contextlib
import json
import os
import threading
import time

from apiserver import ApiServer
from coracle import SLOW, check, equal, until


def ready_of(node):
    return next((c["status"] for c in (node or {}).get("status", {}).get("conditions", []) if c["type"] == "Ready"), None)


class Joined:
    """`server`, `node`; `kubeconfig` may be changed by `change` before the daemon starts."""

    def __init__(self, t, *flags, change=None, pods=(), wait=True):
        os.chmod(t.scratch, 0o755)
        folder = f"{t.scratch}/apiserver"
        os.makedirs(folder, exist_ok=True)
        self.t, self.server = t, ApiServer(folder)
        self.kubeconfig = self.server.kubeconfig("test-node")
        if change is not None:
            with open(self.kubeconfig, encoding="ascii") as f:
                config = json.load(f)
            change(self.server, config)
            with open(self.kubeconfig, "w", encoding="ascii") as f:
                json.dump(config, f)
        self.node = t.node("--kubeconfig", self.kubeconfig, *flags)
        self.node.import_image()
        self.readies, self.ids = [], {}
        if wait:
            self.server.store.wait("Node", "test-node", lambda n: ready_of(n) == "True", seconds=20 * SLOW)
            self.server.store.watchers.add(self._look)
        for p in pods:
            self.put(p)
        for p in pods:
            self.wait_phase(p["metadata"]["name"], "Running")

    def _look(self):
        """Ready, whenever something changed."""
        self.readies.append(ready_of(self.server.store.get("Node", "test-node")))

    def put(self, pod):
        pod["spec"]["nodeName"] = "test-node"
        pod["metadata"].setdefault("namespace", "default")
        return self.server.store.put("Pod", pod)

    def wait_phase(self, name, phase, seconds=20):
        return self.server.store.wait("Pod", name, lambda p: p is not None and p.get("status", {}).get("phase") == phase, seconds=seconds * SLOW)

    def remember(self, *names):
        self.ids = {n: (self.node.pod(n).container_id(), self.node.pod(n).restarts()) for n in names}

    def undisturbed(self):
        for name, before in self.ids.items():
            equal((self.node.pod(name).container_id(), self.node.pod(name).restarts()), before, f"the container of {name}")
        check(set(self.readies) <= {"True"}, f"Ready was {sorted(set(map(str, self.readies)))}")

    def explain(self):
        return self.node.cli("explain", "node").stdout

    def connected(self):
        return "coracle_cluster_connected 1" in self.node.request("GET", "/metrics")[1].decode()

    def wait_connected(self, wanted=True, seconds=20):
        began = time.monotonic()
        until(lambda: self.connected() == wanted, seconds, lambda: f"connected is {wanted}:\n{self.explain()}")
        return time.monotonic() - began

    def kube_pid(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    name = f.read().split(b"\0")[0]
                if name.endswith(b"/coracle-kube") and os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"):
                    return int(pid)
            except OSError:
                pass
        return None

    def stop(self):
        self.server.store.watchers.discard(self._look)
        equal(self.node.stop(), 0, "the exit code")
        self.server.stop()


class Connected:
    """A thread that writes down when the daemon's view of the apiserver changes: [(seconds, connected)]."""

    def __init__(self, joined):
        self.joined, self.changes, self.began, self.over = joined, [], time.monotonic(), threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.over.wait(0.3):
            with contextlib.suppress(OSError):
                self._look()

    def _look(self):
        now = self.joined.connected()
        if not self.changes or self.changes[-1][1] != now:
            self.changes.append((time.monotonic() - self.began, now))

    def end(self):
        self.over.set()
        self.thread.join()
        self._look()
        return self.changes


def pss_kb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
