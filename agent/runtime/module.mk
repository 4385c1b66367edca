agent_runtime_SRCS :=
agent_runtime_SRCS += cri_log.c
agent_runtime_SRCS += image_name.c image_record.c image_store.c image_query.c image_bring.c image_job.c image_skopeo.c image_commit.c
agent_runtime_SRCS += container.c
agent_runtime_SRCS += features.c
agent_runtime_SRCS += exits.c
agent_runtime_SRCS += conmon.c
agent_runtime_SRCS += bundle.c
agent_runtime_SRCS += create.c
agent_runtime_SRCS += start.c
agent_runtime_SRCS += delete.c
agent_runtime_SRCS += state.c
agent_runtime_SRCS += signal.c
agent_runtime_SRCS += spec.c
agent_runtime_SRCS += spec_process.c
agent_runtime_SRCS += spec_user.c
agent_runtime_SRCS += spec_caps.c
agent_runtime_SRCS += spec_seccomp.c
agent_runtime_SRCS += spec_mounts.c
agent_runtime_SRCS += spec_devices.c
# coracle-unpack reads hostile archives: a program of its own, never part of the daemon.
unpack_SRCS := unpack_main.c unpack_digest.c unpack_path.c unpack_node.c unpack_apply.c unpack_stream.c unpack_source.c \
               unpack_config.c unpack_images.c unpack_layout.c unpack_docker.c unpack_store.c unpack_confine.c image_name.c
