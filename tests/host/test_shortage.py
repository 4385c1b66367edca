# SPDX-License-Identifier: Apache-2.0
"""What the agent says where a resource is too short to start at all."""
import signal
import subprocess

from coracle import SLOW, check, contains


def test_few_descriptors(t):
    """with too few descriptors the start ends with the reason, not with a signal"""
    node = t.node()
    node.stop()
    reasons = []
    for n in range(4, 20):
        result = subprocess.run(["prlimit", f"--nofile={n}:{n}", *node.argv()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=20 * SLOW, check=False, text=True)
        # libuv itself aborts where the very pipe of its signals is missing; there is no way to ask before.
        if result.returncode == -signal.SIGABRT and "Assertion" not in result.stdout and "daemon.c" not in result.stdout:
            continue
        check(result.returncode == 1, f"{n} descriptors: exit code {result.returncode}\n{result.stdout}")
        contains(result.stdout, "cannot start")
        reasons.append(result.stdout)
    check(any("make the event loop" in r for r in reasons), "the loop was never what failed:\n" + "\n".join(reasons))
