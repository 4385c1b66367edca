# SPDX-License-Identifier: Apache-2.0
"""Recorded kubeconfig files of the real client (kubeconfig_golden.py): what our client would send."""
import os
import traceback

import kubeconfig_golden
from coracle import Failed


def test_recorded_cases(t):
    """recorded kubeconfig files give the requests of the real client, or are refused as by it"""
    bad, scratch = [], t.scratch
    names = kubeconfig_golden.names()
    for name in names:
        t.scratch = f"{scratch}/{name}"
        os.makedirs(t.scratch)
        print(f"== {name}")
        try:
            kubeconfig_golden.run_case(t, name)
        except (Failed, AssertionError, KeyError, AttributeError, ValueError, StopIteration):
            traceback.print_exc()
            bad.append(name)
    t.scratch = scratch
    print(f"COUNT kubeconfig {len(names) - len(bad)} of {len(names)}")
    if bad:
        raise Failed(f"{len(bad)} of {len(names)} cases differ: {' '.join(bad)}")
