/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put - files of the manifest folder that are written for others: whole, or not at all. A file is filled
 * under the name SRC_PUT_NAME, which readers of the folder ignore, synced, and renamed; the folder is synced
 * behind it. An agent that is killed between leaves the old file or the new one, and maybe SRC_PUT_NAME: the
 * next write or the next start removes that.
 *
 * Blocking; any thread, one call for a folder at a time, since all use that name. `folder` is a descriptor of
 * the folder; `dir` is its path, for messages. ERR_EXHAUSTED: the disk is full. After any error nothing has
 * changed, unless the message says that the folder was not synced: then the change is made, but may not
 * survive a power failure. ERR_INTERNAL: the disk is in the way otherwise.
 */
#ifndef AGENT_SOURCE_PUT_H
#define AGENT_SOURCE_PUT_H
#include "base/error.h"

#include <stddef.h>
#include <sys/stat.h>

#define SRC_PUT_NAME ".coracle.new"

/* ERR_EXISTS: there is something of that name. */
enum err_code src_put_new(int folder, const char *dir, const char *name, const char *text, size_t n,
                          mode_t mode, struct err *e) MUST_CHECK;
/* Replaces the file that was read after `was`; its owner and its group remain. ERR_ABORTED: it is another one
 * by now. */
enum err_code src_put_over(int folder, const char *dir, const char *name, const struct stat *was,
                           const char *text, size_t n, mode_t mode, struct err *e) MUST_CHECK;
/* Likewise. */
enum err_code src_put_remove(int folder, const char *dir, const char *name, const struct stat *was,
                             struct err *e) MUST_CHECK;
/* Makes an error of the folder's disk one of those two: neither the right nor the object is missing. */
enum err_code src_put_failed(struct err *e);
/* Removes what a killed agent has left. */
void src_put_sweep(const char *dir);
#endif
