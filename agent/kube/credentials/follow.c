/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow - watches the folders of the files that credentials are made of. A folder sees a file that is
 * written in place, one that is renamed over, and a symlink that is replaced; names with two dots in front
 * are the generations of a mounted Secret.
 */
#include "agent/kube/credentials/internal.h"
#include "base/log.h"

#include <string.h>
#include <sys/inotify.h>

static void follow_on_event(int wd, uint32_t mask, const char *name, void *arg)
{
    struct cred_follow *f = arg;

    (void)wd;
    if (name[0] != '\0' && !(mask & IN_Q_OVERFLOW) && strncmp(name, "..", 2) != 0 &&
        !strs_has(&f->bases, name))
        return;
    f->changed(f);
}

static bool same(const struct strs *a, const struct strs *b)
{
    for (size_t i = 0; i < a->n; i++)
        if (!strs_has(b, a->v[i]))
            return false;
    return a->n == b->n;
}

void cred_follow_done(struct cred_follow *f)
{
    watch_set_close(f->set);
    f->set = NULL;
    strs_done(&f->folders);
    strs_done(&f->bases);
}

enum err_code cred_follow(struct cred_follow *f, uv_loop_t *loop, const struct cred_load *l, bool *ret_new,
                          struct err *e)
{
    const uint32_t mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                          IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

    *ret_new = false;
    if (f->set != NULL && same(&f->folders, &l->folders) && same(&f->bases, &l->bases))
        return ERR_OK;
    for (size_t i = 0; i < l->folders.n; i++)
        *ret_new |= !strs_has(&f->folders, l->folders.v[i]);
    cred_follow_done(f);
    if (!strs_copy(&f->folders, &l->folders) || !strs_copy(&f->bases, &l->bases))
        return err_nomem(e);
    if (watch_set_open(&f->set, loop, follow_on_event, f, e) != ERR_OK)
        return e->code;
    for (size_t i = 0; i < f->folders.n; i++)
        if (watch_set_add(f->set, f->folders.v[i], mask) < 0) /* tried again with the files */
            log_debug("credentials: folder not watched", F_STR("folder", f->folders.v[i]),
                      F_STR("err", strerror(errno)));
    return ERR_OK;
}
