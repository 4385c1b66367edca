/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/limits/hugepages.h"

#include "agent/pod/limits/internal.h"
#include "agent/pod/limits/limits.h"
#include "base/files/fs.h"
#include "base/files/patience.h"
#include "base/log.h"

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

struct hugepages_look {
    const char *dir;
    struct hugepages_size *sizes;
    size_t n;
    struct err *e;
};

static bool hugepages_add_size(const char *name, void *arg)
{
    struct hugepages_look *l = arg;
    unsigned long long kib, pages;
    str_auto file = str_printf("%s/%s/nr_hugepages", l->dir, name);
    str_auto text = NULL;
    struct hugepages_size s;
    struct presence found;
    size_t i = l->n;
    char unit[4];

    if (file == NULL) {
        err_nomem(l->e);
        return false;
    }
    if (sscanf(name, PREFIX "%llu%3s", &kib, unit) != 2 || strcmp(unit, "kB") != 0 || kib == 0 ||
        kib > UINT64_MAX >> 20)
        return true;
    found = fs_read_if_there(AT_FDCWD, file, FS_SMALL_MAX, &text, NULL, l->e);
    if (presence_is_unknown(found))
        return false;
    s = (struct hugepages_size){ .page_bytes = kib * 1024 };
    if (presence_is_absent(found) || sscanf(text, "%llu", &pages) != 1 ||
        __builtin_mul_overflow(s.page_bytes, (uint64_t)pages, &s.total_bytes))
        return true;
    name_size(&s);
    for (; i > 0 && l->sizes[i - 1].page_bytes > s.page_bytes; i--)
        l->sizes[i] = l->sizes[i - 1];
    l->sizes[i] = s;
    return ++l->n < HUGEPAGES_SIZES_MAX;
}

/* The last value is kept for failed reads: without such pages a pod is refused for good. */
static enum err_code hugepages_look(const struct node *n, struct err *e)
{
    struct limits_node *part = limits_node(n);
    struct hugepages_size sizes[HUGEPAGES_SIZES_MAX] = { 0 };
    struct hugepages_look l = { .dir = n->o.hugepages_dir != NULL ? n->o.hugepages_dir : SYS_DIR,
                                .sizes = sizes,
                                .e = e };

    /* A kernel without huge pages lacks this folder. */
    if (presence_is_unknown(fs_list(AT_FDCWD, l.dir, hugepages_add_size, &l, e)) || e->code != ERR_OK)
        return e->code;
    memcpy(part->sizes, sizes, l.n * sizeof(sizes[0]));
    part->n_sizes = l.n;
    return ERR_OK;
}

void hugepages_open(struct node *n)
{
    struct patience patience = { 0 };
    struct err e;

    do {
        e = (struct err){ 0 };
    } while (hugepages_look(n, &e) != ERR_OK && patience_wait(&patience));
    if (e.code != ERR_OK)
        log_warn("cannot read the huge pages of this machine", F_ERR(&e));
}

size_t hugepages_sizes(const struct node *n, struct hugepages_size ret[HUGEPAGES_SIZES_MAX])
{
    const struct limits_node *part = limits_node(n);
    struct err e = { 0 };

    if (hugepages_look(n, &e) != ERR_OK)
        log_debug("huge pages are those that were seen last", F_ERR(&e));
    memcpy(ret, part->sizes, part->n_sizes * sizeof(ret[0]));
    return part->n_sizes;
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
