/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni - the CNI runtime: network lists, plugin execution, result cache. Rules: containernetworking/cni
 * SPEC.md 1.1, libcni; docs/decisions/network.md.
 *
 * A configuration folder is loaded into networks; the first valid list (sorted by file name) is the default
 * network. An attachment is (network, container id, interface). The caller serialises operations on one
 * attachment; different attachments run in parallel. Plugins are children with an explicit environment, a
 * deadline and an output limit. After a successful ADD, the result and the exact configuration are cached on
 * disk; DEL uses the cached configuration, so that pods can be removed after a list was edited or deleted.
 * Loop thread only.
 */
#ifndef CNI_CNI_H
#define CNI_CNI_H
#include "base/op.h"
#include "base/scope.h"
#include "base/strs.h"
#include "cni/plugin/result.h"
#include "cni/times.h"

#include <jansson.h>
#include <stdint.h>

struct cni;

struct cni_options {
    uv_loop_t *loop;
    const char *conf_dir;        /* /etc/cni/net.d */
    const char *const *bin_dirs; /* NULL-terminated; the first match is used */
    const char *cache_dir;       /* ours, 0700: <network>-<container id>-<ifname>.json */
    /* The plugins' state (host-local dataDir), passed to plugins with ipam.type host-local and no dataDir of
     * their own; NULL: not passed. */
    const char *data_dir;
    int ops_cgroup_fd; /* children start in it; -1: none */
    const char *ops_cgroup_procs;
};

enum err_code cni_open(struct cni **ret, const struct cni_options *o, struct err *e) MUST_CHECK;
/* The time that plugins took since cni_open(). */
const struct cni_times *cni_times(const struct cni *c);
void cni_close(struct cni *c); /* no operation may be live; the loop frees the rest on a later turn */
SCOPE_DEFINE(struct cni, cni_close)

/* Reloads the folder (also done on inotify events); cni_problem() lists problems of its files. */
void cni_reload(struct cni *c);
/*
 * Name of the default network; NULL if there is none, with the reason in *ret_why ("no CNI configuration file
 * in ..."). As in CRI-O, a list is not used if a plugin is not installed or does not support its cniVersion.
 * After a load, the plugins are queried for their versions (VERSION); until they have answered, the list is
 * used and operations wait. A default network of cniVersion 1.1.0 or later is available only while its
 * plugins report a good STATUS; otherwise STATUS is repeated, finally every few seconds.
 */
const char *cni_default_network(const struct cni *c, const char **ret_why);
/* Whether there is a usable list of this name. */
bool cni_has_network(const struct cni *c, const char *name);
bool cni_has_no_list(
    const struct cni *c); /* the folder was read, and no file has a list, not even an invalid one */
/* Plugins (types) used in lists but not found in any bin_dir; NULL-terminated, borrowed; may be empty. */
const char *const *cni_missing_plugins(const struct cni *c);
/* Problems with single files or with watching the folders since the last load; NULL after the last. */
const char *cni_problem(const struct cni *c, size_t i);
/* Called on the loop when a change of the folders changed lists, programs or problems. */
void cni_on_change(struct cni *c, void (*fn)(void *arg), void *arg);

struct cni_port_mapping {
    int host_port, container_port;
    const char *protocol; /* "tcp", "udp", "sctp" */
    const char *host_ip;  /* NULL or "": any */
};

struct cni_pair {
    const char *key, *value;
};

struct cni_attachment {       /* strings borrowed until done */
    const char *container_id; /* sandbox id */
    const char *netns;        /* path; "" for a DEL when the namespace no longer exists */
    const char *ifname;       /* "eth0" */
    const char *pod_namespace, *pod_name, *pod_uid; /* CNI_ARGS */
    const struct cni_port_mapping *ports;
    size_t n_ports;
    int64_t ingress_bits, egress_bits; /* bandwidth in bits per second; 0: unlimited */

    /* Passed to plugins that declare the capability; each may be NULL: not passed. */
    const char *const *ip_ranges;   /* ipRanges: subnets, each its own set; NULL-terminated */
    const char *cgroup_path;        /* cgroupPath */
    const char *const *dns_servers; /* dns; NULL-terminated, like the next two */
    const char *const *dns_searches;
    const char *const *dns_options;
    const struct cni_pair *annotations; /* io.kubernetes.cri.pod-annotations (and podAnnotations) */
    size_t n_annotations;
    /* The previous address of a recreated attachment: capabilities ips and mac, and IP= in CNI_ARGS, which
     * host-local uses. Plugins that cannot assign it fail. */
    const char *ip;  /* address without prefix length */
    const char *mac; /* "0a:58:0a:4d:00:05" */
};

struct cni_op {
    struct op op;
    struct cni_result result; /* ADD; valid in done on success */
    bool checked;             /* ADD; valid in done: a first CHECK is not needed */
    struct cni_timed timed;   /* ADD and DEL; valid in done: the time that each plugin took */
    bool inside;              /* failed CHECK: reported by the list's first plugin, see cni_check_start() */
    struct cni_run *run;      /* private */
    uv_timer_t slow;          /* private: runs while the operation occupies one of the slots */
};

