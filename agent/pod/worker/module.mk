# SPDX-License-Identifier: Apache-2.0
agent_pod_worker_SRCS := ending.c pods.c shutdown.c shutdown_plan.c run_queue.c worker.c
