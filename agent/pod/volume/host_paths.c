/* SPDX-License-Identifier: Apache-2.0 */
/* The host paths of a pod's volumes, checked in a child: they may hang. */
#include "agent/pod/core/facts.h"
#include "agent/pod/volume/internal.h"
#include "agent/pod/volume/volumes.h"

#include <string.h>
#include <sys/mman.h>

#define HOST_PATH_DEADLINE_MS 30000

/* The path that the child has to examine: a hostPath, or a claim's. False: none. */
static bool place_of(const struct pod *p, const struct api_volume *v, struct claim_place *ret)
{
    if (!volumes_is_mounted(p, v->name))
        return false;
    *ret = (struct claim_place){ .path = v->host_path, .type = v->host_path_type };
    return v->kind == API_VOL_HOST_PATH ||
           (v->kind == API_VOL_CLAIM && claim_place(p, v, ret, ERR_IGNORED) == ERR_OK && ret->path != NULL);
}

/* The agent's own folder gets the pod's group, with all that is in it (fsGroup). */
static bool group_differs(const struct pod *p, const struct claim_place *at)
{
    const struct api_pod_security *s = &p->api->spec.security;

    return s->has_fs_group && claim_place_is_own(at) && !vol_group_is(at->path, s->fs_group);
}

static bool path_is_known(const struct pod *p, const struct claim_place *at)
{
    return !claim_place_is_own(at) ? vol_host_path_known(at->path, at->type) : !group_differs(p, at);
}

static enum err_code check_path(const struct pod *p, const struct claim_place *at, struct err *e)
{
    if (!claim_place_is_own(at))
        return vol_host_path_check(at->path, at->type, e);
    return group_differs(p, at) ? vol_group_set(at->path, p->api->spec.security.fs_group, e) : ERR_OK;
}

static enum err_code check_host_paths(const void *arg, struct buf *out, struct err *e)
{
    const struct pod *p = arg;
    const struct pod_volumes *vols = volumes_of(p);

    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *v = &p->api->spec.volumes[i];
        struct claim_place at;

        if (!place_of(p, v, &at))
            continue;
        if (vols->vols_at != NULL) /* names the path if the check hangs */
            *(volatile unsigned *)vols->vols_at = (unsigned)i + 1;
        if (check_path(p, &at, e) != ERR_OK) {
            buf_addf(out, "%s\n%s", v->name, e->text); /* volume name and bare text, for an event */
            return e->code;
        }
    }
    return ERR_OK;
}

void host_paths_checking(const struct pod *p, char *ret, size_t size)
{
    const struct pod_volumes *vols = volumes_of(p);
    unsigned at = vols->vols_at != NULL ? *(volatile unsigned *)vols->vols_at : 0;
    struct claim_place place;

    ret[0] = '\0';
    if (vols->vols == VOLS_SETTING_UP && at > 0 && at <= p->api->spec.n_volumes &&
        place_of(p, &p->api->spec.volumes[at - 1], &place))
        snprintf(ret, size, "host path %.300s of volume \"%s\"", place.path,
                 p->api->spec.volumes[at - 1].name);
}

bool host_paths_known(const struct pod *p)
{
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        struct claim_place at;

        if (place_of(p, &p->api->spec.volumes[i], &at) && !path_is_known(p, &at))
            return false;
    }
    return true;
}

void host_paths_check_start(struct pod *p, op_done_fn done)
{
    struct pod_volumes *vols = volumes_of(p);
    const struct proc_call_spec call = {
        .name = "check host paths",
        .subject = p->key,
        .fn = check_host_paths,
        .arg = p,
        .out_max = 1024,
        .deadline_ms = HOST_PATH_DEADLINE_MS,
        CG_OPS(p->node->o.cgroups),
        .moves_late = true,
    };

    vols->vols_at =
        mmap(NULL, sizeof(*vols->vols_at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (vols->vols_at == MAP_FAILED)
        vols->vols_at = NULL; /* a hanging path cannot be named then */
    proc_call_start(&vols->vols_call, &call, p->node->o.loop, done, p);
}

const char *host_paths_problem(const struct pod *p, const struct err *result, struct err *e)
{
    const struct pod_volumes *vols = volumes_of(p);
    char *newline = strchr(vols->vols_call.out.p, '\n');
    unsigned at = vols->vols_at != NULL ? *vols->vols_at : 0;
    const struct api_volume *v;
    struct claim_place place;

    *e = *result;
    if (newline != NULL) {
        *newline = '\0';
        snprintf(e->text, sizeof(e->text), "%s", newline + 1);
        return vols->vols_call.out.p;
    }
    /* The child did not answer. */
    v = at > 0 && at <= p->api->spec.n_volumes ? &p->api->spec.volumes[at - 1] : NULL;
    if (v != NULL && e->code == ERR_DEADLINE && place_of(p, v, &place))
        err_set(e, ERR_DEADLINE, "host path %.300s does not answer: %.100s", place.path, result->text);
    return v != NULL ? v->name : "host path";
}

void host_paths_check_done(struct pod *p)
{
    struct pod_volumes *vols = volumes_of(p);

    if (vols->vols_at != NULL)
        munmap(take_ptr(&vols->vols_at), sizeof(*vols->vols_at));
}
