/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroups/meter.h"

#include "base/clock.h"
#include "base/files/fs.h"
#include "cgroups/internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* memory.stat has about 2 KiB; longer files (io.stat with many disks) are truncated. */
#define TEXT_MAX 8192
#define ENTRIES_MAX 64  /* files of one cgroup in all hierarchies */
#define CHUNKS_MAX 4096 /* for cgroup.procs: the kernel's maximum of tasks */

/* The files of a cgroup; each fills in certain members of a sample. */
enum file {
    F_CPU_STAT,
    F_CPUACCT_USAGE,
    F_CPUACCT_USER,
    F_CPUACCT_SYSTEM,
    F_MEMORY_USAGE,
    F_MEMORY_STAT,
    F_MEMORY_LIMIT,
    F_MEMORY_PEAK,
    F_SWAP,
    F_SWAP_LIMIT,
    F_MEMSW_LIMIT,
    F_OOM,
    F_PIDS,
    F_PIDS_LIMIT,
    F_PROCESSES,
    F_HUGETLB,
    F_IO_STAT,
    F_BLKIO_BYTES,
    F_BLKIO_COUNT,
    F_PSI_CPU,
    F_PSI_MEMORY,
    F_PSI_IO,
};

struct row {
    enum file file;
    bool v2;
    unsigned controller; /* 0: exists in each v2 cgroup, independent of controllers */
    unsigned part;
    const char *name;
};

static const struct row rows[] = {
    { F_CPU_STAT, true, 0, CG_PART_CPU, "cpu.stat" },
    { F_MEMORY_USAGE, true, CG_CTL_MEMORY, CG_PART_MEMORY, "memory.current" },
    { F_MEMORY_STAT, true, CG_CTL_MEMORY, CG_PART_MEMORY, "memory.stat" },
    { F_PIDS, true, CG_CTL_PIDS, CG_PART_PIDS, "pids.current" },
    { F_MEMORY_LIMIT, true, CG_CTL_MEMORY, CG_PART_LIMIT, "memory.max" },
    { F_MEMORY_PEAK, true, CG_CTL_MEMORY, CG_PART_MORE, "memory.peak" },
    { F_SWAP, true, CG_CTL_MEMORY, CG_PART_SWAP, "memory.swap.current" },
    { F_SWAP_LIMIT, true, CG_CTL_MEMORY, CG_PART_SWAP, "memory.swap.max" },
    { F_OOM, true, CG_CTL_MEMORY, CG_PART_OOM, "memory.events" },
    { F_PIDS_LIMIT, true, CG_CTL_PIDS, CG_PART_MORE, "pids.max" },
    { F_PROCESSES, true, 0, CG_PART_PROCESSES, "cgroup.procs" },
    { F_HUGETLB, true, CG_CTL_HUGETLB, CG_PART_HUGETLB, "current" },
    { F_IO_STAT, true, CG_CTL_IO, CG_PART_IO, "io.stat" },
    { F_PSI_CPU, true, 0, CG_PART_PRESSURE, "cpu.pressure" },
    { F_PSI_MEMORY, true, 0, CG_PART_PRESSURE, "memory.pressure" },
    { F_PSI_IO, true, 0, CG_PART_PRESSURE, "io.pressure" },

    { F_CPUACCT_USAGE, false, CG_CTL_CPUACCT, CG_PART_CPU, "cpuacct.usage" },
    { F_MEMORY_USAGE, false, CG_CTL_MEMORY, CG_PART_MEMORY, "memory.usage_in_bytes" },
    { F_MEMORY_STAT, false, CG_CTL_MEMORY, CG_PART_MEMORY, "memory.stat" },
    { F_PIDS, false, CG_CTL_PIDS, CG_PART_PIDS, "pids.current" },
    { F_CPUACCT_USER, false, CG_CTL_CPUACCT, CG_PART_THROTTLE, "cpuacct.usage_user" },
    { F_CPUACCT_SYSTEM, false, CG_CTL_CPUACCT, CG_PART_THROTTLE, "cpuacct.usage_sys" },
    { F_CPU_STAT, false, CG_CTL_CPU, CG_PART_THROTTLE, "cpu.stat" },
    { F_MEMORY_LIMIT, false, CG_CTL_MEMORY, CG_PART_LIMIT, "memory.limit_in_bytes" },
    { F_MEMORY_PEAK, false, CG_CTL_MEMORY, CG_PART_MORE, "memory.max_usage_in_bytes" },
    { F_MEMSW_LIMIT, false, CG_CTL_MEMORY, CG_PART_SWAP, "memory.memsw.limit_in_bytes" },
    { F_OOM, false, CG_CTL_MEMORY, CG_PART_OOM, "memory.oom_control" },
    { F_PIDS_LIMIT, false, CG_CTL_PIDS, CG_PART_MORE, "pids.max" },
    { F_PROCESSES, false, CG_CTL_PIDS, CG_PART_PROCESSES, "cgroup.procs" },
    { F_HUGETLB, false, CG_CTL_HUGETLB, CG_PART_HUGETLB, "usage_in_bytes" },
    { F_BLKIO_BYTES, false, CG_CTL_IO, CG_PART_IO, "blkio.throttle.io_service_bytes_recursive" },
    { F_BLKIO_COUNT, false, CG_CTL_IO, CG_PART_IO, "blkio.throttle.io_serviced_recursive" },
};

