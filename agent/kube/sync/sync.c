/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/sync/sync.h"

#include "agent/kube/sync/internal.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

/* ---- opening and closing ---- */

static void sync_free(struct kube_sync *s)
{
    node_part_free(s->node);
    lease_part_free(s->lease);
    csi_part_free(s->csi);
    claims_part_free(s->claims);
    pods_part_free(s->pods);
    events_part_free(s->events);
    objects_part_free(s->objects);
    tokens_part_free(s->tokens);
    certs_part_free(s->certs);
    state_part_free(s->state);
    json_decref(s->config);
    free(s);
}

static void sync_free_if_over(struct kube_sync *s)
{
    if (s->closing && s->timers == NULL && TAILQ_EMPTY(&s->calls))
        sync_free(s);
}

/* Parts that depend on the Node begin, or check again. */
static void start_on_node(struct kube_sync *s)
{
    lease_part_start(s->lease);
    lease_part_anew(s->lease);
    pods_part_start(s->pods);
    csi_part_start(s->csi);
}

enum err_code kube_sync_open(struct kube_sync **ret, const struct kube_sync_options *o, struct err *e)
{
    struct kube_sync *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return err_nomem(e);
    s->o = *o;
    s->on_over = sync_free_if_over;
    s->on_node = start_on_node;
    TAILQ_INIT(&s->waiting);
    TAILQ_INIT(&s->calls);
    s->state = state_part_new(s);
    s->node = node_part_new(s);
    s->lease = lease_part_new(s);
    s->csi = csi_part_new(s);
    s->claims = claims_part_new(s);
    s->pods = pods_part_new(s);
    s->events = events_part_new(s);
    s->objects = objects_part_new(s);
    s->tokens = tokens_part_new(s);
    s->certs = certs_part_new(s);
    if (s->node == NULL || s->lease == NULL || s->pods == NULL || s->events == NULL || s->objects == NULL ||
        s->tokens == NULL || s->certs == NULL || s->state == NULL || s->csi == NULL || s->claims == NULL)
        err_nomem(e);
    else
        ERR_IGNORE(sync_timers_open(s, e));
    if (e->code != ERR_OK) {
        sync_free(s);
        return e->code;
    }
    *ret = s;
    return ERR_OK;
}

void kube_sync_close(struct kube_sync *s)
{
    struct sync_call *c;

    if (s == NULL || s->closing)
        return;
    s->closing = true;
    node_part_stop(s->node);
    lease_part_stop(s->lease);
    csi_part_stop(s->csi);
    claims_part_stop(s->claims);
    pods_part_stop(s->pods);
    events_part_stop(s->events);
    objects_part_stop(s->objects);
    certs_part_stop(s->certs);
    state_part_stop(s->state);
    TAILQ_FOREACH (c, &s->calls, link)
        sync_call_cancel(c);
    sync_timers_close(s);
}

void kube_sync_report(struct kube_sync *s)
{
    if (!s->closing)
        state_part_send(s->state);
}

/* ---- messages ---- */

static void sync_take_config(struct kube_sync *s, const json_t *message)
{
    if (s->config != NULL || json_str(message, "nodeName") == NULL)
        return; /* once */
    s->config = json_deep_copy(message);
    s->node_name = json_str(s->config, "nodeName");
}

static void sync_take_credentials(struct kube_sync *s, const json_t *message)
{
    if (s->config == NULL)
        return;
    certs_part_credentials(s->certs, message);
    certs_part_start(s->certs);
    if (json_flag(message, "bootstrap"))
        return; /* they are good for a certificate and nothing else */
    node_part_start(s->node);
    events_part_start(s->events);
    objects_part_start(s->objects);
    claims_part_start(s->claims);
    node_part_anew(s->node);
    lease_part_anew(s->lease);
    csi_part_anew(s->csi);
    pods_part_anew(s->pods);
    events_part_anew(s->events);
}

void kube_sync_message(struct kube_sync *s, const char *type, json_t *message)
{
    if (s->closing)
        return;
    if (strcmp(type, "config") == 0)
        sync_take_config(s, message);
    else if (strcmp(type, "credentials") == 0)
        sync_take_credentials(s, message);
    else if (strcmp(type, "node") == 0) {
        node_part_take(s->node, json_object_get(message, "object"));
        certs_part_addresses(s->certs);
    } else if (strcmp(type, "serving") == 0)
        certs_part_serving(s->certs, message);
    else if (strcmp(type, "pod") == 0)
        pods_part_take(s->pods, message);
    else if (strcmp(type, "podgone") == 0)
        pods_part_forget(s->pods, message);
    else if (strcmp(type, "event") == 0)
        events_part_take(s->events, json_object_get(message, "object"));
    else if (strcmp(type, "drivers") == 0)
        csi_part_take(s->csi, message);
    else if (strcmp(type, "need") == 0)
        objects_part_need(s->objects, message);
    else if (strcmp(type, "drop") == 0)
        objects_part_drop(s->objects, message);
    else if (strcmp(type, "look") == 0)
        objects_part_look(s->objects, message);
    else if (strcmp(type, "claim") == 0)
        claims_part_take(s->claims, message);
    else if (strcmp(type, "token") == 0)
        tokens_part_take(s->tokens, message);
}
