/* SPDX-License-Identifier: Apache-2.0 */
/* The room's own data of the node and of a pod. */
#ifndef AGENT_POD_SANDBOX_INTERNAL_H
#define AGENT_POD_SANDBOX_INTERNAL_H
#include "agent/pod/core/pod.h"
#include "agent/pod/sandbox/net_attach.h"
#include "agent/pod/sandbox/sandbox.h"
#include "agent/runtime/pidns.h"
#include "base/process/process.h"
#include "cni/host/link_watch.h"
#include "cni/host/netns.h"
#include "cni/strays.h"

struct net_heal { /* net_heal.c; counts of its last round */
    struct cni_gc gc;
    bool gc_again;
    struct cni_strays strays;
    struct cni_link_watch *watch; /* net_watch.c; NULL: none */
    size_t adopted;               /* attachments known only by their leftovers, since the start */
    unsigned running, checked, again;
    size_t networks; /* that GC was run on */
    char gc_error[512];
    uv_timer_t leases_timer; /* until the next sweep, after one that failed */
    uint64_t leases_wait_ms; /* 0: the last one succeeded */
    char leases_error[504];  /* of the last one, or of its leftovers; "": neither */
};

struct sandbox_node {
    struct net_heal heal;
    struct { /* node_users.c: whether pods can have users of their own */
        enum { USERS_ASKING, USERS_CAN, USERS_CANNOT } state;
        char why[504]; /* not */
        struct proc_call call;
    } users;
    char tag[SANDBOX_TAG_DIGITS + 1]; /* the first digits of sandbox ids */
    bool told_no_cluster_dns;
};

struct sandbox { /* of a pod */
    enum net_state net;
    int64_t net_since_ns;
    char netns_dir[256];
    struct proc_call netns_call;
    struct netns_spec *netns_spec;
    struct cni_op cni_op;
    struct cni_attachment cni_att;
    struct net_attach *net_attach; /* referred to by cni_att */
    struct cni_result net_result;
    char *net_timed; /* the time of each plugin of its ADD; NULL: not known */
    char *net_error; /* NULL: none */
    struct boot_time net_retry_at;
    uint64_t net_backoff_ms;
    char netns_path[300];
    char net_again_ip[46]; /* attached again after it was lost: the address it had; "" otherwise */
    char hostname[65];
    char handler[64];              /* runtime_class.c: of its OCI runtime, a DNS label; "": the default */
    uint32_t first_id;             /* of the host, that root is in the pod's user namespace; 0: none */
    bool net_check;                /* net_heal.c: to be checked, not before net_check_at */
    bool net_healing;              /* lost its network: DEL and ADD are under way */
    bool net_checking;             /* cni_op is a CHECK */
    bool net_changed;              /* the pod changed its namespace itself: not attached again for that */
    bool net_told;                 /* the last check found a difference that is only reported */
    uint64_t net_told_ms;          /* pause before the next check for changes by the pod */
    bool net_fresh;                /* this agent attached it, and nothing was wrong since */
    struct boot_time net_check_at; /* none: now */
    struct boot_time net_look_at;  /* net_watch.c: its interface is checked then; none: nothing happened */
    struct boot_time net_again_at; /* when it was last attached again; none: never */
    bool net_watched;              /* net_nsid is the id of its network namespace */
    int32_t net_nsid;
    bool net_undo;        /* an ADD failed or was cut off: DEL before the next one */
    bool net_detached;    /* DEL is done (terminating) */
    bool net_lost;        /* recovered without its namespaces: begins anew */
    bool files_written;   /* hosts with the pod's IP */
    bool net_sysctls_set; /* those of its interface */

    /* shareProcessNamespace */
    enum pidns_state { PIDNS_NONE, PIDNS_MAKING, PIDNS_READY } pidns;
    struct proc_call pidns_call;
    struct rt_pidns_spec *pidns_spec;
    struct pidns_watch *pidns_watch; /* its first process; NULL: there is none */
    struct boot_time pidns_retry_at;
};

static inline struct sandbox_node *sandbox_node(const struct node *n)
{
    return n->parts[ROOM_SANDBOX];
}
static inline struct sandbox *sandbox_of(const struct pod *p)
{
    return p->parts[ROOM_SANDBOX];
}

void sandbox_set_net(struct pod *p, enum net_state s); /* the only way to change it */
/* runtime_class.c: sets the handler. ERR_UNAVAILABLE: not known yet; others are reported and tried again. */
enum err_code sandbox_choose_runtime(struct pod *p, struct err *e) MUST_CHECK;
void sandbox_set_pidns(struct pod *p, enum pidns_state s);

/* ---- sandbox.c ---- */
bool sandbox_has_netns(const struct pod *p); /* it should have one of its own */
enum err_code sandbox_write_files(struct pod *p, struct err *e) MUST_CHECK; /* hosts and resolv.conf */
#endif
