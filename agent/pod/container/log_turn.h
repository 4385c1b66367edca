/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_turn - one log and its turns from file to file: log_keep.h says how.  Blocking; the keeper's thread,
 * which gets LOG_LEASE_SIGNAL.
 */
#ifndef AGENT_POD_CONTAINER_LOG_TURN_H
#define AGENT_POD_CONTAINER_LOG_TURN_H
#include "base/error.h"

#include <stdbool.h>

#define LOG_LEASE_SIGNAL (SIGRTMIN + 5) /* queued, with the descriptor, unlike SIGIO; any number would do */

struct log_turn {
    char *path, *folder, *base;
    unsigned max_files;
    int lease;   /* the next file, open with a lease; -1: none is ready */
    bool let_go; /* conmon was let go and has not renamed it yet: all names are as they shall be */
    bool leased; /* a lease was had once: only the first failure is told */
};

enum err_code log_turn_init(struct log_turn *t, const char *path, unsigned max_files,
                            struct err *e) MUST_CHECK;
void log_turn_done(struct log_turn *t); /* files stay as they are, so that they can be taken over */

void log_turn_look(struct log_turn *t); /* puts names in order and the next file ready */
void log_turn_held(struct log_turn *t); /* conmon may be waiting for the lease */
/* Whether no signal is to come: conmon has not begun, or is about to rename, or there are no leases here. */
bool log_turn_awaits(const struct log_turn *t);
void log_turn_end(struct log_turn *t); /* the last look: only files that were written remain */
void log_turn_remove(const char *path);
#endif
