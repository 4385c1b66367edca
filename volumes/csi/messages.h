/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages - the messages of CSI's node service, packed, unpacked and checked.
 *
 * Drivers are hostile: bytes are checked before memory is allocated (base/codec/protobuf.h), then numbers of
 * elements and lengths. Unknown fields and capabilities are ignored, so that newer drivers work. Errors are
 * ERR_INVALID (bytes that Go would refuse, too) or ERR_EXHAUSTED (a limit); they name message and field.
 * Packed bytes are malloc'ed; those of a request hold Secrets: csi_wipe(). Pure; any thread.
 */
#ifndef VOLUMES_CSI_MESSAGES_H
#define VOLUMES_CSI_MESSAGES_H
#include "volumes/csi/volume.h"

#define CSI_NODE_ID_MAX 192 /* bytes of a node id that the apiserver takes in a CSINode */
#define CSI_TOPOLOGY_MAX 64 /* segments; the public definition has no limit */
#define CSI_CAPABILITIES_MAX 64

struct csi_node_info { /* NodeGetInfoResponse */
    const char *node_id;
    int64_t max_volumes; /* 0: no limit */
    struct csi_pairs topology;
    struct arena memory;
};
/* csi_node_info_done(), also after an error; *ret must be { 0 }. */
enum err_code csi_node_info_unpack(struct csi_node_info *ret, const uint8_t *p, size_t n,
                                   struct err *e) MUST_CHECK;
void csi_node_info_done(struct csi_node_info *i);

/* NodeGetCapabilitiesResponse. */
enum err_code csi_caps_unpack(csi_caps *ret, const uint8_t *p, size_t n, struct err *e) MUST_CHECK;

struct csi_usage { /* NodeGetVolumeStatsResponse */
    bool has_bytes, has_inodes;
    uint64_t available_bytes, total_bytes, used_bytes;
    uint64_t available_inodes, total_inodes, used_inodes;
    bool has_condition, abnormal; /* volume_condition */
};
#define CSI_USAGES_MAX 16
/* ERR_INVALID: no usage at all, or a negative number. A unit that is unknown is ignored. */
enum err_code csi_usage_unpack(struct csi_usage *ret, const uint8_t *p, size_t n, struct err *e) MUST_CHECK;
enum err_code csi_stats_pack(const char *volume_id, const char *volume_path, uint8_t **ret, size_t *ret_n,
                             struct err *e) MUST_CHECK;

enum err_code csi_publish_pack(const struct csi_request *r, uint8_t **ret, size_t *ret_n,
                               struct err *e) MUST_CHECK;
enum err_code csi_stage_pack(const struct csi_request *r, uint8_t **ret, size_t *ret_n,
                             struct err *e) MUST_CHECK;
enum err_code csi_expand_pack(const struct csi_expand_request *r, uint8_t **ret, size_t *ret_n,
                              struct err *e) MUST_CHECK;
/* NodeExpandVolumeResponse: *ret is the size now; 0: the driver does not say. ERR_INVALID: a negative one. */
enum err_code csi_expand_unpack(uint64_t *ret, const uint8_t *p, size_t n, struct err *e) MUST_CHECK;
enum err_code csi_unpublish_pack(const char *volume_id, const char *target_path, uint8_t **ret, size_t *ret_n,
                                 struct err *e) MUST_CHECK;
enum err_code csi_unstage_pack(const char *volume_id, const char *staging_path, uint8_t **ret, size_t *ret_n,
                               struct err *e) MUST_CHECK;
/* Overwrites and frees; NULL is fine. */
void csi_wipe(uint8_t *p, size_t n);
#endif
