/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_file - variables from a file that a container of the pod wrote to an emptyDir (fileKeyRef; Kubernetes
 * 1.35, KEP-3721). The format is a subset of a POSIX shell's: lines
 *
 *     NAME='any text, also several lines; nothing in it is special'    # a comment may follow
 *
 * and empty lines and comments. As in kubelet, the file is read up to the first line with the requested name;
 * the rest is ignored. The file is not trusted: at most ENV_FILE_MAX bytes, a regular file, on the volume
 * itself.
 */
#ifndef AGENT_POD_ENV_ENV_FILE_H
#define AGENT_POD_ENV_ENV_FILE_H
#include "base/arena.h"

#define ENV_FILE_MAX (1024 * 1024) /* a ConfigMap's maximum */

/* *ret, in the arena: the value; NULL: no such name. ERR_PRECONDITION "line 3: value must be enclosed in
 * single quotes" */
enum err_code env_file_find(const char *text, size_t n, const char *name, struct arena *a, char **ret,
                            struct err *e) MUST_CHECK;

/* Reads `path` below the folder. ERR_NOT_FOUND: it does not exist (yet). *ret is malloc'ed. */
enum err_code env_file_read(const char *folder, const char *path, char **ret, size_t *ret_n,
                            struct err *e) MUST_CHECK;
#endif
