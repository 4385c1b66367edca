/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cluster/cluster.h"

#include "agent/cluster/internal.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <string.h>

/* ---- to coracle-kube ---- */

static json_t *typed(const json_t *members, const char *type)
{
    json_t *m = members != NULL ? json_copy((json_t *)(uintptr_t)members) : NULL;

    if (m != NULL)
        json_object_set_new(m, "type", json_string(type));
    return m;
}

/* If an apiserver reports no pods although there were some before, the list is requested a second time. */
static json_t *cluster_config(const struct cluster *c)
{
    json_t *m = typed(c->o.config, "config");
    bool has = false;

    pods_each (c->o.node, p)
        has = has || p->api->origin == API_FROM_SERVER;
    if (m != NULL)
        json_object_set_new(m, "hasPods", json_boolean(has));
    return m;
}

void cluster_connected(struct cluster *c)
{
    cluster_send(c, cluster_config(c));
    if (c->credentials != NULL)
        cluster_send(c, typed(c->credentials, "credentials"));
    if (c->serving != NULL)
        cluster_send(c, typed(c->serving, "serving"));
    if (c->o.lone)
        return;
    needs_untold(c);
    services_again(c);
    runtime_classes_again(c);
    trust_again(c);
    storage_untold(c);
    csi_drivers_again(c);
    tokens_again(c);
    reports_all(c);
}

void cluster_set_credentials(struct cluster *c, json_t *credentials)
{
    json_decref(c->credentials);
    c->credentials = credentials;
    if (c->link != NULL && credentials != NULL)
        cluster_send(c, typed(credentials, "credentials"));
}

void cluster_set_serving(struct cluster *c, json_t *serving)
{
    json_decref(c->serving);
    c->serving = serving;
    if (c->link != NULL && serving != NULL)
        cluster_send(c, typed(serving, "serving"));
}

void cluster_set_trouble(struct cluster *c, const char *why)
{
    free(c->trouble);
    c->trouble = why != NULL ? strdup(why) : NULL;
}

/* ---- from coracle-kube ---- */

static void cluster_serve(struct cluster *c, const json_t *message)
{
    json_t *answer = json_object(), *id = json_object_get(message, "id");
    struct err e = { 0 }, lost = { 0 };
    int fd = -1;

    json_put_str(answer, "type", "served");
    if (id != NULL)
        json_object_set(answer, "id", id);
    if (c->o.lend(&fd, c->o.arg, &e) != ERR_OK)
        json_put_str(answer, "error", e.text);
    if (kube_link_send(c->link, answer, fd, &lost) != ERR_OK)
        log_debug("cannot hand over a connection to coracle-kube", F_ERR(&lost));
}

#define LOG_FIELDS_MAX 8

/* A line of coracle-kube in the daemon's log. */
static void cluster_log(const json_t *message)
{
    const char *text = json_str(message, "message"), *key;
    struct log_field fields[LOG_FIELDS_MAX + 1];
    str_auto copy = NULL;
    json_int_t level = json_int(message, "level", LOG_LVL_INFO);
    const json_t *value;
    size_t n = 0;

    if (text == NULL || (copy = strndup(text, 1024)) == NULL)
        return;
    if (level != LOG_LVL_ERROR && level != LOG_LVL_WARN && level != LOG_LVL_DEBUG)
        level = LOG_LVL_INFO;
    fields[n++] = F_STR("from", "coracle-kube");
    json_object_foreach ((json_t *)(uintptr_t)json_object_get(message, "fields"), key, value) {
        if (n > LOG_FIELDS_MAX || strlen(key) > 32)
            continue;
        if (json_is_string(value))
            fields[n++] = F_STR(key, json_string_value(value));
        else if (json_is_integer(value))
            fields[n++] = F_I64(key, json_integer_value(value));
    }
    if (log_enabled((enum log_level)level))
        log_write((enum log_level)level, copy, fields, n);
}

