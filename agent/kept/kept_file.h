/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_file - the format of a kept object on disk, and its file's name. Pure.
 *
 *     coracle-kept 1 sealed\n             or "plain"
 *     Secret/default/db\n                 the object's name
 *     <sealed bytes>                      agent/seal/seal.h; plain: 16 hex digits, \n, the text
 *
 * The head (both lines) is bound to the content: as additional data of sealed content, by the checksum of
 * plain content. So no file can be used for another object. The checksum detects damage; it is no protection
 * against a program that can write to the folder, which only root can.
 */
#ifndef AGENT_KEPT_KEPT_FILE_H
#define AGENT_KEPT_KEPT_FILE_H
#include "base/buf.h"

#define KEPT_NAME_SIZE 512 /* "ConfigMap/" namespace (63) "/" name (253), with its NUL: 328 */
#define KEPT_FILE_SIZE 64  /* of a file's name */
#define KEPT_HEAD_SIZE (KEPT_NAME_SIZE + 32)
/* An object has at most 1.5 MiB in etcd, in JSON up to six times that (agent/kube/client/reflector.h). */
#define KEPT_TEXT_MAX ((size_t)12 << 20)
#define KEPT_FILE_MAX (KEPT_TEXT_MAX + 4096)

struct kept_content { /* the parts of a file; borrowed from its bytes */
    char name[KEPT_NAME_SIZE];
    bool sealed;
    struct str head, body;
};

/* Printable ASCII without blanks, "Kind/...", shorter than KEPT_NAME_SIZE. */
bool kept_name_is_good(const char *name);
/* "secret-" and 32 hex digits: names are longer than a file's may be. */
void kept_file_name(const char *name, char ret[KEPT_FILE_SIZE]);
bool kept_file_is_name(const char *file);
/* `name` must be valid. */
void kept_file_head(const char *name, bool sealed, char ret[KEPT_HEAD_SIZE]);
/* Appends a whole file of plain text. */
void kept_file_add_plain(struct buf *b, const char *name, const char *text, size_t n);
/* ERR_DATA_LOSS: not a valid file. *ret is changed only on success. */
enum err_code kept_file_read(const char *data, size_t n, struct kept_content *ret, struct err *e) MUST_CHECK;
#endif
