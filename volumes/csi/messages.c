/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/messages.h"

#include "base/codec/protobuf.h"
#include "base/scope.h"
#include "volumes/csi/proto/csi.pb-c.h"

#include <stdlib.h>
#include <string.h>

typedef Csi__V1__NodePublishVolumeRequest Publish;
typedef Csi__V1__NodeStageVolumeRequest Stage;

static const struct protobuf_limit limits[] = {
    { &csi__v1__topology__descriptor, 1, CSI_TOPOLOGY_MAX },
    { &csi__v1__node_get_capabilities_response__descriptor, 1, CSI_CAPABILITIES_MAX },
    { &csi__v1__node_get_volume_stats_response__descriptor, 1, CSI_USAGES_MAX },
};

/* ---- answers ---- */

static enum err_code take_topology(const Csi__V1__Topology *t, struct csi_node_info *ret, struct err *e)
{
    struct csi_pair *v;

    if (t == NULL || t->n_segments == 0)
        return ERR_OK;
    v = arena_alloc(&ret->memory, t->n_segments * sizeof(v[0]));
    if (v == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < t->n_segments; i++)
        v[i] = (struct csi_pair){ t->segments[i]->key, t->segments[i]->value };
    ret->topology = (struct csi_pairs){ v, t->n_segments };
    return ERR_OK;
}

enum err_code csi_node_info_unpack(struct csi_node_info *ret, const uint8_t *p, size_t n, struct err *e)
{
    const Csi__V1__NodeGetInfoResponse *m;
    ProtobufCMessage *base;

    if (protobuf_unpack(&csi__v1__node_get_info_response__descriptor, limits, ARRAY_LEN(limits), p, n,
                        &ret->memory, &base, e) != ERR_OK)
        return e->code;
    m = (const Csi__V1__NodeGetInfoResponse *)base;
    if (strnlen(m->node_id, CSI_NODE_ID_MAX + 1) > CSI_NODE_ID_MAX)
        return err_set(e, ERR_EXHAUSTED, "csi.v1.NodeGetInfoResponse: node_id: more than %d bytes",
                       CSI_NODE_ID_MAX);
    if (m->max_volumes_per_node < 0)
        return err_set(e, ERR_INVALID,
                       "csi.v1.NodeGetInfoResponse: max_volumes_per_node: %lld; 0 or more is allowed",
                       (long long)m->max_volumes_per_node);
    ret->node_id = m->node_id;
    ret->max_volumes = m->max_volumes_per_node;
    return take_topology(m->accessible_topology, ret, e);
}

void csi_node_info_done(struct csi_node_info *i)
{
    arena_done(&i->memory);
    *i = (struct csi_node_info){ 0 };
}

enum err_code csi_caps_unpack(csi_caps *ret, const uint8_t *p, size_t n, struct err *e)
{
    const Csi__V1__NodeGetCapabilitiesResponse *m;
    struct arena memory = { 0 };
    ProtobufCMessage *base;
    csi_caps caps = 0;

    if (protobuf_unpack(&csi__v1__node_get_capabilities_response__descriptor, limits, ARRAY_LEN(limits), p, n,
                        &memory, &base, e) == ERR_OK) {
        m = (const Csi__V1__NodeGetCapabilitiesResponse *)base;
        for (size_t i = 0; i < m->n_capabilities; i++) {
            const Csi__V1__NodeServiceCapability__RPC *rpc = m->capabilities[i]->rpc;

            if (rpc != NULL && rpc->type > 0 && rpc->type < 32)
                caps |= 1u << rpc->type;
        }
        *ret = caps;
    }
    arena_done(&memory);
    return e->code;
}

static enum err_code take_usage(const Csi__V1__VolumeUsage *u, struct csi_usage *ret, struct err *e)
{
    if (u->available < 0 || u->total < 0 || u->used < 0)
        return err_set(e, ERR_INVALID, "csi.v1.NodeGetVolumeStatsResponse: usage: a negative number");
    switch (u->unit) {
    case 1:
        ret->has_bytes = true;
        ret->available_bytes = (uint64_t)u->available;
        ret->total_bytes = (uint64_t)u->total;
        ret->used_bytes = (uint64_t)u->used;
        break;
    case 2:
        ret->has_inodes = true;
        ret->available_inodes = (uint64_t)u->available;
        ret->total_inodes = (uint64_t)u->total;
        ret->used_inodes = (uint64_t)u->used;
        break;
    default:
        break;
    }
    return ERR_OK;
}

enum err_code csi_usage_unpack(struct csi_usage *ret, const uint8_t *p, size_t n, struct err *e)
{
    const Csi__V1__NodeGetVolumeStatsResponse *m;
    struct csi_usage usage = { 0 };
    struct arena memory = { 0 };
    ProtobufCMessage *base;