struct entry {
    int fd;                  /* -1: not open */
    uint8_t hier, row, size; /* size: of page_sizes, for F_HUGETLB */
};

struct cg_meters {
    struct cg_tree *tree;
    size_t keep_open, kept;
    char page_sizes[CG_PAGE_SIZES_MAX][16];
    size_t n_page_sizes;
    struct entry entries[ENTRIES_MAX]; /* equal for all meters of this tree */
    size_t n_entries;
    char text[TEXT_MAX]; /* one file's content; on the stack it would be zeroed for each read */
};

struct cg_meter {
    struct cg_meters *set;
    char *path;
    struct entry entries[]; /* set->n_entries */
};

/* ---- the set ---- */

static void meter_add_entry(struct cg_meters *s, size_t hier, size_t row, size_t size)
{
    if (s->n_entries < ENTRIES_MAX)
        s->entries[s->n_entries++] =
            (struct entry){ .fd = -1, .hier = (uint8_t)hier, .row = (uint8_t)row, .size = (uint8_t)size };
}

static void meter_plan(struct cg_meters *s)
{
    const struct cg_tree *t = s->tree;
    bool cpuacct = false; /* if v1 counts CPU time, the v2 side of a hybrid must not count it again */

    for (size_t i = 0; i < t->n_hiers; i++)
        cpuacct = cpuacct || (!t->hiers[i].backend->v2 && (t->hiers[i].controllers & CG_CTL_CPUACCT));
    for (size_t i = 0; i < t->n_hiers; i++) {
        const struct cg_hier *h = &t->hiers[i];
        for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
            const struct row *r = &rows[k];
            bool v1_too = r->v2 && r->controller == 0 && t->layout == CG_HYBRID;
            if (r->v2 != h->backend->v2 || (r->controller != 0 && !(h->controllers & r->controller)) ||
                (v1_too && (r->part == CG_PART_PROCESSES || (r->part == CG_PART_CPU && cpuacct))))
                continue;
            for (size_t size = 0; size < (r->file == F_HUGETLB ? s->n_page_sizes : 1); size++)
                meter_add_entry(s, i, k, size);
        }
    }
}

enum err_code cg_meters_open(struct cg_meters **ret, const struct cg_meters_options *o, struct err *e)
{
    struct cg_meters *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return err_nomem(e);
    s->tree = o->tree;
    s->keep_open = o->keep_open;
    for (; s->n_page_sizes < o->n_page_sizes && s->n_page_sizes < CG_PAGE_SIZES_MAX; s->n_page_sizes++)
        memcpy(s->page_sizes[s->n_page_sizes], o->page_sizes[s->n_page_sizes], 16);
    meter_plan(s);
    *ret = s;
    return ERR_OK;
}

void cg_meters_close(struct cg_meters *s)
{
    free(s);
}

size_t cg_meters_kept(const struct cg_meters *s)
{
    return s->kept;
}

/* ---- meters ---- */

enum err_code cg_meter_new(struct cg_meter **ret, struct cg_meters *s, const char *path, struct err *e)
{
    struct cg_meter *m;

