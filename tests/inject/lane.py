# SPDX-License-Identifier: Apache-2.0
"""lane - runs rounds in a separate process and world; and the parent's side of it."""
import ctypes
import contextlib
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import time
import traceback

import coracle
import sites
from bench import Bench, own_leases
from coracle import Failed, check
from phases import PHASES

RECORDINGS = 3  # temporary sites appear in at least one of them


# ---- the lane itself ------------------------------------------------------------------------------------------------

def say(**message):
    os.write(3, json.dumps(message).encode() + b"\n")


def one_round(bench, phase, arm, leaks=True):
    """Runs a phase with its fault armed; returns the number of hits."""
    phase.before()
    bench.ended = None
    arm()
    try:
        phase.do()
    finally:
        hits = bench.control.disarm()
    phase.after()
    bench.check(leaks=leaks)
    return hits


def serve(args, phase_name, scratch, record):
    """Reports its sites if asked to, then runs the jobs it is given.  Ends at the first failure, because its world may be damaged."""
    coracle.enter_namespaces()
    os.makedirs(scratch)
    own_leases(scratch)
    world = coracle.World(os.path.basename(scratch), scratch, args.build)
    world.remember()
    bench = job = None
    try:
        control = sites.Control(f"{scratch}/control")
        kind = PHASES[phase_name]
        bench = Bench(world, control, args.library, *kind.flags(world))
        phase = kind(bench)
        for _ in range(2):
            one_round(bench, phase, lambda: None, leaks=False)
        bench.remember()
        one_round(bench, phase, lambda: None)
        if record:
            for _ in range(RECORDINGS):
                one_round(bench, phase, control.record)
            found = control.sites()
            sites.label_sites(found, args.build)
            say(sites=[s.dump() for s in found])
        else:
            say(ready=True)
        for line in sys.stdin:
            job = json.loads(line)
            say(done=True, **injection(bench, phase, job))
            job = None
        bench.node.stop()
    except BaseException as e:  # pylint: disable=broad-except
        name = str(e) if isinstance(e, (Failed, subprocess.TimeoutExpired)) else traceback.format_exc()
        log = "\n".join(bench.node.log().split("\n")[-60:]) if bench else ""
        say(failed=True, text=name, log=log)
    for point in reversed(coracle.mounts_below(scratch)):
        subprocess.run(["umount", "-l", point], check=False, stderr=subprocess.DEVNULL)
    os._exit(0)


def injection(bench, phase, job):
    since, start = len(bench.node.log()), time.monotonic()
    hits = one_round(bench, phase, lambda: bench.control.arm(job))
    ms = int((time.monotonic() - start) * 1000)
    if bench.ended == -signal.SIGABRT and job["libuv"]:  # libuv accepts no error of its own wake-ups; the pods have been compared
        return {"hits": 0, "libuv": True, "ms": ms}
    check("Assertion" not in bench.node.log()[since:], "the agent aborted")
    check(bench.ended in (None, -signal.SIGKILL) or job["phase"].endswith("restart") and bench.ended > 0 or not hits,
          f"the agent ended with {bench.ended}")
    return {"hits": hits, "ms": ms}


# ---- its parent -----------------------------------------------------------------------------------------------------

class Lane:
    """The sweep's view of a lane's process.  case: jobs that run alone in it."""

    def __init__(self, sweep, phase, scratch, case, record):
        self.sweep, self.phase, self.scratch, self.case = sweep, phase, scratch, case
        self.again = [case.suspects[0]] * 2 if case else []
        self.job = self.before = self.failed = None
        self.asked = self.over = self.hung = False
        self.buffer = b""
        self.since = time.monotonic()
        source, say_end = os.pipe()
        hear_end, sink = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._become(sweep, source, say_end, hear_end, sink, record)
        os.close(say_end)
        os.close(hear_end)
        self.source, self.sink = source, sink
        sweep.selector.register(source, selectors.EVENT_READ, self)

    def _become(self, sweep, source, say_end, hear_end, sink, record):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        # With another lane's pipes open, this lane would not see the end of its own.
        for other in sweep.lanes:
            os.close(other.source)
            other.close()
        os.close(source)
        os.close(sink)
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (say_end, hear_end)]
        os.dup2(ends[0], 3)
        os.dup2(ends[1], 0)
        for fd in (*ends, say_end, hear_end):
            if fd > 3:
                os.close(fd)
        os.set_inheritable(3, False)
        try:
            serve(sweep.args, self.phase.name, self.scratch, record)
        finally:
            os._exit(1)

    def give(self, job):
        self.asked = True
        self.job, self.since = job, time.monotonic()
        if job is None:
            self.close()
        else:
            os.write(self.sink, json.dumps(job).encode() + b"\n")

    def close(self):
        if self.sink is not None:
            os.close(self.sink)
            self.sink = None

    def read(self):
        """Yields messages; sets self.over when there are no more."""
        data = os.read(self.source, 1 << 20)
        if not data:
            self.finish()
            return []
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def finish(self):
        self.over = True
        self.sweep.selector.unregister(self.source)
        os.close(self.source)
        self.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        coracle.sweep(os.path.basename(self.scratch), self.scratch)

    def hang(self):
        self.hung, self.since = True, None
        os.kill(self.pid, signal.SIGKILL)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.finish()
