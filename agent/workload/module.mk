# SPDX-License-Identifier: Apache-2.0
agent_workload_SRCS := adopt.c cron_due.c cron_run.c decide.c events.c job.c job_policy.c job_run.c make.c record.c revision.c revisions.c show.c show_batch.c taints.c workloads.c zones.c