    if (path[0] != '/' || strlen(path) >= CG_PATH_MAX || (path[1] != '\0' && !fs_path_is_safe(path + 1)))
        return err_set(e, ERR_INVALID, "usage of cgroup \"%.200s\": not an absolute path", path);
    m = malloc(sizeof(*m) + s->n_entries * sizeof(m->entries[0]));
    if (m == NULL)
        return err_nomem(e);
    m->set = s;
    m->path = strdup(path);
    memcpy(m->entries, s->entries, s->n_entries * sizeof(m->entries[0]));
    if (m->path == NULL) {
        free(m);
        return err_nomem(e);
    }
    *ret = m;
    return ERR_OK;
}

static void meter_release_files(struct cg_meter *m)
{
    for (size_t i = 0; i < m->set->n_entries; i++) {
        if (m->entries[i].fd < 0)
            continue;
        close(m->entries[i].fd);
        m->entries[i].fd = -1;
        m->set->kept--;
    }
}

void cg_meter_free(struct cg_meter *m)
{
    if (m == NULL)
        return;
    meter_release_files(m);
    free(m->path);
    free(m);
}

struct reading {
    struct cg_sample s;
    bool usage;     /* memory.usage was reported */
    uint64_t memsw; /* v1: the limit of memory and swap together */
    int folder;     /* of the cgroup in hierarchy `hier`: its path is resolved once, not for each file */
    size_t hier;
};

