# SPDX-License-Identifier: Apache-2.0
"""The clock is set while pods live.  (The daemon's own view of it: the machine's stays as it is.)"""
import os
import time

from coracle import SLOW, Skip, check, container, contains, equal, pod, run, shell

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
/* clock_gettime(CLOCK_REALTIME) plus the seconds that stand in the file named by CORACLE_TEST_CLOCK. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
    static int (*real)(clockid_t, struct timespec *);
    char text[32] = "";
    int fd, result;

    if (real == NULL)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    result = real(clock, ts);
    if (clock == CLOCK_REALTIME && (fd = open(getenv("CORACLE_TEST_CLOCK"), O_RDONLY | O_CLOEXEC)) >= 0) {
        if (read(fd, text, sizeof(text) - 1) > 0)
            ts->tv_sec += atol(text);
        close(fd);
    }
    return result;
}
"""


def node_with_clock(t):
    if "address" in os.path.basename(t.build):
        raise Skip("AddressSanitizer wants to be the first library")
    with open(f"{t.scratch}/tmp/shim.c", "w", encoding="ascii") as f:
        f.write(SHIM)
    run("cc", "-shared", "-fPIC", "-o", f"{t.scratch}/tmp/shim.so", f"{t.scratch}/tmp/shim.c", "-ldl")
    node = t.node(env={"LD_PRELOAD": f"{t.scratch}/tmp/shim.so", "CORACLE_TEST_CLOCK": f"{t.scratch}/tmp/clock"})
    node.import_image()
    return node


def set_clock(t, seconds):
    with open(f"{t.scratch}/tmp/clock.new", "w", encoding="ascii") as f:
        f.write(str(seconds))
    os.rename(f"{t.scratch}/tmp/clock.new", f"{t.scratch}/tmp/clock")


STUBBORN = shell("trap '' TERM; while true; do sleep 1; done")


def test_grace(t):
    """a clock that is set by hours, either way, changes no grace period, also not over a restart of the daemon"""
    node = node_with_clock(t)
    for name in "abc":
        node.put(f"{name}.yaml", pod(name, container(command=STUBBORN), terminationGracePeriodSeconds=6))
    node.wait_running("a", "b", "c")
    took = {}
    start = time.monotonic()
    node.remove("a.yaml", "b.yaml", "c.yaml")
    node.watch(lambda pods: all("deletionTimestamp" in p["metadata"] for p in pods.values()), what="all are ending")
    time.sleep(0.5)
    set_clock(t, 7200)
    time.sleep(1)
    equal(len(node.pods()), 3, "pods a second after the clock was set forward")
    set_clock(t, -7200)
    node.kill()  # set back while no daemon runs
    node.start()
    time.sleep(1)
    equal(len(node.pods()), 3, "pods a second after the clock was set back")
    node.wait_gone("a", "b", "c", deadline=20)
    took = time.monotonic() - start
    check(5.5 < took < 6 + 5 * SLOW, f"gone after {took:.1f} s, wanted a little over 6")
    equal(node.stop(), 0, "exit code")


def test_back_off(t):
    """a clock that is set by hours neither shortens nor extends a back-off"""
    node = node_with_clock(t)
    for name in ("forward", "back"):
        node.put(f"{name}.yaml", pod(name, container(command=shell("exit 3")), terminationGracePeriodSeconds=0))
    for name in ("forward", "back"):
        node.wait_pod(name, lambda p: p.restarts() == 1 and p.state()[1].get("reason") == "CrashLoopBackOff", what="in its back-off")
    start = time.monotonic()
    set_clock(t, 36000)
    time.sleep(3)
    equal({p.restarts() for p in node.pods().values()}, {1}, "restarts 3 s after the clock was set forward")
    set_clock(t, -36000)
    for name in ("forward", "back"):
        node.wait_pod(name, lambda p: p.restarts() == 2, 20, "the next restart")
    took = time.monotonic() - start
    check(7 < took < 11 + 4 * SLOW, f"the next restart came after {took:.1f} s, wanted about 10")
    node.remove("forward.yaml", "back.yaml")
    node.wait_gone("forward", "back")
    equal(node.stop(), 0, "exit code")


def test_deadline(t):
    """a board that boots in 1970 and then has its clock set ends no job before its time, also not over a restart of the daemon"""
    node = node_with_clock(t)
    set_clock(t, 100 - int(time.time()))
    node.put("job.yaml", pod("job", container(command=shell("sleep 1000")), restartPolicy="Never", activeDeadlineSeconds=12,
                             terminationGracePeriodSeconds=0))
    start = time.monotonic()
    node.wait_running("job")
    contains(node.pod("job")["status"]["startTime"], "1970-01-01T", "start time")
    node.kill()
    set_clock(t, 0)
    node.start()
    time.sleep(2)
    equal(node.pod("job").phase, "Running", "phase 2 s after the clock was set")
    node.wait_phase("job", "Failed", 30)
    took = time.monotonic() - start
    equal(node.pod("job")["status"]["reason"], "DeadlineExceeded", "reason")
    check(11.5 < took < 14 + 5 * SLOW, f"failed after {took:.1f} s, wanted a little over 12")
    node.remove("job.yaml")
    node.wait_gone("job")
    equal(node.stop(), 0, "exit code")


def test_readiness(t):
    """a clock that is set back by hours does not hide a failure of a readiness probe"""
    node = node_with_clock(t)
    probe = {"exec": {"command": ["/bin/sh", "-c", "test ! -e /tmp/bad"]}, "periodSeconds": 1, "failureThreshold": 2}
    node.put("a.yaml", pod("a", container(command=shell("mkdir -p /tmp; sleep 1000"), readinessProbe=probe), terminationGracePeriodSeconds=0))
    ready = node.wait_pod("a", lambda p: p.ready, what="ready")
    set_clock(t, -7200)
    node.enter(ready, "touch", "/tmp/bad")
    node.wait_pod("a", lambda p: not p.ready, 10, "not ready any more")
    node.remove("a.yaml")
    node.wait_gone("a")
    equal(node.stop(), 0, "exit code")


test_deadline.seconds = 25
test_readiness.seconds = 15
test_grace.seconds = 20
test_back_off.seconds = 25
