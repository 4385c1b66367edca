/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/message/messages.h"

#include "base/codec/protobuf.h"
#include "base/scope.h"
#include "deviceplugin/proto/deviceplugin.pb-c.h"
#include "deviceplugin/proto/pluginregistration.pb-c.h"

#include <stdlib.h>
#include <string.h>

static const struct protobuf_limit limits[] = {
    { &v1beta1__list_and_watch_response__descriptor, 1, DP_DEVICES_MAX },
    { &v1beta1__topology_info__descriptor, 1, DP_NUMA_OF_DEVICE_MAX },
    { &v1beta1__container_preferred_allocation_response__descriptor, 1, DP_DEVICES_MAX },
    { &pluginregistration__plugin_info__descriptor, 4, DP_VERSIONS_MAX },
};

static enum err_code unpack(const ProtobufCMessageDescriptor *d, const uint8_t *p, size_t n,
                            struct arena *memory, ProtobufCMessage **ret, struct err *e)
{
    return protobuf_unpack(d, limits, ARRAY_LEN(limits), p, n, memory, ret, e);
}

/* ---- messages from plugins ---- */

enum err_code dp_registration_unpack(struct dp_registration *ret, const uint8_t *p, size_t n, struct err *e)
{
    const V1beta1__RegisterRequest *m;
    ProtobufCMessage *base;

    if (unpack(&v1beta1__register_request__descriptor, p, n, &ret->memory, &base, e) != ERR_OK)
        return e->code;
    m = (const V1beta1__RegisterRequest *)base;
    ret->version = m->version;
    ret->endpoint = m->endpoint;
    ret->resource = m->resource_name;
    return ERR_OK;
}

void dp_registration_done(struct dp_registration *r)
{
    arena_done(&r->memory);
    *r = (struct dp_registration){ 0 };
}

enum err_code dp_options_unpack(struct dp_options *ret, const uint8_t *p, size_t n, struct err *e)
{
    const V1beta1__DevicePluginOptions *m;
    struct arena memory = { 0 };
    ProtobufCMessage *base;

    if (unpack(&v1beta1__device_plugin_options__descriptor, p, n, &memory, &base, e) == ERR_OK) {
        m = (const V1beta1__DevicePluginOptions *)base;
        ret->pre_start = m->pre_start_required;
        ret->preferred = m->get_preferred_allocation_available;
    }
    arena_done(&memory);
    return e->code;
}

static enum err_code device_of(struct dp_device *ret, const V1beta1__Device *m, size_t i,
                               struct arena *memory, struct err *e)
{
    const V1beta1__TopologyInfo *t = m->topology;
    int64_t *numa;

    if (!dp_id_ok(m->id))
        return err_set(e, ERR_INVALID, "%s: devices[%zu].ID: %zu bytes; 1 to %d are allowed",
                       v1beta1__list_and_watch_response__descriptor.name, i, strlen(m->id), DP_ID_MAX);
    *ret = (struct dp_device){ .id = m->id, .healthy = strcmp(m->health, dp_health_name(DP_HEALTHY)) == 0 };
    if (t == NULL || t->n_nodes == 0)
        return ERR_OK;
    numa = arena_alloc(memory, t->n_nodes * sizeof(numa[0]));
    if (numa == NULL)
        return err_nomem(e);
    for (size_t j = 0; j < t->n_nodes; j++)
        numa[j] = t->nodes[j]->id;
    ret->numa = numa;
    ret->n_numa = t->n_nodes;
    return ERR_OK;
}

enum err_code dp_list_unpack(struct dp_list *ret, const uint8_t *p, size_t n, struct err *e)
{
    const V1beta1__ListAndWatchResponse *m;
    ProtobufCMessage *base;

    if (unpack(&v1beta1__list_and_watch_response__descriptor, p, n, &ret->memory, &base, e) != ERR_OK)
        return e->code;
    m = (const V1beta1__ListAndWatchResponse *)base;
    ret->v = arena_alloc(&ret->memory, m->n_devices * sizeof(ret->v[0]));
    if (ret->v == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < m->n_devices; i++) {
        if (device_of(&ret->v[i], m->devices[i], i, &ret->memory, e) != ERR_OK)
            return e->code;
    }
    ret->n = m->n_devices;
    return ERR_OK;
}

