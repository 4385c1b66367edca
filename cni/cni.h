/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cni - the CNI runtime: network lists, plugin execution, result cache.
 * Rules: containernetworking/cni SPEC.md 1.1, libcni; docs/decisions/network.md.
 *
 * A configuration folder is loaded into networks; the first good list (plain sort by file name) is the
 * default network.  One attachment = (network, container id, interface).  The caller serialises operations on
 * one attachment; different attachments run in parallel.  Plugins are children with a built environment, a
 * deadline and an output limit. After a successful ADD the result and the exact configuration are cached on
 * disk; DEL uses the cached configuration, so editing or removing a list does not strand pods.  Loop thread
 * only.
 */
#ifndef CNI_CNI_H
#define CNI_CNI_H
#include "base/op.h"
#include "base/scope.h"
#include "cni/strs.h"

#include <jansson.h>
#include <stdint.h>

struct cni;

struct cni_options {
    uv_loop_t *loop;
    const char *conf_dir;        /* /etc/cni/net.d */
    const char *const *bin_dirs; /* NULL-terminated; first hit wins */
    const char *cache_dir;       /* ours, 0700: <network>-<container id>-<ifname>.json */
    const char *data_dir; /* plugins' state (host-local dataDir) when set: passed as-is to plugins that have
                             ipam.type host-local and no dataDir of their own; NULL: leave alone */
    int ops_cgroup_fd;    /* children start here; -1: none */
    const char *ops_cgroup_procs;
};

enum err_code cni_open(struct cni **ret, const struct cni_options *o, struct err *e) MUST_CHECK;
void cni_close(struct cni *c); /* no operation may be live; the loop frees what is left on a later turn */
SCOPE_DEFINE(struct cni, cni_close)

/* Reloads the folder (also done by itself on inotify events); problems of files are in cni_problem(). */
void cni_reload(struct cni *c);
/*
 * Name of the default network; NULL while there is none, then *ret_why says why ("no CNI configuration
 * file in ...").  A list is not used, as in CRI-O, when not all its plugins are installed, or when one of
 * them does not speak its cniVersion.  The plugins are asked for that (VERSION) after a load; until they
 * answered the list counts and operations wait.  A default network of cniVersion 1.1.0 or later is there only
 * while its plugins' STATUS is good; one that is not is asked again, every few seconds in the end.
 */
const char *cni_default_network(const struct cni *c, const char **ret_why);
/* Is there a usable list of this name? */
bool cni_has_network(const struct cni *c, const char *name);
/* Plugins (types) that lists name but no bin_dir has; NULL-terminated, borrowed; empty when all are there. */
const char *const *cni_missing_plugins(const struct cni *c);
/* What is wrong with single files or with watching the folders, since the last load; NULL past the last. */
const char *cni_problem(const struct cni *c, size_t i);
/* Called on the loop after the folders changed and what they say (lists, programs, problems) is another. */
void cni_on_change(struct cni *c, void (*fn)(void *arg), void *arg);

struct cni_port_mapping {
    int host_port, container_port;
    const char *protocol; /* "tcp", "udp", "sctp" */
    const char *host_ip;  /* NULL or "": any */
};

#define CNI_IPS_MAX 4

struct cni_pair {
    const char *key, *value;
};

struct cni_attachment {                             /* who; strings borrowed until done */
    const char *container_id;                       /* sandbox id */
    const char *netns;                              /* path; "" on DEL when it is gone */
    const char *ifname;                             /* "eth0" */
    const char *pod_namespace, *pod_name, *pod_uid; /* CNI_ARGS */
    const struct cni_port_mapping *ports;
    size_t n_ports;
    int64_t ingress_bits, egress_bits; /* bandwidth, bits a second; 0: none */

    /* What plugins get that declare the capability; each may be NULL: not supplied. */
    const char *const *ip_ranges;   /* ipRanges: subnets, each a set of its own; NULL-terminated */
    const char *cgroup_path;        /* cgroupPath */
    const char *const *dns_servers; /* dns; NULL-terminated, like the next two */
    const char *const *dns_searches;
    const char *const *dns_options;
    const struct cni_pair *annotations; /* io.kubernetes.cri.pod-annotations (and podAnnotations) */
    size_t n_annotations;
    /* What an attachment that is made again would like to have again: capabilities ips and mac, and IP= in
     * CNI_ARGS, which host-local takes.  A plugin that cannot give it fails. */
    const char *ip;  /* address without prefix length */
    const char *mac; /* "0a:58:0a:4d:00:05" */
};

struct cni_result {
    /* Addresses of the sandbox's interface, in the plugin's order, without prefix length. */
    char ips[CNI_IPS_MAX][46];
    size_t n_ips;
};

