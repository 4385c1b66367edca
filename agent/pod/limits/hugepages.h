/* SPDX-License-Identifier: Apache-2.0 */
/* hugepages - the huge pages of this node, and the limits of pods. Their number is read from the kernel each
 * time (/sys/kernel/mm/hugepages), because it may change while the agent runs. Loop thread only. */
#ifndef AGENT_POD_LIMITS_HUGEPAGES_H
#define AGENT_POD_LIMITS_HUGEPAGES_H
#include "agent/pod/core/pod.h"

#define HUGEPAGES_SIZES_MAX 16 /* a kernel has at most 4 (arm64) */

struct hugepages_size {
    uint64_t page_bytes, total_bytes; /* total: of all reserved pages on this node */
    char resource[40];                /* "hugepages-2Mi" */
    char cgroup[16];                  /* "2MB", as in cgroup files and OCI runtimes */
};

void hugepages_open(struct node *n);
/* The page sizes of this kernel, smallest first; returns their number.  After a failed read: the last known
 * ones. */
size_t hugepages_sizes(const struct node *n, struct hugepages_size ret[HUGEPAGES_SIZES_MAX]);

/* Memory reserved for them, all sizes together. */
uint64_t hugepages_bytes(const struct node *n);

/* The pod's cgroup limit for each size: its requests, otherwise 0. */
size_t hugepages_pod_limits(const struct pod *p, struct cg_hugetlb ret[HUGEPAGES_SIZES_MAX]);
/* A container's: its own limit, otherwise the pod's (spec.resources), otherwise 0. */
size_t hugepages_ctr_limits(const struct pod *p, const struct api_container *c,
                            struct rt_hugepages ret[HUGEPAGES_SIZES_MAX]);

/* Page size of an emptyDir with medium "HugePages" or "HugePages-<size>". ERR_INVALID, in kubelet's words: no
 * container requests huge pages (of that size), or several sizes are requested and the medium names none. */
enum err_code hugepages_of_medium(const struct api_pod *api, const char *medium, uint64_t *ret_page_bytes,
                                  struct err *e) MUST_CHECK;
#endif
