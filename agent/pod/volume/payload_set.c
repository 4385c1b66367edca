/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/payload_set.h"

#include "agent/pod/core/facts.h"

#include <stdlib.h>

struct payload_of { /* a volume */
    bool is_member;
    const struct api_volume *volume;
    struct payload built;
    struct vol_payload payload;
    struct payload_result result;
};

struct payload_set {
    struct vol_node *node;
    struct api_pod *api; /* paths of files and names of volumes are borrowed from it */
    struct arena arena;
    bool tidies;
    size_t n;
    struct payload_of of[];
};

/* As programs find it under kubelet: ConfigMaps on disk, the others on a tmpfs with its default mode. */
static mode_t root_mode(const struct api_volume *v)
{
    return !v->projected && v->n_sources == 1 && v->sources[0].kind == API_SRC_CONFIG_MAP ? 0777 : 01777;
}

static struct payload_set *payload_set_make(struct pod *p)
{
    const struct api_pod_spec *spec = &p->api->spec;
    struct payload_set *s = calloc(1, sizeof(*s) + spec->n_volumes * sizeof(s->of[0]));

    if (s == NULL)
        return NULL;
    s->node = p->node->o.volumes;
    s->api = api_pod_ref(p->api);
    s->n = spec->n_volumes;
    for (size_t i = 0; i < s->n; i++) {
        const struct api_volume *v = &spec->volumes[i];

        s->of[i].is_member = v->kind == API_VOL_PAYLOAD && volumes_is_mounted(p, v->name);
        s->of[i].volume = v;
        s->of[i].payload = (struct vol_payload){
            .uid = p->uid,
            .name = v->name,
            .fs_group = spec->security.has_fs_group ? spec->security.fs_group : -1,
            .root_mode = root_mode(v),
            .ret_kept = &s->of[i].result.kept,
        };
    }
    return s;
}

struct payload_set *payload_set_new(struct pod *p)
{
    struct payload_set *s = payload_set_make(p);

    for (size_t i = 0; s != NULL && i < s->n; i++) {
        struct payload_of *of = &s->of[i];

        if (!of->is_member || payload_build(p, of->volume, &s->arena, &of->built, &of->result.e) != ERR_OK)
            continue;
        of->payload.files = of->built.files;
        of->payload.n_files = of->built.n_files;
        of->result.renew_at = of->built.renew_at;
    }
    return s;
}

struct payload_set *payload_set_new_tidy(struct pod *p)
{
    struct payload_set *s = payload_set_make(p);

    if (s != NULL)
        s->tidies = true;
    return s;
}

static bool is_written(const struct payload_of *of)
{
    return of->is_member && of->result.e.code == ERR_OK;
}

/* The entries below the set's volumes; true if those of one that is written are too many. */
static bool payload_set_count(const struct payload_set *s, size_t *ret)
{
    bool large = false;

    *ret = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct payload_of *of = &s->of[i];
        size_t n = of->is_member ? vol_payload_entries(s->node, of->payload.uid, of->payload.name) : 0;

        *ret += n;
        large = large || (is_written(of) && n >= VOL_LARGE_ENTRIES);
    }
    return large;
}

bool payload_set_is_large(const struct payload_set *s, size_t *entries)
{
    size_t adds = 0;
    bool large = false;

    for (size_t i = 0; i < s->n; i++)
        if (is_written(&s->of[i])) {
            large = large || vol_payload_is_large(&s->of[i].payload);
            adds += s->tidies ? 0 : vol_payload_adds(&s->of[i].payload);
        }
    if (!large && (*entries == 0 || *entries >= VOL_LARGE_ENTRIES))
        large = payload_set_count(s, entries);
    *entries = large ? 0 : *entries + adds;
    return large;
}

void payload_set_write(struct payload_set *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct payload_of *of = &s->of[i];
        struct payload_result *r = &of->result;

        if (!is_written(of))
            continue;
        if (s->tidies)
            vol_payload_tidy(s->node, of->payload.uid, of->payload.name, &r->kept);
        else if (payload_find_overlaps(of->volume, &of->built, &s->arena, &r->overlaps, &r->e) == ERR_OK)
            ERR_IGNORE(vol_payload_publish(s->node, &of->payload, &r->changed, &r->e));
    }
}

const struct payload_result *payload_set_result(const struct payload_set *s, size_t volume)
{
    return volume < s->n && s->of[volume].is_member ? &s->of[volume].result : NULL;
}

void payload_set_free(struct payload_set *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++)
        payload_done(&s->of[i].built);
    arena_done(&s->arena);
    api_pod_unref(s->api);
    free(s);
}