struct cni_op {
    struct op op;
    struct cni_result result; /* ADD; valid in done on success */
    bool checked;             /* ADD, likewise: a first CHECK would tell nothing new */
    bool inside;              /* CHECK that failed: as the list's first plugin sees it, see there */
    struct cni_run *run;      /* private */
    uv_timer_t slow;          /* private: runs while the operation counts as one of those that run at once */
};

/*
 * For the whole list, from the moment its first plugin starts: at most 2 x processors (at least 4) operations
 * run at once and the others wait in order of arrival; op_cancel() works while they wait.  One that has not
 * ended within CNI_PLACE_MS hangs, most likely, and gives its place to the next.
 */
#define CNI_ADD_DEADLINE_MS 120000
#define CNI_DEL_DEADLINE_MS 60000
#define CNI_PLACE_MS 2000 /* an ADD takes 50 to 300 ms */

/*
 * ADD on the default network.  On failure the caller must run DEL before it may ADD again (ERR_PRECONDITION
 * otherwise).  ERR_UNAVAILABLE: no default network; ERR_INVALID: the attachment cannot be passed on, nothing
 * ran.  What else plugins come to: plugin.h.
 */
void cni_add_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                   void *owner);
/* DEL in reverse order with cached list and result; nothing cached: the default network.  Idempotent. */
void cni_del_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, op_done_fn done,
                   void *owner);

/*
 * CHECK in the list's order with cached list and result.  Not every plugin's CHECK is good: bandwidth 1.1
 * crashes where there is no limit, portmap 1.1 misses rules of a family in which it made none.  So a crash (a
 * failure without an error object) says nothing, and the first CHECK after an ADD is the measure: what it
 * found wrong is kept with the attachment, and a later one fails where it finds something else.  When that
 * was nothing, attachments of the same kind (network, capabilities, no host ports) need no first CHECK of
 * their own until the lists are loaded again.  ERR_OK also when the list is not to be checked (disableCheck,
 * cniVersion below 0.4.0).
 *
 * The first plugin of a list makes the interface, and its CHECK looks into the namespace: addresses, routes.
 * Those are the pod's own, who may have changed them on purpose; so the others are asked all the same, and
 * where they find nothing wrong `inside` is set.
 *
 * `found`: what the caller sees is wrong by itself, NULL: nothing; it counts like a plugin's word, before
 * them. `fresh`: the ADD was a moment ago, so this is how it is meant to be; else what was found by the
 * caller is an error also in the first CHECK. ERR_NOT_FOUND: nothing cached; ERR_PRECONDITION: its ADD or DEL
 * did not finish; ERR_UNKNOWN: lost something.
 */
void cni_check_start(struct cni_op *o, struct cni *c, const struct cni_attachment *a, const char *found,
                     bool fresh, op_done_fn done, void *owner);

/*
 * GC of every usable network that has it (cniVersion 1.1.0, no disableGC): plugins are told which attachments
 * of the network the cache knows and remove what belongs to others.  DEL cached attachments of nobody first.
 * `living`: ids of containers (NULL-terminated) whose `ifname` stays though its entry is lost or damaged.
 * Waits for a moment in which no other operation runs; none begins until it is over.  Every plugin is asked;
 * the first error is the result.
 */
#define CNI_GC_DEADLINE_MS 30000 /* of one network */
struct cni_gc {
    struct op op;
    size_t n_networks; /* that were asked; valid in done */
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

/*
 * Is what ADD made as `ifname` there still, though the namespace (its links: `inside`) has none of that name?
 * A pod may rename its interface, or move it away.
 */
struct cni_links;
struct presence cni_look_interface(struct cni *c, const char *container_id, const char *ifname,
                                   const struct cni_links *inside, struct err *e) MUST_CHECK;

/* The cached result of an attachment (after a restart of the agent); absent: none, or its ADD did not finish.
 */
struct presence cni_cached_result(struct cni *c, const char *container_id, const char *ifname,
                                  struct cni_result *ret, struct err *e) MUST_CHECK;
/* The name of its network; malloc'ed. */
enum err_code cni_cached_network(struct cni *c, const char *container_id, const char *ifname, char **ret,
                                 struct err *e) MUST_CHECK;
/* Container ids of all cached attachments (NULL-terminated, all malloc'ed): DEL those that nobody owns. */
enum err_code cni_cached_ids(struct cni *c, char ***ret, struct err *e) MUST_CHECK;

/*
 * --ephemeral: links named as `bridge` in cached, used or loaded lists are deleted (not those that an undo
 * record says were there before), and the networks' state below data_dir; best effort.  Before
 * cni_undo_start().
 */
void cni_remove_bridges(struct cni *c);
#endif
