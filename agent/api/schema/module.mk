# SPDX-License-Identifier: Apache-2.0
agent_api_schema_SRCS := about.c about_container.c about_object.c about_pod.c about_rules.c about_storage.c about_volume.c about_work.c \
                         kinds.c schema.c schema_claim.c schema_container.c schema_job.c schema_object.c schema_pod.c \
                         schema_probe.c schema_scheduling.c schema_security.c schema_shown.c schema_storage.c schema_text.c schema_value.c \
                         schema_volume.c schema_workload.c