    if (protobuf_unpack(&csi__v1__node_get_volume_stats_response__descriptor, limits, ARRAY_LEN(limits), p, n,
                        &memory, &base, e) == ERR_OK) {
        m = (const Csi__V1__NodeGetVolumeStatsResponse *)base;
        for (size_t i = 0; i < m->n_usage && e->code == ERR_OK; i++)
            ERR_IGNORE(take_usage(m->usage[i], &usage, e));
        if (e->code == ERR_OK && !usage.has_bytes && !usage.has_inodes)
            err_set(e, ERR_INVALID, "csi.v1.NodeGetVolumeStatsResponse: no usage in bytes or inodes");
        usage.has_condition = m->volume_condition != NULL;
        usage.abnormal = usage.has_condition && m->volume_condition->abnormal;
        if (e->code == ERR_OK)
            *ret = usage;
    }
    arena_done(&memory);
    return e->code;
}

/* ---- requests ---- */

/* Entries of maps: protobuf-c has a type for each map, all of the same layout, so one macro fills them. */
#define FILL_MAP(memory, pairs, type, init, ret, ret_n)                                                      \
    do {                                                                                                     \
        type *entries_ = arena_alloc((memory), ((pairs)->n + 1) * sizeof(type));                             \
        type **list_ = arena_alloc((memory), ((pairs)->n + 1) * sizeof(type *));                             \
                                                                                                             \
        if (entries_ == NULL || list_ == NULL)                                                               \
            return false;                                                                                    \
        for (size_t i_ = 0; i_ < (pairs)->n; i_++) {                                                         \
            entries_[i_] = (type)init;                                                                       \
            entries_[i_].key = (char *)(pairs)->v[i_].key;                                                   \
            entries_[i_].value = (char *)(pairs)->v[i_].value;                                               \
            list_[i_] = &entries_[i_];                                                                       \
        }                                                                                                    \
        (ret) = list_;                                                                                       \
        (ret_n) = (pairs)->n;                                                                                \
    } while (0)

struct capability { /* the message with its nested ones */
    Csi__V1__VolumeCapability m;
    Csi__V1__VolumeCapability__BlockVolume block;
    Csi__V1__VolumeCapability__MountVolume mount;
    Csi__V1__VolumeCapability__AccessMode access;
};

static void fill_capability(const struct csi_request *r, struct capability *c)
{
    csi__v1__volume_capability__init(&c->m);
    csi__v1__volume_capability__block_volume__init(&c->block);
    csi__v1__volume_capability__mount_volume__init(&c->mount);
    csi__v1__volume_capability__access_mode__init(&c->access);
    c->access.mode = (int32_t)r->access;
    c->m.access_mode = &c->access;
    if (r->block) {
        c->m.block = &c->block;
        return;
    }
    c->m.mount = &c->mount;
    if (r->fs_type != NULL)
        c->mount.fs_type = (char *)r->fs_type;
    if (r->mount_group != NULL)
        c->mount.volume_mount_group = (char *)r->mount_group;
    c->mount.mount_flags = (char **)r->mount_flags;
    c->mount.n_mount_flags = r->n_mount_flags;
}

static bool fill_publish(const struct csi_request *r, struct arena *memory, Publish *m)
{
    m->volume_id = (char *)r->volume_id;
    m->target_path = (char *)r->target_path;
    m->readonly = r->read_only;
    if (r->staging_path != NULL)
        m->staging_target_path = (char *)r->staging_path;
    FILL_MAP(memory, &r->publish_context, Csi__V1__NodePublishVolumeRequest__PublishContextEntry,
             CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__PUBLISH_CONTEXT_ENTRY__INIT, m->publish_context,
             m->n_publish_context);
    FILL_MAP(memory, &r->secrets, Csi__V1__NodePublishVolumeRequest__SecretsEntry,
             CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__SECRETS_ENTRY__INIT, m->secrets, m->n_secrets);
    FILL_MAP(memory, &r->volume_context, Csi__V1__NodePublishVolumeRequest__VolumeContextEntry,
             CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT, m->volume_context,
             m->n_volume_context);
    return true;
}

static bool fill_stage(const struct csi_request *r, struct arena *memory, Stage *m)
{
    m->volume_id = (char *)r->volume_id;
    m->staging_target_path = (char *)r->staging_path;
    FILL_MAP(memory, &r->publish_context, Csi__V1__NodeStageVolumeRequest__PublishContextEntry,
             CSI__V1__NODE_STAGE_VOLUME_REQUEST__PUBLISH_CONTEXT_ENTRY__INIT, m->publish_context,
             m->n_publish_context);
    FILL_MAP(memory, &r->secrets, Csi__V1__NodeStageVolumeRequest__SecretsEntry,
             CSI__V1__NODE_STAGE_VOLUME_REQUEST__SECRETS_ENTRY__INIT, m->secrets, m->n_secrets);
    FILL_MAP(memory, &r->volume_context, Csi__V1__NodeStageVolumeRequest__VolumeContextEntry,
             CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT, m->volume_context,
             m->n_volume_context);
    return true;
}

