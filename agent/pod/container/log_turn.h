/* SPDX-License-Identifier: Apache-2.0 */
/* log_turn - rotates one log; log_keep.h describes how. Blocking; runs on the keeper's thread, which gets
 * LOG_LEASE_SIGNAL. */
#ifndef AGENT_POD_CONTAINER_LOG_TURN_H
#define AGENT_POD_CONTAINER_LOG_TURN_H
#include "base/error.h"

#include <stdbool.h>

/* queued, with the descriptor, unlike SIGIO; the number is arbitrary */
#define LOG_LEASE_SIGNAL (SIGRTMIN + 5)

struct log_turn {
    char *path, *folder, *base;
    unsigned max_files;
    int lease;   /* the next file, open with a lease; -1: not prepared */
    bool let_go; /* conmon was released and has not renamed it yet: all names are correct */
    bool leased; /* there was a lease once: only the first failure is reported */
};

enum err_code log_turn_init(struct log_turn *t, const char *path, unsigned max_files,
                            struct err *e) MUST_CHECK;
void log_turn_done(struct log_turn *t); /* leaves the files as they are, for a later agent */

void log_turn_look(struct log_turn *t); /* corrects the names and prepares the next file */
void log_turn_held(struct log_turn *t); /* conmon may be waiting for the lease */
/* Whether no signal will follow: conmon has not begun, or is about to rename, or there are no leases here. */
bool log_turn_awaits(const struct log_turn *t);
void log_turn_end(struct log_turn *t); /* the last pass: only files with content remain */
void log_turn_remove(const char *path);
#endif
