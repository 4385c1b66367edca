/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/leftovers/foreign.h"

#include "base/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "foreign-pods" /* one uid a line, then the end */
#define END ".\n"
enum { FOREIGN_MAX = 4 << 20 }; /* 100,000 of them */

struct foreign_found {
    struct node *node;
    struct buf text;
    const char *where;
    bool logs;
};

const char *foreign_uid_of_logs(const char *folder)
{
    const char *uid = strrchr(folder, '_');

    if (folder[0] == '.' || uid == NULL || strchr(folder, '_') == uid || uid[1] == '\0')
        return NULL;
    return uid + 1;
}

static bool foreign_listed(const char *text, const char *uid)
{
    const size_t n = strlen(uid);

    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
        if (strcspn(line, "\n") == n && memcmp(line, uid, n) == 0)
            return true;
    return false;
}

static bool foreign_is_whole(const char *text)
{
    return str_ends(text, "\n" END) || strcmp(text, END) == 0;
}

static void foreign_note(struct foreign_found *f, const char *uid, const char *what)
{
    if (uid[0] == '.' || strchr(uid, '\n') != NULL || pods_by_uid(f->node, uid) != NULL)
        return;
    if (f->text.n > 0 && foreign_listed(f->text.p, uid))
        return;
    log_warn("pod is not known here and was never ours: nothing of it is removed", F_STR("uid", uid),
             F_STR("found", what));
    buf_adds(&f->text, uid);
    buf_addc(&f->text, '\n');
}

static bool foreign_folder(const char *name, void *arg)
{
    struct foreign_found *f = arg;
    const char *uid = f->logs ? foreign_uid_of_logs(name) : name;

    if (uid != NULL)
        foreign_note(f, uid, f->where);
    return true;
}

static enum err_code foreign_find(struct foreign_found *f, struct err *e)
{
    struct node *n = f->node;
    str_auto pods = str_printf("%s/pods", n->o.root_dir);

    if (pods == NULL)
        return err_nomem(e);
    f->where = pods;
    if (presence_is_unknown(fs_list(AT_FDCWD, pods, foreign_folder, f, e)))
        return e->code;
    f->where = n->o.pod_logs_dir;
    f->logs = true;
    if (n->o.pod_logs_dir != NULL &&
        presence_is_unknown(fs_list(AT_FDCWD, n->o.pod_logs_dir, foreign_folder, f, e)))
        return e->code;
    return ERR_OK;
}

static enum err_code foreign_make(struct node *n, const char *path, struct err *e)
{
    struct foreign_found f = { .node = n, .text = BUF_INIT(FOREIGN_MAX) };

    if (foreign_find(&f, e) == ERR_OK) {
        buf_adds(&f.text, END);
        if (buf_check(&f.text, e) == ERR_OK &&
            fs_replace_at(AT_FDCWD, path, f.text.p, f.text.n, 0600, true, e) == ERR_OK &&
            (n->foreign = buf_detach(&f.text)) == NULL)
            err_nomem(e);
    }
    buf_done(&f.text);
    return e->code == ERR_OK ? ERR_OK : err_wrap(e, "note the pods that are not ours");
}

enum err_code foreign_load(struct node *n, struct err *e)
{
    str_auto path = str_printf("%s/" FILE_NAME, n->o.state_dir);

    if (n->foreign != NULL)
        return ERR_OK;
    if (path == NULL)
        return err_nomem(e);
    switch (presence_of(fs_read_if_there(AT_FDCWD, path, FOREIGN_MAX, &n->foreign, NULL, e))) {
    case PRESENCE_UNKNOWN:
        return e->code;
    case PRESENCE_ABSENT:
        return foreign_make(n, path, e);
    case PRESENCE_PRESENT:
        if (foreign_is_whole(n->foreign))
            return ERR_OK;
        /* What it listed may be lost: again everything that is here and not known stays. */
        log_warn("list of foreign pods is damaged and made anew", F_STR("file", path));
        foreign_free(n);
        return foreign_make(n, path, e);
    }
    return ERR_OK;
}

bool foreign_has(const struct node *n, const char *uid)
{
    return n->foreign != NULL && foreign_listed(n->foreign, uid);
}

void foreign_free(struct node *n)
{
    str_auto path = n->draining ? str_printf("%s/" FILE_NAME, n->o.state_dir) : NULL;

    if (path != NULL)
        fs_remove_quietly(AT_FDCWD, path);
    free(take_ptr(&n->foreign));
}
