# SPDX-License-Identifier: Apache-2.0
"""Churn under fire; `make soak` runs the long form."""
from soak import Soak, counts

SHORT_AGENT_KILLS, SHORT_CONMON_KILLS = 15, 6


def test_soak(t):
    """churn with kill -9 of the daemon and of conmons: the node reaches the state of the manifests, every crash counts once, nothing leaks"""
    seed, agent_kills, conmon_kills = counts(SHORT_AGENT_KILLS, SHORT_CONMON_KILLS)
    print(f"SOAK_SEED={seed} SOAK_AGENT_KILLS={agent_kills} SOAK_CONMON_KILLS={conmon_kills}", flush=True)
    Soak(t, seed, agent_kills, conmon_kills, kills_each=3 if agent_kills > SHORT_AGENT_KILLS else 1).run()


test_soak.seconds = 60 + 4 * counts(SHORT_AGENT_KILLS, SHORT_CONMON_KILLS)[1]
