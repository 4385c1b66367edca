/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put - writes files of the manifest folder for clients, atomically. A file is filled under the name
 * SRC_PUT_NAME, which readers of the folder ignore, then synced and renamed; then the folder is synced. An
 * agent that is killed in between leaves the old file or the new one, and perhaps SRC_PUT_NAME, which the
 * next write or the next start removes.
 *
 * Blocking; any thread, one call for a folder at a time, since all calls use that name. `folder` is a
 * descriptor of the folder; `dir` is its path, for messages. ERR_EXHAUSTED: the disk is full. After any error
 * nothing has changed, except if the message is that the folder was not synced: then the change was made, but
 * may not survive a power failure. ERR_INTERNAL: another failure of the disk.
 */
#ifndef AGENT_SOURCE_PUT_H
#define AGENT_SOURCE_PUT_H
#include "base/error.h"

#include <stddef.h>
#include <sys/stat.h>

#define SRC_PUT_NAME ".coracle.new"

/* ERR_EXISTS: the name is in use. */
enum err_code src_put_new(int folder, const char *dir, const char *name, const char *text, size_t n,
                          mode_t mode, struct err *e) MUST_CHECK;
/* Replaces the file that was read after `was`; its owner and its group remain. ERR_ABORTED: the file has
 * changed since. */
enum err_code src_put_over(int folder, const char *dir, const char *name, const struct stat *was,
                           const char *text, size_t n, mode_t mode, struct err *e) MUST_CHECK;
/* Removes the file that was read; ERR_ABORTED: it has changed since. */
enum err_code src_put_remove(int folder, const char *dir, const char *name, const struct stat *was,
                             struct err *e) MUST_CHECK;
/* Converts an error of the folder's disk to ERR_EXHAUSTED or ERR_INTERNAL, which do not suggest a missing
 * permission or object. */
enum err_code src_put_failed(struct err *e);
/* Removes the leftover of a killed agent. */
void src_put_sweep(const char *dir);
#endif
