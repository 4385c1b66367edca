/* SPDX-License-Identifier: Apache-2.0 */
/* ctr_devices - additions of a container's devices to its configuration (agent/pod/device): environment,
 * mounts, nodes and annotations, each before the container's own. */
#include "agent/pod/container/internal.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/device/devices.h"
#include "agent/pod/env/env.h"

#include <limits.h>

static const char *const *environment(const struct dp_answer *d, struct arena *a)
{
    const char **v = arena_alloc(a, (d->n_envs + 1) * sizeof(*v));

    for (size_t i = 0; v != NULL && i < d->n_envs; i++)
        if ((v[i] = arena_printf(a, "%s=%s", d->envs[i].name, d->envs[i].value)) == NULL)
            return NULL;
    return v;
}

/* A block device of a volume; its mode is the host's, as with containerd. */
static enum err_code volume_node(const struct ctr *c, const struct api_volume_device *d, struct arena *a,
                                 struct rt_device *ret, struct err *e)
{
    const struct api_volume *v = api_volume_find(&c->pod->api->spec, d->name);
    char path[PATH_MAX];
    bool read_only = false;

    if (v == NULL)
        return err_set(e, ERR_INVALID, "volume \"%s\" of container \"%s\" does not exist", d->name,
                       c->spec->name);
    if (volumes_device_path(c->pod, v, path, sizeof(path), &read_only, e) != ERR_OK)
        return e->code;
    *ret = (struct rt_device){ .host_path = arena_strdup(a, path),
                               .container_path = d->path,
                               .permissions = read_only ? "r" : "mrw" };
    return ret->host_path != NULL ? ERR_OK : err_nomem(e);
}

static enum err_code add_nodes(const struct ctr *c, const struct dp_answer *d, struct arena *a,
                               struct rt_config *config, struct err *e)
{
    struct rt_device *v = arena_alloc(a, (d->n_nodes + c->spec->n_devices + 1) * sizeof(*v));

    if (v == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < d->n_nodes; i++)
        v[i] = (struct rt_device){ .host_path = d->nodes[i].host_path,
                                   .container_path = d->nodes[i].container_path,
                                   .permissions = d->nodes[i].permissions };
    for (size_t i = 0; i < c->spec->n_devices; i++)
        if (volume_node(c, &c->spec->devices[i], a, &v[d->n_nodes + i], e) != ERR_OK)
            return e->code;
    config->devices = v;
    config->n_devices = d->n_nodes + c->spec->n_devices;
    return ERR_OK;
}

static enum err_code add_annotations(const struct dp_answer *d, struct arena *a, struct rt_config *config,
                                     struct err *e)
{
    struct rt_annotation *v = arena_alloc(a, (d->n_annotations + 1) * sizeof(*v));

    if (v == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < d->n_annotations; i++)
        v[i] = (struct rt_annotation){ d->annotations[i].name, d->annotations[i].value };
    config->annotations = v;
    config->n_annotations = d->n_annotations;
    return ERR_OK;
}

enum err_code ctr_devices_add(struct ctr *c, struct arena *a, struct rt_config *config, struct dp_answer *ret,
                              struct err *e)
{
    if (devices_of_ctr(c, a, ret, e) != ERR_OK || add_nodes(c, ret, a, config, e) != ERR_OK ||
        add_annotations(ret, a, config, e) != ERR_OK)
        return e->code;
    config->device_env = environment(ret, a);
    return config->device_env != NULL ? ERR_OK : err_nomem(e);
}

/* kubelet makes them private, and containerd makes a folder where the source is missing. */
size_t ctr_devices_mounts(const struct dp_answer *d, struct rt_mount *ret)
{
    for (size_t i = 0; i < d->n_mounts; i++)
        ret[i] = (struct rt_mount){ .source = d->mounts[i].host_path,
                                    .destination = d->mounts[i].container_path,
                                    .read_only = d->mounts[i].read_only,
                                    .propagation = "rprivate",
                                    .device = true,
                                    .make_source = true };
    return d->n_mounts;
}

/* The variables of $(NAME) in commands and subPathExpr: the container's own variables, and those of its
 * devices. */
enum err_code ctr_devices_env(const struct dp_answer *d, const struct env *own, struct arena *a,
                              struct env *ret, struct err *e)
{
    size_t n = 0;

    *ret = *own;
    if (d->n_envs == 0)
        return ERR_OK;
    ret->v = arena_alloc(a, (own->n + d->n_envs) * sizeof(*ret->v));
    if (ret->v == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < own->n; i++)
        ret->v[n++] = own->v[i];
    for (size_t i = 0; i < d->n_envs; i++) {
        if (env_get(own, d->envs[i].name) != NULL)
            continue;
        ret->v[n].name = (char *)(uintptr_t)d->envs[i].name;
        ret->v[n++].value = (char *)(uintptr_t)d->envs[i].value;
    }
    ret->n = n;
    return ERR_OK;
}
