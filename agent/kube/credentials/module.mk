# SPDX-License-Identifier: Apache-2.0
agent_kube_credentials_SRCS :=
