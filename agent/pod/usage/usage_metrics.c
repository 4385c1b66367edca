/* SPDX-License-Identifier: Apache-2.0 */
/* Resource usage in Prometheus' text format, with the names and labels of cAdvisor and of kubelet's
 * /metrics/resource. Read once per page; the values of one name are adjacent, as required by the format. A
 * page has copies, because it takes several turns of the loop, and pods may be deleted in between. */
#include "agent/pod/core/usage_text.h"
#include "agent/pod/usage/usage.h"
#include "base/array.h"
#include "base/clock.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LABELS_MAX (64u << 20)

struct line {
    enum usage_kind kind;
    struct cg_sample s;
    size_t labels;             /* their position in rows.text, NUL-terminated */
    int64_t start_ns, read_ns; /* wall clock */
};

struct rows {
    struct line *v;
    size_t n;
    struct buf text;
    bool failed, short_labels; /* for /metrics/resource: container, namespace and pod only */
};

static void put_labels(struct rows *all, const struct usage_row *row)
{
    const struct pod *p = row->pod;
    const struct ctr *c = row->ctr;
    struct buf *b = &all->text;

    usage_label(b, "container", c != NULL ? c->spec->name : "", true);
    if (!all->short_labels) {
        usage_label(b, "id", row->cgroup, false);
        usage_label(b, "image", c != NULL ? c->spec->image : "", false);
        usage_label(b, "name", c != NULL ? c->cur.id : "", false);
    }
    usage_label(b, "namespace", p != NULL ? p->api->meta.namespace : "", false);
    usage_label(b, "pod", p != NULL ? p->api->meta.name : "", false);
    buf_addc(b, '\0');
}

static void usage_metrics_collect(const struct usage_row *row, void *arg)
{
    struct rows *all = arg;
    struct line *l;

    if (!array_room(all->v, all->n)) {
        all->failed = true;
        return;
    }
    l = &all->v[all->n++];
    *l = (struct line){ .kind = row->kind, .s = row->s, .labels = all->text.n, .read_ns = clock_wall_ns() };
    l->start_ns = row->ctr != NULL   ? row->ctr->cur.started_ns
                  : row->pod != NULL ? row->pod->start_time_ns
                                     : 0;
    put_labels(all, row);
}

/* ---- families ---- */

struct family {
    const char *name, *type, *help;
    unsigned part;
    size_t offset; /* of a uint64_t in struct cg_sample */
    enum usage_unit unit;
    const char *extra; /* further labels; NULL: none */
    bool same;         /* like the one before, with other labels: no second header */
};
#define OF(member) offsetof(struct cg_sample, member)

