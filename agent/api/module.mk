# SPDX-License-Identifier: Apache-2.0
agent_api_SRCS := annotations.c check.c cron.c cron_parse.c problems.c places.c generic.c index_set.c job_labels.c kept_meta.c made_uid.c names.c node_fit.c on_change.c oom_kill.c quantity.c resources.c selector.c storage.c status.c sysctls.c types.c
