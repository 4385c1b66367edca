/* SPDX-License-Identifier: Apache-2.0 */
/* file - reads one file that a kubeconfig names, or a kubeconfig itself: regular files only, bounded. A FIFO
 * or a device would hold up its reader, and is refused. Blocking. */
#ifndef AGENT_KUBE_CONFIG_FILE_H
#define AGENT_KUBE_CONFIG_FILE_H
#include "base/error.h"

#include <stddef.h>

#define KUBE_FILE_MAX (1024 * 1024) /* of a kubeconfig, a certificate with its chain, a bundle of CAs */
#define KUBE_TOKEN_MAX (64 * 1024)  /* of a token file */

/* *ret is malloc'ed and NUL-terminated; free it with kube_file_wipe() where it is secret. The text is that of
 * the system, with the path as given: "open /a: No such file or directory". ERR_NOT_FOUND, ERR_PERMISSION,
 * ERR_EXHAUSTED: too long. */
enum err_code kube_file_read(const char *path, size_t max, char **ret, size_t *ret_n,
                             struct err *e) MUST_CHECK;
void kube_file_wipe(char *text, size_t n); /* NULL is fine */
/* filepath.Join(base, path), or filepath.Clean(path) where `path` is absolute: without ".", ".." and double
 * slashes, by text alone. malloc'ed; NULL: out of memory. */
char *kube_path_join(const char *base, const char *path);
#endif
