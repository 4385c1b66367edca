/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patience - the few tries of a look that the agent's start cannot do without: a shortage or an error of the
 * moment must not end the start, and one that stays must.
 *
 *     struct patience patience = { 0 };
 *     do {
 *         *e = (struct err){ 0 };
 *         found = fs_look_mountpoint(path, e);
 *     } while (presence_is_unknown(found) && patience_wait(&patience));
 *
 * Blocking; only before the loop runs.
 */
#ifndef BASE_PATIENCE_H
#define BASE_PATIENCE_H
#include "base/error.h"

#include <stdbool.h>

#define PATIENCE_TRIES 6 /* 10 ms, doubled: 0.3 s in all */

struct patience { /* zeroed */
    unsigned tries;
};

/* Waits for the next try; false: there is none left. */
bool patience_wait(struct patience *p) MUST_CHECK;
#endif
