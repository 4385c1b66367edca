# SPDX-License-Identifier: Apache-2.0
"""clock - the machine's wall clock is set, and the machine sleeps, while pods live.  Called by test_reboot.py."""
import time

from coracle import check, container, equal, pod, shell, until
from node import node
from reboot import same

YEAR = 365 * 86400
LIMIT_S = 30


def set_by(seconds):
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)


def ready(name, wanted, deadline=15):
    node.watch(lambda pods: ("default", name) in pods and pods["default", name].ready == wanted, what=f"{name} ready: {wanted}", deadline=deadline)


def steps(before):
    """A clock that jumps by a year, forward and back, ends nothing, holds nothing up, and hides no failing probe."""
    probe = {"exec": {"command": ["/bin/busybox", "test", "-e", "/ready"]}, "periodSeconds": 1, "failureThreshold": 1}
    node.put("probed.yaml", pod("probed", container(command=shell("touch /ready; while true; do sleep 3600 & wait $!; done"), readinessProbe=probe)))
    ready("probed", True, 30)
    for step in (YEAR, -2 * YEAR):
        since = time.clock_gettime(time.CLOCK_BOOTTIME)
        node.put("limited.yaml", pod("limited", activeDeadlineSeconds=LIMIT_S, restartPolicy="Never", terminationGracePeriodSeconds=0))
        node.wait_pod("limited", lambda p: "startTime" in p.status, what="start time")
        set_by(step)
        node.enter(node.pod("probed"), "rm", "/ready")
        ready("probed", False)
        node.enter(node.pod("probed"), "touch", "/ready")
        ready("probed", True)
        node.wait_phase("limited", "Failed", LIMIT_S + 20)
        waited = time.clock_gettime(time.CLOCK_BOOTTIME) - since
        check(LIMIT_S - 1 < waited < LIMIT_S + 60, f"a deadline of {LIMIT_S} s came after {waited:.1f} s when the clock was set by {step} s")
        equal(node.pod("limited").status["reason"], "DeadlineExceeded", "reason")
        node.remove("limited.yaml")
        node.wait_gone("limited")
        same(before)
    set_by(YEAR)
    node.remove("probed.yaml")
    node.wait_gone("probed")


def before_sleep():
    """A pod in a back-off of 20 s: what after_sleep() wants to know."""
    node.put("late.yaml", pod("late", container(command=shell("exit 1"))))
    node.wait_pod("late", lambda p: p.restarts() >= 2 and p.state()[1].get("reason") == "CrashLoopBackOff", what="a back-off of 20 s", deadline=60)
    return node.pod("late").restarts(), time.clock_gettime(time.CLOCK_BOOTTIME), time.clock_gettime(time.CLOCK_MONOTONIC)


def after_sleep(before, restarts, boottime, monotonic):
    """A back-off whose end came while the machine slept is over when it wakes, and nothing else changes."""
    slept = time.clock_gettime(time.CLOCK_BOOTTIME) - boottime - (time.clock_gettime(time.CLOCK_MONOTONIC) - monotonic)
    check(slept > 20, f"the machine slept for {slept:.1f} s only")
    until(lambda: node.pod("late").restarts() > restarts, 5, "the restart whose time came during the sleep")
    node.remove("late.yaml")
    node.wait_gone("late")
    same(before)