/* Opens the cgroup's folder for the files that follow in this hierarchy. */
static int meter_folder(const struct cg_meter *m, struct reading *reading, size_t hier)
{
    const char *below = m->path + strspn(m->path, "/");

    if (reading->folder < 0 || reading->hier != hier) {
        if (reading->folder >= 0)
            close(reading->folder);
        reading->hier = hier;
        reading->folder = openat(m->set->tree->hiers[hier].fd, below[0] != '\0' ? below : ".",
                                 O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    }
    return reading->folder;
}

static int meter_open_file(const struct cg_meter *m, const struct entry *n, struct reading *reading)
{
    const struct row *r = &rows[n->row];
    int folder = meter_folder(m, reading, n->hier);
    char name[64];

    if (folder < 0)
        return -1;
    if (r->file == F_HUGETLB)
        snprintf(name, sizeof(name), "hugetlb.%s.%s", m->set->page_sizes[n->size], r->name);
    return openat(folder, r->file == F_HUGETLB ? name : r->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

/* cgroup.procs may be long: count piece by piece. */
static bool count_processes(int fd, char *text, struct cg_sample *s)
{
    ssize_t n = 0;

    s->processes = 0;
    for (unsigned i = 0; i < CHUNKS_MAX && (n = read(fd, text, TEXT_MAX)) > 0; i++)
        s->processes += cg_count_lines(text, (size_t)n);
    return n >= 0;
}

static bool meter_take(const struct cg_meter *m, const struct entry *n, const char *text, size_t size,
                       struct reading *reading)
{
    struct cg_sample *s = &reading->s;
    const struct row *r = &rows[n->row];

    switch (r->file) {
    case F_CPU_STAT:
        cg_take_cpu_stat(text, size, s);
        if (r->v2)
            s->parts |= CG_PART_THROTTLE;
        return true;
    case F_CPUACCT_USAGE:
        return cg_take_u64(text, size, &s->cpu.usage_ns);
    case F_CPUACCT_USER:
        return cg_take_u64(text, size, &s->cpu.user_ns);
    case F_CPUACCT_SYSTEM:
        return cg_take_u64(text, size, &s->cpu.system_ns);
    case F_MEMORY_USAGE:
        reading->usage = cg_take_u64(text, size, &s->memory.usage);
        return reading->usage;
    case F_MEMORY_STAT:
        (r->v2 ? cg_take_memory_stat : cg_take_memory_stat_v1)(text, size, s);
        return true;
    case F_MEMORY_LIMIT:
        return cg_take_limit(text, size, &s->memory.limit);
    case F_MEMORY_PEAK:
        return cg_take_u64(text, size, &s->memory.peak);
    case F_SWAP:
        return cg_take_u64(text, size, &s->memory.swap);
    case F_SWAP_LIMIT:
        return cg_take_limit(text, size, &s->memory.swap_limit);
    case F_MEMSW_LIMIT:
        return cg_take_limit(text, size, &reading->memsw);
    case F_OOM:
        cg_take_oom_kills(text, size, s);
        return true;
    case F_PIDS:
        return cg_take_u64(text, size, &s->pids);
    case F_PIDS_LIMIT:
        return cg_take_limit(text, size, &s->pids_limit);
    case F_HUGETLB:
        return n->size < m->set->n_page_sizes && cg_take_u64(text, size, &s->hugetlb[n->size]);
    case F_IO_STAT:
        cg_take_io_stat(text, size, s);
        return true;
    case F_BLKIO_BYTES:
        cg_take_blkio(text, size, &s->io.read_bytes, &s->io.write_bytes);
        return true;
    case F_BLKIO_COUNT:
        cg_take_blkio(text, size, &s->io.reads, &s->io.writes);
        return true;
    case F_PSI_CPU:
        cg_take_pressure(text, size, &s->psi[CG_RES_CPU]);
        return s->psi[CG_RES_CPU].known;
    case F_PSI_MEMORY:
        cg_take_pressure(text, size, &s->psi[CG_RES_MEMORY]);
        return s->psi[CG_RES_MEMORY].known;
    case F_PSI_IO:
        cg_take_pressure(text, size, &s->psi[CG_RES_IO]);
        return s->psi[CG_RES_IO].known;
    case F_PROCESSES:
        return false; /* read by count_processes() */
    }
    return false;
}

/* Reads one file into the sample. A kept descriptor of a removed cgroup returns ENODEV: then open the file
 * again, in case there is a new cgroup of that name. */
static bool meter_read_entry(struct cg_meter *m, struct entry *n, struct reading *reading)
{
    struct cg_sample *s = &reading->s;
    const struct row *r = &rows[n->row];
    char *text = m->set->text;
    ssize_t got = -1;
    bool ok;

    if (n->fd >= 0) {
        got = pread(n->fd, text, TEXT_MAX, 0);
        if (got < 0) {
            close(n->fd);
            n->fd = -1;
            m->set->kept--;
        }
    }
    if (n->fd < 0) {
        fd_auto fd = meter_open_file(m, n, reading);
        if (fd < 0)
            return false;
        if (r->file == F_PROCESSES) {
            ok = count_processes(fd, text, s);
            s->parts |= ok ? r->part : 0;
            return ok;
        }
        got = pread(fd, text, TEXT_MAX, 0);
        if (got >= 0 && (r->part & CG_PARTS_BASIC) && m->set->kept < m->set->keep_open) {
            n->fd = take_fd(&fd);
            m->set->kept++;
        }
    }
    ok = got >= 0 && meter_take(m, n, text, (size_t)got, reading);
    s->parts |= ok ? r->part : 0;
    return got >= 0;
}

static uint64_t mono_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

enum err_code cg_meter_read(struct cg_meter *m, unsigned parts, struct cg_sample *ret, struct err *e)
{
    struct reading reading = { .s = { .at_ns = clock_wall_ns(), .mono_ns = mono_ns() },
                               .memsw = CG_NO_LIMIT,
                               .folder = -1 };
    struct cg_sample *s = &reading.s;
    bool found = false;

    s->memory.limit = s->memory.swap_limit = s->pids_limit = CG_NO_LIMIT;
    for (size_t i = 0; i < m->set->n_entries; i++)
        if (rows[m->entries[i].row].part & parts)
            found = meter_read_entry(m, &m->entries[i], &reading) || found;
    scope_close_p(&reading.folder);
    if (!found) {
        meter_release_files(m);
        return err_set(e, ERR_NOT_FOUND, "usage of cgroup %s: no such cgroup", m->path);
    }
    if (s->parts & CG_PART_MEMORY) {
        if (!reading.usage)
            s->memory.usage = s->memory.rss + s->memory.file;
        s->memory.working_set =
            s->memory.usage > s->memory.inactive_file ? s->memory.usage - s->memory.inactive_file : 0;
    }
    if (reading.memsw != CG_NO_LIMIT && s->memory.limit != CG_NO_LIMIT)
        s->memory.swap_limit = reading.memsw > s->memory.limit ? reading.memsw - s->memory.limit : 0;
    *ret = *s;
    return ERR_OK;
}

enum err_code cg_class_path(const struct cg_tree *t, enum cg_class class_, char *ret, size_t size,
                            struct err *e)
{
    static const char *const subs[] = {
        [CG_GUARANTEED] = "", [CG_BURSTABLE] = "/burstable", [CG_BEST_EFFORT] = "/besteffort"
    };
    int put = snprintf(ret, size, "%s/kubepods%s", t->root, subs[class_]);

    return put >= 0 && (size_t)put < size
               ? ERR_OK
               : err_set(e, ERR_RANGE, "cgroup path of a class: longer than %zu bytes", size);
}
