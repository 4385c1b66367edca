/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/message.h"

#include "base/codec/json.h"

#include <string.h>

#define ANNOTATION_MAX 65536 /* names and usages of all containers of a pod */

static bool is_memory(const struct ev_crossing *c)
{
    return ev_signal_condition(c->threshold.signal) == EV_MEMORY_PRESSURE;
}

static bool is_storage(const struct ev_crossing *c)
{
    return ev_signal_condition(c->threshold.signal) == EV_DISK_PRESSURE &&
           ev_signal_unit(c->threshold.signal) == EV_BYTES;
}

static struct quantity bytes(uint64_t n)
{
    return quantity_from_int(n < INT64_MAX ? (int64_t)n : INT64_MAX, QUANTITY_BINARY_SI);
}

/* A container's usage of the resource, without volumes. False: unknown, or the texts do not name containers
 * (inodes, process ids), or the container is within its request. */
static bool offends(const struct ev_crossing *c, const struct ev_container *container,
                    struct quantity *ret_usage, const struct quantity **ret_request)
{
    if (is_memory(c) && container->memory_known) {
        *ret_usage = bytes(container->memory);
        *ret_request = &container->memory_request;
    } else if (is_storage(c) && container->layer_known && container->log_known) {
        struct quantity layer = bytes(container->layer.bytes), log = bytes(container->log.bytes);

        *ret_usage = quantity_add(&layer, &log);
        *ret_request = &container->storage_request;
    } else {
        return false;
    }
    return quantity_cmp(ret_usage, *ret_request) > 0;
}

static void add_offender(struct buf *b, const char *kind, const char *name, const struct quantity *usage,
                         const struct quantity *request, const char *resource)
{
    char used[QUANTITY_TEXT_SIZE], requested[QUANTITY_TEXT_SIZE];

    quantity_format(usage, used);
    quantity_format(request, requested);
    buf_addf(b, "%s %s was using %s, request is %s, has larger consumption of %s. ", kind, name, used,
             requested, resource);
}

static const char *name_of(const struct ev_pod *p)
{
    const char *slash = strchr(p->key, '/');

    return slash != NULL ? slash + 1 : p->key;
}

static bool shows_pod(const struct ev_crossing *c, const struct ev_pod *p)
{
    return is_memory(c) && p->memory_of_pod && p->memory_known;
}

void ev_message(const struct ev_crossing *c, const struct ev_pod *p, struct buf *ret)
{
    const char *resource = ev_signal_resource(c->threshold.signal);
    char line[QUANTITY_TEXT_SIZE], available[QUANTITY_TEXT_SIZE];
    const struct quantity *request;
    struct quantity usage;

    ev_amount_text(&c->threshold.value, c->value.capacity, line);
    ev_value_text(c->threshold.signal, c->value.available, available);
    buf_addf(ret, "The node was low on resource: %s. Threshold quantity: %s, available: %s. ", resource, line,
             available);
    if (shows_pod(c, p)) {
        usage = bytes(p->memory);
        add_offender(ret, "Pod", name_of(p), &usage, &p->pod_memory_request, resource);
    }
    for (size_t i = 0; i < p->n_containers; i++)
        if (offends(c, &p->containers[i], &usage, &request))
            add_offender(ret, "Container", p->containers[i].name, &usage, request, resource);
}

static void add_item(struct buf *b, const char *text)
{
    if (b->n > 0)
        buf_addc(b, ',');
    buf_adds(b, text);
}

static bool put(json_t *to, const char *name, const char *text)
{
    return json_object_set_new(to, name, json_string_of(text)) == 0;
}

json_t *ev_annotations(const struct ev_crossing *c, const struct ev_pod *p)
{
    buf_auto names = BUF_INIT(ANNOTATION_MAX);
    buf_auto usages = BUF_INIT(ANNOTATION_MAX);
    json_auto_t *ret = json_object();
    char text[QUANTITY_TEXT_SIZE];
    const struct quantity *request;
    struct quantity usage;
    bool ok;

    for (size_t i = 0; i < p->n_containers; i++)
        if (offends(c, &p->containers[i], &usage, &request)) {
            quantity_format(&usage, text);
            add_item(&names, p->containers[i].name);
            add_item(&usages, text);
        }
    ok = put(ret, "offending_containers", names.p) && put(ret, "offending_containers_usage", usages.p) &&
         put(ret, "starved_resource", ev_signal_resource(c->threshold.signal));
    if (ok && shows_pod(c, p)) {
        usage = bytes(p->memory);
        quantity_format(&usage, text);
        ok = put(ret, "offending_pod", name_of(p)) && put(ret, "offending_pod_usage", text);
    }
    return ok && !names.failed && !usages.failed ? json_incref(ret) : NULL;
}

void ev_attempt_message(const struct ev_crossing *c, struct buf *ret)
{
    buf_addf(ret, "Attempting to reclaim %s", ev_signal_resource(c->threshold.signal));
}
