# SPDX-License-Identifier: Apache-2.0
"""The recorded pods of a real kubelet, one test a case (tests/fixtures/golden); golden.py drives them."""
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


def test_57_static_pods(t):
    """57-static-pods"""
    golden.run_static_pods(t)
