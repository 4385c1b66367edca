# SPDX-License-Identifier: Apache-2.0
agent_api_yaml_SRCS := yaml.c yaml_json.c yaml_json_places.c yaml_mend.c yaml_read.c yaml_scalar.c yaml_write.c
