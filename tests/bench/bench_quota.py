# SPDX-License-Identifier: Apache-2.0
"""What project quotas cost.  Few kernels of build machines have them, so these figures come from a node VM (tests/node/test_figures.py):
its emulation takes some twenty times as long for everything, so only ratios can be compared."""
import json
import os
import subprocess
import sys

from bench import HERE, Figure

NODE = f"{os.path.dirname(HERE)}/node"


def cache_of(build):
    return f"{os.path.dirname(build)}/node"


def root_disk(build):
    """Made from packages, so before the bench leaves the machine's network."""
    sys.path.insert(0, NODE)
    import disks  # pylint: disable=import-outside-toplevel,import-error
    disks.root_disk(cache_of(build), lambda text: print(f"# {text}", flush=True))


def bench_quota(b, quick):
    """Starts, usage and idling of pods on XFS and ext4 with project quotas; floor: the same disk without, in turns."""
    argv = [f"{NODE}/run", "--build", b.build, "--cache", cache_of(b.build), "figures"] + (["quick"] if quick else [])
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith("# figure "):
                row = json.loads(line.removeprefix("# figure "))
                yield Figure(row["name"], row["unit"], row["values"], row["floor"])
    if process.returncode != 0:
        raise RuntimeError("the node VM failed:\n" + "\n".join(lines[-40:]))


bench_quota.prepare = root_disk

__all__ = ["bench_quota"]
