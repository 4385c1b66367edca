/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/limits/hugepages.h"

#include "agent/pod/limits/limits.h"
#include "base/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define SYS_DIR "/sys/kernel/mm/hugepages"
#define PREFIX "hugepages-"

/* ---- the node ---- */

static void name_size(struct hugepages_size *s)
{
    uint64_t kib = s->page_bytes / 1024;

    if (kib % (1u << 20) == 0)
        snprintf(s->resource, sizeof(s->resource), PREFIX "%" PRIu64 "Gi", kib >> 20);
    else if (kib % (1u << 10) == 0)
        snprintf(s->resource, sizeof(s->resource), PREFIX "%" PRIu64 "Mi", kib >> 10);
    else
        snprintf(s->resource, sizeof(s->resource), PREFIX "%" PRIu64 "Ki", kib);
    /* The kernel's mem_fmt() truncates. */
    if (kib >= 1u << 20)
        snprintf(s->cgroup, sizeof(s->cgroup), "%uGB", (unsigned)(kib >> 20));
    else if (kib >= 1u << 10)
        snprintf(s->cgroup, sizeof(s->cgroup), "%uMB", (unsigned)(kib >> 10));
    else
        snprintf(s->cgroup, sizeof(s->cgroup), "%uKB", (unsigned)kib);
}

static bool hugepages_read_size(int dir, const char *name, struct hugepages_size *ret)
{
    unsigned long long kib, pages;
    str_auto file = str_printf("%s/nr_hugepages", name);
    str_auto text = NULL;
    struct err e = { 0 };
    char unit[4];

    if (file == NULL || sscanf(name, PREFIX "%llu%3s", &kib, unit) != 2 || strcmp(unit, "kB") != 0 ||
        kib == 0 || kib > UINT64_MAX >> 20 ||
        fs_read_at(dir, file, FS_SMALL_MAX, &text, NULL, &e) != ERR_OK || sscanf(text, "%llu", &pages) != 1)
        return false;
    *ret = (struct hugepages_size){ .page_bytes = kib * 1024 };
    if (__builtin_mul_overflow(ret->page_bytes, (uint64_t)pages, &ret->total_bytes))
        return false;
    name_size(ret);
    return true;
}

size_t hugepages_sizes(const struct node *n, struct hugepages_size ret[HUGEPAGES_SIZES_MAX])
{
    DIR *list = opendir(n->o.hugepages_dir != NULL ? n->o.hugepages_dir : SYS_DIR);
    size_t found = 0;

    if (list == NULL)
        return 0; /* a kernel without huge pages */
    for (struct dirent *d = readdir(list); d != NULL && found < HUGEPAGES_SIZES_MAX; d = readdir(list)) {
        struct hugepages_size s;
        size_t i = found;
        if (!hugepages_read_size(dirfd(list), d->d_name, &s))
            continue;
        for (; i > 0 && ret[i - 1].page_bytes > s.page_bytes; i--)
            ret[i] = ret[i - 1];
        ret[i] = s;
        found++;
    }
    closedir(list);
    return found;
}

uint64_t hugepages_bytes(const struct node *n)
{
    struct hugepages_size sizes[HUGEPAGES_SIZES_MAX];
    size_t count = hugepages_sizes(n, sizes);
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(sum, sizes[i].total_bytes, &sum))
            return INT64_MAX;
    return sum > INT64_MAX ? INT64_MAX : sum;
}

/* ---- a pod's requests ---- */

/* Calls fn for each request for huge pages, of the pod and of its containers, until it returns false. */
static void each_request(const struct api_pod *api, bool (*fn)(const struct api_resource *r, void *arg),
                         void *arg)
{
    const struct api_pod_spec *s = &api->spec;
    size_t total = 1 + s->n_containers + s->n_init_containers;

    for (size_t i = 0; i < total; i++) {
        const struct api_resource_list *l =
            i == 0                 ? &s->resources.requests
            : i <= s->n_containers ? &s->containers[i - 1].resources.requests
                                   : &s->init_containers[i - 1 - s->n_containers].resources.requests;
        if (i == 0 && !s->has_resources)
            continue;
        for (size_t k = 0; k < l->n; k++)
            if (str_starts(l->v[k].name, PREFIX) && !fn(&l->v[k], arg))
                return;
    }
}

size_t hugepages_pod_limits(const struct pod *p, struct cg_hugetlb ret[HUGEPAGES_SIZES_MAX])
{
    struct hugepages_size sizes[HUGEPAGES_SIZES_MAX];
    size_t n = hugepages_sizes(p->node, sizes);

    for (size_t i = 0; i < n; i++) {
        struct quantity q = resources_pod_request(p->api, sizes[i].resource);
        ret[i].bytes = quantity_value(&q);
        memcpy(ret[i].size, sizes[i].cgroup, sizeof(ret[i].size));
    }
    return n;
}

size_t hugepages_ctr_limits(const struct pod *p, const struct api_container *c,
                            struct rt_hugepages ret[HUGEPAGES_SIZES_MAX])
{
    struct hugepages_size sizes[HUGEPAGES_SIZES_MAX];
    size_t n = hugepages_sizes(p->node, sizes);

    for (size_t i = 0; i < n; i++) {
        const struct quantity *q = api_resource_get(&c->resources.limits, sizes[i].resource);
        if (q == NULL && p->api->spec.has_resources)
            q = api_resource_get(&p->api->spec.resources.limits, sizes[i].resource);
        ret[i].limit = q != NULL ? quantity_value(q) : 0;
        memcpy(ret[i].size, sizes[i].cgroup, sizeof(ret[i].size));
        ret[i].reserved =
            p->node->o.cgroups != NULL && cg_has_hugetlb_reserved(p->node->o.cgroups, ret[i].size);
    }
    return n;
}

/* ---- emptyDir ---- */

struct medium {
    uint64_t wanted; /* 0: any */
    uint64_t found;
    bool several;
};

static uint64_t page_bytes_of(const char *text)
{
    struct quantity q;
    struct err e = { 0 };

    return quantity_parse(text, &q, &e) == ERR_OK && quantity_value(&q) > 0 ? (uint64_t)quantity_value(&q)
                                                                            : 0;
}

static bool note_size(const struct api_resource *r, void *arg)
{
    struct medium *m = arg;
    uint64_t bytes = page_bytes_of(r->name + strlen(PREFIX));

    if (m->wanted != 0 && bytes != m->wanted)
        return true;
    m->several = m->several || (m->found != 0 && m->found != bytes);
    m->found = bytes;
    return true;
}

enum err_code hugepages_of_medium(const struct api_pod *api, const char *medium, uint64_t *ret_page_bytes,
                                  struct err *e)
{
    struct medium m = { 0 };

    if (str_starts(medium, "HugePages-"))
        m.wanted = page_bytes_of(medium + strlen("HugePages-"));
    each_request(api, note_size, &m);
    if (m.several)
        return err_set(e, ERR_INVALID,
                       "medium: %s can't be used if container requests multiple huge page sizes", medium);
    if (m.found == 0)
        return err_set(
            e, ERR_INVALID,
            "medium %s: hugePages storage requested, but there is no resource request for huge pages",
            medium);
    *ret_page_bytes = m.found;
    return ERR_OK;
}
