/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made - the folders that this start created, so that a refused start leaves none behind.
 *
 * Only empty folders are removed: a folder with files of other programs is kept. Blocking; before the loop
 * runs, and after it.
 */
#ifndef AGENT_MADE_H
#define AGENT_MADE_H
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MADE_MAX 24 /* folders; further ones are created and stay */

struct made { /* { 0 }: none */
    struct {
        char *path;  /* owned */
        size_t kept; /* length of the part that existed before */
    } v[MADE_MAX];
    size_t n;
};

/* fs_mkdirs(), which records the folders that did not exist. A folder that cannot be examined counts as
 * existing. */
enum err_code made_mkdirs(struct made *m, const char *path, mode_t mode, struct err *e) MUST_CHECK;
bool made_has(const struct made *m, const char *path); /* created by made_mkdirs(path) */
void made_remove(struct made *m);                      /* the last ones first, including created parents */
void made_done(struct made *m);                        /* forgets them */
#endif
