# SPDX-License-Identifier: Apache-2.0
"""The recorded evictions of a real kubelet, one test a case (tests/fixtures/eviction); eviction_golden.py replays them."""
import os

import eviction_golden

NEEDS = "process ids"  # of the whole machine


def _add(case):
    def test(t):
        eviction_golden.run_case(t, case)
    test.__doc__ = case
    test.seconds = 60
    globals()["test_" + case.replace("-", "_")] = test


for _case in eviction_golden.cases():
    # A case of each kind; `make soak` runs all.
    if _case.split("-")[0] in eviction_golden.QUICK or "CORACLE_TEST_LONG" in os.environ:
        _add(_case)
