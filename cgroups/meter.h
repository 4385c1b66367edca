/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter - reads a cgroup's usage repeatedly.
 *
 * A meter keeps the files of CG_PARTS_BASIC open (four per cgroup: CPU time, memory usage, statistics and
 * limit) and reads them with pread() into a shared buffer, which opens and allocates nothing. Opening a file
 * costs ten times as much as reading it; an open one holds a page of kernel memory. The files of other parts
 * (tasks, huge pages, swap, pressure, disk) are opened for each read. Descriptors are limited for all meters
 * of a set together; beyond that, a meter opens and closes its files at each read.
 *
 * An open descriptor keeps the kernel's part of a removed cgroup in memory: a meter is freed with its cgroup,
 * and closes its files as soon as a read finds it gone. There are no timers here.
 *
 * Sources of the numbers (kubelet's and cAdvisor's): v2 cpu.stat, memory.current, memory.stat, pids.current;
 * v1 cpuacct.usage, cpuacct.usage_user/_sys, memory.usage_in_bytes, memory.stat, pids.current. The working
 * set is usage less inactive_file (v1 total_inactive_file), at least 0. The root of v2 has no memory.current:
 * usage is anon + file. Local, quick, loop thread.
 */
#ifndef CGROUPS_METER_H
#define CGROUPS_METER_H
#include "cgroups/cgroup.h"

#define CG_PAGE_SIZES_MAX 8 /* a kernel has at most 4 (arm64) */

enum cg_part { /* bits: the parts to read, and the members of a sample that are filled in */
               CG_PART_CPU = 1 << 0,
               CG_PART_MEMORY = 1 << 1,
               CG_PART_PIDS = 1 << 2,
               CG_PART_SWAP = 1 << 3,     /* with memory.swap_limit */
               CG_PART_THROTTLE = 1 << 4, /* read with the CPU time on v2 */
               CG_PART_LIMIT = 1 << 5,    /* memory.limit */
               CG_PART_HUGETLB = 1 << 6,
               CG_PART_IO = 1 << 7,
               CG_PART_PRESSURE = 1 << 8, /* v2, and the v2 side of a hybrid if it has the processes */
               CG_PART_OOM = 1 << 9,
               CG_PART_PROCESSES = 1 << 10, /* of this cgroup only, without those below */
               CG_PART_MORE = 1 << 11,      /* memory.peak, pids_limit */
};
#define CG_PARTS_BASIC (CG_PART_CPU | CG_PART_MEMORY | CG_PART_LIMIT) /* read often */
#define CG_PARTS_ALL ((1 << 12) - 1)

#define CG_NO_LIMIT UINT64_MAX

struct cg_psi_line {
    unsigned avg10, avg60, avg300; /* hundredths of a percent */
    uint64_t total_us;
};

struct cg_psi {
    struct cg_psi_line some, full; /* `full` is 0 if the kernel does not report it */
    bool known;
};

enum cg_resource { CG_RES_CPU, CG_RES_MEMORY, CG_RES_IO };

struct cg_sample {
    int64_t at_ns;    /* wall clock */
    uint64_t mono_ns; /* for rates */
    unsigned parts;   /* the parts that are filled in */
    struct {
        uint64_t usage_ns, user_ns, system_ns;
        uint64_t periods, throttled_periods, throttled_ns;
    } cpu;
    struct {
        uint64_t usage, working_set, rss, file, mapped_file, inactive_file, kernel;
        uint64_t page_faults, major_page_faults;
        uint64_t limit; /* CG_NO_LIMIT if none; above 2^62 means none (v1 writes 2^63 less a page) */
        uint64_t swap, swap_limit;
        uint64_t peak; /* 0: not reported by the kernel */
    } memory;
    uint64_t pids, pids_limit;
    uint64_t processes;
    uint64_t oom_kills; /* at or below it on v2, in it on v1 */
    uint64_t hugetlb[CG_PAGE_SIZES_MAX];
    struct {
        uint64_t read_bytes, write_bytes, reads, writes;
    } io;                 /* of all devices together */
    struct cg_psi psi[3]; /* by enum cg_resource */
};

struct cg_meters; /* a set: shared by its meters */
struct cg_meter;

struct cg_meters_options {
    struct cg_tree *tree;         /* borrowed while the set exists */
    size_t keep_open;             /* descriptors, of all meters together */
    const char (*page_sizes)[16]; /* "2MB"; copied */
    size_t n_page_sizes;
};
enum err_code cg_meters_open(struct cg_meters **ret, const struct cg_meters_options *o,
                             struct err *e) MUST_CHECK;
void cg_meters_close(struct cg_meters *s);        /* after its meters; NULL is fine */
size_t cg_meters_kept(const struct cg_meters *s); /* descriptors that are open now */

/* `path` is absolute below the mount point; "/" is the whole machine. Opens nothing yet. */
enum err_code cg_meter_new(struct cg_meter **ret, struct cg_meters *s, const char *path,
                           struct err *e) MUST_CHECK;
void cg_meter_free(struct cg_meter *m); /* NULL is fine */
SCOPE_DEFINE(struct cg_meter, cg_meter_free)

/* Fills in the available `parts`. ERR_NOT_FOUND: the cgroup does not exist (any more). */
enum err_code cg_meter_read(struct cg_meter *m, unsigned parts, struct cg_sample *ret,
                            struct err *e) MUST_CHECK;

/* The cgroup of all pods ("/<root>/kubepods"), or of one class; Guaranteed pods do not have one. */
enum err_code cg_class_path(const struct cg_tree *t, enum cg_class class_, char *ret, size_t size,
                            struct err *e) MUST_CHECK;

/* ---- rate ---- */
/* CPU time per second from two samples. Samples closer together than CG_RATE_MIN_NS are imprecise (a quota's
 * period is 0.1 s); farther apart than CG_RATE_MAX_NS they do not show the present rate. */
#define CG_RATE_MIN_NS UINT64_C(500000000)
#define CG_RATE_MAX_NS UINT64_C(60000000000)

struct cg_rate { /* initialize to { 0 } */
    uint64_t base_mono_ns, base_cpu_ns;
    uint64_t nano_cores;
    bool known;
};
/* Adds a sample. False: not known yet; a sample CG_RATE_MIN_NS after r->base_mono_ns will yield a rate. */
bool cg_rate_update(struct cg_rate *r, uint64_t mono_ns, uint64_t cpu_ns);
#endif
