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
};

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
