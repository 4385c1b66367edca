/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the machine's description below /sys (Documentation/ABI/stable/sysfs-devices-system-cpu and -node).
 */
#include "agent/placement/machine.h"
#include "base/files/fs.h"
#include "base/parse.h"
#include "base/scope.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_MAX 16384 /* bytes; the longest list of processors has half of that */

struct reading {
    int dir; /* devices/system */
    struct pl_machine *m;
    struct err *e;
};

static void trim(char *text)
{
    text[strcspn(text, "\n")] = '\0';
}

/* Reads a list of processors; *ret is `otherwise` if there is no such file. */
static enum err_code read_cpus(const struct reading *r, const char *path, const struct cpus *otherwise,
                               struct cpus *ret)
{
    str_auto text = NULL;
    struct presence there = fs_read_if_there(r->dir, path, FILE_MAX, &text, NULL, r->e);

    *ret = *otherwise;
    if (presence_is_absent(there))
        return ERR_OK;
    if (presence_is_unknown(there))
        return r->e->code;
    trim(text);
    return cpus_parse(ret, text, path, r->e);
}

/* Reads a number; *ret is `otherwise` if there is no such file, or if it is negative (the kernel's unknown).
 */
static enum err_code read_number(const struct reading *r, const char *path, int32_t otherwise, int32_t *ret)
{
    str_auto text = NULL;
    struct presence there = fs_read_if_there(r->dir, path, FILE_MAX, &text, NULL, r->e);
    int64_t n = otherwise;

    if (presence_is_unknown(there))
        return r->e->code;
    if (!presence_is_absent(there)) {
        trim(text);
        if (parse_i64(text, INT32_MIN, INT32_MAX, &n, path, r->e) != ERR_OK)
            return r->e->code;
    }
    *ret = n < 0 ? otherwise : (int32_t)n;
    return ERR_OK;
}

/* ---- processors ---- */

/* The number of its cache of the third level; `otherwise`: none is reported. */
static enum err_code read_cache(const struct reading *r, unsigned cpu, int32_t otherwise, int32_t *ret)
{
    *ret = otherwise;
    for (int i = 0; i < 8; i++) {
        char path[96];
        int32_t level = -1;

        snprintf(path, sizeof(path), "cpu/cpu%u/cache/index%d/level", cpu, i);
        if (read_number(r, path, -1, &level) != ERR_OK)
            return r->e->code;
        if (level < 0)
            return ERR_OK;
        if (level != 3)
            continue;
        snprintf(path, sizeof(path), "cpu/cpu%u/cache/index%d/id", cpu, i);
        return read_number(r, path, otherwise, ret);
    }
    return ERR_OK;
}

static enum err_code read_cpu(const struct reading *r, unsigned cpu)
{
    struct pl_cpu *x = &r->m->cpu[cpu];
    struct cpus self = { 0 }, core;
    char path[96];

    cpus_add(&self, cpu);
    snprintf(path, sizeof(path), "cpu/cpu%u/topology/physical_package_id", cpu);
    if (read_number(r, path, 0, &x->in[PL_SOCKET]) != ERR_OK)
        return r->e->code;
    snprintf(path, sizeof(path), "cpu/cpu%u/topology/thread_siblings_list", cpu);
    if (read_cpus(r, path, &self, &core) != ERR_OK)
        return r->e->code;
    core = cpus_and(&core, &r->m->cpus);
    x->in[PL_CORE] = (int32_t)(cpus_is_empty(&core) ? cpu : cpus_next(&core, 0));
    return read_cache(r, cpu, x->in[PL_SOCKET], &x->in[PL_UNCORE]);
}

/* ---- nodes ---- */