enum err_code csi_publish_pack(const struct csi_request *r, uint8_t **ret, size_t *ret_n, struct err *e)
{
    Publish m = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;
    struct arena memory = { 0 };
    struct capability c;

    fill_capability(r, &c);
    m.volume_capability = &c.m;
    if (fill_publish(r, &memory, &m))
        ERR_IGNORE(protobuf_pack(&m.base, ret, ret_n, e));
    else
        err_nomem(e);
    arena_done(&memory);
    return e->code;
}

enum err_code csi_stage_pack(const struct csi_request *r, uint8_t **ret, size_t *ret_n, struct err *e)
{
    Stage m = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
    struct arena memory = { 0 };
    struct capability c;

    fill_capability(r, &c);
    m.volume_capability = &c.m;
    if (fill_stage(r, &memory, &m))
        ERR_IGNORE(protobuf_pack(&m.base, ret, ret_n, e));
    else
        err_nomem(e);
    arena_done(&memory);
    return e->code;
}

static bool fill_expand(const struct csi_expand_request *r, struct arena *memory,
                        Csi__V1__NodeExpandVolumeRequest *m)
{
    m->volume_id = (char *)r->volume_id;
    m->volume_path = (char *)r->volume_path;
    if (r->staging_path != NULL)
        m->staging_target_path = (char *)r->staging_path;
    FILL_MAP(memory, &r->secrets, Csi__V1__NodeExpandVolumeRequest__SecretsEntry,
             CSI__V1__NODE_EXPAND_VOLUME_REQUEST__SECRETS_ENTRY__INIT, m->secrets, m->n_secrets);
    return true;
}

enum err_code csi_expand_pack(const struct csi_expand_request *r, uint8_t **ret, size_t *ret_n, struct err *e)
{
    Csi__V1__NodeExpandVolumeRequest m = CSI__V1__NODE_EXPAND_VOLUME_REQUEST__INIT;
    Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
    struct arena memory = { 0 };
    struct capability c;

    range.required_bytes = (int64_t)r->bytes;
    m.capacity_range = &range;
    fill_capability(&r->capability, &c);
    m.volume_capability = &c.m;
    if (fill_expand(r, &memory, &m))
        ERR_IGNORE(protobuf_pack(&m.base, ret, ret_n, e));
    else
        err_nomem(e);
    arena_done(&memory);
    return e->code;
}

enum err_code csi_expand_unpack(uint64_t *ret, const uint8_t *p, size_t n, struct err *e)
{
    const Csi__V1__NodeExpandVolumeResponse *m;
    struct arena memory = { 0 };
    ProtobufCMessage *base;

    if (protobuf_unpack(&csi__v1__node_expand_volume_response__descriptor, limits, ARRAY_LEN(limits), p, n,
                        &memory, &base, e) == ERR_OK) {
        m = (const Csi__V1__NodeExpandVolumeResponse *)base;
        if (m->capacity_bytes < 0)
            err_set(e, ERR_INVALID, "csi.v1.NodeExpandVolumeResponse: capacity_bytes: a negative number");
        else
            *ret = (uint64_t)m->capacity_bytes;
    }
    arena_done(&memory);
    return e->code;
}

enum err_code csi_unpublish_pack(const char *volume_id, const char *target_path, uint8_t **ret, size_t *ret_n,
                                 struct err *e)
{
    Csi__V1__NodeUnpublishVolumeRequest m = CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;

    m.volume_id = (char *)volume_id;
    m.target_path = (char *)target_path;
    return protobuf_pack(&m.base, ret, ret_n, e);
}

enum err_code csi_unstage_pack(const char *volume_id, const char *staging_path, uint8_t **ret, size_t *ret_n,
                               struct err *e)
{
    Csi__V1__NodeUnstageVolumeRequest m = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;

    m.volume_id = (char *)volume_id;
    m.staging_target_path = (char *)staging_path;
    return protobuf_pack(&m.base, ret, ret_n, e);
}

enum err_code csi_stats_pack(const char *volume_id, const char *volume_path, uint8_t **ret, size_t *ret_n,
                             struct err *e)
{
    Csi__V1__NodeGetVolumeStatsRequest m = CSI__V1__NODE_GET_VOLUME_STATS_REQUEST__INIT;

    m.volume_id = (char *)volume_id;
    m.volume_path = (char *)volume_path;
    return protobuf_pack(&m.base, ret, ret_n, e);
}

void csi_wipe(uint8_t *p, size_t n)
{
    if (p == NULL)
        return;
    explicit_bzero(p, n);
    free(p);
}
