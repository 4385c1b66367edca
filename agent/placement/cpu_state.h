/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_state - the processors of each container, and the shared set; kubelet's file cpu_manager_state, in its
 * format with its checksum, so that a node can migrate in either direction (pkg/kubelet/cm/cpumanager/state).
 * Pure: the caller reads and writes the file.
 *
 * The checksum is the 32-bit FNV-1a of the output of Go's spew for the data.
 */
#ifndef AGENT_PLACEMENT_CPU_STATE_H
#define AGENT_PLACEMENT_CPU_STATE_H
#include "agent/placement/cpus.h"
#include "agent/placement/entries.h"

#define PL_STATE_MAX (16 * 1024 * 1024) /* bytes of a file */
#define PL_ENTRIES_MAX 65536            /* containers in a file */
#define PL_NAME_MAX 253                 /* bytes of a uid, or of the name of a container */

struct pl_cpu_entry {
    struct pl_owner owner;
    struct cpus cpus;
};

struct pl_cpu_state {
    struct cpus shared;     /* defaultCpuSet: for the containers without entry */
    struct pl_cpu_entry *v; /* by pod and container, ascending by bytes */
    size_t n;
};

void pl_cpu_state_done(struct pl_cpu_state *s); /* { 0 } is fine; it is empty again */
/* NULL: the container has no exclusive processors. */
const struct pl_cpu_entry *pl_cpu_state_find(const struct pl_cpu_state *s, const char *pod,
                                             const char *container);
enum err_code pl_cpu_state_put(struct pl_cpu_state *s, const char *pod, const char *container,
                               const struct cpus *cpus, struct err *e) MUST_CHECK;
void pl_cpu_state_remove(struct pl_cpu_state *s, const char *pod, const char *container);

/* The text of the file, malloc'ed. `policy`: "none" or "static". */
enum err_code pl_cpu_state_write(const struct pl_cpu_state *s, const char *policy, char **ret, size_t *ret_n,
                                 struct err *e) MUST_CHECK;
/* ERR_DATA_LOSS: the file is damaged (not JSON, a wrong member, a wrong checksum). *ret_policy: at most
 * PL_NAME_MAX bytes, malloc'ed. On failure nothing is changed. */
enum err_code pl_cpu_state_read(const char *text, size_t n, struct pl_cpu_state *ret, char **ret_policy,
                                struct err *e) MUST_CHECK;
#endif
