/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/projects and /etc/projid, which other software writes: the same text as both. An edit adds and drops
 * exactly our lines; those of others stay, in their order. */
#include "volumes/quota/etc_edit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum err_code on_ours(uint32_t id, const char *path, void *arg, struct err *e)
{
    const struct etc_ids *ids = arg;

    (void)e;
    assert(etc_ids_has(ids, id));
    assert(strchr(path, '\n') == NULL);
    return ERR_OK;
}

static void edit(struct str text, const struct etc_lines *drop, const struct etc_lines *keep, struct buf *ret)
{
    struct err e = { 0 };

    buf_reset(ret);
    assert(etc_edit(ret, text, drop, keep, &e) == ERR_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct etc_lines ours = { 0 }, none = { 0 };
    struct etc_ids ids = { 0 }, after = { 0 };
    buf_auto plain = BUF_INIT(1 << 26);
    buf_auto with = BUF_INIT(1 << 26);
    buf_auto again = BUF_INIT(1 << 26);
    struct err e = { 0 };

    for (int kind = ETC_PROJECTS; kind <= ETC_PROJID; kind++)
        assert(etc_ids_add(&ids, kind, text, &e) == ERR_OK);
    etc_ids_sort(&ids);
    assert(etc_each_of_ours(text, text, on_ours, &ids, &e) == ERR_OK);
    assert(etc_lines_add(&ours, ETC_PROJECTS, 1048577, "/a", &e) == ERR_OK);
    assert(etc_lines_add(&ours, ETC_PROJID, 1048577, NULL, &e) == ERR_OK);
    etc_lines_sort(&ours);

    edit(text, &ours, &none, &plain); /* what others have */
    edit(text, &none, &ours, &with);
    edit((struct str){ with.p, with.n }, &none, &ours, &again);
    assert(again.n == with.n && memcmp(again.p, with.p, with.n) == 0);
    edit((struct str){ with.p, with.n }, &ours, &none, &again);
    assert(again.n == plain.n && memcmp(again.p, plain.p, plain.n) == 0);
    assert(etc_ids_add(&after, ETC_PROJECTS, (struct str){ with.p, with.n }, &e) == ERR_OK);
    etc_ids_sort(&after);
    assert(etc_ids_has(&after, 1048577));
    etc_lines_done(&ours);
    free(ids.v);
    free(after.v);
    return 0;
}
