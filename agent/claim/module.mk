# SPDX-License-Identifier: Apache-2.0
agent_claim_SRCS := bind.c binding.c claims.c pod_claims.c protect.c record.c released.c show.c