void dp_list_done(struct dp_list *l)
{
    arena_done(&l->memory);
    *l = (struct dp_list){ 0 };
}

enum err_code dp_info_unpack(struct dp_info *ret, const uint8_t *p, size_t n, struct err *e)
{
    const Pluginregistration__PluginInfo *m;
    ProtobufCMessage *base;

    if (unpack(&pluginregistration__plugin_info__descriptor, p, n, &ret->memory, &base, e) != ERR_OK)
        return e->code;
    m = (const Pluginregistration__PluginInfo *)base;
    ret->info = (struct dp_plugin_info){
        .type = m->type,
        .name = m->name,
        .endpoint = m->endpoint,
        .versions = (const char *const *)m->supported_versions,
        .n_versions = m->n_supported_versions,
    };
    return ERR_OK;
}

void dp_info_done(struct dp_info *i)
{
    arena_done(&i->memory);
    *i = (struct dp_info){ 0 };
}

static char **block_of(char *const *ids, size_t n)
{
    size_t size = (n + 1) * sizeof(char *);
    char **v, *text;

    for (size_t i = 0; i < n; i++)
        size += strlen(ids[i]) + 1;
    v = malloc(size);
    if (v == NULL)
        return NULL;
    text = (char *)(v + n + 1);
    for (size_t i = 0; i < n; i++) {
        v[i] = text;
        text = stpcpy(text, ids[i]) + 1;
    }
    v[n] = NULL;
    return v;
}

enum err_code dp_preferred_unpack(char ***ret, const uint8_t *p, size_t n, struct err *e)
{
    const V1beta1__PreferredAllocationResponse *m;
    struct arena memory = { 0 };
    ProtobufCMessage *base;
    char **v;

    if (unpack(&v1beta1__preferred_allocation_response__descriptor, p, n, &memory, &base, e) == ERR_OK) {
        m = (const V1beta1__PreferredAllocationResponse *)base;
        v = m->n_container_responses > 0
                ? block_of(m->container_responses[0]->deviceids, m->container_responses[0]->n_deviceids)
                : block_of(NULL, 0);
        if (v != NULL)
            *ret = v;
        else
            err_nomem(e);
    }
    arena_done(&memory);
    return e->code;
}

/* ---- messages to plugins ---- */

enum err_code dp_allocate_pack(const char *const *ids, size_t n, uint8_t **ret, size_t *ret_n, struct err *e)
{
    V1beta1__ContainerAllocateRequest one = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT, *v[] = { &one };
    V1beta1__AllocateRequest m = V1BETA1__ALLOCATE_REQUEST__INIT;

    one.n_devices_ids = n;
    one.devices_ids = (char **)ids;
    m.n_container_requests = 1;
    m.container_requests = v;
    return protobuf_pack(&m.base, ret, ret_n, e);
}

enum err_code dp_preferred_pack(const char *const *available, size_t n_available, const char *const *must,
                                size_t n_must, int32_t size, uint8_t **ret, size_t *ret_n, struct err *e)
{
    V1beta1__ContainerPreferredAllocationRequest one = V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
    V1beta1__ContainerPreferredAllocationRequest *v[] = { &one };
    V1beta1__PreferredAllocationRequest m = V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;

    one.n_available_deviceids = n_available;
    one.available_deviceids = (char **)available;
    one.n_must_include_deviceids = n_must;
    one.must_include_deviceids = (char **)must;
    one.allocation_size = size;
    m.n_container_requests = 1;
    m.container_requests = v;
    return protobuf_pack(&m.base, ret, ret_n, e);
}

enum err_code dp_pre_start_pack(const char *const *ids, size_t n, uint8_t **ret, size_t *ret_n, struct err *e)
{
    V1beta1__PreStartContainerRequest m = V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;

    m.n_devices_ids = n;
    m.devices_ids = (char **)ids;
    return protobuf_pack(&m.base, ret, ret_n, e);
}

enum err_code dp_status_pack(const char *why, uint8_t **ret, size_t *ret_n, struct err *e)
{
    Pluginregistration__RegistrationStatus m = PLUGINREGISTRATION__REGISTRATION_STATUS__INIT;

    m.plugin_registered = why == NULL;
    if (why != NULL)
        m.error = (char *)why;
    return protobuf_pack(&m.base, ret, ret_n, e);
}
