/* SPDX-License-Identifier: Apache-2.0 */
/* A container's logs: <podLogsDir>/<namespace>_<pod>_<uid>/<container>/<attempt>.log, and the link for log
 * shippers. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/container/log_keep.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/core/pod_look.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool ctr_log_path(const struct ctr *c, unsigned attempt, char *ret, size_t size)
{
    const struct pod *p = c->pod;
    int n = snprintf(ret, size, "%s/%s_%s_%s/%s/%u.log", p->node->o.pod_logs_dir, p->api->meta.namespace,
                     p->api->meta.name, p->uid, c->spec->name, attempt);

    return n > 0 && (size_t)n < size;
}

void ctr_log_keep(struct ctr *c, unsigned attempt)
{
    char path[PATH_MAX];

    if (!ctr_log_path(c, attempt, path, sizeof(path)))
        return;
    own_of(c)->log_kept = true;
    log_keep_begin(container_node(c->pod->node)->logs, path);
}

void ctr_log_ended(struct ctr *c, unsigned attempt)
{
    char path[PATH_MAX];

    own_of(c)->log_kept = false;
    if (ctr_log_path(c, attempt, path, sizeof(path)))
        log_keep_end(container_node(c->pod->node)->logs, path);
}

void ctr_log_remove(const struct ctr *c, unsigned attempt)
{
    char path[PATH_MAX];

    if (ctr_log_path(c, attempt, path, sizeof(path)))
        log_keep_remove(container_node(c->pod->node)->logs, path);
}

/* <containerLogsDir>/<pod>_<ns>_<container>-<id>.log; the name part is truncated to fit in 255. */
void ctr_log_link_path(const struct ctr *c, const char *id, char *ret, size_t size)
{
    const struct pod *p = c->pod;
    char name[512];

    snprintf(name, sizeof(name), "%s_%s_%s", p->api->meta.name, p->api->meta.namespace, c->spec->name);
    if (strlen(name) > 255 - 69)
        name[255 - 69] = '\0';
    snprintf(ret, size, "%s/%s-%s.log", p->node->o.container_logs_dir, name, id);
}

void ctr_log_link(struct ctr *c)
{
    char target[PATH_MAX], path[1024];
    struct err e = { 0 };

    if (c->cur.started_ns == 0 || own_of(c)->log_linked ||
        !ctr_log_path(c, c->cur.attempt, target, sizeof(target)))
        return;
    ctr_log_link_path(c, c->cur.id, path, sizeof(path));
    own_of(c)->log_linked = symlink(target, path) == 0 || errno == EEXIST;
    if (own_of(c)->log_linked)
        return;
    err_sys(&e, errno, "create log link %.256s", path);
    pod_look_again(c->pod, &e);
}
