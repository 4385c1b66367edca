# SPDX-License-Identifier: Apache-2.0
agent_pod_project_SRCS := project.c project_ask.c project_explain.c project_places.c project_job.c project_pool.c project_room.c
