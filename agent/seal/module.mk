# SPDX-License-Identifier: Apache-2.0
# coracle-seal is seal_main.c and this library: the daemon maps no cryptography.
agent_seal_SRCS := seal.c
