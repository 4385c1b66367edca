/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage - what this node, its pods together, each pod and each container use.
 *
 * Read when somebody asks (/stats/summary, /metrics, `coracle top`) and at no other time: nothing here has a
 * timer that runs by itself.  Meters (cgroups/meter.h) are made at the first question, keep their files open
 * for the next one, and go with their cgroup.  They may hold a quarter of the descriptors that this process
 * may have (RLIMIT_NOFILE), at most USAGE_OPEN_MAX: four a container and pod, so 110 pods of one container
 * hold some 900; beyond that meters open their files at each read, which takes three times as long.
 *
 * Processor time a second (usageNanoCores) is between the last two questions, if they were CG_RATE_MIN_NS to
 * CG_RATE_MAX_NS apart.  Where there is no such sample - the first question, a container that has just
 * started - a question about rates is answered half a second later, with a second sample.
 *
 * Loop thread only.
 */
#ifndef AGENT_POD_USAGE_USAGE_H
#define AGENT_POD_USAGE_USAGE_H
#include "agent/pod/core/pod.h"
#include "cgroups/meter.h"

extern const struct room usage_room;

#define USAGE_OPEN_MAX 8192

enum usage_kind {
    USAGE_NODE,  /* everything, "/" */
    USAGE_PODS,  /* all pods together */
    USAGE_CLASS, /* those of a QoS class */
    USAGE_POD,
    USAGE_CONTAINER, /* right after its pod, in the order of the spec */
};

struct usage_row { /* borrowed during the call that gives it */
    enum usage_kind kind;
    const char *cgroup;   /* its path */
    enum cg_class class_; /* USAGE_CLASS */
    struct pod *pod;      /* USAGE_POD, USAGE_CONTAINER */
    struct ctr *ctr;      /* USAGE_CONTAINER */
    struct cg_sample s;
    uint64_t nano_cores;
    bool rate_known;
};

/* Reads `parts` of everything there is and then calls fn for each, in the order of enum usage_kind; what
 * cannot be read is left out.  False: no memory. */
bool usage_each(struct node *n, unsigned parts, void (*fn)(const struct usage_row *row, void *arg),
                void *arg);

/*
 * The same in pieces, for what takes long: first all but the pods, then pods, one a call; others may ask
 * between two pieces, and pods come and go.  `fn` is told at once.
 */
struct usage_walk { /* begins as { 0 } */
    uint64_t round, ns, cpu_ns;
};
/* p NULL: all but the pods. */
bool usage_walk(struct node *n, struct usage_walk *w, unsigned parts, struct pod *p,
                void (*fn)(const struct usage_row *row, void *arg), void *arg);
void usage_walked(struct node *n, const struct usage_walk *w, unsigned parts); /* that was everything */

/* The page sizes behind cg_sample.hugetlb, "2MB"; their number. */
size_t usage_page_sizes(struct node *n, const char (**ret)[16]);

/* The cgroup at or below `path` is being removed: what is open in it is closed. */
void usage_forget(struct node *n, const char *path);

/* kubelet's /stats/summary, perhaps half a second later; `basic`: only_cpu_and_memory. */
void usage_summary(struct node *n, bool basic, struct status_reply *r);
void usage_cancel(struct node *n); /* answers that are owed are refused */
void usage_close(struct node *n);  /* from node_free() */

void usage_metrics_agent(struct node *n, struct buf *out); /* of the reading itself */

/* ---- usage_metrics.c: a page for Prometheus, piece by piece --------------------------------------- */
struct usage_page;
/* cAdvisor's container_*, machine_*; `resource`: kubelet's /metrics/resource.  NULL: no memory. */
struct usage_page *usage_page_new(struct node *n, bool resource);
void usage_page_read(struct usage_page *page, struct pod *p); /* NULL: all but the pods; that first */
/* The next of its names.  False: there was no further one. */
bool usage_page_tell(struct usage_page *page, struct buf *out);
void usage_page_free(struct usage_page *page); /* NULL is fine */

/* ---- usage_node.c: the machine, from /proc ------------------------------------------------------ */
struct usage_machine {
    uint64_t memory_bytes, swap_bytes, swap_free_bytes;
    uint64_t pid_max, processes; /* tasks; 0: not known */
    int64_t boot_ns;             /* wall clock; 0: not known */
};
void usage_machine_read(struct usage_machine *ret);

/* ---- usage_summary.c ---------------------------------------------------------------------------- */
struct summary;
/* NULL: no memory. */
struct summary *summary_new(struct node *n, bool basic);
/* The next pod.  False: there was no further one. */
bool summary_step(struct summary *s);
/* Of what was read.  *ret_missing: rates that are not known yet.  NULL: no memory. */
json_t *summary_end(struct summary *s, size_t *ret_missing);
void summary_free(struct summary *s); /* NULL is fine */
/* All of it at once. */
json_t *usage_summary_json(struct node *n, bool basic, size_t *ret_missing);
#endif
