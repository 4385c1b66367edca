/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made - the folders that this start made, so that a start that is refused leaves none behind.
 *
 * Only empty folders are removed: what anybody put into one keeps it. Blocking; before the loop runs, and
 * after it.
 */
#ifndef AGENT_MADE_H
#define AGENT_MADE_H
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MADE_MAX 24 /* folders; those beyond are made and stay */

struct made { /* { 0 }: none */
    struct {
        char *path;  /* owned */
        size_t kept; /* so many bytes of it were there before */
    } v[MADE_MAX];
    size_t n;
};

/* fs_mkdirs(), remembering what was not there. A folder that cannot be looked at was there. */
enum err_code made_mkdirs(struct made *m, const char *path, mode_t mode, struct err *e) MUST_CHECK;
bool made_has(const struct made *m, const char *path); /* made through made_mkdirs(path) */
void made_remove(struct made *m); /* the last ones first, with the parents made for them */
void made_done(struct made *m);   /* forgets them */
#endif
