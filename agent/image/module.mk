# SPDX-License-Identifier: Apache-2.0
agent_image_SRCS := image_access.c image_auth.c image_blobs.c image_bring.c image_commit.c \
                    image_export.c image_history.c image_job.c image_look.c image_mounted.c image_name.c image_pin.c \
                    image_progress.c image_pulled_for.c image_query.c image_record.c image_rubbish.c \
                    image_skopeo.c image_space.c image_store.c image_tag.c image_task.c image_unpack.c image_turn.c image_user.c image_verify.c \
                    image_writer.c registry_auth.c registry_names.c
