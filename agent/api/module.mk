# SPDX-License-Identifier: Apache-2.0
agent_api_SRCS := types.c quantity.c selector.c names.c check.c yaml.c yaml_read.c yaml_json.c yaml_scalar.c yaml_mend.c yaml_write.c \
                  schema.c schema_value.c schema_object.c schema_pod.c schema_container.c schema_probe.c schema_volume.c \
                  schema_foreign.c schema_security.c schema_scheduling.c \
                  defaults.c resources.c config.c decode.c edit.c resize.c on_change.c oom_kill.c node_fit.c sysctls.c \
                  validate_meta.c validate_pod.c validate_container.c validate_env.c validate_probe.c \
                  validate_volume.c validate_security.c validate_scheduling.c
