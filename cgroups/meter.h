/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter - what a cgroup uses, read again and again.
 *
 * A meter keeps the files of CG_PARTS_BASIC open (four of a cgroup: processor time, memory in use, its
 * statistics, its limit) and reads them with pread() into a buffer of the set: such a read opens and
 * allocates nothing.  To open a file costs ten times what it costs to read one; an open one holds a page of
 * the kernel's memory.  Files that only a full reading wants (tasks, huge pages, swap, pressure, disk) are
 * opened for the moment.  Descriptors are bounded for all meters of a set together; a meter that finds no
 * room works all the same, it opens and closes its files at each read.
 *
 * A descriptor that stays open keeps the kernel's part of a removed cgroup in memory: a meter is freed when
 * its cgroup goes, and lets go by itself as soon as a read finds it gone.  Nothing here has a timer.
 *
 * Sources of the numbers (kubelet's and cAdvisor's): v2 cpu.stat, memory.current, memory.stat, pids.current;
 * v1 cpuacct.usage, cpuacct.usage_user/_sys, memory.usage_in_bytes, memory.stat, pids.current.  Working set
 * is usage less inactive_file (v1 total_inactive_file), not below 0.  The root of v2 has no memory.current:
 * usage is anon + file.  Local, quick, loop thread.
 */
#ifndef CGROUPS_METER_H
#define CGROUPS_METER_H
#include "cgroups/cgroup.h"

#define CG_PAGE_SIZES_MAX 8 /* kinds of huge pages; the most that a kernel has is 4 (arm64) */

enum cg_part { /* bits: what is asked for, and which members of a sample are filled in */
               CG_PART_CPU = 1 << 0,
               CG_PART_MEMORY = 1 << 1,
               CG_PART_PIDS = 1 << 2,
               CG_PART_SWAP = 1 << 3,     /* with memory.swap_limit */
               CG_PART_THROTTLE = 1 << 4, /* comes with the processor's on v2 */
               CG_PART_LIMIT = 1 << 5,    /* memory.limit */
               CG_PART_HUGETLB = 1 << 6,
               CG_PART_IO = 1 << 7,
               CG_PART_PRESSURE = 1 << 8, /* v2; of a hybrid where the processes are in its v2 side, too */
               CG_PART_OOM = 1 << 9,
               CG_PART_PROCESSES = 1 << 10, /* of this cgroup itself, not of those below it */
               CG_PART_MORE = 1 << 11,      /* memory.peak, pids_limit */
};
#define CG_PARTS_BASIC (CG_PART_CPU | CG_PART_MEMORY | CG_PART_LIMIT) /* what is asked for often */
#define CG_PARTS_ALL ((1 << 12) - 1)

#define CG_NO_LIMIT UINT64_MAX

struct cg_psi_line {
    unsigned avg10, avg60, avg300; /* hundredths of a percent */
    uint64_t total_us;
};

struct cg_psi {
    struct cg_psi_line some, full; /* `full` stays 0 where the kernel does not say it */
    bool known;
};

enum cg_resource { CG_RES_CPU, CG_RES_MEMORY, CG_RES_IO };

struct cg_sample {
    int64_t at_ns;    /* wall clock */
    uint64_t mono_ns; /* for rates */
    unsigned parts;   /* those that are known */
    struct {
        uint64_t usage_ns, user_ns, system_ns;
        uint64_t periods, throttled_periods, throttled_ns;
    } cpu;
    struct {
        uint64_t usage, working_set, rss, file, mapped_file, inactive_file, kernel;
        uint64_t page_faults, major_page_faults;
        uint64_t limit; /* CG_NO_LIMIT; above 2^62 counts as none (v1 writes 2^63 less a page) */
        uint64_t swap, swap_limit;
        uint64_t peak; /* 0: the kernel does not say it */
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

struct cg_meters; /* a set: what its meters share */
struct cg_meter;

struct cg_meters_options {
    struct cg_tree *tree;         /* borrowed for the set's life */
    size_t keep_open;             /* descriptors, of all meters together */
    const char (*page_sizes)[16]; /* "2MB"; copied */
    size_t n_page_sizes;
};
enum err_code cg_meters_open(struct cg_meters **ret, const struct cg_meters_options *o,
                             struct err *e) MUST_CHECK;
void cg_meters_close(struct cg_meters *s);        /* after its meters; NULL is fine */
size_t cg_meters_kept(const struct cg_meters *s); /* descriptors that are open now */

/* `path` is absolute below the mount point, "/" is the whole machine.  Opens nothing yet. */
enum err_code cg_meter_new(struct cg_meter **ret, struct cg_meters *s, const char *path,
                           struct err *e) MUST_CHECK;
void cg_meter_free(struct cg_meter *m); /* NULL is fine */
SCOPE_DEFINE(struct cg_meter, cg_meter_free)

/* Fills in what there is of `parts`.  ERR_NOT_FOUND: no such cgroup (any more). */
enum err_code cg_meter_read(struct cg_meter *m, unsigned parts, struct cg_sample *ret,
                            struct err *e) MUST_CHECK;

/* Where all pods are ("/<root>/kubepods"), or one class of them; Guaranteed pods have none of their own. */
enum err_code cg_class_path(const struct cg_tree *t, enum cg_class class_, char *ret, size_t size,
                            struct err *e) MUST_CHECK;

/* ---- rate ------------------------------------------------------------------------------------ */
/*
 * Processor time a second from two samples that somebody asked for.  Closer together than CG_RATE_MIN_NS says
 * little (a quota's period is 0.1 s), farther apart than CG_RATE_MAX_NS nothing about now.
 */
#define CG_RATE_MIN_NS UINT64_C(500000000)
#define CG_RATE_MAX_NS UINT64_C(60000000000)

struct cg_rate { /* begins as { 0 } */
    uint64_t base_mono_ns, base_cpu_ns;
    uint64_t nano_cores;
    bool known;
};
/* Takes a sample in.  False: not known yet; a sample CG_RATE_MIN_NS after r->base_mono_ns will tell. */
bool cg_rate_update(struct cg_rate *r, uint64_t mono_ns, uint64_t cpu_ns);
#endif
