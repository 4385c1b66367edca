/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of pods that are gone, and the links to them. */
#include "agent/pod/leftovers/foreign.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/leftovers/sweep_job.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- of unknown pods: at once, a failure is for the next start ---- */

struct listing {
    struct node *node;
    const char *dir;
};

/* "<namespace>_<name>_<uid>" with an unknown uid. */
static bool remove_logs_of(const char *name, void *arg)
{
    const struct listing *l = arg;
    const char *uid = foreign_uid_of_logs(name);
    struct err e = { 0 };

    if (uid == NULL || !sweep_is_left_over(l->node, uid))
        return true;
    str_auto path = str_printf("%s/%s", l->dir, name);
    if (path == NULL)
        return true;
    log_info("removing a leftover", F_STR("what", "logs"), F_STR("id", path));
    if (fs_remove_tree(AT_FDCWD, path, &e) != ERR_OK)
        log_warn("cannot remove a leftover folder", F_STR("path", path), F_ERR(&e));
    return true;
}

enum err_code sweep_list_logs(struct node *n, struct err *e)
{
    struct listing l = { n, n->o.pod_logs_dir };

    if (foreign_load(n, e) != ERR_OK)
        return e->code;
    return presence_is_unknown(fs_list(AT_FDCWD, l.dir, remove_logs_of, &l, e)) ? e->code : ERR_OK;
}

/* A link into our folder of logs whose file is proven gone; foreign ones are kept. */
static bool remove_dangling(const char *name, void *arg)
{
    const struct listing *l = arg;
    char target[4096];

    if (!str_ends(name, ".log"))
        return true;
    str_auto path = str_printf("%s/%s", l->dir, name);
    ssize_t size = path == NULL ? -1 : readlink(path, target, sizeof(target) - 1);
    if (size <= 0)
        return true;
    target[size] = '\0';
    if (!fs_path_is_at_or_below(target, l->node->o.pod_logs_dir))
        return true;
    if (faccessat(AT_FDCWD, path, F_OK, 0) == 0 || errno != ENOENT)
        return true;
    log_info("removing a leftover", F_STR("what", "link to a log"), F_STR("id", path));
    if (unlink(path) != 0 && errno != ENOENT)
        log_warn("cannot remove a leftover link", F_STR("path", path), F_STR("error", strerror(errno)));
    return true;
}

enum err_code sweep_list_log_links(struct node *n, struct err *e)
{
    struct listing l = { n, n->o.container_logs_dir };

    return presence_is_unknown(fs_list(AT_FDCWD, l.dir, remove_dangling, &l, e)) ? e->code : ERR_OK;
}

/* ---- of a pod that ended ---- */

struct log_links { /* of one pod, for log shippers */
    const char *dir;
    char prefix[512]; /* prefix of their names: "<pod>_<namespace>_" */
    char target[1024];
    struct err *e;
};

static bool remove_log_link(const char *name, void *arg)
{
    struct log_links *l = arg;
    char path[1536], target[1024];
    ssize_t n;

    if (!str_starts(name, l->prefix))
        return true;
    snprintf(path, sizeof(path), "%s/%s", l->dir, name);
    n = readlink(path, target, sizeof(target) - 1);
    if (n >= 0)
        target[n] = '\0';
    if ((n < 0 && errno != ENOENT && errno != EINVAL) ||
        (n > 0 && str_starts(target, l->target) && unlink(path) != 0 && errno != ENOENT))
        err_sys(l->e, errno, "remove %s", path);
    return l->e->code == ERR_OK;
}

/* `folder` is "<namespace>_<pod>_<uid>"; the links' names begin with pod and namespace. */
static enum err_code remove_log_links(struct node *n, const char *folder, struct err *e)
{
    size_t namespace_n = strcspn(folder, "_");
    const char *pod = folder[namespace_n] != '\0' ? folder + namespace_n + 1 : "";
    struct log_links l = { .dir = n->o.container_logs_dir, .e = e };

    snprintf(l.prefix, sizeof(l.prefix), "%.*s_%.*s_", (int)strcspn(pod, "_"), pod, (int)namespace_n, folder);
    snprintf(l.target, sizeof(l.target), "%s/%s/", n->o.pod_logs_dir, folder);
    switch (presence_of(fs_list(AT_FDCWD, l.dir, remove_log_link, &l, e))) {
    case PRESENCE_UNKNOWN:
    case PRESENCE_ABSENT:  /* no folder, no links */
    case PRESENCE_PRESENT: /* *ret has one that could not be removed */
        break;
    }
    return e->code;
}

static enum err_code remove_log_folder(struct node *n, const char *folder, struct err *e)
{
    str_auto path = str_printf("%s/%s", n->o.pod_logs_dir, folder);

    if (path == NULL)
        return err_nomem(e);
    if (remove_log_links(n, folder, e) != ERR_OK)
        return e->code;
    return fs_remove_tree(AT_FDCWD, path, e);
}

static void remove_pod_logs(struct sweep_job *j)
{
    const char *uid = foreign_uid_of_logs(j->id);
    struct err e = { 0 };

    if (uid != NULL && pods_by_uid(j->node, uid) != NULL) {
        sweep_job_finish(j);
        return;
    }
    remove_log_folder(j->node, j->id, &e);
    sweep_job_tried(j, &e);
}

void sweep_logs(struct node *n, const char *folder)
{
    struct err e = { 0 };

    if (remove_log_folder(n, folder, &e) != ERR_OK)
        sweep_job_retry(n, folder, "logs of a pod", remove_pod_logs, &e);
}
