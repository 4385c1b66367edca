/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etc_edit - the text of /etc/projects ("id:path") and /etc/projid ("name:id"): which ids it has, and an edit
 * that keeps every line of others as it is, with comments and errors. Pure.
 */
#ifndef VOLUMES_QUOTA_ETC_EDIT_H
#define VOLUMES_QUOTA_ETC_EDIT_H
#include "base/buf.h"

#include <stdint.h>

enum etc_kind { ETC_PROJECTS, ETC_PROJID };

struct etc_ids { /* { 0 }; free(v) */
    uint32_t *v;
    size_t n;
};

/* Adds the ids of all lines, in no order, some twice. Lines without an id are ignored, as by xfs_quota. */
enum err_code etc_ids_add(struct etc_ids *ids, enum etc_kind kind, struct str text, struct err *e) MUST_CHECK;
void etc_ids_sort(struct etc_ids *ids);
bool etc_ids_has(const struct etc_ids *ids, uint32_t id); /* sorted */

struct etc_lines { /* without line ends; { 0 }; etc_lines_done() */
    char **v;
    size_t n;
};
/* "id:path", "coracle<id>:<id>" */
enum err_code etc_lines_add(struct etc_lines *l, enum etc_kind kind, uint32_t id, const char *path,
                            struct err *e) MUST_CHECK;
void etc_lines_sort(struct etc_lines *l);
void etc_lines_done(struct etc_lines *l);

/* Appends the new text: without the lines of `drop`, and with those of `keep`, each once, new ones at the
 * end. Both are sorted; a line in both is dropped. */
enum err_code etc_edit(struct buf *ret, struct str text, const struct etc_lines *drop,
                       const struct etc_lines *keep, struct err *e) MUST_CHECK;

/* Calls fn for each "id:path" whose id is named "coracle<id>" in projid. `path` is borrowed while fn runs. */
enum err_code etc_each_of_ours(struct str projects, struct str projid,
                               enum err_code (*fn)(uint32_t id, const char *path, void *arg, struct err *e),
                               void *arg, struct err *e) MUST_CHECK;
#endif
