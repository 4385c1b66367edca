# SPDX-License-Identifier: Apache-2.0
agent_api_manifest_SRCS := build.c config.c decode.c defaults.c edit.c ephemeral.c expand.c file_name.c generic.c held_back.c lint.c object.c resize.c served.c static.c validate_address.c validate_container.c validate_env.c validate_job.c validate_meta.c validate_node.c \
                           validate_pod.c validate_probe.c validate_scheduling.c validate_security.c validate_selector.c validate_service.c validate_storage.c validate_trust.c validate_volume.c validate_workload.c