static const struct family families[] = {
    { "container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed.", CG_PART_CPU,
      OF(cpu.usage_ns), UNIT_NS, "cpu=\"total\"" },
    { "container_cpu_user_seconds_total", "counter", "Cumulative user cpu time consumed.", CG_PART_THROTTLE,
      OF(cpu.user_ns), UNIT_NS },
    { "container_cpu_system_seconds_total", "counter", "Cumulative system cpu time consumed.",
      CG_PART_THROTTLE, OF(cpu.system_ns), UNIT_NS },
    { "container_cpu_cfs_periods_total", "counter", "Elapsed enforcement periods of the quota.",
      CG_PART_THROTTLE, OF(cpu.periods), UNIT_ONE },
    { "container_cpu_cfs_throttled_periods_total", "counter", "Periods with throttling.", CG_PART_THROTTLE,
      OF(cpu.throttled_periods), UNIT_ONE },
    { "container_cpu_cfs_throttled_seconds_total", "counter", "Throttled time.", CG_PART_THROTTLE,
      OF(cpu.throttled_ns), UNIT_NS },
    { "container_memory_usage_bytes", "gauge", "Memory in use, page cache included.", CG_PART_MEMORY,
      OF(memory.usage), UNIT_ONE },
    { "container_memory_working_set_bytes", "gauge", "Memory in use less the inactive page cache.",
      CG_PART_MEMORY, OF(memory.working_set), UNIT_ONE },
    { "container_memory_rss", "gauge", "Anonymous memory.", CG_PART_MEMORY, OF(memory.rss), UNIT_ONE },
    { "container_memory_cache", "gauge", "Page cache.", CG_PART_MEMORY, OF(memory.file), UNIT_ONE },
    { "container_memory_mapped_file", "gauge", "Memory mapped files.", CG_PART_MEMORY, OF(memory.mapped_file),
      UNIT_ONE },
    { "container_memory_total_inactive_file_bytes", "gauge", "Inactive page cache.", CG_PART_MEMORY,
      OF(memory.inactive_file), UNIT_ONE },
    { "container_memory_max_usage_bytes", "gauge", "Maximum memory in use.", CG_PART_MORE, OF(memory.peak),
      UNIT_ONE },
    { "container_memory_swap", "gauge", "Swap in use.", CG_PART_SWAP, OF(memory.swap), UNIT_ONE },
    { "container_memory_failures_total", "counter", "Page faults.", CG_PART_MEMORY, OF(memory.page_faults),
      UNIT_ONE, "failure_type=\"pgfault\",scope=\"container\"" },
    { "container_memory_failures_total", "counter", "", CG_PART_MEMORY, OF(memory.major_page_faults),
      UNIT_ONE, "failure_type=\"pgmajfault\",scope=\"container\"", true },
    { "container_oom_events_total", "counter", "Processes killed by the kernel out of memory.", CG_PART_OOM,
      OF(oom_kills), UNIT_ONE },
    { "container_spec_memory_limit_bytes", "gauge", "Memory limit; 0: none.", CG_PART_LIMIT, OF(memory.limit),
      UNIT_LIMIT },
    { "container_threads", "gauge", "Tasks.", CG_PART_PIDS, OF(pids), UNIT_ONE },
    { "container_threads_max", "gauge", "Limit on tasks; 0: none.", CG_PART_MORE, OF(pids_limit),
      UNIT_LIMIT },
    { "container_fs_reads_bytes_total", "counter", "Bytes read from disks.", CG_PART_IO, OF(io.read_bytes),
      UNIT_ONE, "device=\"\"" },
    { "container_fs_reads_total", "counter", "Read operations on disks.", CG_PART_IO, OF(io.reads), UNIT_ONE,
      "device=\"\"" },
    { "container_fs_writes_bytes_total", "counter", "Bytes written to disks.", CG_PART_IO, OF(io.write_bytes),
      UNIT_ONE, "device=\"\"" },
    { "container_fs_writes_total", "counter", "Write operations on disks.", CG_PART_IO, OF(io.writes),
      UNIT_ONE, "device=\"\"" },
    { "container_pressure_cpu_waiting_seconds_total", "counter", "Time in which some tasks waited for a CPU.",
      CG_PART_PRESSURE, OF(psi[CG_RES_CPU].some.total_us), UNIT_US },
    { "container_pressure_cpu_stalled_seconds_total", "counter", "Time in which all tasks waited for a CPU.",
      CG_PART_PRESSURE, OF(psi[CG_RES_CPU].full.total_us), UNIT_US },
    { "container_pressure_memory_waiting_seconds_total", "counter",
      "Time in which some tasks waited for memory.", CG_PART_PRESSURE, OF(psi[CG_RES_MEMORY].some.total_us),
      UNIT_US },
    { "container_pressure_memory_stalled_seconds_total", "counter",
      "Time in which all tasks waited for memory.", CG_PART_PRESSURE, OF(psi[CG_RES_MEMORY].full.total_us),
      UNIT_US },
    { "container_pressure_io_waiting_seconds_total", "counter", "Time in which some tasks waited for a disk.",
      CG_PART_PRESSURE, OF(psi[CG_RES_IO].some.total_us), UNIT_US },
    { "container_pressure_io_stalled_seconds_total", "counter", "Time in which all tasks waited for a disk.",
      CG_PART_PRESSURE, OF(psi[CG_RES_IO].full.total_us), UNIT_US },
};

static void usage_metrics_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static uint64_t member(const struct line *l, size_t offset)
{
    uint64_t value;

    memcpy(&value, (const char *)&l->s + offset, sizeof(value));
    return value;
}

/* read_ns 0: without a time. */
static void put_line_read(struct buf *out, const char *name, const char *labels, const char *extra,
                          uint64_t value, enum usage_unit unit, int64_t read_ns)
{
    buf_adds(out, name);
    buf_addc(out, '{');
    buf_adds(out, labels);
    if (extra != NULL) {
        if (labels[0] != '\0')
            buf_addc(out, ',');
        buf_adds(out, extra);
    }
    buf_adds(out, "} ");
    usage_value(out, value, unit);
    if (read_ns != 0)
        buf_addf(out, " %lld", (long long)(read_ns / 1000000));
    buf_addc(out, '\n');
}

