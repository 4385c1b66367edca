/* SPDX-License-Identifier: Apache-2.0 */
/* usage - reads single numbers from files of cgroupfs (meter.h reads many). */
#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <errno.h>
#include <string.h>

static struct presence usage_look_file(int dir, const char *file, char **ret, size_t *ret_n, struct err *e)
{
    if (fs_read_at(dir, file, FS_SMALL_MAX, ret, ret_n, e) == ERR_OK)
        return presence_present();
    if (e->sys == ENODEV) { /* the cgroup was removed meanwhile */
        *e = (struct err){ 0 };
        return presence_absent();
    }
    return presence_from_err(e);
}

struct presence cg_read_u64(int dir, const char *file, uint64_t *ret, struct err *e)
{
    str_auto text = NULL;
    size_t n = 0;
    struct presence found = usage_look_file(dir, file, &text, &n, e);

    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    return cg_take_u64(text, n, ret) ? found : presence_absent();
}

/* Flat keyed files: "key value" on each line. */
struct presence cg_read_key(int dir, const char *file, const char *key, uint64_t *ret, struct err *e)
{
    str_auto text = NULL;
    size_t n = strlen(key);
    struct presence found = usage_look_file(dir, file, &text, NULL, e);

    if (presence_is_unknown(found) || presence_is_absent(found))
        return found;
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return cg_take_u64(line + n + 1, strlen(line + n + 1), ret) ? presence_present()
                                                                        : presence_absent();
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return presence_absent();
}

bool cg_count_grew(int dir, const char *file, const char *key, uint64_t *counted)
{
    uint64_t count = 0, before = *counted;

    switch (presence_of(cg_read_key(dir, file, key, &count, ERR_IGNORED))) {
    case PRESENCE_UNKNOWN:
        return true;
    case PRESENCE_ABSENT: /* the cgroup was removed */
        return false;
    case PRESENCE_PRESENT:
        break;
    }
    *counted = count;
    return count > before;
}

struct presence cg_read_memory(struct cg_tree *t, const char *path, uint64_t *ret, struct err *e)
{
    for (size_t i = 0; i < t->n_hiers; i++) {
        const struct cg_hier *h = &t->hiers[i];
        fd_auto dir = -1;

        if (!(h->controllers & CG_CTL_MEMORY))
            continue;
        dir = cg_open_dir(h, path);
        if (dir >= 0)
            return cg_read_u64(dir, h->backend->v2 ? "memory.current" : "memory.usage_in_bytes", ret, e);
        err_sys(e, errno, "open cgroup %s", path);
        return presence_from_err(e);
    }
    return presence_absent();
}
