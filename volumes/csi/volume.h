/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume - one CSI volume as the objects of the API describe it, and the driver's requests for it. Pure; any
 * thread.
 *
 * Rules and names are kubelet's (pkg/volume/csi), so that drivers find what they expect.
 */
#ifndef VOLUMES_CSI_VOLUME_H
#define VOLUMES_CSI_VOLUME_H
#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of NodeServiceCapability.RPC.Type. */
enum csi_capability {
    CSI_CAN_STAGE = 1, /* STAGE_UNSTAGE_VOLUME */
    CSI_CAN_STATS = 2,
    CSI_CAN_EXPAND = 3,
    CSI_CAN_CONDITION = 4,
    CSI_CAN_MULTI_WRITER = 5, /* SINGLE_NODE_MULTI_WRITER: it supports SINGLE_NODE_SINGLE_WRITER, too */
    CSI_CAN_MOUNT_GROUP = 6,  /* VOLUME_MOUNT_GROUP: it applies the fsGroup itself */
};
/* A set of them: bit 1 << capability. */
typedef uint32_t csi_caps;
static inline bool csi_can(csi_caps caps, enum csi_capability one)
{
    return (caps & (1u << one)) != 0;
}

/* Numbers of VolumeCapability.AccessMode.Mode. */
enum csi_access {
    CSI_ACCESS_UNKNOWN = 0,
    CSI_SINGLE_NODE_WRITER = 1,
    CSI_MULTI_NODE_READER_ONLY = 3,
    CSI_MULTI_NODE_MULTI_WRITER = 5,
    CSI_SINGLE_NODE_SINGLE_WRITER = 6,
    CSI_SINGLE_NODE_MULTI_WRITER = 7,
};

/* accessModes of a PersistentVolume, as a set. An inline volume has none; it counts as ReadWriteOnce. */
enum { CSI_RWO = 1, CSI_ROX = 2, CSI_RWX = 4, CSI_RWOP = 8 };
enum csi_access csi_access_of(unsigned modes, csi_caps caps);

struct csi_pair {
    const char *key, *value;
};
struct csi_pairs {
    const struct csi_pair *v;
    size_t n;
};

enum csi_group_policy { /* fsGroupPolicy of the CSIDriver */
                        CSI_GROUP_RWO_WITH_FS_TYPE,
                        CSI_GROUP_FILE,
                        CSI_GROUP_NONE,
};

struct csi_volume { /* texts are borrowed */
    const char *driver, *handle;
    const char *spec_name; /* of the PersistentVolume; of an inline volume: the pod's name for it */
    bool ephemeral;        /* an inline volume */
    bool block;
    bool read_only;      /* of the claim's source, or of the inline source: nothing else makes it read-only */
    const char *fs_type; /* NULL: none given */
    unsigned access_modes;
    const char *const *mount_flags;
    size_t n_mount_flags;
    struct csi_pairs attributes, publish_context, stage_secrets, publish_secrets;
    /* the pod */
    const char *pod_uid, *pod_name, *pod_namespace, *service_account;
    bool pod_info;       /* podInfoOnMount: it is added to the attributes */
    const char *tokens;  /* of the service account, as JSON; NULL: none are requested */
    bool tokens_secret;  /* serviceAccountTokenInSecrets: among the secrets, not the attributes */
    int64_t fs_group;    /* -1: none */
    bool group_if_wrong; /* fsGroupChangePolicy: OnRootMismatch */
    enum csi_group_policy group_policy;
    uint64_t expand_bytes; /* the size that the node has to grow it to when it is published; 0: none */
    struct csi_pairs expand_secrets;
};

/* The requests NodeStageVolume and NodePublishVolume. */
struct csi_request {
    const char *volume_id, *staging_path /* NULL: not staged */, *target_path /* NULL: of a stage */;
    bool block, read_only;
    const char *fs_type;     /* NULL: none */
    const char *mount_group; /* NULL: none */
    const char *const *mount_flags;
    size_t n_mount_flags;
    enum csi_access access;
    struct csi_pairs publish_context, secrets, volume_context;
};

/* Texts are of the volume, or in `memory`. ERR_EXHAUSTED: no memory. */
enum err_code csi_publish_request(const struct csi_volume *v, csi_caps caps, const char *staging_path,
                                  const char *target_path, struct arena *memory, struct csi_request *ret,
                                  struct err *e) MUST_CHECK;
enum err_code csi_stage_request(const struct csi_volume *v, csi_caps caps, const char *staging_path,
                                struct arena *memory, struct csi_request *ret, struct err *e) MUST_CHECK;

/* The request NodeExpandVolume. */
struct csi_expand_request {
    const char *volume_id, *volume_path, *staging_path /* NULL: not staged */;
    uint64_t bytes;
    struct csi_request capability; /* its fields of the volume's capability only */
    struct csi_pairs secrets;
};
void csi_expand_request(const struct csi_volume *v, csi_caps caps, const char *staging_path,
                        const char *volume_path, uint64_t bytes, struct csi_expand_request *ret);

/* Whether the agent changes the group of a published volume's files to the fsGroup. */
bool csi_wants_group(const struct csi_volume *v, csi_caps caps);

/* Whether the driver may have executed the call in spite of this error (the opposite of kubelet's
 * isFinalError): then the call is undone later, as if it had succeeded. `code`: of the status. */
bool csi_is_uncertain(enum err_code code);

/* A name that a CSINode may have: a DNS subdomain of at most 63 bytes, of either case. */
#define CSI_NAME_MAX 63
bool csi_driver_name_ok(const char *name);

/* "csi-<sha256 of pod uid and volume name>": the handle of an inline volume. */
#define CSI_HASHED_SIZE (4 + 64 + 1)
/* "<sha256 of the handle>", in the path of a staged volume. */
void csi_handle_hash(const char *handle, char ret[CSI_HASHED_SIZE]);
void csi_inline_handle(const char *pod_uid, const char *volume, char ret[CSI_HASHED_SIZE]);
/* "csi-<sha256 of handle, driver and node>": the name of a VolumeAttachment. */
void csi_attachment_name(const char *handle, const char *driver, const char *node, char ret[CSI_HASHED_SIZE]);
#endif
