# SPDX-License-Identifier: Apache-2.0
"""The recorded pods of a real kubelet, one test a case (tests/fixtures/golden); golden.py drives them."""
import os

import golden


def _add(case):
    def test(t):
        golden.run_case(t, case)
    test.__doc__ = case
    test.seconds = golden.seconds(case)
    globals()["test_" + case.replace("-", "_")] = test


for _case in golden.cases():
    if _case != "57-static-pods":
        _add(_case)


def _add_mixed(case):
    def test(t):
        golden.run_case(t, case, ("crun", "runc"))
    test.__doc__ = f"{case}, its pods by turns under crun and runc"
    test.seconds = golden.seconds(case)
    globals()["test_mixed_" + case.replace("-", "_")] = test


# Two runtimes in one list of pods; MIXED_RUNTIMES=1 does it with every case.
_MIXED = golden.cases() if os.environ.get("MIXED_RUNTIMES") else ["22-sc-capabilities", "35-qos-besteffort", "38-init-success", "42-exit-kinds"]
for _case in _MIXED:
    if _case != "57-static-pods":
        _add_mixed(_case)


def test_57_static_pods(t):
    """57-static-pods"""
    golden.run_static_pods(t)
