/* SPDX-License-Identifier: Apache-2.0 */
/* volumes/csi, private. Loop thread only. */
#ifndef VOLUMES_CSI_INTERNAL_H
#define VOLUMES_CSI_INTERNAL_H
#include "base/list.h"
#include "volumes/csi/csi.h"
#include "volumes/csi/version.h"

#define CSI_LOG "kubernetes.io/csi: " /* how kubelet's texts begin */
#define CSI_CHILD_MS 120000           /* deadline of a child: as long as a call may take */

struct csi_driver { /* one offer of the plugin watcher */
    LIST_ENTRY(csi_driver) link;
    struct csi *csi;
    struct entry *offer; /* NULL: it ended */
    enum { DRIVER_ASKED, DRIVER_HERE, DRIVER_REPLACED, DRIVER_GONE } state;
    char *name, *endpoint;
    struct csi_version version;
    char version_text[CSI_VERSION_SIZE];
    struct csi_node_info node;
    struct grpc_channel *channel;
    struct grpc_call call;
};

struct csi {
    struct csi_options o; /* texts are owned */
    struct dp_plugin_handler handler;
    LIST_HEAD(, csi_driver) drivers;
    TAILQ_HEAD(, csi_turn) turns;
    char **staged; /* paths of what this process has staged */
    size_t n_staged;
    LIST_HEAD(, csi_release) releases;
    struct proc_call sweep;
    bool stopped;
};

static inline struct csi_id csi_id_of(const struct csi_volume *v)
{
    return (struct csi_id){ .driver = v->driver,
                            .handle = v->handle,
                            .spec_name = v->spec_name,
                            .block = v->block,
                            .ephemeral = v->ephemeral };
}

/* ---- turns.c ---- */
/* True: it has the turn. Otherwise `next` is called when it gets the turn. `key` is borrowed until the turn
 * is released, which the caller must do in any case. */
bool csi_turn_take(struct csi *c, struct csi_turn *t, const char *key, void (*next)(void *arg), void *arg);
void csi_turn_give(struct csi *c, struct csi_turn *t); /* no effect if none was taken */
bool csi_turn_awaited(const struct csi_turn *t);       /* another one waits for it */
bool csi_is_staged(const struct csi *c, const char *staging);
void csi_set_staged(struct csi *c, const char *staging, bool is);
void csi_staged_done(struct csi *c);

/* ---- stage.c ---- */
/* For a set-up that has its turn; borrowed from it until done. */
void csi_stage_start(struct csi_stage *s, const struct csi_mount *m, op_done_fn done, void *owner);

/* ---- unstage.c ---- */
struct csi_unstage {
    struct op op;
    struct csi *csi;
    struct csi_id id; /* texts are borrowed until done */
    struct csi_paths paths;
    struct arena memory;
    struct csi_turn turn;
    bool asked; /* NodeUnstageVolume was answered */
    struct grpc_channel *channel;
    struct grpc_call call;
    struct proc_call child;
};
/* Nothing if a pod has or wants it. Errors name volume and driver. */
void csi_unstage_start(struct csi_unstage *u, struct csi *c, const struct csi_id *id, op_done_fn done,
                       void *owner);

/* ---- release.c ---- */
void csi_hurry_releases(struct csi *c, const char *driver); /* NULL: of all */
void csi_stop_releases(struct csi *c);
bool csi_releases(const struct csi *c); /* some are under way */

/* NULL: it has not registered. */
struct csi_driver *csi_driver_find(const struct csi *c, const char *name);

/* A connection to the driver, for the calls of one operation. ERR_UNAVAILABLE: it has not registered, in
 * kubelet's words. */
enum err_code csi_connect(const struct csi *c, const char *driver, struct grpc_channel **ret,
                          struct err *e) MUST_CHECK;
/* "/csi.v1.Node/<method>", with CSI_CALL_MS. `bytes` is copied. */
void csi_call(struct grpc_call *call, struct grpc_channel *channel, const char *path,
              const struct grpc_bytes *bytes, const char *subject, op_done_fn done, void *owner);
/* A child in the cgroup of the options. */
void csi_child(const struct csi *c, struct proc_call *child, const char *name, const char *subject,
               proc_call_fn fn, const void *arg, op_done_fn done, void *owner);
#endif
