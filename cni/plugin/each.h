/* SPDX-License-Identifier: Apache-2.0 */
/*
 * each - runs a verb without attachment (STATUS, GC) over the plugins of a list, in order.
 *
 * STATUS ends at the first plugin that fails; GC continues, and its result is the first error.
 */
#ifndef CNI_PLUGIN_EACH_H
#define CNI_PLUGIN_EACH_H
#include "cni/plugin/conf.h"
#include "cni/plugin/plugin.h"

struct cni_each_call { /* strings borrowed until done */
    enum cni_verb verb;
    const struct cni_list *list; /* takes its own reference */
    json_t *more;                /* members added to the plugins' input, or NULL; takes the reference */
    const char *const *bin_dirs;
    int cgroup_fd;
    const char *cgroup_procs;
    uint64_t deadline_ms; /* for the whole list */
};

struct cni_each {
    struct op op;
    /* private */
    struct cni_each_call call;
    struct cni_list list;
    struct cni_plugin plugin;
    struct err first;
    size_t next;
    uint64_t deadline_at_ms;
};

void cni_each_start(struct cni_each *each, const struct cni_each_call *call, uv_loop_t *loop, op_done_fn done,
                    void *owner);
#endif