static void put_line(struct buf *out, const char *name, const char *labels, const char *extra, uint64_t value,
                     enum usage_unit unit)
{
    put_line_read(out, name, labels, extra, value, unit, 0);
}

static void put_family(const struct rows *all, const struct family *f, struct buf *out)
{
    bool any = f->same;

    for (size_t i = 0; i < all->n; i++) {
        const struct line *l = &all->v[i];
        if (!(l->s.parts & f->part))
            continue;
        if (!any)
            usage_metrics_head(out, f->name, f->type, f->help);
        any = true;
        put_line(out, f->name, all->text.p + l->labels, f->extra, member(l, f->offset), f->unit);
    }
}

static void put_start_times(const struct rows *all, bool only_containers, struct buf *out)
{
    static const char name[] = "container_start_time_seconds";

    usage_metrics_head(out, name, "gauge", "Start time in seconds since 1970.");
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].start_ns > 0 && (!only_containers || all->v[i].kind == USAGE_CONTAINER))
            put_line(out, name, all->text.p + all->v[i].labels, NULL, (uint64_t)all->v[i].start_ns, UNIT_NS);
}

static void put_processes(const struct rows *all, struct buf *out)
{
    usage_metrics_head(out, "container_processes", "gauge", "Processes in the container.");
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].kind == USAGE_CONTAINER && (all->v[i].s.parts & CG_PART_PROCESSES))
            put_line(out, "container_processes", all->text.p + all->v[i].labels, NULL, all->v[i].s.processes,
                     UNIT_ONE);
}

static void put_hugetlb(struct node *n, const struct rows *all, struct buf *out)
{
    const char(*sizes)[16];
    size_t n_sizes = usage_page_sizes(n, &sizes);
    bool any = false;

    for (size_t k = 0; k < n_sizes; k++) {
        char extra[40];
        snprintf(extra, sizeof(extra), "pagesize=\"%s\"", sizes[k]);
        for (size_t i = 0; i < all->n; i++) {
            if (!(all->v[i].s.parts & CG_PART_HUGETLB))
                continue;
            if (!any)
                usage_metrics_head(out, "container_hugetlb_usage_bytes", "gauge", "Huge pages in use.");
            any = true;
            put_line(out, "container_hugetlb_usage_bytes", all->text.p + all->v[i].labels, extra,
                     all->v[i].s.hugetlb[k], UNIT_ONE);
        }
    }
}

static void put_machine(const struct node *n, struct buf *out)
{
    struct usage_machine m;

    usage_machine_read(&m);
    usage_metrics_head(out, "machine_cpu_cores", "gauge", "CPUs of the machine.");
    buf_addf(out, "machine_cpu_cores %llu\n", (unsigned long long)(n->o.cpu_milli / 1000));
    usage_metrics_head(out, "machine_memory_bytes", "gauge", "Memory of the machine.");
    buf_addf(out, "machine_memory_bytes %llu\n", (unsigned long long)m.memory_bytes);
    usage_metrics_head(out, "machine_swap_bytes", "gauge", "Swap of the machine.");
    buf_addf(out, "machine_swap_bytes %llu\n", (unsigned long long)m.swap_bytes);
}

/* ---- /metrics/resource ---- */
/* Values have the time of their reading, in milliseconds, as kubelet's: metrics-server divides by it. */

static void put_resource(const struct rows *all, enum usage_kind kind, const struct family *f,
                         struct buf *out)
{
    bool any = false;

    for (size_t i = 0; i < all->n; i++) {
        const struct line *l = &all->v[i];
        const char *labels = all->text.p + l->labels;
        if (l->kind != kind || !(l->s.parts & f->part))
            continue;
        if (!any)
            usage_metrics_head(out, f->name, f->type, f->help);
        any = true;
        if (kind == USAGE_POD) /* the first label names a container: none */
            labels = strchr(labels, ',') + 1;
        if (kind == USAGE_NODE) {
            buf_addf(out, "%s ", f->name);
            usage_value(out, member(l, f->offset), f->unit);
            buf_addf(out, " %lld\n", (long long)(l->read_ns / 1000000));
        } else {
            put_line_read(out, f->name, labels, NULL, member(l, f->offset), f->unit, l->read_ns);
        }
    }
}

