/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patience - retries a lookup that the agent's start depends on: a temporary shortage or error must not
 * prevent the start, a permanent one must.
 *
 *     struct patience patience = { 0 };
 *     do {
 *         *e = (struct err){ 0 };
 *         found = fs_look_mountpoint(path, e);
 *     } while (presence_is_unknown(found) && patience_wait(&patience));
 *
 * Blocking; only before the loop runs.
 */
#ifndef BASE_FILES_PATIENCE_H
#define BASE_FILES_PATIENCE_H
#include "base/error.h"

#include <stdbool.h>

#define PATIENCE_TRIES 6 /* 10 ms, doubled each time: 0.3 s in total */

struct patience { /* zeroed */
    unsigned tries;
};

/* Waits before the next try; false if none is left. */
bool patience_wait(struct patience *p) MUST_CHECK;
#endif
