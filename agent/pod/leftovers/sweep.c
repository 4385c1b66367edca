/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to no pod: found by kind, and removed by jobs (sweep_job.h). */
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/leftovers/foreign.h"
#include "agent/pod/leftovers/record_files.h"
#include "agent/pod/leftovers/sweep_job.h"
#include "agent/pod/limits/limits.h"
#include "agent/pod/project/project.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/strs.h"
#include "cni/host/netns.h"
#include "volumes/csi/csi.h"
#include "volumes/flex/flex.h"
#include "volumes/storage/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 10000 /* for a mount whose server may be gone */

/* ---- containers, attachments, volumes ---- */

static void remove_container(struct sweep_job *j)
{
    rt_delete_start(&j->action, j->node->rt, j->id, NULL, sweep_job_on_done, j);
}

static enum err_code list_containers(struct node *n, struct err *e)
{
    struct strs ids = { 0 };

    if (rt_list(n->rt, &ids, e) != ERR_OK)
        return e->code;
    for (const char *const *id = strs_list(&ids); *id != NULL; id++)
        if (!rooms_know(n, *id) && !sweep_has_job(n, *id, remove_container))
            sweep_job_new(n, *id, "container", remove_container);
    strs_done(&ids);
    return ERR_OK;
}

static void detach(struct sweep_job *j)
{
    j->attachment = (struct cni_attachment){ .container_id = j->id,
                                             .netns = "",
                                             .ifname = POD_IFNAME,
                                             .pod_namespace = "",
                                             .pod_name = "",
                                             .pod_uid = "" };
    cni_del_start(&j->cni, j->node->o.cni, &j->attachment, sweep_job_on_done, j);
}

static enum err_code list_network(struct node *n, struct err *e)
{
    struct strs ids = { 0 };

    if (cni_cached_ids(n->o.cni, &ids, e) != ERR_OK)
        return e->code;
    for (const char *const *id = strs_list(&ids); *id != NULL; id++)
        if (!rooms_know(n, *id) && !sweep_has_job(n, *id, detach))
            sweep_job_new(n, *id, "network attachment", detach);
    strs_done(&ids);
    return ERR_OK;
}

void sweep_network(struct node *n)
{
    sweep_list(n, "network attachments", list_network);
}

static enum err_code remove_volumes(const void *arg, struct buf *out, struct err *e)
{
    const struct sweep_job *j = arg;
    const struct node_options *o = &j->node->o;
    const struct flex_pod flex = { .root = o->root_dir,
                                   .uid = j->id,
                                   .node = o->node_name,
                                   .plugin_dir = o->volume_plugin_dir,
                                   .how = { .patience_ms = PATIENCE_MS,
                                            .detaches = j->node->driver_link == NULL } };

    (void)out;
    if (o->root_dir != NULL && ((o->volume_plugin_dir != NULL && flex_unmount_all(&flex, e) != ERR_OK) ||
                                storage_unmount_all(o->root_dir, j->id, PATIENCE_MS, e) != ERR_OK))
        return e->code;
    return vol_pod_teardown(o->volumes, j->id, e);
}

static void remove_pod_folders(struct sweep_job *j)
{
    struct node *n = j->node;
    const struct proc_call_spec call = {
        .name = "remove leftover volumes",
        .subject = j->id,
        .fn = remove_volumes,
        .arg = j,
        .deadline_ms = 120000,
        CG_OPS(n->o.cgroups),
    };

    proc_call_start(&j->call, &call, n->o.loop, sweep_job_on_done, j);
}

static void sweep_on_csi_removed(struct op *op, const struct err *result)
{
    struct sweep_job *j = op->owner;

    if (result->code == ERR_OK)
        remove_pod_folders(j);
    else
        sweep_job_tried(j, result);
}

/* Drivers first unpublish their volumes; only then may the folders be removed. */
static void remove_pod_volumes(struct sweep_job *j)
{
    struct node *n = j->node;
    struct err e = { 0 };

    if (pods_by_uid(n, j->id) != NULL) /* a manifest now names that uid */
        sweep_job_finish(j);
    else if (n->csi == NULL || presence_is_absent(csi_has_volumes(n->csi, j->id, &e)))
        remove_pod_folders(j);
    else
        csi_remove_start(&j->csi, n->csi, j->id, NULL, 0, sweep_on_csi_removed, j);
}

bool sweep_is_left_over(struct node *n, const char *uid)
{
    return pods_by_uid(n, uid) == NULL && !foreign_has(n, uid);
}

