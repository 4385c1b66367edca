# SPDX-License-Identifier: Apache-2.0
"""Volumes of a CSI driver that answers errors to what it has done, or is slow, while pods come and go and the agent is killed now and then."""
import os
import random
import time

from csi import STAGE, Driver, claim_pod, driver_object, volume
from test_csi_kills import Kills

ROUNDS = int(os.environ.get("CSI_ANSWERS", "8"))
CODES = ("DEADLINE_EXCEEDED", "UNAVAILABLE", "ABORTED", "INTERNAL", "FAILED_PRECONDITION", "NOT_FOUND", "RESOURCE_EXHAUSTED", "UNKNOWN", "CANCELLED")
METHODS = ("NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume")


class Answers(Kills):
    """The same pods and volumes, published again and again; one of the two that share a volume has it read-only."""

    def __init__(self, t, seed):  # pylint: disable=super-init-not-called
        self.random = random.Random(seed)
        self.node = t.node()
        self.node.import_image()
        self.driver = Driver(self.node, "--caps", STAGE)
        self.node.put("driver.yaml", driver_object(volumeLifecycleModes=["Persistent"], requiresRepublish=True))
        self.node.put("keep-volumes.yaml", *volume("one"), *volume("two", modes=["ReadWriteMany"]), *volume("raw", mode="Block"))
        self.pods = {"writer": claim_pod("writer", "one"), "left": claim_pod("left", "two"), "right": claim_pod("right", "two", source={"readOnly": True}),
                     "block": claim_pod("block", device="raw")}
        self.here, self.agent_up, self.lines = set(), True, 0

    def check_data(self):
        pass

    def answer(self):
        """What a method answers: an error, whether or not it was done; or late."""
        if self.random.random() < 0.2:
            return {"slow": self.random.choice((0.2, 1.5))}
        # An error that is final says that nothing was done.
        code = self.random.choice(CODES)
        open_ = code in ("DEADLINE_EXCEEDED", "UNAVAILABLE", "ABORTED", "RESOURCE_EXHAUSTED", "CANCELLED")
        return {"code": code, "text": "by chance", "done": open_ and self.random.random() < 0.6}

    def round(self):
        for name in self.random.sample(sorted(self.pods), self.random.randint(1, 3)):
            self.toggle(name)
        self.driver.faults(**{m: self.answer() for m in METHODS if self.random.random() < 0.6})
        for _ in range(self.random.randint(1, 3)):
            time.sleep(self.random.choice((0, 0.2, 0.7, 1.5)))
            if self.random.random() < 0.5:
                self.toggle(self.random.choice(sorted(self.pods)))
        if self.random.random() < 0.3:
            self.node.kill()
            time.sleep(self.random.choice((0, 0.3)))
            self.node.start()
        self.driver.faults()
        self.settle()


def test_answers(t):
    """errors for calls that succeeded, and late answers: in the end exactly the needed volumes are mounted, once each"""
    seed = int(os.environ.get("SOAK_SEED", "0") or "0") or int.from_bytes(os.urandom(3), "big")
    print(f"SOAK_SEED={seed} CSI_ANSWERS={ROUNDS}", flush=True)
    Answers(t, seed).run(ROUNDS)


test_answers.seconds = 120 + 40 * ROUNDS
