# SPDX-License-Identifier: Apache-2.0
"""The recorded sessions of a real kubelet with device plugins, one test a case (tests/fixtures/devices); devices_golden.py replays them."""
import devices_golden


def _add(case):
    def test(t):
        devices_golden.run_case(t, case)
    test.__doc__ = case
    test.seconds = devices_golden.seconds(case)
    globals()["test_" + case.replace("-", "_")] = test


for _case in devices_golden.cases():
    # Five minutes of waiting; the unit tests of the inventory have the rule, `make soak` the recording.
    if _case != "26-grace-period" or devices_golden.LONG:
        _add(_case)
