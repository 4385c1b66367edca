# SPDX-License-Identifier: Apache-2.0
"""bench - a node with resident pods, and the facts that must be the same after a fault as before."""
import collections
import contextlib
import http.client
import json
import os
import re
import time

import coracle
from coracle import Failed, check, config_map, container, pod, shell

DEADLINE_S = 25  # includes the back-off after a failure
RESIDENTS = ("web", "done", "slow")
LEASES = "/var/lib/cni"
# Logs, the address plugin's last address, files that a crun killed during an exec leaves in a bundle until that is
# removed, and the unfinished file of a `coracle cp` whose helper was killed: it is in the container's own layer, under a
# name that says what it is, and goes with it.  rsync leaves one, too.
PASSING = re.compile(r"\.log(\.|$)|last_reserved|/crun\.\w{6}$|/\.coracle-cp\.\d+\.\d+$")


def own_leases(scratch):
    """The address plugin writes below a fixed folder: each world has its own there."""
    os.makedirs(LEASES, exist_ok=True)
    os.makedirs(f"{scratch}/leases")
    coracle.run("mount", "--bind", f"{scratch}/leases", LEASES)


def hold_controllers(folder):
    """
    On a hybrid, each agent mounts the controllers that no v1 hierarchy holds (cgroups/hybrid.c), unless the
    agent of another world has done so.  Worlds would influence each other that way, so the driver holds these
    mounts for all of them.
    """
    coracle._libc_call("unshare", coracle.CLONE_NEWNS)  # pylint: disable=protected-access
    coracle.run("mount", "--make-rprivate", "/")
    for name in coracle.read(f"{coracle.CGROUP_FS}/unified/cgroup.controllers", "").split():
        os.makedirs(f"{folder}/{name}")
        coracle.run("mount", "-t", "cgroup", "-o", name, "none", f"{folder}/{name}", ok=False)


