/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hugepages - the huge pages of this node and what a pod may have of them.  How many there are is the
 * kernel's to say (/sys/kernel/mm/hugepages) and may change while the agent runs: it is asked each time.
 * Loop thread only.
 */
#ifndef AGENT_POD_LIMITS_HUGEPAGES_H
#define AGENT_POD_LIMITS_HUGEPAGES_H
#include "agent/pod/core/pod.h"

#define HUGEPAGES_SIZES_MAX 16 /* the most that a kernel has is 4 (arm64) */

struct hugepages_size {
    uint64_t page_bytes, total_bytes; /* total: of all pages that were set aside on this node */
    char resource[40];                /* "hugepages-2Mi" */
    char cgroup[16];                  /* "2MB", as cgroup files and OCI runtimes call it */
};

/* The page sizes of this kernel, smallest first: their number. */
size_t hugepages_sizes(const struct node *n, struct hugepages_size ret[HUGEPAGES_SIZES_MAX]);

/* Memory that was set aside for them, all sizes together. */
uint64_t hugepages_bytes(const struct node *n);

/* What the pod's cgroup may have of each size: its requests, of all others nothing. */
size_t hugepages_pod_limits(const struct pod *p, struct cg_hugetlb ret[HUGEPAGES_SIZES_MAX]);
/* And a container's: its own limit, else the pod's (spec.resources), else nothing. */
size_t hugepages_ctr_limits(const struct pod *p, const struct api_container *c,
                            struct rt_hugepages ret[HUGEPAGES_SIZES_MAX]);

/*
 * Page size of an emptyDir with medium "HugePages" or "HugePages-<size>".  ERR_INVALID, in kubelet's words:
 * no container asks for huge pages (of that size), or for several sizes where the medium names none.
 */
enum err_code hugepages_of_medium(const struct api_pod *api, const char *medium, uint64_t *ret_page_bytes,
                                  struct err *e) MUST_CHECK;
#endif
