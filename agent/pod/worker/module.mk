# SPDX-License-Identifier: Apache-2.0
agent_pod_worker_SRCS := ending.c pods.c run_queue.c served.c shutdown.c shutdown_plan.c worker.c worker_room.c
