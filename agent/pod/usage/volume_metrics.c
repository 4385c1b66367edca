/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet_volume_stats_*: how full the volumes of claims are. A claim that several pods have is there once,
 * as in kubelet (pkg/kubelet/metrics/collectors/volume_stats.go). */
#include "agent/pod/core/claim_link.h"
#include "agent/pod/core/usage_text.h"
#include "agent/pod/usage/claim_usage.h"
#include "agent/pod/usage/usage.h"
#include "base/array.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "kubelet_volume_stats_"

struct row {
    const char *namespace_; /* of the pod: nothing turns the loop meanwhile */
    char claim[256];
    struct fs_usage usage;
};

struct rows {
    struct row *v;
    size_t n;
};

static bool has(const struct rows *all, const char *namespace_, const char *claim)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->v[i].claim, claim) == 0 && strcmp(all->v[i].namespace_, namespace_) == 0)
            return true;
    return false;
}

static void add(struct rows *all, const struct pod *p, const struct api_volume *v)
{
    struct row row = { .namespace_ = p->api->meta.namespace };

    if (v->kind != API_VOL_CLAIM ||
        claim_name(p, v, row.claim, sizeof(row.claim)) >= (int)sizeof(row.claim) ||
        has(all, row.namespace_, row.claim))
        return;
    if (!claim_usage(p, v, &row.usage) || (!row.usage.sized && !row.usage.has_health))
        return;
    if (array_room(all->v, all->n)) /* without memory it is missing on this page */
        all->v[all->n++] = row;
}

static void put_row(struct buf *out, const char *name, const struct row *row, uint64_t value)
{
    buf_addf(out, PREFIX "%s{", name);
    usage_label(out, "namespace", row->namespace_, true);
    usage_label(out, "persistentvolumeclaim", row->claim, false);
    buf_adds(out, "} ");
    usage_value(out, value, UNIT_ONE);
    buf_addc(out, '\n');
}

static void put_head(struct buf *out, const char *name, const char *help)
{
    buf_addf(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s gauge\n", name, help, name);
}

static void put_sizes(struct buf *out, const struct rows *all)
{
    static const struct {
        const char *name, *help;
        size_t offset; /* of a uint64_t in struct fs_usage */
    } families[] = {
        { "capacity_bytes", "Capacity of the volume.", offsetof(struct fs_usage, capacity_bytes) },
        { "available_bytes", "Bytes that are free in the volume.",
          offsetof(struct fs_usage, available_bytes) },
        { "used_bytes", "Bytes that are used in the volume.", offsetof(struct fs_usage, used_bytes) },
        { "inodes", "Inodes that the volume can have.", offsetof(struct fs_usage, inodes) },
        { "inodes_free", "Inodes that are free in the volume.", offsetof(struct fs_usage, inodes_free) },
        { "inodes_used", "Inodes that are used in the volume.", offsetof(struct fs_usage, inodes_used) },
    };

    for (size_t f = 0; f < ARRAY_LEN(families); f++) {
        bool begun = false;

        for (size_t i = 0; i < all->n; i++) {
            uint64_t value;

            if (!all->v[i].usage.sized)
                continue;
            if (!begun)
                put_head(out, families[f].name, families[f].help);
            begun = true;
            memcpy(&value, (const char *)&all->v[i].usage + families[f].offset, sizeof(value));
            put_row(out, families[f].name, &all->v[i], value);
        }
    }
}

static void put_health(struct buf *out, const struct rows *all)
{
    bool begun = false;

    for (size_t i = 0; i < all->n; i++) {
        if (!all->v[i].usage.has_health)
            continue;
        if (!begun)
            put_head(out, "health_status_abnormal", "1: the driver reports a problem of the volume.");
        begun = true;
        put_row(out, "health_status_abnormal", &all->v[i], all->v[i].usage.abnormal);
    }
}

void volume_metrics(struct node *n, struct buf *out)
{
    struct rows all = { 0 };

    pods_each (n, p)
        for (size_t i = 0; i < p->api->spec.n_volumes; i++)
            add(&all, p, &p->api->spec.volumes[i]);
    put_sizes(out, &all);
    put_health(out, &all);
    free(all.v);
}
