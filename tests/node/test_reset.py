# SPDX-License-Identifier: Apache-2.0
"""reset - hard resets in the midst of churn, the disk as it was: each time everything is back and nothing is left over.

NODE_RESETS= says how many (1; `make soak` does 20), NODE_SEED= makes the churn and the moments the same again.
"""
import os
import random
import time

OPTIONS = {"cpus": 1}  # QEMU may hang in a reset with two


def suite(t):
    resets = int(os.environ.get("NODE_RESETS") or 1)
    seed = int(os.environ.get("NODE_SEED") or random.randrange(10 ** 6))
    print(f"# NODE_SEED={seed}", flush=True)
    rng = random.Random(seed)
    vm = t.vm()
    with t.step("the VM boots"):
        vm.boot()
    with t.step("eight pods run"):
        vm.call("reset.begin", deadline=800)
    for turn in range(resets):
        seconds = rng.uniform(1, 15)
        with t.step(f"reset {turn + 1} of {resets}, after {seconds:.1f} s of churn: all is back, nothing is left over"):
            facts = vm.call("reset.facts")
            vm.send("reset.churn", seed + turn, deadline=1000)
            time.sleep(seconds)
            vm.reset()
            vm.call("reset.after", facts, deadline=1000)
    print(f"# counted node/reset: {resets} hard resets (the full loop has 20), NODE_SEED={seed}", flush=True)
