/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage - resource usage of this node, its pods together, each pod and each container.
 *
 * Read only on request (/stats/summary, /metrics, `coracle top`), without timers. Meters
 * (cgroups/meter.h) are made on the first request, keep their files open for the next one, and are freed with
 * their cgroup. They may use a quarter of the process' descriptors (RLIMIT_NOFILE), at most USAGE_OPEN_MAX:
 * four per container and pod, so about 900 for 110 pods of one container; beyond that meters open their files
 * at each read, which takes three times as long.
 *
 * CPU time per second (usageNanoCores) is computed between the last two requests, if they were CG_RATE_MIN_NS
 * to CG_RATE_MAX_NS apart. Without such a sample (the first request, a new container), a request for rates is
 * answered half a second later, with a second sample.
 *
 * Loop thread only.
 */
#ifndef AGENT_POD_USAGE_USAGE_H
#define AGENT_POD_USAGE_USAGE_H
#include "agent/pod/core/pod.h"
#include "agent/pod/usage/storage_usage.h" /* of pods on disk */
#include "cgroups/meter.h"

extern const struct room usage_room;

#define USAGE_OPEN_MAX 8192

enum usage_kind {
    USAGE_NODE,  /* everything, "/" */
    USAGE_PODS,  /* all pods together */
    USAGE_CLASS, /* those of a QoS class */
    USAGE_POD,
    USAGE_CONTAINER, /* directly after its pod, in the order of the spec */
};

struct usage_row { /* borrowed during the callback */
    enum usage_kind kind;
    const char *cgroup;   /* its path */
    enum cg_class class_; /* USAGE_CLASS */
    struct pod *pod;      /* USAGE_POD, USAGE_CONTAINER */
    struct ctr *ctr;      /* USAGE_CONTAINER */
    struct cg_sample s;
    uint64_t nano_cores;
    bool rate_known;
};

/* Reads `parts` of everything and calls fn for each, in the order of enum usage_kind; unreadable ones are
 * omitted. False when out of memory. In pieces, because it takes long: first everything except the pods, then
 * one pod per call; other requests may come in between, and pods come and go. */
struct usage_walk { /* initialize to { 0 } */
    uint64_t round, ns, cpu_ns;
};
/* p NULL: everything except the pods. */
bool usage_walk(struct node *n, struct usage_walk *w, unsigned parts, struct pod *p,
                void (*fn)(const struct usage_row *row, void *arg), void *arg);
/* A pod's cgroup alone, without its containers. False: it cannot be read; *ret_absent: nothing runs in it. */
bool usage_read_pod(struct node *n, unsigned parts, const struct pod *p, struct cg_sample *ret,
                    bool *ret_absent);
void usage_walked(struct node *n, const struct usage_walk *w, unsigned parts); /* that was everything */

/* The page sizes of cg_sample.hugetlb, "2MB"; returns their number. */
size_t usage_page_sizes(struct node *n, const char (**ret)[16]);

/* The cgroup at or below `path` is being removed: closes its files. */
void usage_forget(struct node *n, const char *path);

/* kubelet's /stats/summary, perhaps half a second later; `basic`: only_cpu_and_memory. */
void usage_summary(struct node *n, bool basic, struct status_reply *r);
void usage_cancel(struct node *n); /* pending answers are refused */
void usage_close(struct node *n);  /* from node_free() */

void usage_metrics_agent(struct node *n, struct buf *out); /* of the reading itself */
void volume_metrics(struct node *n, struct buf *out);      /* kubelet_volume_stats_* */

/* ---- usage_metrics.c: a page for Prometheus, piece by piece ---- */
struct usage_page;
/* cAdvisor's container_*, machine_*; `resource`: kubelet's /metrics/resource. NULL when out of memory. */
struct usage_page *usage_page_new(struct node *n, bool resource);
/* NULL: everything except the pods; call that first */
void usage_page_read(struct usage_page *page, struct pod *p);
/* Writes the next of its names. False: there was none. */
bool usage_page_write(struct usage_page *page, struct buf *out);
void usage_page_free(struct usage_page *page); /* NULL is fine */

/* ---- usage_node.c: the machine, from /proc ---- */
struct usage_machine {
    uint64_t memory_bytes, swap_bytes, swap_free_bytes;
    uint64_t memory_available_bytes; /* the kernel's estimate; 0: not known */
    uint64_t pid_max, processes;     /* tasks; 0: not known */
    int64_t boot_ns;                 /* wall clock; 0: not known */
};
void usage_machine_read(struct usage_machine *ret);

/* ---- usage_summary.c ---- */
struct summary;
/* NULL when out of memory. */
struct summary *summary_new(struct node *n, bool basic, bool pretty);
/* The next pod. False: there was none. */
bool summary_step(struct summary *s);
/* The metrics as text, into *ret (initialized). *ret_missing: rates not known yet. False: no memory. */
bool summary_end(struct summary *s, struct buf *ret, size_t *ret_missing);
void summary_free(struct summary *s); /* NULL is fine */

/* ---- kills out of memory: oom.h ---- */
/* The container is running: watches it from now on; may be repeated. Fails if its counter cannot be read. */
enum err_code oom_watch(struct ctr *c, struct err *e) MUST_CHECK;
/* It ended, its cgroup still exists: reports the remaining kills, and stops watching. Fails likewise. */
enum err_code oom_ended(struct ctr *c, struct err *e) MUST_CHECK;
/* Its remains are being removed. */
void oom_forget(struct node *n, const char *cgroup_path);
void oom_explain(const struct node *n, json_t *steps);

/* ---- limits of local storage: local_storage.h ---- */
/* For a measured pod: one step. */
void local_storage_explain(const struct pod *p, json_t *steps);
/* It starts again, has more containers, or is freed: measured anew from its next step on. */
void local_storage_forget(struct pod *p);

/* ---- GET /metrics: scrape.h ---- */
/* Appends to `own` (taken) and answers `r`. */
void scrape_start(struct node *n, enum status_metrics which, struct buf *own, struct status_reply *r);
#endif
