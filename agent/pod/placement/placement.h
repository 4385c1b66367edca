/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement - the exclusive processors and NUMA memory of containers: applies the managers of agent/placement
 * to the pods, and keeps their state in kubelet's state files. Loop thread only.
 *
 * The device room requests hints and allocates at admission, together with devices; the resources of a pod
 * are released when it has ended. The state is in the files before a container starts. Without
 * cpuManagerPolicy: static and memoryManagerPolicy: Static nothing is placed, and the files are not touched.
 */
#ifndef AGENT_POD_PLACEMENT_PLACEMENT_H
#define AGENT_POD_PLACEMENT_PLACEMENT_H
#include "agent/placement/cpu_manager.h"
#include "agent/placement/memory_manager.h"
#include "agent/pod/core/pod.h"

extern const struct room placement_room;

/* ---- the node ---- */
/* After the records were read: the machine, the settings, the files. An error has kubelet's text, and the
 * agent does not start: the settings do not fit the machine, or a file does not fit both. */
enum err_code placement_begin(struct node *n, struct err *e) MUST_CHECK;
/* All manifests were read: what pods have that do not exist is released, and pods that run without what they
 * should have (the files were lost) get it. */
void placement_sources_ready(struct node *n);
/* Something is aligned or placed: one of the three policies is in force. */
bool placement_is_on(const struct node *n);
const struct pl_machine *placement_machine(const struct node *n);       /* NULL: not on */
const struct pl_cpu_manager *placement_cpus(const struct node *n);      /* NULL: not static */
const struct pl_memory_manager *placement_memory(const struct node *n); /* NULL: not Static */
bool placement_isolates(const struct node *n); /* isolateExclusiveCPUs, which needs the static policy */
const struct pl_topology *placement_topology(const struct node *n); /* valid if on */
struct placement_counts {
    uint64_t cpu_requests, cpu_errors, memory_requests, memory_errors;
    uint64_t cores_whole, cores_split; /* containers that got whole cores, and that could not */
};
struct placement_counts placement_counts(const struct node *n);

/* ---- admission ---- */
/* Whether a container of the pod gets exclusive processors or memory. */
bool placement_wants(const struct pod *p);
/* Adds to v the hints of p->ctrs[i], or of the whole pod: at most PLACEMENT_HINTS. The caller frees them. */
#define PLACEMENT_HINTS 2
enum err_code placement_hints(const struct pod *p, size_t i, bool whole, struct pl_hints *v, size_t *n,
                              struct err *e) MUST_CHECK;
/* Allocates the requests of p->ctrs[i]-> ERR_INVALID: an SMTAlignmentError; another error: too little is
 * free.
 */
enum err_code placement_allocate(struct pod *p, size_t i, const struct pl_hint *hint,
                                 struct err *e) MUST_CHECK;
/* The pod has nothing any more. True: it had something. */
bool placement_release(struct pod *p);

/* ---- containers ---- */
/* The pod's allocations are in the files, so its containers may start. If false, the pod is woken when it is.
 */
bool placement_durable(const struct pod *p);
bool placement_is_exclusive(const struct ctr *c); /* it has exclusive processors */
bool placement_pod_is_exclusive(const struct pod *p);
/* The lists for the container's cgroup, "0-3,7"; "": all. `cpus` has CPUS_TEXT_SIZE bytes. */
void placement_lists(const struct ctr *c, char *cpus, char mems[256]);
/* Changes whenever one of these lists may have changed. */
uint64_t placement_generation(const struct node *n);
/* Why the pod cannot be resized in place to the manifest *api; NULL: it can. */
const char *placement_refuses_resize(const struct pod *p, const struct api_pod *api);
#endif
