# SPDX-License-Identifier: Apache-2.0
base_SRCS := error.c watches.c presence.c patience.c look.c base64.c utf8.c buf.c arena.c parse.c clock.c clock_now.c boot_timer.c log.c log_journal.c log_recent.c op.c work.c background.c process.c process_result.c thread.c spawn.c spawn_queue.c call.c call_thread.c reaper.c pid.c \
             fs.c file_lock.c damaged_file.c tree.c disk_usage.c mounts.c id.c near.c siphash.c siphash_key.c json.c netlink.c websocket.c
base_SRCS += landlock.c
