agent_runtime_SRCS := container.c features.c exits.c conmon.c bundle.c overlay.c image_mount.c idmap.c idmap_probe.c live_mount.c create.c start.c delete.c \
                      state.c signal.c pidns.c exec.c attach.c forward.c archive.c exec_spec.c exec_session.c exec_leftover.c spec.c spec_process.c spec_user.c spec_caps.c spec_seccomp.c \
                      spec_mounts.c spec_volumes.c spec_devices.c spec_limits.c image_name.c image_record.c image_store.c image_rubbish.c image_look.c image_mounted.c \
                      image_query.c image_bring.c image_job.c image_auth.c image_turn.c image_blobs.c image_progress.c image_skopeo.c image_commit.c registry_auth.c registry_names.c \
                      image_task.c image_access.c image_writer.c image_verify.c image_pin.c image_export.c
# coracle-exec: one for each process in a container, hence small and alone.
exec_SRCS := exec_main.c exec_forward.c exec_session.c
# coracle-unpack reads hostile archives: a program of its own, never part of the daemon.
unpack_SRCS := unpack_main.c unpack_options.c unpack_digest.c unpack_path.c unpack_lower.c unpack_node.c unpack_apply.c unpack_stream.c unpack_source.c \
               unpack_config.c unpack_images.c unpack_layout.c unpack_docker.c unpack_store.c unpack_sum.c unpack_frame.c unpack_verify.c unpack_export.c unpack_confine.c image_name.c
