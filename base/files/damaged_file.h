/* SPDX-License-Identifier: Apache-2.0 */
/*
 * damaged_file - renames an unusable state file within its folder and keeps it for inspection:
 *
 *     <name>.damaged-20260102T030405Z        time in UTC
 *
 * Coracle never reads it again. Each folder keeps the newest DAMAGED_FILE_MAX of them. Blocking; for our own
 * state folders.
 */
#ifndef BASE_FILES_DAMAGED_FILE_H
#define BASE_FILES_DAMAGED_FILE_H
#include "base/presence.h"

#include <stdbool.h>
#include <stdint.h>

/* Enough to investigate, without filling the disk of a node that restarts for years. */
#define DAMAGED_FILE_MAX 16
#define DAMAGED_FILE_NAME_SIZE 256

/* A file that cannot be renamed stays in place, and the error has the reason. */
enum err_code damaged_file_set_aside(int dirfd, const char *name, char ret[DAMAGED_FILE_NAME_SIZE],
                                     struct err *e) MUST_CHECK;
/* Whether this is the name of a file that was set aside. */
bool damaged_file_is(const char *name);
/* When it was set aside, in ns since 1970; 0 if the name has no time. */
int64_t damaged_file_since_ns(const char *name);
/* Calls fn for each such file in the folder, in no particular order; not at all if the folder cannot be
 * read. */
struct presence damaged_file_look(int dirfd, void (*fn)(const char *name, void *arg), void *arg,
                                  struct err *e) MUST_CHECK;
#endif
