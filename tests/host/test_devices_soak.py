# SPDX-License-Identifier: Apache-2.0
"""Devices under fire; `make soak` runs the long form (DEVICE_KILLS=500)."""
import os

from devices_soak import Soak

KILLS = int(os.environ.get("DEVICE_KILLS", "20"))


def test_device_kills(t):
    """pods with devices start and end under kill -9 of agent and plugins: no device is lost or assigned twice, the checkpoint is intact"""
    seed = int(os.environ.get("SOAK_SEED", "0")) or int.from_bytes(os.urandom(3), "big")
    print(f"SOAK_SEED={seed} DEVICE_KILLS={KILLS}", flush=True)
    Soak(t, seed, KILLS).run()


test_device_kills.seconds = 60 + 3 * KILLS