def tree(top, mounts):
    """Every path below a folder, without what is mounted there.  coracle.tree() costs more, and each round needs this several times."""
    found, folders = set(), [top]
    while folders:
        with contextlib.suppress(FileNotFoundError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                found.add(entry.path)
                if entry.is_dir(follow_symlinks=False) and entry.path not in mounts:
                    folders.append(entry.path)
    return found


def started(pid):
    return coracle.read(f"/proc/{pid}/stat", ") 0").rpartition(")")[2].split()[-1 if not pid else 19]


class Bench:
    """A node with resident pods, in this process's namespaces; the residents must never change."""

    def __init__(self, world, control, library, *flags):
        self.world, self.control = world, control
        self.node = world.node("--log-level", "info", *flags,
                               env={"LD_PRELOAD": library, "INJECT_CONTROL": world.scratch + "/control"})
        self.node.import_image()
        self.value, self.folders = "0", {}
        os.makedirs(f"{world.scratch}/tmp/count")
        self.put_value("0")
        count = {"name": "count", "hostPath": {"path": f"{world.scratch}/tmp/count"}}
        probe = {"exec": {"command": ["/bin/busybox", "true"]}, "periodSeconds": 2, "failureThreshold": 3}
        self.node.put("web.yaml", pod(
            "web", container(volumeMounts=[coracle.mount("config", "/config"), coracle.mount("memory", "/memory")],
                             ports=[{"containerPort": 80, "hostPort": 8200}], readinessProbe=probe),
            volumes=[{"name": "config", "configMap": {"name": "config"}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}]))
        self.node.put("done.yaml", pod("done", container(command=shell("echo x >> /count/done; exit 3"),
                                                         volumeMounts=[coracle.mount("count", "/count")]),
                                       restartPolicy="Never", volumes=[count]))
        self.node.put("slow.yaml", pod(
            "slow", container(volumeMounts=[coracle.mount("scratch", "/scratch")]),
            initContainers=[container("first", shell("echo x >> /count/slow"), volumeMounts=[coracle.mount("count", "/count")])],
            volumes=[count, {"name": "scratch", "emptyDir": {}}], shareProcessNamespace=True))
        self.wait(lambda p: self.phases(p) == ("Running", "Failed", "Running") and p["web"].ready, "the residents")
        self.node.wait_running("web", "slow")
        self.wanted = self.facts()
        self.quiet = self.fds = None

    def put_value(self, value):
        self.value = value
        self.node.put("config.yaml", config_map("config", text=value))

    # -- requests that a fault may hit too, and that are therefore repeated

    def pods(self):
        with contextlib.suppress(OSError, Failed, ValueError, http.client.HTTPException):
            return {key[1]: p for key, p in self.node.pods().items()}
        return {}

    def wait(self, condition, what, deadline=DEADLINE_S):
        """Waits for condition({name: pod}) to become true; returns its value."""
        end = time.monotonic() + deadline * coracle.SLOW
        while True:
            pods = self.pods()
            with contextlib.suppress(KeyError, OSError):
                value = condition(pods)
                if value:
                    return value
            check(time.monotonic() < end, lambda: f"{what}: not within {deadline * coracle.SLOW:g} s: " + ", ".join(
                f"{n} {p.phase} {json.dumps(p.status.get('containerStatuses', []))[:300]}" for n, p in pods.items()))
            self.revive()
            time.sleep(0.04)

    @staticmethod
    def phases(pods):
        return tuple(pods[n].phase for n in RESIDENTS)

    def revive(self):
        """Restarts an agent that has ended, as systemd does."""
        if self.node.process is not None and self.node.process.poll() is not None:
            self.ended = self.node.process.returncode
            self.control.disarm()
            self.node.process = None
            self.node.start()

    ended = None

    # -- facts

    def facts(self):
        pods = self.pods()
        found = {}
        for name in RESIDENTS:
            p = pods.get(name)
            if p is None:
                return {name: "missing"}
            pid = self.pid(p.container_id("main")) if name != "done" else 0
            found[name] = {"uid": p.uid, "id": p.container_id("main"), "phase": p.phase, "ip": p.ip, "restarts": p.restarts("main"),
                           "pid": (pid, started(pid) if pid else ""),
                           "exit": p.container("main").get("state", {}).get("terminated", {}).get("exitCode")}
        for name in ("done", "slow"):
            found[f"runs of {name}"] = len(coracle.read(f"{self.world.scratch}/tmp/count/{name}", ""))
        found["config"] = coracle.read(f"/proc/{found['web']['pid'][0]}/root/config/text", "?") == self.value
        return found

    def pid(self, cid):
        """Like Node.pid(), but looks in one hierarchy only, where the container was the last time."""
        folder = self.folders.get(cid, "")
        if not os.path.isdir(folder):
            root = coracle.hierarchies()[0] + self.node.cgroup_root
            folder = self.folders[cid] = next((f for f, _, _ in os.walk(root) if os.path.basename(f) == cid), "")
        pids = coracle.read(f"{folder}/cgroup.procs", "").split()
        parents = {p: coracle.read(f"/proc/{p}/stat", ") X 0 ").rpartition(")")[2].split()[1] for p in pids}
        return next((int(p) for p in pids if parents[p] not in parents), 0)

    def traces(self):
        """Everything that a node holds, which must be the same before and after each round."""
        node, found, mounts = self.node, set(), set(coracle.mounts_below(self.world.scratch))
        for folder in (node.run_dir, node.state_dir, node.root_dir, node.pod_logs, node.container_logs):
            found |= {path[len(self.world.scratch) + 1:] for path in tree(folder, mounts)}
        found = {re.sub(r"\.\.20\d\d_[\d_.]+", "..TIME", p) for p in found if not PASSING.search(p)}
        found |= {f"mount {p}" for p in mounts}
        found |= {f"cgroup {c}" for c in coracle.world_cgroups(self.world.name)}
        found |= {f"link {link}" for link in coracle.links()}
        known = os.readlink("/proc/self/ns/mnt")
        lines = [line.split()[0] for _, line in coracle.world_processes(self.world.name, known)]
        found |= {f"process {os.path.basename(n)} {lines.count(n)}" for n in set(lines)}
        found.add(f"rules {len(coracle.firewall().splitlines())}")
        with contextlib.suppress(OSError):
            found |= {f"lease {f}" for f in os.listdir(f"{LEASES}/networks/coracle") if f[0].isdigit()}
        return found

    def descriptors(self):
        """The agent's descriptors, by kind."""
        found = collections.Counter()
        folder = f"/proc/{self.node.process.pid}/fd"
        for fd in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                kind = re.sub(r"\d+", "N", os.readlink(f"{folder}/{fd}"))
                found["/dev/null" if kind == "/" else kind] += 1  # after EMFILE, libuv opens one kind again as the other
        return found

    def remember(self):
        """The facts that all rounds are compared with: seen twice in a row without a change."""
        def twice():
            now = (self.traces(), self.descriptors())
            same, before[0] = now == before[0], now
            return now if same and not any(m.startswith(("run/exec/", "process crun", "process coracle-exec")) for m in now[0]) else None
        before = [None]
        self.quiet, self.fds = coracle.until(twice, 15, "two equal looks at a quiet node", interval=0.2)

    def check(self, leaks=True):
        """Checks that the residents are unchanged and that nothing exists that did not exist when the node was quiet."""
        got = {}

        def same(_pods):
            got["facts"] = self.facts()
            return got["facts"] == self.wanted
        try:
            self.wait(same, "residents")
        except Failed:
            raise Failed("residents changed: " + "; ".join(f"{k}: {got['facts'].get(k)} instead of {v}" for k, v in self.wanted.items()
                                                          if got["facts"].get(k) != v)) from None
        end = time.monotonic() + 15 * coracle.SLOW
        while leaks:
            # Processes and descriptors of probes, and connections of clients, come and go.
            now, held = self.traces(), self.descriptors() - self.fds
            if now == self.quiet and not held:
                return
            check(time.monotonic() < end, lambda: f"left over: {sorted(now - self.quiet)[:12]}, missing: {sorted(self.quiet - now)[:12]}, "
                  f"held descriptors: {dict(held)}")
            time.sleep(0.1)

    def cli(self, *argv, **kwargs):
        return self.node.cli(*argv, ok=False, timeout=DEADLINE_S, **kwargs)
