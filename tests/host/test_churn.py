# SPDX-License-Identifier: Apache-2.0
"""Pods of a cluster that come, change and go while their apiserver is killed, slow, refuses and forgets.

CHURN_SECONDS is the length (20), CHURN_SEED the chance; what is printed repeats the order of steps, though not their timing.
"""
import os
import random
import time

from coracle import SLOW, Failed, check, container, pod, shell
from joined_node import Joined, pss_kb

NAMES = [f"p{i}" for i in range(12)]
GROWTH_KB = 6 * 1024


class Churn:
    def __init__(self, joined, chance):
        self.j, self.store, self.chance, self.down, self.steps, self.number = joined, joined.server.store, chance, False, {}, 0

    def create(self, name):
        self.number += 1
        job = self.chance.random() < 0.3
        spec = {"restartPolicy": "Never"} if job else {}
        command = shell("sleep 0.2; exit 0") if job else shell("trap 'exit 0' TERM; while :; do sleep 0.1; done")
        self.j.put(pod(name, container(command=command), labels={"job": str(job), "n": str(self.number)}, terminationGracePeriodSeconds=2, **spec))

    def pod_step(self):
        name = self.chance.choice(NAMES)
        now, what = self.store.get("Pod", name), self.chance.random()
        if now is None:
            self.create(name)
            return "create"
        if "deletionTimestamp" in now["metadata"]:
            return "wait"
        if what < 0.5:
            self.number += 1
            self.store.put("Pod", {"metadata": {"name": name, "labels": {**now["metadata"]["labels"], "n": str(self.number)}}})
            return "change"
        if what < 0.9:
            self.store.remove("Pod", name)
            return "delete"
        self.store.remove("Pod", name, gracePeriodSeconds=0)
        return "delete by force"

    def server_step(self):
        server, what = self.j.server, self.chance.choice(["stop", "500", "429", "slow", "drop", "compact", "garbage", "truncate", "none", "none"])
        if self.down:
            server.start()
            self.down = False
            return "start"
        if what == "stop":
            server.stop()
            self.down = True
        elif what in ("500", "429"):
            server.fault(code=int(what), times=self.chance.randrange(1, 8))
        elif what == "slow":
            server.fault("slow", times=self.chance.randrange(1, 8), seconds=self.chance.uniform(0.1, 1.5))
        elif what in ("garbage", "truncate"):
            server.fault(what, method="GET", times=2)
        elif what == "drop":
            server.drop_connections()
        elif what == "compact":
            self.store.compact()
            server.drop_connections()
        return what

    def one(self):
        for step in [self.pod_step for _ in range(self.chance.randrange(1, 4))] + ([self.server_step] if self.chance.random() < 0.25 else []):
            name = step()
            self.steps[name] = self.steps.get(name, 0) + 1

    def settle(self):
        if self.down:
            self.j.server.start()
            self.down = False
        self.j.server.no_faults()

    # ---- the truth ----

    def differences(self):
        """What still differs between the server and the node; []: nothing."""
        there = {p["metadata"]["name"]: p for p in self.store.all("Pod")}
        here = {name: p for (_, name), p in self.j.node.pods().items()}
        found = [f"{n} is only with the server" for n in there.keys() - here.keys()] + [f"{n} is only here" for n in here.keys() - there.keys()]
        for name in there.keys() & here.keys():
            a, b = there[name], here[name]
            phase = "Succeeded" if a["metadata"]["labels"]["job"] == "True" else "Running"
            seen = lambda p: [(c.get("containerID"), sorted(c.get("state", {})), c.get("restartCount"), c.get("ready"))
                              for c in p.get("status", {}).get("containerStatuses", [])]
            if "deletionTimestamp" in a["metadata"]:
                found.append(f"{name} is being deleted")
            elif a["metadata"]["uid"] != b.uid:
                found.append(f"{name} is another one here")
            elif (a["status"].get("phase"), b.phase) != (phase, phase):
                found.append(f"{name}: the server has {a['status'].get('phase')}, the node {b.phase}, wanted {phase}")
            elif seen(a) != seen(b):
                found.append(f"{name}: the server has {seen(a)}, the node {seen(b)}")
            elif a["metadata"]["labels"] != b["metadata"]["labels"]:
                found.append(f"{name}: labels {a['metadata']['labels']} and {b['metadata']['labels']}")
        return found

    def wait_equal(self, seconds):
        began = time.monotonic()
        while True:
            found = self.differences()
            if not found:
                return time.monotonic() - began
            if time.monotonic() - began > seconds * SLOW:
                raise Failed(f"after {seconds * SLOW:g} s: {found}\n{self.j.explain()}")
            time.sleep(0.2)


def test_churn(t):
    """pods churned while the apiserver fails: at the end the node has what the server has, statuses are true, memory did not grow"""
    seconds = float(os.environ.get("CHURN_SECONDS", "20"))
    seed = int(os.environ.get("CHURN_SEED") or random.randrange(1 << 30))
    print(f"CHURN_SEED={seed}")
    j = Joined(t)
    churn = Churn(j, random.Random(seed))
    for name in NAMES:
        churn.create(name)
    churn.wait_equal(40)
    before = pss_kb(j.node.process.pid), pss_kb(j.kube_pid())
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        churn.one()
        time.sleep(churn.chance.uniform(0, 0.3))
    churn.settle()
    took = churn.wait_equal(75)
    after = pss_kb(j.node.process.pid), pss_kb(j.kube_pid())
    print(f"steps {churn.steps}; equal {took:.1f} s after the last; Pss of daemon and coracle-kube {before} KiB before, {after} KiB after")
    check(set(j.readies) <= {"True"}, f"Ready was {set(map(str, j.readies))}")
    if "address" not in t.build:
        check(all(a < b + GROWTH_KB for a, b in zip(after, before)), f"memory grew from {before} to {after} KiB")
    j.stop()


test_churn.seconds = 40 + int(float(os.environ.get("CHURN_SECONDS", "20")))
