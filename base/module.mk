# SPDX-License-Identifier: Apache-2.0
base_SRCS := arena.c background.c boot_timer.c buf.c clock.c clock_now.c duration.c error.c log.c log_journal.c log_recent.c near.c netlink.c \
             op.c parse.c presence.c siphash.c strs.c thread.c trimmer.c utf8.c work.c zone.c zone_rule.c
