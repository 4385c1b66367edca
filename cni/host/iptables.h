/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iptables - reads the rules of IPv4, then of IPv6, and applies the script that an edit function derives from
 * them.
 *
 * For each family it runs iptables-save (ip6tables-save) and passes the output to `edit`; the script that
 * `edit` fills is the input of iptables-restore --noflush. A program that is not installed has no rules, and
 * neither has a kernel without the family (the program exits with an error). Other failures do not end the
 * operation: the first one is its result. Loop thread only.
 */
#ifndef CNI_HOST_IPTABLES_H
#define CNI_HOST_IPTABLES_H
#include "base/process/process.h"

struct cni_iptables_spec {
    const char *table; /* NULL: all */
    /* `family` is "iptables" or "ip6tables". An empty script changes nothing. */
    enum err_code (*edit)(void *arg, const char *family, const char *save, struct buf *script, struct err *e);
    void *arg;
    int cgroup_fd;
    const char *cgroup_procs; /* borrowed until done */
    unsigned deadline_ms; /* of each program; iptables may wait while other processes hold the xtables lock */
};

struct cni_iptables {
    struct op op;
    /* private */
    struct cni_iptables_spec spec;
    struct proc proc;
    struct err first;
};

void cni_iptables_start(struct cni_iptables *t, uv_loop_t *loop, const char *name, const char *subject,
                        const struct cni_iptables_spec *spec, op_done_fn done, void *owner);
#endif