static int by_id(const void *a, const void *b)
{
    const struct pl_node *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static bool on_node(const char *name, void *arg)
{
    struct reading *r = arg;
    uint64_t id;

    if (strncmp(name, "node", 4) != 0 || name[4] < '0' || name[4] > '9')
        return true;
    if (parse_u64(name + 4, 0, PL_NODE_ID_MAX, &id, "a NUMA node", r->e) != ERR_OK) {
        r->e->code = ERR_RANGE;
        return false;
    }
    if (r->m->n_nodes == PL_NODES_MAX) {
        err_set(r->e, ERR_RANGE, "the machine has more than %d NUMA nodes", PL_NODES_MAX);
        return false;
    }
    r->m->node[r->m->n_nodes++] = (struct pl_node){ .id = (unsigned)id };
    return true;
}

/* "Node 0 MemTotal:   16303624 kB" */
static enum err_code read_memory(const struct reading *r, struct pl_node *node)
{
    str_auto text = NULL;
    char path[64];
    struct presence there;
    const char *at;

    snprintf(path, sizeof(path), "node/node%u/meminfo", node->id);
    there = fs_read_if_there(r->dir, path, FILE_MAX, &text, NULL, r->e);
    if (presence_is_absent(there))
        return ERR_OK;
    if (presence_is_unknown(there))
        return r->e->code;
    at = strstr(text, "MemTotal:");
    if (at == NULL)
        return err_set(r->e, ERR_INVALID, "%s has no MemTotal", path);
    node->memory = strtoull(at + strlen("MemTotal:"), NULL, 10) * 1024;
    return ERR_OK;
}

static enum err_code read_distances(const struct reading *r, struct pl_node *node)
{
    str_auto text = NULL;
    char path[64], *at, *end;
    struct presence there;

    snprintf(path, sizeof(path), "node/node%u/distance", node->id);
    there = fs_read_if_there(r->dir, path, FILE_MAX, &text, NULL, r->e);
    if (presence_is_absent(there)) {
        r->m->distances_known = false;
        return ERR_OK;
    }
    if (presence_is_unknown(there))
        return r->e->code;
    at = text;
    for (size_t i = 0; i < r->m->n_nodes; i++, at = end) {
        unsigned long d = strtoul(at, &end, 10);

        if (end == at || d > 1000000)
            return err_set(r->e, ERR_INVALID, "%s: a distance to each of %zu nodes is expected", path,
                           r->m->n_nodes);
        node->distance[i] = (uint32_t)d;
    }
    return ERR_OK;
}

struct pages_reading {
    const struct reading *r;
    struct pl_node *node;
};

/* hugepages-2048kB */
static bool on_pages(const char *name, void *arg)
{
    struct pages_reading *p = arg;
    unsigned long long kib;
    char path[128], unit[4];
    int32_t n;

    if (sscanf(name, "hugepages-%llu%3s", &kib, unit) != 2 || strcmp(unit, "kB") != 0 || kib == 0)
        return true;
    snprintf(path, sizeof(path), "node/node%u/hugepages/hugepages-%llukB/nr_hugepages", p->node->id, kib);
    if (read_number(p->r, path, 0, &n) != ERR_OK)
        return false;
    if (p->node->n_pages < PL_PAGES_MAX)
        p->node->pages[p->node->n_pages++] = (struct pl_pages){ .size_kib = kib, .n = (uint64_t)n };
    return true;
}

static int by_size(const void *a, const void *b)
{
    const struct pl_pages *x = a, *y = b;

    return x->size_kib > y->size_kib ? -1 : x->size_kib < y->size_kib;
}

static enum err_code read_node(const struct reading *r, struct pl_node *node)
{
    struct pages_reading p = { r, node };
    struct cpus none = { 0 }, cpus;
    char path[64];
    struct presence there;

    snprintf(path, sizeof(path), "node/node%u/cpulist", node->id);
    if (read_cpus(r, path, &none, &cpus) != ERR_OK || read_memory(r, node) != ERR_OK ||
        read_distances(r, node) != ERR_OK)
        return r->e->code;
    cpus_each(cpu, &cpus) r->m->cpu[cpu].in[PL_NODE] = (int32_t)node->id;
    snprintf(path, sizeof(path), "node/node%u/hugepages", node->id);
    there = fs_list(r->dir, path, on_pages, &p, r->e);
    if (r->e->code != ERR_OK || presence_is_unknown(there))
        return r->e->code;
    qsort(node->pages, node->n_pages, sizeof(*node->pages), by_size);
    return ERR_OK;
}

static enum err_code read_nodes(struct reading *r)
{
    struct presence there = fs_list(r->dir, "node", on_node, r, r->e);

    if (r->e->code != ERR_OK || presence_is_unknown(there))
        return r->e->code;
    if (r->m->n_nodes == 0)
        r->m->n_nodes = 1; /* node 0, with all processors */
    qsort(r->m->node, r->m->n_nodes, sizeof(*r->m->node), by_id);
    r->m->distances_known = !presence_is_absent(there);
    for (size_t i = 0; i < r->m->n_nodes; i++)
        if (read_node(r, &r->m->node[i]) != ERR_OK)
            return r->e->code;
    return ERR_OK;
}

enum err_code pl_machine_read(struct pl_machine *ret, const char *sys, struct err *e)
{
    mem_auto struct pl_machine *m = calloc(1, sizeof(*m));
    struct reading r = { .m = m, .e = e };
    str_auto path = str_printf("%s/devices/system", sys);
    struct cpus none = { 0 };
    fd_auto dir = path != NULL ? open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC) : -1;

    if (m == NULL || path == NULL)
        return err_nomem(e);
    if (dir < 0)
        return err_sys(e, errno, "open %s", path);
    r.dir = dir;
    if (read_cpus(&r, "cpu/online", &none, &m->cpus) != ERR_OK)
        return e->code;
    if (cpus_is_empty(&m->cpus))
        return err_set(e, ERR_NOT_FOUND, "%s/cpu/online names no processor", path);
    cpus_each(cpu, &m->cpus)
    {
        if (read_cpu(&r, cpu) != ERR_OK)
            return e->code;
    }
    if (read_nodes(&r) != ERR_OK)
        return e->code;
    pl_machine_count(m);
    *ret = *m;
    return ERR_OK;
}
