/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of volumes/csi to the node: whether a pod needs a volume, and which volume a folder belongs to. */
#include "agent/pod/core/events.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/leftovers/sweep.h"
#include "agent/pod/volume/csi_vol.h"
#include "agent/pod/volume/csi_volumes.h"
#include "agent/pod/volume/volumes.h"
#include "base/log.h"
#include "base/utf8.h"
#include "volumes/csi/place.h"

#include <fcntl.h>
#include <string.h>

static bool wants(const struct pod *p)
{
    return p->state != POD_TERMINATING && p->state != POD_TERMINATED && !volumes_of(p)->csi.removed;
}

static bool is_wanted(const char *staging, void *arg)
{
    const struct node *n = arg;

    pods_each (n, p)
        for (size_t i = 0; wants(p) && i < volumes_of(p)->csi.n; i++) {
            const struct csi_vol *v = csi_vol_at(p, i);

            if (str_eq(v->staging, staging) && volumes_is_mounted(p, v->name))
                return true;
        }
    return false;
}

/* ---- a volume for one pod ---- */

struct look {
    const struct csi_vol *v;
    bool found;
};

static bool look_at_pod(const char *uid, void *arg)
{
    const struct csi_vol *v = ((struct look *)arg)->v;
    const struct csi_id id = { v->driver, v->handle, v->spec_name, v->block, v->ephemeral };
    struct arena memory = { 0 };
    struct csi_paths paths;
    struct presence at;

    if (strcmp(uid, v->pod->uid) == 0 ||
        csi_paths_make(&paths, v->pod->node->o.root_dir, &id, uid, &memory, ERR_IGNORED) != ERR_OK) {
        arena_done(&memory);
        return true;
    }
    at = fs_look_at(AT_FDCWD, v->block ? paths.link : paths.folder, NULL, ERR_IGNORED);
    if (!presence_is_absent(at)) /* an unknown one may be there */
        ((struct look *)arg)->found = true;
    arena_done(&memory);
    return !((struct look *)arg)->found;
}

bool csi_vol_is_elsewhere(const struct csi_vol *v)
{
    struct look l = { .v = v };
    str_auto pods = str_printf("%s/pods", v->pod->node->o.root_dir);

    pods_each (v->pod->node, p)
        for (size_t i = 0; p != v->pod && i < volumes_of(p)->csi.n; i++)
            if (str_eq(csi_vol_at(p, i)->staging, v->staging) && csi_vol_at(p, i)->state != CSI_VOL_NONE &&
                !volumes_of(p)->csi.removed)
                return true;
    if (pods == NULL || presence_is_unknown(fs_list(AT_FDCWD, pods, look_at_pod, &l, ERR_IGNORED)))
        return true;
    return l.found;
}

/* ---- a volume whose file is lost ---- */

struct search {
    const struct node *node;
    const char *device;
    struct csi_id *ret;
    bool found;
};

static void look_at_volume(const struct api_object *o, void *arg)
{
    struct search *s = arg;
    const struct api_pv *pv = o->generic->pv;
    struct arena memory = { 0 };
    struct csi_paths paths;
    struct csi_id id;

    if (s->found || pv == NULL || pv->storage.kind != API_STORAGE_CSI)
        return;
    id = (struct csi_id){ pv->storage.driver, pv->storage.handle, o->generic->meta.name, api_pv_is_block(pv),
                          false };
    if (csi_paths_make(&paths, s->node->o.root_dir, &id, NULL, &memory, ERR_IGNORED) == ERR_OK &&
        strcmp(paths.device, s->device) == 0) {
        *s->ret = id;
        s->found = true;
    }
    arena_done(&memory);
}

static bool find_device(const char *device, struct csi_id *ret, void *arg)
{
    struct search s = { .node = arg, .device = device, .ret = ret };

    src_store_each(s.node->o.store, API_KIND_PERSISTENT_VOLUME, look_at_volume, &s);
    return s.found;
}

/* ---- the node's drivers ---- */

static void on_driver(const char *driver, bool here, void *arg)
{
    struct node *n = arg;

    (void)driver;
    if (n->cluster != NULL && n->cluster->drivers_changed != NULL)
        n->cluster->drivers_changed(n->cluster->arg);
    if (!here)
        return;
    pods_each (n, p) {
        csi_volumes_retry(p);
        csi_removal_retry(p);
    }
    sweep_hurry(n);
}

/* A label of the Node that has another value: in kubelet's words. Without the Node's labels a driver may
 * register; then the cluster gets it as soon as possible. */
static enum err_code admit(const char *driver, const struct csi_node_info *info, void *arg, struct err *e)
{
    const struct node *n = arg;

    (void)driver;
    for (size_t i = 0; n->served_labels != NULL && i < info->topology.n; i++) {
        const struct csi_pair *pair = &info->topology.v[i];
        const char *has = api_kvs_get(n->served_labels, pair->key);

        if (has != NULL && strcmp(has, pair->value) != 0)
            return err_set(e, ERR_PRECONDITION,
                           "error updating Node object with CSI driver node info: error updating node: timed "
                           "out waiting for the condition; caused by: detected topology value collision: "
                           "driver reported \"%.80s\":\"%.63s\" but existing label is \"%.80s\":\"%.63s\"",
                           pair->key, pair->value, pair->key, has);
    }
    return ERR_OK;
}

static enum err_code let_go(const char *pod_uid, void *arg, struct err *e)
{
    const struct node *n = arg;

    return vol_sub_paths_unmount(n->o.volumes, pod_uid, e);
}

/* A drain waits for the volumes as for other leftovers. */
static void on_releasing(bool begins, void *arg)
{
    struct node *n = arg;

    if (begins)
        n->sweeps++;
    else
        n->sweeps--;
    if (begins)
        return;
    if (n->cluster != NULL && n->cluster->node_changed != NULL) /* volumesInUse of its status */
        n->cluster->node_changed(n->cluster->arg);
    node_check_idle(n);
}

/* Of the node: the pods that had the volume are gone, or have released it. */
static void not_released(const struct csi_id *id, const struct err *why, void *arg)
{
    char text[sizeof(why->text)];

    (void)id; /* the text names it */
    snprintf(text, sizeof(text), "%s", why->text);
    text_printable(text);
    node_event(arg, true, "FailedUnMount", text);
}

void csi_volumes_open(struct node *n)
{
    const struct csi_options o = {
        .loop = n->o.loop,
        .root_dir = n->o.root_dir,
        .node_name = n->o.node_name,
        .cgroup_fd = n->o.cgroups != NULL ? cg_leaf_fd(n->o.cgroups, CG_LEAF_OPS) : -1,
        .cgroup_procs = n->o.cgroups != NULL ? cg_leaf_procs(n->o.cgroups, CG_LEAF_OPS) : NULL,
        .admit = admit,
        .changed = on_driver,
        .let_go = let_go,
        .wanted = is_wanted,
        .find = find_device,
        .not_released = not_released,
        .releasing = on_releasing,
        .arg = n,
    };
    struct err e = { 0 };

    if (n->o.root_dir == NULL || n->o.node_name == NULL)
        return;
    if (csi_open(&n->csi, &o, &e) != ERR_OK)
        log_error("CSI drivers cannot be served", F_ERR(&e));
}
