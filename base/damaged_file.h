/* SPDX-License-Identifier: Apache-2.0 */
/*
 * damaged_file - a state file that cannot be used is set aside, for people to look at: renamed in its folder
 * to
 *
 *     <name>.damaged-20260102T030405Z        when, in UTC
 *
 * Nothing reads it again.  A folder keeps the newest DAMAGED_FILE_MAX of them.  Blocking, on our own state
 * folders.
 */
#ifndef BASE_DAMAGED_FILE_H
#define BASE_DAMAGED_FILE_H
#include "base/presence.h"

#include <stdbool.h>
#include <stdint.h>

#define DAMAGED_FILE_MAX                                                                                     \
    16 /* enough to see what happened; a node that restarts for years must not fill its disk                 \
        */
#define DAMAGED_FILE_NAME_SIZE 256

/* A file that cannot be renamed stays where it is: the error says so. */
enum err_code damaged_file_set_aside(int dirfd, const char *name, char ret[DAMAGED_FILE_NAME_SIZE],
                                     struct err *e) MUST_CHECK;
/* Whether a file name is that of something set aside. */
bool damaged_file_is(const char *name);
/* When it was set aside, in ns since 1970; 0: it does not say. */
int64_t damaged_file_since_ns(const char *name);
/* Calls fn for each of the folder's, in no order; for none of a folder that cannot be read. */
struct presence damaged_file_look(int dirfd, void (*fn)(const char *name, void *arg), void *arg,
                                  struct err *e) MUST_CHECK;
#endif
