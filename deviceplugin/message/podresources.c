/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/message/podresources.h"

#include "base/codec/protobuf.h"
#include "deviceplugin/proto/podresources.pb-c.h"

#include <string.h>

/* Field numbers of proto/podresources.proto.  Requests are unpacked by the code generated from it; answers
 * are written field by field, 65,000 devices in 4 ms, because the loop waits. */
enum {
    OUT_LISTED = 1, /* pod_resources of List and Get, devices of GetAllocatableResources */
    POD_NAME = 1,
    POD_NAMESPACE = 2,
    POD_CONTAINERS = 3,
    CONTAINER_NAME = 1,
    CONTAINER_DEVICES = 2,
    CONTAINER_CPUS = 3,
    CONTAINER_MEMORY = 4,
    ALLOCATABLE_CPUS = 2,
    ALLOCATABLE_MEMORY = 3,
    DEVICES_RESOURCE = 1,
    DEVICES_IDS = 2,
    DEVICES_TOPOLOGY = 3,
    MEMORY_TYPE = 1,
    MEMORY_SIZE = 2,
    MEMORY_TOPOLOGY = 3,
    TOPOLOGY_NODES = 1,
    NODE_ID = 1,
};
enum { WIRE_VARINT = 0, WIRE_BYTES = 2, VARINT_MAX = 10 };

/* ---- pieces ---- */

/* All field numbers here are below 16: a head is one byte. */
static size_t put_varint(uint8_t *to, uint64_t v)
{
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        to[n++] = (uint8_t)(v | 0x80);
    to[n++] = (uint8_t)v;
    return n;
}

static void add_bytes(struct buf *out, unsigned field, const void *bytes, size_t n)
{
    uint8_t head[1 + VARINT_MAX] = { (uint8_t)(field << 3 | WIRE_BYTES) };

    buf_add(out, head, 1 + put_varint(head + 1, n));
    buf_add(out, bytes, n);
}

/* An empty text is the default, and left out. */
static void add_text(struct buf *out, unsigned field, const char *text)
{
    if (text[0] != '\0')
        add_bytes(out, field, text, strlen(text));
}

static void add_node(struct buf *topology, int64_t id)
{
    uint8_t node[1 + VARINT_MAX] = { NODE_ID << 3 | WIRE_VARINT };

    add_bytes(topology, TOPOLOGY_NODES, node, id == 0 ? 0 : 1 + put_varint(node + 1, (uint64_t)id));
}

/* Appends the inner message, which is complete now, as a field of the outer one. */
static void enclose(struct buf *outer, unsigned field, struct buf *inner)
{
    add_bytes(outer, field, inner->p, inner->n);
    if (inner->failed)
        outer->failed = true;
    buf_reset(inner);
}

static void end_container(struct dp_podres *a)
{
    if (a->in_container)
        enclose(&a->pod, POD_CONTAINERS, &a->container);
    a->in_container = false;
}

static void end_pod(struct dp_podres *a)
{
    end_container(a);
    if (a->in_pod)
        enclose(&a->out, OUT_LISTED, &a->pod);
    a->in_pod = false;
}

/* ---- the answer ---- */

void dp_podres_begin(struct dp_podres *a)
{
    *a = (struct dp_podres){ 0 };
    buf_init(&a->out, DP_PODRES_MAX);
    buf_init(&a->pod, DP_PODRES_MAX);
    buf_init(&a->container, DP_PODRES_MAX);
    buf_init(&a->device, DP_PODRES_MAX);
    buf_init(&a->topology, DP_PODRES_MAX);
}

void dp_podres_done(struct dp_podres *a)
{
    buf_done(&a->out);
    buf_done(&a->pod);
    buf_done(&a->container);
    buf_done(&a->device);
    buf_done(&a->topology);
}

void dp_podres_pod(struct dp_podres *a, const char *name, const char *namespace_)
{
    end_pod(a);
    a->in_pod = true;
    add_text(&a->pod, POD_NAME, name);
    add_text(&a->pod, POD_NAMESPACE, namespace_);
}

void dp_podres_container(struct dp_podres *a, const char *name)
{
    end_container(a);
    a->in_container = true;
    add_text(&a->container, CONTAINER_NAME, name);
}

void dp_podres_device(struct dp_podres *a, const char *resource, const char *id, const int64_t *numa,
                      size_t n_numa)
{
    add_text(&a->device, DEVICES_RESOURCE, resource);
    add_bytes(&a->device, DEVICES_IDS, id, strlen(id));
    for (size_t i = 0; i < n_numa; i++)
        add_node(&a->topology, numa[i]);
    if (a->topology.n > 0)
        enclose(&a->device, DEVICES_TOPOLOGY, &a->topology);
    if (a->in_container)
        enclose(&a->container, CONTAINER_DEVICES, &a->device);
    else
        enclose(&a->out, OUT_LISTED, &a->device);
}

/* The numbers are packed: one field with all of them. */
void dp_podres_cpus(struct dp_podres *a, const int64_t *cpus, size_t n)
{
    uint8_t one[VARINT_MAX];

    for (size_t i = 0; i < n; i++)
        buf_add(&a->device, one, put_varint(one, (uint64_t)cpus[i]));
    if (n > 0 && a->in_container)
        enclose(&a->container, CONTAINER_CPUS, &a->device);
    else if (n > 0)
        enclose(&a->out, ALLOCATABLE_CPUS, &a->device);
}

void dp_podres_memory(struct dp_podres *a, const char *type, uint64_t size, uint64_t nodes)
{
    uint8_t field[1 + VARINT_MAX] = { MEMORY_SIZE << 3 | WIRE_VARINT };

    add_text(&a->device, MEMORY_TYPE, type);
    if (size > 0)
        buf_add(&a->device, field, 1 + put_varint(field + 1, size));
    for (uint64_t left = nodes; left != 0; left &= left - 1)
        add_node(&a->topology, __builtin_ctzll(left));
    enclose(&a->device, MEMORY_TOPOLOGY, &a->topology);
    if (a->in_container)
        enclose(&a->container, CONTAINER_MEMORY, &a->device);
    else
        enclose(&a->out, ALLOCATABLE_MEMORY, &a->device);
}

enum err_code dp_podres_end(struct dp_podres *a, struct err *e)
{
    end_pod(a);
    if (!a->out.failed)
        return ERR_OK;
    return err_set(e, ERR_EXHAUSTED, "the answer is larger than %d MiB, or there is no memory for it",
                   DP_PODRES_MAX >> 20);
}

/* ---- a request ---- */

enum err_code dp_podres_request_unpack(struct dp_podres_request *ret, const uint8_t *p, size_t n,
                                       struct err *e)
{
    const V1__GetPodResourcesRequest *m;
    ProtobufCMessage *base;

    *ret = (struct dp_podres_request){ 0 };
    if (protobuf_unpack(&v1__get_pod_resources_request__descriptor, NULL, 0, p, n, &ret->memory, &base, e) !=
        ERR_OK)
        return e->code;
    m = (const V1__GetPodResourcesRequest *)base;
    ret->name = m->pod_name;
    ret->namespace_ = m->pod_namespace;
    return ERR_OK;
}

void dp_podres_request_done(struct dp_podres_request *r)
{
    arena_done(&r->memory);
    *r = (struct dp_podres_request){ 0 };
}
