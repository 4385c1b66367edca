/* SPDX-License-Identifier: Apache-2.0 */
/* What limits keeps of the node for itself. */
#ifndef AGENT_POD_LIMITS_INTERNAL_H
#define AGENT_POD_LIMITS_INTERNAL_H
#include "agent/placement/isolate.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/limits/hugepages.h"
#include "base/strs.h"

#define ISOLATION_WHY sizeof(((struct err *)0)->text)

struct isolation_node {
    bool on;                /* the setting */
    const char *impossible; /* on this machine; NULL: it is possible */
    bool idle;              /* at the last check there was nothing to isolate */
    uint64_t generation;    /* of the processors at the last check */
    uv_timer_t timer;
};

struct limits_node {
    struct { /* the last limits of a QoS class's cgroup, by enum cg_class */
        bool known;
        int64_t cpu_shares, memory_low;
    } classes[CG_BEST_EFFORT + 1];
    int64_t protected_bytes; /* requests of memory that the cgroup of all pods protects; 0: none */
    struct hugepages_size sizes[HUGEPAGES_SIZES_MAX]; /* as last seen */
    size_t n_sizes;
    uv_timer_t timer; /* runs while the limits of all pods together cannot be written */
    struct isolation_node isolation;
};

struct limits_ctr {
    uint64_t cpuset;                   /* generation of the processors that its cgroup was last given */
    char cpuset_id[65];                /* and which run of the container that was */
    char isolation_id[65];             /* the run that was isolated, or not; "": none */
    char isolation_why[ISOLATION_WHY]; /* why not; "": it is */
};

/* Gives running containers the processors that they have now. */
void cpusets_step(struct pod *p);

/* ---- isolation.c ---- */
void isolation_open(struct node *n);
void isolation_free(struct node *n);
void isolation_step(struct pod *p);
void isolation_pod_freed(struct pod *p);

/* ---- isolation_tree.c ---- */
bool isolation_is_wanted(const struct ctr *c);   /* it is to be isolated now */
struct cpus isolation_cpus(const struct ctr *c); /* of such a one */
struct isolation_tree {                          /* { 0 } is empty; isolation_done() */
    struct pl_iso_cgroup *v;                     /* n, as pl_isolate() takes them */
    size_t n;
    struct strs paths;  /* of each */
    struct strs wanted; /* the cgroups of the containers that are to be isolated, */
    struct ctr **ctrs;  /* which are these; borrowed */
    struct cpus want;   /* their processors */
};
enum err_code isolation_read(struct node *n, struct isolation_tree *t, struct err *e) MUST_CHECK;
/* *e: the first write that failed; all are tried. */
void isolation_write(const struct node *n, const struct isolation_tree *t, struct err *e);
/* After the writes, which `failed` or not: why the container is not isolated; "": it is. */
void isolation_result(const struct isolation_tree *t, const struct ctr *c, const struct err *failed,
                      char why[ISOLATION_WHY]);
void isolation_done(struct isolation_tree *t);

static inline struct limits_node *limits_node(const struct node *n)
{
    return n->parts[ROOM_LIMITS];
}

static inline struct isolation_node *isolation_node(const struct node *n)
{
    return &limits_node(n)->isolation;
}
#endif
