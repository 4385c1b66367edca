/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/driver_link.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/volume/csi_vol.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

struct csi_vol *csi_vol_find(const struct pod *p, const char *name)
{
    for (size_t i = 0; i < volumes_of(p)->csi.n; i++)
        if (strcmp(csi_vol_at(p, i)->name, name) == 0)
            return csi_vol_at(p, i);
    return NULL;
}

/* All that the manifest names, at once: a container that is added later may mount one of them. The array
 * never moves, since operations are in it. */
bool csi_vols_make(struct pod *p)
{
    struct pod_csi *csi = &volumes_of(p)->csi;
    size_t n = 0;

    if (csi->v != NULL)
        return true;
    for (size_t i = 0; i < p->api->spec.n_volumes; i++)
        n += p->api->spec.volumes[i].kind == API_VOL_CSI || p->api->spec.volumes[i].kind == API_VOL_CLAIM;
    if (n == 0)
        return true;
    csi->v = calloc(n, sizeof(csi->v[0]));
    csi->known = calloc(n, sizeof(csi->known[0]));
    if (csi->v == NULL || csi->known == NULL)
        goto no_memory;
    for (size_t i = 0; i < p->api->spec.n_volumes; i++) {
        const struct api_volume *api = &p->api->spec.volumes[i];
        struct csi_vol *v = &csi->v[csi->n];

        if (api->kind != API_VOL_CSI && api->kind != API_VOL_CLAIM)
            continue;
        *v = (struct csi_vol){ .pod = p,
                               .name = strdup(api->name),
                               .ephemeral = api->kind == API_VOL_CSI,
                               .since_ns = clock_wall_ns() };
        csi->n++;
        if (v->name == NULL)
            goto no_memory;
    }
    return true;
no_memory:
    csi_vols_free(p);
    return false;
}

static void forget_names(struct csi_vol *v)
{
    free(take_ptr(&v->spec_name));
    free(take_ptr(&v->driver));
    free(take_ptr(&v->handle));
    free(take_ptr(&v->staging));
}

void csi_vols_free(struct pod *p)
{
    struct pod_csi *csi = &volumes_of(p)->csi;

    for (size_t i = 0; i < csi->n; i++) {
        csi_described_done(&csi->v[i].described);
        csi_described_done(&csi->v[i].grown);
        csi_usage_free(&csi->v[i].usage);
        forget_names(&csi->v[i]);
        free(csi->v[i].name);
    }
    free(take_ptr(&csi->v));
    free(take_ptr(&csi->known));
    free(take_ptr(&csi->remove));
    csi->n = 0;
}

const struct api_generic *csi_pv_of(const struct pod *p, const struct api_volume *v)
{
    struct driver_bound bound = { 0 };

    if (v->kind != API_VOL_CLAIM || driver_bound(p, v, &bound, ERR_IGNORED) != ERR_OK ||
        bound.volume == NULL || bound.volume->pv == NULL || bound.volume->pv->storage.kind != API_STORAGE_CSI)
        return NULL;
    return bound.volume;
}

static bool take_names(struct csi_vol *v, const char *spec_name, const char *driver, const char *handle)
{
    const struct csi_id id = { .driver = driver,
                               .handle = handle,
                               .spec_name = spec_name,
                               .block = v->block,
                               .ephemeral = v->ephemeral };
    struct arena memory = { 0 };
    struct csi_paths paths;
    bool ok;

    v->spec_name = strdup(spec_name);
    v->driver = strdup(driver);
    v->handle = strdup(handle);
    ok = v->spec_name != NULL && v->driver != NULL && v->handle != NULL;
    if (ok && !v->ephemeral &&
        csi_paths_make(&paths, v->pod->node->o.root_dir, &id, NULL, &memory, ERR_IGNORED) == ERR_OK)
        v->staging = strdup(paths.staging); /* NULL: a volume with this path cannot be staged, either */
    arena_done(&memory);
    if (!ok)
        forget_names(v);
    return ok;
}

enum err_code csi_vol_resolve(struct csi_vol *v, const struct api_volume *api, struct err *e)
{
    char handle[CSI_HASHED_SIZE];
    const struct api_generic *pv;

    if (v->spec_name != NULL)
        return ERR_OK;
    if (v->ephemeral) {
        csi_inline_handle(v->pod->uid, api->name, handle);
        return take_names(v, api->name, api->csi_driver, handle) ? ERR_OK : err_nomem(e);
    }
    pv = csi_pv_of(v->pod, api);
    if (pv == NULL)
        return err_set(e, ERR_NOT_FOUND, "not a volume of a CSI driver");
    v->block = api_pv_is_block(pv->pv);
    return take_names(v, pv->meta.name, pv->pv->storage.driver, pv->pv->storage.handle) ? ERR_OK
                                                                                        : err_nomem(e);
}
