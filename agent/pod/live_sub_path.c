#include "agent/pod/live_sub_path.h"
#include "agent/api/on_change.h"
#include "agent/pod/env.h"
#include "agent/pod/userns.h"
#include "agent/runtime/live_mount.h"
#include "base/log.h"

#include <string.h>

#define DEADLINE_MS 30000
#define PATH_SIZE 1024

/* NULL: it is another kind of volume. */
static const struct api_volume *payload_of(const struct pod *p, const struct api_volume_mount *vm)
{
    const struct api_volume *v = api_volume_find(&p->api->spec, vm->name);

    return v != NULL && v->kind == API_VOL_PAYLOAD ? v : NULL;
}

static bool has_any(const struct ctr *c)
{
    for (size_t i = 0; i < c->spec->n_mounts; i++)
        if (api_mount_has_sub_path(&c->spec->mounts[i]) && payload_of(c->pod, &c->spec->mounts[i]) != NULL)
            return true;
    return false;
}

static enum err_code gather(const struct ctr *c, struct arena *a, struct live_mounts *l, struct err *e)
{
    const struct pod *p = c->pod;
    struct live_mount *v = arena_alloc(a, (c->spec->n_mounts + 1) * sizeof(*v));
    struct env env = { 0 };
    char path[PATH_SIZE];

    if (v == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < c->spec->n_mounts && l->n < LIVE_MOUNTS_MAX; i++) {
        const struct api_volume_mount *vm = &c->spec->mounts[i];
        const struct api_volume *volume = payload_of(p, vm);
        const char *sub, *missing = NULL;

        if (volume == NULL || !api_mount_has_sub_path(vm))
            continue;
        if (vm->sub_path_expr != NULL && env.v == NULL && env_build(p, c->spec, a, &env, e) != ERR_OK)
            return e->code;
        sub = env_sub_path(vm, &env, a, &missing);
        if (missing != NULL || sub == NULL || sub[0] == '\0')
            continue;
        if (volumes_host_path(p, volume, path, sizeof(path), e) != ERR_OK)
            return e->code;
        v[l->n] = (struct live_mount){ .volume_path = arena_strdup(a, path),
                                       .sub = sub,
                                       .destination = vm->mount_path };
        if (v[l->n++].volume_path == NULL)
            return err_nomem(e);
    }
    l->v = v;
    return ERR_OK;
}

/* In the child, on what it has of the pod as of its fork. */
static enum err_code follow(const void *arg, struct buf *out, struct err *e)
{
    const struct ctr *c = arg;
    const struct pod *p = c->pod;
    struct arena a = { 0 }; /* goes with the process */
    struct live_mounts l = { .id = c->cur.id, .pid = c->live_pid };
    char userns[300];

    (void)out;
    if (userns_wanted(p)) {
        snprintf(userns, sizeof(userns), "%s/user", p->netns_dir);
        l.userns = userns;
    }
    if (gather(c, &a, &l, e) != ERR_OK || l.n == 0)
        return e->code;
    return live_mounts_follow(&l, e);
}

static void on_followed(struct op *op, const struct err *result)
{
    struct pod *p = op->owner;
    const struct ctr *c = p->live_ctr;

    p->live_ctr = NULL;
    if (result->code != ERR_OK && result->code != ERR_CANCELLED && result->code != ERR_NOT_FOUND) {
        log_warn("subPath mounts of a container do not follow their volume", F_STR("pod", p->key),
                 F_STR("containerName", c->spec->name), F_ERR(result));
        pod_event(p, c, true, "SubPathNotFollowed", "A subPath mount keeps its old content: %s",
                  result->text);
    }
    pod_wake(p);
}

void live_sub_path_due(struct pod *p)
{
    for (size_t i = 0; i < p->n_ctrs; i++)
        p->ctrs[i].live_due = true;
}

void live_sub_path_step(struct pod *p)
{
    bool live;

    if (op_live(&p->live_call.op) || p->vols != VOLS_READY ||
        !api_live_sub_path_parse(api_kvs_get(&p->api->meta.annotations, API_SUB_PATH), &live) || !live)
        return;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        struct ctr *c = &p->ctrs[i];
        struct proc_call_spec call = {
            .name = "follow sub paths",
            .subject = p->key,
            .fn = follow,
            .arg = c,
            .deadline_ms = DEADLINE_MS,
            .cgroup_fd = cg_leaf_fd(p->node->o.cgroups, CG_LEAF_OPS),
            .cgroup_procs = cg_leaf_procs(p->node->o.cgroups, CG_LEAF_OPS),
        };
        struct rt_state s;

        if (!c->live_due || c->state != CTR_RUNNING)
            continue;
        c->live_due = false;
        if (!has_any(c))
            continue;
        rt_state(p->node->rt, c->cur.id, &s);
        if (s.phase != RT_RUNNING)
            continue;
        c->live_pid = s.pid;
        p->live_ctr = c;
        proc_call_start(&p->live_call, &call, p->node->o.loop, on_followed, p);
        return;
    }
}
