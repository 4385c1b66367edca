agent_pod_SRCS := node.c pods.c worker.c turns.c ending.c sandbox.c userns.c node_users.c pidns.c files.c resolv.c pod_volumes.c pod_payloads.c live_sub_path.c mount_watch.c payload.c nested.c tokens.c pod_images.c pull_secrets.c image_right.c containers.c restart.c gate.c clock_jump.c instance.c \
                  ctr_config.c env.c env_age.c env_file.c downward.c go_quote.c handler.c hooks.c probes.c probe_check.c resources.c hugepages.c fit.c admission.c preempt.c again.c priority.c sizes.c resize.c resize_cgroups.c shutdown.c shutdown_plan.c record.c record_read.c record_load.c record_sync.c damage.c leases.c sweep.c foreign.c \
                  pod_status.c pod_conditions.c ctr_status.c events.c explain.c explain_container.c explain_node.c provider.c provider_images.c provider_objects.c node_object.c images_used.c image_gc.c image_gc_node.c provider_exec.c
agent_pod_SRCS += net_attach.c net_heal.c net_stats.c net_watch.c
agent_pod_SRCS += allocatable.c ctr_limits.c hugepages_watch.c
agent_pod_SRCS += usage.c usage_node.c usage_summary.c usage_metrics.c usage_text.c scrape.c agent_metrics.c start_times.c
agent_pod_SRCS += oom.c
agent_pod_SRCS += ctr_message.c ctr_log.c log_keep.c log_turn.c
agent_pod_SRCS += local_storage.c local_limits.c
agent_pod_SRCS += pod_look.c