static enum err_code list_volumes(struct node *n, struct err *e)
{
    struct strs uids = { 0 };

    if (foreign_load(n, e) != ERR_OK || vol_list_owners(n->o.volumes, &uids, e) != ERR_OK)
        return e->code;
    for (const char *const *uid = strs_list(&uids); *uid != NULL; uid++)
        if (sweep_is_left_over(n, *uid) && !sweep_has_job(n, *uid, remove_pod_volumes))
            sweep_job_new(n, *uid, "volumes", remove_pod_volumes);
    strs_done(&uids);
    return ERR_OK;
}

/* ---- namespaces: at once, a failure is for the next start ---- */

struct listing {
    struct node *node;
    const char *dir;
};

static bool remove_ns(const char *name, void *arg)
{
    const struct listing *l = arg;
    struct err e = { 0 };

    if (name[0] == '.' || pods_by_uid(l->node, name) != NULL)
        return true;
    str_auto path = str_printf("%s/%s", l->dir, name);
    if (path == NULL)
        return true;
    log_info("removing a leftover", F_STR("what", "namespaces"), F_STR("id", path));
    if (netns_remove(path, &e) != ERR_OK)
        log_warn("cannot remove leftover namespaces", F_STR("path", path), F_ERR(&e));
    return true;
}

static enum err_code list_namespaces(struct node *n, struct err *e)
{
    str_auto ns = str_printf("%s/ns", n->o.run_dir);
    struct listing l = { n, ns };

    if (ns == NULL)
        return err_nomem(e);
    return presence_is_unknown(fs_list(AT_FDCWD, ns, remove_ns, &l, e)) ? e->code : ERR_OK;
}

/* ---- records ---- */

static void remove_record(struct sweep_job *j)
{
    struct err e = { 0 };

    if (pods_by_uid(j->node, j->id) != NULL) { /* it now has its own record */
        sweep_job_finish(j);
        return;
    }
    record_remove_files(j->node, j->id, &e);
    sweep_job_tried(j, &e);
}

void sweep_record(struct node *n, const char *uid)
{
    struct err e = { 0 };

    if (record_remove_files(n, uid, &e) != ERR_OK)
        sweep_job_retry(n, uid, "pod record", remove_record, &e);
}

/* ---- cgroups ---- */

/* Its own: not of a pod with the same uid but another class. */
static bool is_cgroup_of(const struct pod *p, const char *path)
{
    struct err e = { 0 };
    char own[512];

    return p != NULL && (resources_cgroup_path(p, own, sizeof(own), &e) != ERR_OK || strcmp(own, path) == 0);
}

static void remove_cgroup(struct sweep_job *j)
{
    struct err e = { 0 };
    struct cg_tree *t = j->node->o.cgroups;
    const char *leaf = strrchr(j->id, '/');

    if (is_cgroup_of(pods_by_uid(j->node, leaf + strlen("/pod")), j->id)) {
        sweep_job_finish(j);
        return;
    }
    if (cg_kill(t, j->id, &e) == ERR_OK && cg_remove(t, j->id, &e) == ERR_OK)
        e = (struct err){ 0 };
    sweep_job_tried(j, &e);
}

static enum err_code list_cgroups(struct node *n, struct err *e)
{
    struct strs paths = { 0 };

    if (foreign_load(n, e) != ERR_OK || cg_list_pods(n->o.cgroups, &paths, e) != ERR_OK)
        return e->code;
    for (const char *const *path = strs_list(&paths); *path != NULL; path++) {
        const char *leaf = strrchr(*path, '/');
        if (leaf != NULL && str_starts(leaf, "/pod") && !foreign_has(n, leaf + 4) &&
            !is_cgroup_of(pods_by_uid(n, leaf + 4), *path) && !sweep_has_job(n, *path, remove_cgroup))
            sweep_job_new(n, *path, "cgroup", remove_cgroup);
    }
    strs_done(&paths);
    return ERR_OK;
}

void sweep_start(struct node *n)
{
    sweep_list(n, "containers", list_containers);
    sweep_network(n);
    sweep_list(n, "volumes", list_volumes);
    if (n->csi != NULL)
        csi_sweep(n->csi);
    sweep_list(n, "cgroups", list_cgroups);
    sweep_list(n, "logs", sweep_list_logs);
    sweep_list(n, "links to logs", sweep_list_log_links);
    sweep_list(n, "namespaces", list_namespaces);
    project_swept(n);
}
