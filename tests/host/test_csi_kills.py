# SPDX-License-Identifier: Apache-2.0
"""PersistentVolumes of a CSI driver under kill -9 of agent and driver; `make soak` runs the long form (CSI_KILLS=500)."""
import os
import random
import time

import coracle
import csi
from coracle import check, equal, until
from csi import STAGE, Driver, below, claim_pod, driver_object, folder, mounts, staging, volume

KILLS = int(os.environ.get("CSI_KILLS", "25"))
METHODS = ("NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume", "NodeGetCapabilities")
# Appends its numbers, which begin where those of the pod before ended; each is on the disk before the next.
WRITER = ('n=$(tail -n 1 /vol/log 2>/dev/null || true); n=${n:-0}; while :; do n=$((n+1)); echo $n >> /vol/log; sync /vol/log; sleep 0.05; done')


class Kills:
    """Three volumes: one of a pod that comes and goes, one that two pods share, a block device."""

    def __init__(self, t, seed):
        self.random = random.Random(seed)
        self.node = t.node()
        self.node.import_image()
        self.driver = Driver(self.node, "--caps", STAGE)
        self.node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent"]))
        self.node.put("keep-volumes.yaml", *volume("one"), *volume("two", modes=["ReadWriteMany"]), *volume("raw", mode="Block"))
        self.pods = {"writer": claim_pod("writer", "one", command=WRITER), "left": claim_pod("left", "two"),
                     "right": claim_pod("right", "two"), "block": claim_pod("block", device="raw")}
        self.here = set()
        self.agent_up = self.driver_up = True
        self.lines = 0

    def toggle(self, name):
        if name in self.here:
            self.node.remove(f"{name}.yaml")
            self.here.remove(name)
        else:
            self.node.put(f"{name}.yaml", self.pods[name])
            self.here.add(name)

    def fault(self):
        """The driver dies within a call, or takes its time while the other one is killed."""
        method = self.random.choice(METHODS)
        kind = self.random.choice(("die", "die", "slow", "none"))
        if kind == "die":
            self.driver.faults(**{method: {"die": self.random.choice(("before", "after"))}})
        elif kind == "slow":
            self.driver.faults(**{method: {"slow": 0.3}})

    def kill(self):
        victim = self.random.choice(("agent", "driver", "both"))
        if victim in ("agent", "both"):
            self.node.kill()
            self.agent_up = False
        if victim in ("driver", "both"):
            self.driver.kill()

    def revive(self):
        self.driver.faults()
        order = self.random.choice(("agent first", "driver first"))
        if order == "agent first" and not self.agent_up:
            self.node.start()
        if self.driver.process.poll() is not None:
            self.driver.start(wait=False)
        if order == "driver first" and not self.agent_up:
            self.node.start()
        self.agent_up = True

    def round(self):
        for name in self.random.sample(sorted(self.pods), self.random.randint(1, 3)):
            self.toggle(name)
        self.fault()
        time.sleep(self.random.choice((0, 0.1, 0.3, 0.6, 1.0)))
        self.kill()
        if self.random.random() < 0.3 and not self.agent_up:
            self.toggle(self.random.choice(sorted(self.pods)))
        time.sleep(self.random.choice((0, 0.1, 0.5)))
        self.revive()
        self.settle()

    def wanted(self):
        """How often each place has to be mounted."""
        plugin = self.node.root_dir + "/plugins/kubernetes.io/csi/volumeDevices"
        places = {}
        for name, claim in (("writer", "one"), ("left", "two"), ("right", "two")):
            if name in self.here:
                places[staging(self.node, claim) + "/globalmount"] = 1
                places[folder(self.node, self.node.pod(name).uid, claim) + "/mount"] = 1
        if "block" in self.here:
            uid = self.node.pod("block").uid
            places[f"{plugin}/publish/raw/{uid}"] = places[f"{plugin}/raw/dev/{uid}"] = 1
        return places

    def settle(self):
        if self.driver.process.poll() is not None:  # it died of a call that began before
            self.driver.start(wait=False)
        if self.here:
            self.node.wait_running(*sorted(self.here), deadline=60)
        until(lambda: {name for _, name in self.node.pods()} == self.here, 60,
              lambda: f"only {self.here} are there:\n" + "\n".join(self.node.cli("explain", "pod", n).stdout for _, n in self.node.pods()
                                                                   if n not in self.here))
        wanted = self.wanted()
        until(lambda: sorted(below(self.node)) == sorted(wanted), 60,
              lambda: f"mounted is what has to be, once:\n{sorted(below(self.node))}\nwanted:\n{sorted(wanted)}\n{self.driver.methods()[-20:]}")
        for place in wanted:
            equal(mounts(place), 1, f"mounts of {place}")
        self.check_data()

    def check_data(self):
        """The writer's numbers have no gap: nothing was lost, and it never wrote beside its volume."""
        path = self.driver.data + "/vol-one/log"
        text = coracle.read(path, "") or ""
        numbers = [int(n) for n in text.split("\n")[:-1] if n]
        equal(numbers, list(range(1, len(numbers) + 1)), "numbers of the writer")
        check(len(numbers) >= self.lines, f"the log became shorter: {len(numbers)} < {self.lines}")
        self.lines = len(numbers)

    def run(self, rounds):
        began = time.monotonic()
        for number in range(rounds):
            self.round()
            if number % 25 == 24:
                print(f"{number + 1} rounds in {time.monotonic() - began:.0f} s, {len(self.driver.calls())} lines of the driver", flush=True)
        for name in sorted(self.here):
            self.toggle(name)
        self.settle()
        until(lambda: not self.left(), 30, lambda: f"no folder of a volume is left: {self.left()}")
        equal(sorted(os.listdir(self.driver.data)), ["vol-one", "vol-raw.img", "vol-two"], "volumes of the driver")
        self.driver.leave()
        self.node.stop()

    def left(self):
        plugin = self.node.root_dir + "/plugins/kubernetes.io/csi"
        return [os.path.join(top, name) for top, names, files in os.walk(plugin) for name in names + files
                if os.path.relpath(os.path.join(top, name), plugin) not in (csi.NAME, "volumeDevices", "volumeDevices/staging",
                                                                           "volumeDevices/publish")]


def test_kills(t):
    """agent and driver are killed in all orders: nothing is published twice, nothing stays mounted, no data is lost"""
    seed = int(os.environ.get("SOAK_SEED", "0") or "0") or int.from_bytes(os.urandom(3), "big")
    print(f"SOAK_SEED={seed} CSI_KILLS={KILLS}", flush=True)
    Kills(t, seed).run(KILLS)


test_kills.seconds = 120 + 8 * KILLS
