# SPDX-License-Identifier: Apache-2.0
"""devices_soak - pods with devices come and go while agent and plugins are killed; who has what is read from /proc.

Every step is drawn from one seed.  What a pod was given is the environment of its processes, which no agent can
change: that no device is given twice and that none changes is seen there, beside the checkpoint, which is read
and verified after each kill.
"""
import os
import random
import time

import coracle
import devices
from coracle import SLOW, check, equal, read, until
from devices import Plugin, asking

RESOURCES = {"example.com/dev": ("dev-", 24), "example.com/net": ("net-", 8)}
PODS = 20


class Soak:
    def __init__(self, t, seed, kills):
        self.t, self.rng, self.kills = t, random.Random(seed), kills
        self.given = {}    # pod uid: {container: ids}, as first seen
        self.plugins = {}
        self.want, self.serial, self.agent_kills, self.plugin_kills = {}, 0, 0, 0

    def plugin(self, resource):
        prefix, count = RESOURCES[resource]
        name = prefix.rstrip("-")
        self.plugins[resource] = Plugin(self.node, "--resource", resource, "--prefix", prefix, "--devices", str(count), "--prestart",
                                        "--preferred", name=name, wait=False)

    def manifest(self, name):
        """Pods of a few kinds; together they ask for fewer devices than there are."""
        resource = self.rng.choice(("example.com/dev",) * 4 + ("example.com/net",))
        kind = self.rng.choice(("plain", "plain", "init", "short"))
        pod = asking(name, resource=resource, command="sleep 0.5" if kind == "short" else None)
        if kind == "short":
            pod["spec"]["restartPolicy"] = self.rng.choice(("Never", "Always"))
        if kind == "init":
            pod["spec"]["initContainers"] = [coracle.container("init", coracle.shell("true"), resources={"limits": {resource: "1"}})]
        return pod

    def churn(self):
        for _ in range(self.rng.randrange(1, 4)):
            name = f"p{self.rng.randrange(PODS)}"
            if name in self.want:
                self.node.remove(f"{name}.yaml")
                del self.want[name]
            else:
                self.serial += 1
                self.want[name] = self.manifest(name)
                self.node.put(f"{name}.yaml", self.want[name])

    def processes(self):
        """{(uid, container id): ids} of all living containers, from their environment."""
        found = {}
        root = coracle.hierarchies()[0] + self.node.cgroup_root
        for folder, _, _ in os.walk(root):
            uid = next((part[3:] for part in folder.split("/") if part.startswith("pod") and len(part) > 30), None)
            for pid in read(folder + "/cgroup.procs", "").split() if uid else ():
                env = dict(v.split("=", 1) for v in read(f"/proc/{pid}/environ", "").split("\0") if "=" in v)
                if "DEV_IDS" in env and coracle.alive(int(pid)):
                    found[(uid, os.path.basename(folder))] = env["DEV_IDS"].split(",")
        return found

    def verify(self):
        """No device has two pods, no pod's devices have changed, and the checkpoint is whole."""
        data = devices.checkpoint(self.node)
        devices.check_no_device_twice(data)
        owners = {}
        for (uid, cid), ids in self.processes().items():
            for one in ids:
                check(owners.setdefault(one, uid) == uid, f"{one} is given to pods {owners[one]} and {uid} ({cid})")
            first = self.given.setdefault(uid, ids)
            equal(ids, first, f"the devices of pod {uid}")

    def kill(self):
        if self.rng.random() < 0.6:
            self.node.kill()
            self.agent_kills += 1
            self.verify()
            if self.rng.random() < 0.3:
                self.churn()
            self.node.start(wait=self.rng.random() < 0.7)
        else:
            resource = self.rng.choice(list(RESOURCES))
            if self.plugins[resource].process.poll() is None:
                self.plugins[resource].kill()
            self.plugin_kills += 1
            self.verify()
            self.plugin(resource)

    def at_rest(self):
        """Everybody runs, and the node counts all devices."""
        until(self.listens, 20, "the agent answers")
        for resource, (_, count) in RESOURCES.items():
            devices.wait_node(self.node, count, count, resource, deadline=30)

        def state():
            pods = {n: p for (_, n), p in self.node.pods().items()}
            return set(pods) == set(self.want) and all(
                p.phase in ("Running", "Succeeded") or p.restarts() for p in pods.values())
        until(state, 60, lambda: "all pods run: " + ", ".join(f"{n}:{p.phase}:{p.status.get('message', p.state())}" for (_, n), p in
                                                              self.node.pods().items() if p.phase != "Running"))
        self.verify()

    def listens(self):
        try:
            self.node.get("/api/v1/pods")
            return True
        except OSError:
            check(self.node.process.poll() is None, lambda: f"the agent ended:\n{self.node.log()[-2000:]}")
            return False

    def run(self):
        self.node = devices.start(self.t)
        for resource in RESOURCES:
            self.plugin(resource)
        for i in range(PODS // 2):
            self.want[f"p{i}"] = self.manifest(f"p{i}")
            self.node.put(f"p{i}.yaml", self.want[f"p{i}"])
        for number in range(1, self.kills + 1):
            time.sleep(self.rng.random() * 0.4 * SLOW)
            self.churn()
            time.sleep(self.rng.random() * 0.4 * SLOW)
            self.kill()
            if number % 25 == 0:
                self.at_rest()
        self.at_rest()
        print(f"MEASURED {self.agent_kills} kills of the agent, {self.plugin_kills} of plugins, {self.serial} pods, "
              f"{len(self.given)} of them seen with devices")
        for name in list(self.want):
            self.node.remove(f"{name}.yaml")
        until(lambda: not self.node.pods(), 60, lambda: f"pods are gone: {list(self.node.pods())}")
        until(lambda: not devices.held(devices.checkpoint(self.node)), 10, "nothing is held any more")
        for resource, (_, count) in RESOURCES.items():
            devices.wait_node(self.node, count, count, resource)
            self.plugins[resource].stop()
        self.node.stop()
