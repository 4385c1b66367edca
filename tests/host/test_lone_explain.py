# SPDX-License-Identifier: Apache-2.0
"""kubectl explain over the fields of every kind, with the kubectl that is installed.

EXPLAIN_EACH=1 asks for each field by itself, which takes a process a field; otherwise a sample of them (EXPLAIN_SEED)."""
import os
import random
import re

from coracle import Failed, check
from test_lone_kubectl import Lone

SAMPLE = 3  # fields of a kind


def fields(text):
    """The paths of `kubectl explain --recursive`: by their indentation below FIELDS."""
    found, stack, seen = [], [], False
    for line in text.split("\n"):
        if line.startswith("FIELDS:"):
            seen = True
        match = re.match(r"( +)([A-Za-z$][\w$.-]*)\s+<", line) if seen else None
        if match is None:
            continue
        depth = len(match[1])
        while stack and stack[-1][0] >= depth:
            stack.pop()
        stack.append((depth, match[2]))
        found.append(".".join(name for _, name in stack))
    return found


def test_explain(t):
    """kubectl explains every kind with all its fields, and each field by itself"""
    k = Lone(t)
    seed = int(os.environ.get("EXPLAIN_SEED") or random.randrange(1 << 30))
    print(f"EXPLAIN_SEED={seed}")
    chance, each, n = random.Random(seed), os.environ.get("EXPLAIN_EACH") == "1", 0
    kinds = sorted({name.split(".")[0] for name in k.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
                    if "metrics" not in name})
    check(len(kinds) > 10, f"kinds: {kinds}")
    for kind in kinds:
        paths = fields(k.kubectl("explain", kind, "--recursive").stdout)
        check(len(paths) > 5 and "metadata" in paths, f"fields of {kind}: {paths}")
        for path in paths if each else chance.sample(paths, SAMPLE):
            text = k.kubectl("explain", f"{kind}.{path}").stdout
            n += 1
            if "DESCRIPTION:" not in text or not re.search(r"(FIELD|RESOURCE|KIND)", text):
                raise Failed(f"{kind}.{path}:\n{text}")
    print(f"COUNT explain {len(kinds)} kinds, {n} fields by themselves")
    k.node.stop()


test_explain.seconds = 7200 if os.environ.get("EXPLAIN_EACH") == "1" else 400