static const struct {
    enum usage_kind kind;
    struct family f;
} resources[] = {
#define CPU(what)                                                                                            \
    what "_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed.", CG_PART_CPU,                \
        OF(cpu.usage_ns), UNIT_NS
#define MEMORY(what)                                                                                         \
    what "_memory_working_set_bytes", "gauge", "Current working set.", CG_PART_MEMORY,                       \
        OF(memory.working_set), UNIT_ONE
#define SWAP(what)                                                                                           \
    what "_swap_usage_bytes", "gauge", "Current swap usage.", CG_PART_SWAP, OF(memory.swap), UNIT_ONE
    { USAGE_CONTAINER, { CPU("container") } },  { USAGE_CONTAINER, { MEMORY("container") } },
    { USAGE_CONTAINER, { SWAP("container") } }, { USAGE_NODE, { CPU("node") } },
    { USAGE_NODE, { MEMORY("node") } },         { USAGE_POD, { CPU("pod") } },
    { USAGE_POD, { MEMORY("pod") } },           { USAGE_POD, { SWAP("pod") } },
};

static void put_resource_end(bool complete, struct buf *out)
{
    struct usage_machine m;

    usage_machine_read(&m);
    usage_metrics_head(out, "node_swap_usage_bytes", "gauge", "Current swap usage of the node.");
    buf_addf(out, "node_swap_usage_bytes %llu %lld\n",
             (unsigned long long)(m.swap_bytes > m.swap_free_bytes ? m.swap_bytes - m.swap_free_bytes : 0),
             (long long)(clock_wall_ns() / 1000000));
    usage_metrics_head(out, "resource_scrape_error", "gauge",
                       "1 if there was an error while getting metrics, 0 otherwise.");
    buf_addf(out, "resource_scrape_error %d\n", complete ? 0 : 1);
}

/* ---- pages ---- */

struct usage_page {
    struct node *node;
    bool resource;
    unsigned parts;
    struct usage_walk walk;
    struct rows all;
    size_t told; /* names */
};

struct usage_page *usage_page_new(struct node *n, bool resource)
{
    struct usage_page *page = calloc(1, sizeof(*page));

    if (page == NULL)
        return NULL;
    page->node = n;
    page->resource = page->all.short_labels = resource;
    page->parts = resource ? CG_PART_CPU | CG_PART_MEMORY | CG_PART_SWAP : CG_PARTS_ALL;
    buf_init(&page->all.text, LABELS_MAX);
    return page;
}

void usage_page_free(struct usage_page *page)
{
    if (page == NULL)
        return;
    free(page->all.v);
    buf_done(&page->all.text);
    free(page);
}

void usage_page_read(struct usage_page *page, struct pod *p)
{
    if (!usage_walk(page->node, &page->walk, page->parts, p, usage_metrics_collect, &page->all) ||
        page->all.text.failed)
        page->all.failed = true;
}

/* The i-th name; false: there are fewer. */
static bool put_cadvisor(const struct usage_page *page, size_t i, struct buf *out)
{
    const struct rows *all = &page->all;

    if (all->failed) {
        out->failed = true;
        return false;
    }
    if (i < ARRAY_LEN(families)) {
        put_family(all, &families[i], out);
        return true;
    }
    switch (i - ARRAY_LEN(families)) {
    case 0:
        put_processes(all, out);
        return true;
    case 1:
        put_hugetlb(page->node, all, out);
        return true;
    case 2:
        put_start_times(all, false, out);
        return true;
    case 3:
        put_machine(page->node, out);
        return true;
    default:
        return false;
    }
}

static bool put_resources(const struct usage_page *page, size_t i, struct buf *out)
{
    const struct rows *all = &page->all;

    if (i < ARRAY_LEN(resources) && !all->failed)
        put_resource(all, resources[i].kind, &resources[i].f, out);
    else if (i == ARRAY_LEN(resources) && !all->failed)
        put_start_times(all, true, out);
    else if (i == ARRAY_LEN(resources) + 1)
        put_resource_end(!all->failed, out);
    return i < ARRAY_LEN(resources) + 2;
}

bool usage_page_write(struct usage_page *page, struct buf *out)
{
    size_t i = page->told++;

    if (i == 0)
        usage_walked(page->node, &page->walk, page->parts);
    return page->resource ? put_resources(page, i, out) : put_cadvisor(page, i, out);
}
