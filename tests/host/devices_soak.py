# SPDX-License-Identifier: Apache-2.0
"""devices_soak - pods with devices come and go while agent and plugins are killed; who has what is read from /proc.

Every step is drawn from one seed.  The agent is killed, a plugin, or both; half of the agent's kills wait for a crun
that it has started, which lives on.  What a pod was given is the environment of its processes, which no agent can
change: that no device is given twice and that none changes is seen there, beside the checkpoint, which is read
and verified after each kill.  At rest every pod that stays has what it asked for, healthy, and may open it.
"""
import collections
import os
import random
import time

import coracle
import devices
from coracle import SLOW, alive, check, equal, processes, read, until
from devices import Plugin, asking

RESOURCES = {"example.com/dev": ("dev-", 24), "example.com/net": ("net-", 8)}
PODS = 20


class Soak:
    def __init__(self, t, seed, kills):
        self.t, self.rng, self.kills = t, random.Random(seed), kills
        self.given = {}    # pod uid: {container: ids}, as first seen
        self.plugins = {}
        self.want, self.serial = {}, 0  # {pod: (kind, resource)}
        self.count = collections.Counter()

    def plugin(self, resource):
        prefix, count = RESOURCES[resource]
        name = prefix.rstrip("-")
        self.plugins[resource] = Plugin(self.node, "--resource", resource, "--prefix", prefix, "--devices", str(count), "--prestart",
                                        "--preferred", "--device", f"{self.device}:/dev/x:r", name=name, wait=False)

    def put(self, name):
        """A pod of one of a few kinds; together they ask for fewer devices than there are."""
        few = [r for r, (_, count) in RESOURCES.items() if sum(r == w for _, w in self.want.values()) < count - 2]
        resource = self.rng.choice(few)
        kind = self.rng.choice(("plain", "plain", "init", "short"))
        pod = asking(name, resource=resource, command="sleep 0.5" if kind == "short" else None)
        if kind == "short":
            pod["spec"]["restartPolicy"] = self.rng.choice(("Never", "Always"))
        if kind == "init":
            pod["spec"]["initContainers"] = [coracle.container("init", coracle.shell("true"), resources={"limits": {resource: "1"}})]
        self.want[name] = (kind, resource)
        self.serial += 1
        self.node.put(f"{name}.yaml", pod)

    def churn(self):
        for _ in range(self.rng.randrange(1, 4)):
            name = f"p{self.rng.randrange(PODS)}"
            if name in self.want:
                self.node.remove(f"{name}.yaml")
                del self.want[name]
            else:
                self.put(name)

    def containers(self):
        """{(uid, container id): ids} of all living containers, from their environment."""
        found = {}
        root = coracle.hierarchies()[0] + self.node.cgroup_root
        for folder, _, _ in os.walk(root):
            uid = next((part[3:] for part in folder.split("/") if part.startswith("pod") and len(part) > 30), None)
            for pid in read(folder + "/cgroup.procs", "").split() if uid else ():
                env = dict(v.split("=", 1) for v in read(f"/proc/{pid}/environ", "").split("\0") if "=" in v)
                if "DEV_IDS" in env and alive(int(pid)):
                    found[(uid, os.path.basename(folder))] = env["DEV_IDS"].split(",")
        return found

    def verify(self):
        """No device has two pods, no pod's devices have changed, and the checkpoint is whole."""
        data = devices.checkpoint(self.node)
        devices.check_no_device_twice(data)
        owners = {}
        for (uid, cid), ids in self.containers().items():
            for one in ids:
                check(owners.setdefault(one, uid) == uid, f"{one} is given to pods {owners[one]} and {uid} ({cid})")
            first = self.given.setdefault(uid, ids)
            equal(ids, first, f"the devices of pod {uid}")

    def crun(self):
        """A living crun of this node, if there is one."""
        return next((p for p in processes() if read(f"/proc/{p}/comm", "").strip() == "crun"
                     and self.t.scratch in read(f"/proc/{p}/cmdline", "") and alive(p)), None)

    def kill(self):
        """The agent, a plugin, or both; whatever was killed begins again."""
        what = self.rng.choice(("agent", "agent", "plugin", "both"))
        resource = self.rng.choice(list(RESOURCES))
        if what != "plugin" and self.rng.random() < 0.5:
            self.churn()
            end = time.monotonic() + 0.5 * SLOW
            while self.crun() is None and time.monotonic() < end:
                pass
        if what != "plugin":
            child = self.crun()
            self.node.kill()
            self.count["kills of the agent"] += 1
            self.count["of them beside a living crun"] += child is not None and alive(child)
        if what != "agent":
            if self.plugins[resource].process.poll() is None:
                self.plugins[resource].kill()
            self.count["kills of a plugin"] += 1
        self.verify()
        if what != "plugin" and self.rng.random() < 0.3:
            self.churn()
        again = [*[lambda: self.node.start(wait=self.rng.random() < 0.7)] * (what != "plugin"),
                 *[lambda: self.plugin(resource)] * (what != "agent")]
        self.rng.shuffle(again)
        for start in again:
            start()

    def at_rest(self):
        """Everybody runs, and the node counts all devices."""
        until(self.listens, 20, "the agent answers")
        for resource, (_, count) in RESOURCES.items():
            devices.wait_node(self.node, count, count, resource, deadline=30)

        def runs(name, p):
            return p.phase in ("Running", "Succeeded") or p.restarts() if self.want[name][0] == "short" else p.state()[0] == "running"

        def state():
            pods = self.pods()
            return set(pods) == set(self.want) and all(runs(n, p) for n, p in pods.items())
        until(state, 60, lambda: "all pods run: " + ", ".join(f"{n}:{p.phase}:{p.status.get('message', p.state())}" for n, p in
                                                              self.pods().items() if p.state()[0] != "running"))
        self.verify()
        for name, (kind, resource) in self.want.items():
            if kind != "short":
                self.has(name, resource)

    def pods(self):
        return {n: p for (_, n), p in self.node.pods().items()}

    def has(self, name, resource):
        """A pod that stays has the device that it asked for: by its process, the checkpoint and the status; and may open it."""
        pod = self.node.pod(name)
        ids = self.given.get(pod.uid)
        check(ids and len(ids) == 1, lambda: f"{name} has no device: {ids}; {pod.status}")
        equal(devices.held(devices.checkpoint(self.node)).get((pod.uid, "main", resource)), ids, f"the checkpoint's devices of {name}")
        until(lambda: devices.devices_of(self.node.pod(name), resource=resource) == {ids[0]: "Healthy"}, 20,
              lambda: f"{name}: {devices.devices_of(self.node.pod(name), resource=resource)}")
        equal(devices.opens(self.node, name), ("allowed", "refused"), f"what {name} may do")
        self.count["pods seen with their device at rest"] += 1
        self.count["of them started again"] += pod.restarts() > 0

    def listens(self):
        try:
            self.node.get("/api/v1/pods")
            return True
        except OSError:
            check(self.node.process.poll() is None, lambda: f"the agent ended:\n{self.node.log()[-2000:]}")
            return False

    def run(self):
        self.device = devices.device_node(f"{self.t.scratch}/device", 1)
        self.node = devices.start(self.t)
        for resource in RESOURCES:
            self.plugin(resource)
        for i in range(PODS // 2):
            self.put(f"p{i}")
        for number in range(1, self.kills + 1):
            time.sleep(self.rng.random() * 0.4 * SLOW)
            self.churn()
            time.sleep(self.rng.random() * 0.4 * SLOW)
            self.kill()
            if number % 25 == 0:
                self.at_rest()
        self.at_rest()
        print("MEASURED", ", ".join(f"{n} {what}" for what, n in self.count.items()) + f"; {self.serial} pods, "
              f"{len(self.given)} of them seen with devices")
        for name in list(self.want):
            self.node.remove(f"{name}.yaml")
        until(lambda: not self.node.pods(), 60, lambda: f"pods are gone: {list(self.node.pods())}")
        until(lambda: not devices.held(devices.checkpoint(self.node)), 10, "nothing is held any more")
        for resource, (_, count) in RESOURCES.items():
            devices.wait_node(self.node, count, count, resource)
            self.plugins[resource].stop()
        self.node.stop()