void cluster_message(struct cluster *c, json_t *message, int fd)
{
    const char *type = json_str(message, "type"), *why = json_str(message, "why");

    if (fd >= 0) /* none of its messages carries a descriptor */
        close(fd);
    if (type == NULL)
        return;
    if (c->o.lone && strcmp(type, "serve") != 0 && strcmp(type, "log") != 0 &&
        strcmp(type, "certificate") != 0)
        return;
    if (strcmp(type, "put") == 0)
        objects_put(c, json_object_get(message, "object"));
    else if (strcmp(type, "gone") == 0)
        objects_gone(c, message);
    else if (strcmp(type, "synced") == 0)
        objects_synced(c, message);
    else if (strcmp(type, "denied") == 0)
        objects_denied(c, message);
    else if (strcmp(type, "state") == 0)
        show_state(c, message);
    else if (strcmp(type, "parts") == 0)
        show_parts(c, message);
    else if (strcmp(type, "answer") == 0)
        tokens_answer(c, message);
    else if (strcmp(type, "serve") == 0)
        cluster_serve(c, message);
    else if (strcmp(type, "log") == 0)
        cluster_log(message);
    else if (strcmp(type, "anew") == 0 && c->o.on_anew != NULL)
        c->o.on_anew(why != NULL ? why : "", c->o.arg);
    else if (strcmp(type, "certificate") == 0 && c->o.on_certificate != NULL)
        c->o.on_certificate(message, c->o.arg);
}

/* ---- life ---- */

static bool cluster_served_may_come(void *cluster)
{
    return own_node_may_come(cluster);
}

enum err_code cluster_open(struct cluster **ret, const struct cluster_options *o, struct err *e)
{
    struct cluster *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        json_decref(o->config);
        return err_nomem(e);
    }
    c->o = *o;
    if (o->lone) {
        process_open(c);
        *ret = c;
        return ERR_OK;
    }
    if (keep_open(c, e) != ERR_OK || csi_drivers_open(c, e) != ERR_OK) {
        keep_free(c);
        json_decref(c->o.config);
        free(c);
        return e->code;
    }
    c->of_node = (struct node_cluster){ .pod_changed = reports_pod,
                                        .pod_gone = reports_pod_gone,
                                        .event = reports_event,
                                        .node_changed = reports_node,
                                        .explain = show_explain,
                                        .metrics = show_metrics,
                                        .services = services_each,
                                        .kept = keep_explain,
                                        .runtime_classes_known = runtime_classes_are_known,
                                        .trust = trust_anchors,
                                        .drivers_changed = csi_drivers_registered,
                                        .served_may_come = cluster_served_may_come,
                                        .arg = c };
    tokens_open(c);
    reports_open(c);
    storage_open(c);
    bound_open(c);
    src_store_expect_server(o->store);
    node_set_cluster(o->node, &c->of_node);
    process_open(c);
    *ret = c;
    return ERR_OK;
}

void cluster_close(struct cluster *c)
{
    if (c == NULL || c->closing)
        return;
    c->closing = true;
    if (!c->o.lone) {
        node_set_cluster(c->o.node, NULL);
        node_set_driver_link(c->o.node, NULL);
        node_set_served(c->o.node, NULL, NULL, 0);
    }
    if (c->link != NULL)
        cluster_send(c, json_pack("{s:s}", "type", "stop"));
    if (!c->o.lone) {
        reports_close(c);
        storage_close(c);
        csi_drivers_close(c);
        keep_close(c);
    }
    process_close(c);
}

bool cluster_busy(const struct cluster *c)
{
    return c != NULL && (process_live(c) || c->open_handles > 0 || kept_busy(c->kept));
}

void cluster_free(struct cluster *c)
{
    if (c == NULL)
        return;
    reports_free(c);
    needs_free(c);
    storage_free(c);
    bound_free(c);
    csi_drivers_free(c);
    own_node_free(c);
    services_free(c);
    runtime_classes_free(c);
    trust_free(c);
    tokens_free(c);
    keep_free(c);
    json_decref(c->credentials);
    json_decref(c->state);
    json_decref(c->parts);
    json_decref(c->o.config);
    json_decref(c->serving);
    free(c->lost);
    free(c->trouble);
    free(c);
}
