/* SPDX-License-Identifier: Apache-2.0 */
/* internal - the daemon's parts, shared by its files: daemon.c runs them, parts.c opens and closes them,
 * machine.c handles the machine around them, start_report.c logs them at start. Loop thread only. */
#ifndef AGENT_INTERNAL_H
#define AGENT_INTERNAL_H
#include "agent/config/config.h"
#include "agent/inhibit.h"
#include "agent/notify.h"
#include "agent/pod/node/node.h"
#include "agent/pod/worker/shutdown.h"
#include "agent/preflight.h"
#include "agent/unit_weight.h"
#include "agent/workload/workloads.h"
#include "base/trimmer.h"
#include "cni/undo.h"

struct agent { /* the parts, in the order of opening */
    struct agent_config config;
    int argc; /* the command line, for SIGHUP */
    char **argv;
    struct preflight pre;
    struct notify notify;
    uv_loop_t loop;
    uv_signal_t on_int, on_term, on_hup;
    uv_timer_t kube_timer;
    struct trimmer trimmer;
    struct cg_tree *cgroups;
    struct vol_node *volumes;
    struct cni *cni;
    struct img_store *images;
    struct src_store *store;
    struct node *node;
    struct rt *rt;
    struct status_server *server;
    struct src_folder *folder;
    struct workloads *workloads;
    struct claims *claims;
    struct cluster *cluster; /* NULL: the node joins no cluster */
    struct kube_credentials *credentials;
    struct kube_serving *serving;
    json_t *local_pki; /* keys and certificates of the local API, by file name; NULL: it is off */
    struct cni_undo undo;
    struct inhibit inhibit;
    struct unit_weight unit_weight;
    struct node_shutdown_group shutdown_groups[CONFIG_SHUTDOWN_PRIORITIES_MAX];
    size_t n_shutdown_groups;
    char node_name[256], node_ip[46];
    char *cni_cache, *cni_data, *images_dir, *cgroup_scratch, *volumes_dir, *pods_dir, *auth_dir,
        *seccomp_dir;
    bool stopping, failed, idle;
};

/* ---- parts.c ---- */
enum err_code parts_make_paths(struct agent *a, struct err *e) MUST_CHECK; /* for the parts' files */
void parts_free_paths(struct agent *a);
/* Opens the parts that pods need, up to the runtime. After a failure, the parts opened before are open. */
enum err_code parts_open(struct agent *a, struct err *e) MUST_CHECK;
/* Closes all open parts. No operation may be in progress; the loop must run again. */
void parts_close(struct agent *a);
/* The options changed by a reload. */
void parts_live_options(const struct agent_config *c, struct node_options *o);

/* ---- join.c ---- */
bool join_wanted(const struct agent *a); /* a kubeconfig is given */
/* After parts_open(); does nothing unless wanted. */
enum err_code join_open(struct agent *a, struct err *e) MUST_CHECK;
void join_close(struct agent *a); /* the loop must run until cluster_busy() is false */

/* ---- work.c ---- */
enum err_code work_open(struct agent *a, struct err *e) MUST_CHECK; /* after parts_open() */

/* ---- local_api.c ---- */
bool local_api_wanted(const struct agent *a); /* an address is given, and no kubeconfig */
/* After parts_open(); does nothing unless wanted. */
enum err_code local_api_open(struct agent *a, struct err *e) MUST_CHECK;
void local_api_done(struct agent *a);
json_t *local_api_kubeconfig(void *agent, struct err *e);

/* ---- machine.c ---- */
void machine_identify(struct agent *a); /* node_name, node_ip */
void machine_plan_shutdown(struct agent *a);
void machine_open(struct agent *a); /* the lock against shutdowns, the CPU weight of the unit */

/* ---- start_report.c ---- */
void start_report(const struct agent *a);
#endif
