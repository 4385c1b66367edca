/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/leftovers/foreign.h"
#include "agent/pod/leftovers/internal.h"

#include "base/files/fs.h"
#include "base/files/patience.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "foreign-pods" /* one uid per line, then the end */
#define END ".\n"
enum { FOREIGN_MAX = 4 << 20 }; /* 100,000 of them */

/* kubelet makes this folder in each pod's folder, and we never do. It identifies kubelet's pods if an earlier
 * version of ours ran without a list: everything else found there is a leftover of ours. */
#define KUBELETS "plugins"

struct foreign_found {
    struct node *node;
    struct buf text;
    const char *where;
    bool first; /* no agent with this state folder ever had pods: everything is foreign */
    bool logs;
    bool kubelets; /* some pod is kubelet's */
    struct err *e;
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
    log_warn("found a foreign pod; nothing of it will be removed", F_STR("uid", uid), F_STR("found", what));
    buf_adds(&f->text, uid);
    buf_addc(&f->text, '\n');
}

static bool foreign_pod(const char *name, void *arg)
{
    struct foreign_found *f = arg;
    str_auto mark = str_printf("%s/%s/" KUBELETS, f->where, name);
    struct presence kubelets = presence_present();

    if (mark == NULL)
        err_nomem(f->e);
    else if (!f->first)
        kubelets = fs_look_at(AT_FDCWD, mark, NULL, f->e);
    if (f->e->code != ERR_OK)
        return false;
    if (!presence_is_absent(kubelets)) {
        f->kubelets = true;
        foreign_note(f, name, f->where);
    }
    return true;
}

/* The logs of a pod without a folder may belong to a kubelet, if it has pods here. */
static bool foreign_logs(const char *name, void *arg)
{
    struct foreign_found *f = arg;
    const char *uid = foreign_uid_of_logs(name);
    str_auto pod = uid != NULL ? str_printf("%s/pods/%s", f->node->o.root_dir, uid) : NULL;
    struct presence folder = presence_absent();

    if (uid == NULL || (!f->first && !f->kubelets))
        return true;
    if (pod == NULL)
        err_nomem(f->e);
    else if (!f->first) /* kubelet's are already in the list */
        folder = fs_look_at(AT_FDCWD, pod, NULL, f->e);
    if (f->e->code == ERR_OK && presence_is_absent(folder))
        foreign_note(f, uid, f->where);
    return f->e->code == ERR_OK;
}

static enum err_code foreign_find(struct foreign_found *f, struct err *e)
{
    struct node *n = f->node;
    str_auto pods = str_printf("%s/pods", n->o.root_dir);

    if (pods == NULL)
        return err_nomem(e);
    f->where = pods;
    f->e = e;
    if (presence_is_unknown(fs_list(AT_FDCWD, pods, foreign_pod, f, e)) || e->code != ERR_OK)
        return e->code;
    f->where = n->o.pod_logs_dir;
    if (n->o.pod_logs_dir == NULL)
        return ERR_OK;
    return presence_is_unknown(fs_list(AT_FDCWD, n->o.pod_logs_dir, foreign_logs, f, e)) ? e->code
                                                                                         : f->e->code;
}

static enum err_code foreign_make(struct node *n, const char *path, bool first, struct err *e)
{
    struct foreign_found f = { .node = n, .text = BUF_INIT(FOREIGN_MAX), .first = first };

    if (foreign_find(&f, e) == ERR_OK) {
        buf_adds(&f.text, END);
        if (buf_check(&f.text, e) == ERR_OK &&
            fs_replace_at(AT_FDCWD, path, f.text.p, f.text.n, 0600, true, e) == ERR_OK &&
            (leftovers_node(n)->foreign = buf_detach(&f.text)) == NULL)
            err_nomem(e);
    }
    buf_done(&f.text);
    return e->code == ERR_OK ? ERR_OK : err_wrap(e, "note the pods that are not ours");
}

static struct presence foreign_look_records(struct node *n, struct err *e)
{
    str_auto records = str_printf("%s/pods", n->o.state_dir);

    if (records != NULL)
        return fs_look_at(AT_FDCWD, records, NULL, e);
    err_nomem(e);
    return presence_unknown(e);
}

enum err_code foreign_begin(struct node *n, struct err *e)
{
    struct patience patience = { 0 };

    do {
        *e = (struct err){ 0 };
        if (presence_is_absent(foreign_look_records(n, e)))
            ERR_IGNORE(foreign_load(n, e));
    } while (e->code != ERR_OK && patience_wait(&patience));
    return e->code;
}

enum err_code foreign_load(struct node *n, struct err *e)
{
    struct leftovers_node *part = leftovers_node(n);
    str_auto path = str_printf("%s/" FILE_NAME, n->o.state_dir);
    struct presence records;

    if (part->foreign != NULL)
        return ERR_OK;
    if (path == NULL)
        return err_nomem(e);
    switch (presence_of(fs_read_if_there(AT_FDCWD, path, FOREIGN_MAX, &part->foreign, NULL, e))) {
    case PRESENCE_UNKNOWN:
        return e->code;
    case PRESENCE_ABSENT:
        records = foreign_look_records(n, e);
        return presence_is_unknown(records) ? e->code : foreign_make(n, path, presence_is_absent(records), e);
    case PRESENCE_PRESENT:
        if (foreign_is_whole(part->foreign))
            return ERR_OK;
        /* Its content may be lost: again keep everything unknown. */
        log_warn("list of foreign pods is damaged; making a new one", F_STR("file", path));
        foreign_free(n);
        return foreign_make(n, path, true, e);
    }
    return ERR_OK;
}

bool foreign_has(const struct node *n, const char *uid)
{
    const struct leftovers_node *part = leftovers_node(n);

    return part->foreign != NULL && foreign_listed(part->foreign, uid);
}

void foreign_free(struct node *n)
{
    str_auto path = n->draining ? str_printf("%s/" FILE_NAME, n->o.state_dir) : NULL;
    str_auto records = path != NULL ? str_printf("%s/pods", n->o.state_dir) : NULL;

    /* The folder of records first: without the list it would mean that everything is ours. */
    if (records != NULL && (rmdir(records) == 0 || errno == ENOENT))
        fs_remove_quietly(AT_FDCWD, path);
    free(take_ptr(&leftovers_node(n)->foreign));
}