/* For the whole list, from the start of its first plugin: at most 2 x CPUs (at least 4) operations run at
 * once, the others wait in order of arrival; op_cancel() works while they wait. Operations that take longer
 * than CNI_PLACE_MS reduce that number (width.h). An operation that takes longer than CNI_HANG_MS most likely
 * hangs; its slot is released for the next. */
#define CNI_ADD_DEADLINE_MS 120000
#define CNI_DEL_DEADLINE_MS 60000
#define CNI_PLACE_MS 2000 /* an ADD takes 50 to 300 ms */
#define CNI_HANG_MS 10000

struct cni_turn {
    size_t before;    /* operations that wait before it */
    size_t now, most; /* operations that may run at once, and when plugins are quick */
};

/* Whether the operation waits for a slot. */
bool cni_waits(const struct cni_op *o, struct cni_turn *ret);

/* ADD on the default network. After a failure the caller must run DEL before the next ADD (ERR_PRECONDITION
 * otherwise). ERR_UNAVAILABLE: no default network; ERR_INVALID: the attachment cannot be passed on, nothing
 * ran. For plugins' errors see plugin.h. */
void cni_add_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                   void *owner);
/* DEL in reverse order with the cached list and result; if nothing is cached, with the default network.
 * Idempotent. */
void cni_del_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                   void *owner);

/*
 * CHECK in the list's order with the cached list and result. Not all plugins implement CHECK correctly:
 * bandwidth 1.1 crashes without a limit, portmap 1.1 reports missing rules for an address family in which it
 * created none. So a crash (a failure without an error object) is ignored, and the first CHECK after an ADD
 * is the reference: its findings are kept with the attachment, and a later CHECK fails if it finds something
 * else. If it found nothing, attachments of the same kind (network, capabilities, no host ports) need no
 * first CHECK until the lists are reloaded. ERR_OK also if the list is not to be checked (disableCheck,
 * cniVersion below 0.4.0).
 *
 * The first plugin of a list creates the interface, and its CHECK examines the namespace (addresses, routes),
 * which the pod itself may have changed on purpose. So the other plugins are run in any case, and if they
 * find no fault, `inside` is set.
 *
 * `found`: a problem found by the caller, or NULL; it is treated like the first plugin's finding. `fresh`:
 * the ADD has just finished, so this is the intended state; otherwise the caller's finding is an error even
 * in the first CHECK. ERR_NOT_FOUND: nothing cached; ERR_PRECONDITION: its ADD or DEL did not finish;
 * ERR_UNKNOWN: something is missing.
 */
void cni_check_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, const char *found,
                     bool fresh, op_done_fn done, void *owner);

/*
 * GC of every usable network that supports it (cniVersion 1.1.0, no disableGC): plugins get the network's
 * cached attachments and remove everything else. First DEL cached attachments without an owner. `living`: ids
 * of containers (NULL-terminated) whose `ifname` is kept although its entry is lost or damaged. Waits until
 * no other operation runs; none begins until it is over. Every plugin is called; the first error is the
 * result.
 */
#define CNI_GC_DEADLINE_MS 30000 /* per network */
struct cni_gc {
    struct op op;
    size_t n_networks; /* number of networks; valid in done */
    /* private */
    struct cni *c;
    struct cni_each *each;
    struct strs living;
    char ifname[16];
    size_t next;
    struct err first;
    bool running;
    TAILQ_ENTRY(cni_gc) link;
};
void cni_gc_start(struct cni_gc *g, struct cni *c, const char *const *living, const char *ifname,
                  op_done_fn done, void *owner);

/* Whether the interface that ADD created as `ifname` still exists, although the namespace (its links:
 * `inside`) has none of that name. A pod may rename its interface or move it elsewhere. */
struct cni_links;
struct presence cni_look_interface(struct cni *c, const char *container_id, const char *ifname,
                                   const struct cni_links *inside, struct err *e) MUST_CHECK;

/* The cached result of an attachment (after a restart of the agent); absent: none, or its ADD did not
 * finish. */
struct presence cni_cached_result(struct cni *c, const char *container_id, const char *ifname,
                                  struct cni_result *ret, struct err *e) MUST_CHECK;
/* The name of its network; malloc'ed. */
enum err_code cni_cached_network(struct cni *c, const char *container_id, const char *ifname, char **ret,
                                 struct err *e) MUST_CHECK;
/* Container ids of all cached attachments (strs_done()), to DEL those without an owner. */
enum err_code cni_cached_ids(struct cni *c, struct strs *ret, struct err *e) MUST_CHECK;

/* --ephemeral: deletes links named as `bridge` in cached, used or loaded lists (except those that existed
 * before according to the undo record), and the networks' state below data_dir; best effort. Call before
 * cni_undo_start(). */
void cni_remove_bridges(struct cni *c);
#endif
