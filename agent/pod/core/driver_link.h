/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_link - the cluster's knowledge of pods' volumes that storage drivers serve. agent/cluster sets it
 * for pods of the apiserver; pods of the folder are answered from the store and from claim_link.h. CSIDriver
 * objects and Secrets come from the store in any case: for the Secrets that a PersistentVolume names (stage,
 * publish, expand), the cluster's side puts them there as soon as bound() has named the volume. Loop thread
 * only; nothing waits.
 *
 * A change of any of these calls volumes_drivers_changed() or volumes_claims_changed().
 */
#ifndef AGENT_POD_CORE_DRIVER_LINK_H
#define AGENT_POD_CORE_DRIVER_LINK_H
#include "agent/api/generic.h"
#include "base/error.h"

#include <jansson.h>

struct node;
struct pod;

struct driver_bound {                 /* the volume that a claim is bound to; borrowed until the loop turns */
    const struct api_generic *volume; /* the PersistentVolume */
    int64_t claim_bytes;              /* status.capacity of the claim; 0: unknown, so nothing is expanded */
};

struct driver_attachment {
    const char *name; /* of the VolumeAttachment: csi_attachment_name() */
    const char *driver, *handle;
    const char *volume; /* the PersistentVolume */
};

struct node_driver_link {
    /* ERR_NOT_FOUND, ERR_PRECONDITION: it is not bound; *e has the reason in kubelet's words, without "error
     * processing PVC <namespace>/<name>: ". ERR_UNAVAILABLE: not known yet. */
    enum err_code (*bound)(const struct pod *p, const struct api_volume *v, struct driver_bound *ret,
                           void *arg, struct err *e);
    /*
     * ERR_OK: it is attached; *ret is attachmentMetadata, a new reference, or NULL. ERR_UNAVAILABLE: not
     * attached yet; *e has the reason ("volume ... is not attached for volume attachment csi-...").
     * ERR_EXHAUSTED: the node's limit of attachments was reached. Otherwise: the error of the attachment.
     */
    enum err_code (*attached)(const struct pod *p, const struct driver_attachment *a, json_t **ret, void *arg,
                              struct err *e);
    /*
     * Of a FlexVolume, by the name that controllers attach it by ("VENDOR/DRIVER/NAME"). ERR_OK: it is
     * attached, at the device that the Node names, or "". ERR_UNAVAILABLE: it is waited for. May be NULL.
     */
    enum err_code (*device)(const char *name, char *ret, size_t size, void *arg, struct err *e);
    /* NodeExpandVolume ended; for the claim's status. `bytes`: the size now. May be NULL. */
    void (*expanded)(const struct pod *p, const struct api_volume *v, uint64_t bytes,
                     const struct err *result, void *arg);
    void *arg;
};

/* Of a pod of either origin. */
enum err_code driver_bound(const struct pod *p, const struct api_volume *v, struct driver_bound *ret,
                           struct err *e) MUST_CHECK;
/* Without a cluster there is no attaching controller: ERR_UNIMPLEMENTED. */
enum err_code driver_attached(const struct pod *p, const struct driver_attachment *a, json_t **ret,
                              struct err *e) MUST_CHECK;
/* Whether a controller attaches what drivers of this pod want attached; otherwise the agent does. */
bool driver_is_attached_for(const struct pod *p);
enum err_code driver_device(const struct pod *p, const char *name, char *ret, size_t size,
                            struct err *e) MUST_CHECK;
void driver_expanded(const struct pod *p, const struct api_volume *v, uint64_t bytes,
                     const struct err *result);

/* Before pods start. The struct is borrowed while the node exists. */
void node_set_driver_link(struct node *n, const struct node_driver_link *l);
#endif
