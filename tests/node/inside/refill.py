# SPDX-License-Identifier: Apache-2.0
"""refill - a pod that comes back after each eviction and fills the disk again: nothing flaps, and images stay for those that come back.
Called by test_pressure.py, on a node that pressure.begin() made."""
import threading
import time

import images
import pressure
from coracle import check, equal
from node import node

IMAGE = "localhost/returns:1"
FIRST_WAIT_S = 30  # before a pod comes back, doubled with each eviction in a row (docs/eviction.md)


class Conditions(threading.Thread):
    """Every change of DiskPressure, and whether it is known at all, in this block."""

    def __init__(self):
        super().__init__(daemon=True)
        self.changes, self.on = [], True

    def run(self):
        last = None
        while self.on:
            now = pressure.conditions()["DiskPressure"]
            if now != last:
                self.changes.append((time.monotonic(), now))
            last = now
            time.sleep(0.25)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.on = False
        self.join()


def victims(known):
    """The names of pods that were evicted, in records that are not in `known`; one that is chosen again, to be killed sooner, counts once."""
    return [name for name, _ in {(v["pod"], v["uid"]) for r in pressure.records() if r["number"] not in known for v in r.get("victims", [])}]


def returns():
    """It stays in the folder, and its image comes from an archive: nothing can pull it again."""
    spec = pressure.hog("layer", "returns", restartPolicy="Always", terminationGracePeriodSeconds=0)
    spec["spec"]["containers"][0].update(image=IMAGE, imagePullPolicy="Never")
    return spec


def wait_evicted(name, seconds, after=None):
    """The next end of that pod; `after`: the uid of one that does not count."""
    p = node.wait_pod(name, lambda p: p.phase == "Failed" and p.uid != after, seconds)
    equal(p.status.get("reason"), "Evicted", f"end of {name}")
    return p.uid, time.monotonic()


def refill(signal, seconds):
    """For so long, and at least until it was evicted twice.  Its figures."""
    pressure.place()
    before = pressure.innocents()
    images.write("/run/returns.tar", IMAGE, images.entry("mark", b"1"))
    node.import_image("/run/returns.tar")
    line = pressure.free(signal)[0] - (60 << 20)
    known = {r["number"] for r in pressure.records()}
    # The image collection finds the disk too full at each of its checks, and has nothing to remove.
    pressure.reload({signal: str(line)}, imageGCHighThresholdPercent=1, imageGCLowThresholdPercent=0, imageMinimumGCAge="1s")
    with Conditions() as seen:
        began = time.monotonic()
        node.put("returns.yaml", returns())
        uid, at = wait_evicted("returns", pressure.SLOW_S)
        ends = [at]
        # Another one needs room meanwhile: what nobody uses goes, but not the image of a pod that comes back.
        pressure.back_to_normal("DiskPressure")
        node.put("hog.yaml", pressure.hog("layer"))
        pressure.evicted(signal, "layer", node.wait_phase("hog", "Failed", deadline=pressure.SLOW_S))
        check(IMAGE.rpartition(":")[0] in node.cli("get", "images").stdout, "the image of a pod that comes back was removed")
        node.remove("hog.yaml")
        wait_s = FIRST_WAIT_S
        while len(ends) < 2 or time.monotonic() - began < seconds:
            # On a slow machine the pressure of the other one lasts until it would come back: it is refused once, and waits again.
            uid, at = wait_evicted("returns", 3 * wait_s + pressure.SLOW_S, uid)
            check(at - ends[-1] >= wait_s - 1, lambda: f"it came back sooner than after {wait_s} s: {ends}")
            ends.append(at)
            wait_s *= 2
            if began + seconds < at + wait_s:  # the next one would come later
                time.sleep(max(0, began + seconds - time.monotonic()))
                break
        pressure.back_to_normal("DiskPressure")
    equal(pressure.innocents(), before, "pods beside")
    gone = victims(known)
    equal((gone.count("default/returns"), set(gone)), (len(ends), {"default/returns", "default/hog"}), "victims")
    times = [round(t - began, 1) for t, _ in seen.changes]
    turns = [status for _, status in seen.changes]
    check(turns.count("True") <= len(gone), lambda: f"DiskPressure: {list(zip(times, turns))} with {len(gone)} evictions")
    log = node.log()
    check("image removed" not in log[log.rfind("image added image=" + IMAGE):], "an image was removed")
    node.remove("returns.yaml")
    node.wait_gone("returns", deadline=pressure.SLOW_S)
    pressure.reload()
    return {"evicted_s": [round(t - began, 1) for t in ends], "changes_of_the_condition": list(zip(times, turns))}
