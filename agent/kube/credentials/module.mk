# SPDX-License-Identifier: Apache-2.0
agent_kube_credentials_SRCS := credentials.c issued.c job.c follow.c plugin.c pki.c serving.c
