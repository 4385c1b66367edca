/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/server/server.h"

#include "agent/kube/server/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <signal.h>
#include <string.h>

/* ---- the end ---- */

void kube_server_close(struct kube_server *s)
{
    struct caller *c;

    if (s == NULL || s->closing)
        return;
    s->closing = true;
    ports_close(s);
    LIST_FOREACH (c, &s->callers, all)
        caller_close(c);
    upstream_close_all(s);
    kube_server_maybe_free(s);
}

/* ---- configuration ---- */

static uint64_t server_ms(const json_t *config, const char *key, uint64_t otherwise)
{
    json_int_t v = json_int(config, key, (json_int_t)otherwise);

    return v >= 0 ? (uint64_t)v : otherwise;
}

static void server_take_rules(struct kube_server *s)
{
    const char *mode = json_str(s->config, "authorization");

    s->rules.token_webhook = json_flag(s->config, "tokenWebhook");
    s->rules.anonymous = json_flag(s->config, "anonymous");
    s->rules.debugging = json_flag(s->config, "debugging");
    s->rules.always_allow = mode != NULL && strcmp(mode, "AlwaysAllow") == 0;
    s->rules.token_ms = server_ms(s->config, "tokenMs", 120000);
    s->rules.allowed_ms = server_ms(s->config, "allowedMs", 300000);
    s->rules.denied_ms = server_ms(s->config, "deniedMs", 30000);
    s->rules.idle_ms = server_ms(s->config, "idleMs", 0);
    if (s->rules.idle_ms == 0)
        s->rules.idle_ms = CALLER_STREAM_MS;
}

static void server_tell_self_signed(const struct kube_server *s)
{
    json_t *message = json_pack("{s:s, s:s, s:s, s:s}", "type", "certificate", "usage", "self-signed",
                                "certificate", s->self_certificate, "key", s->self_key);

    /* Without a link this process ends anyway. */
    if (message != NULL)
        ERR_IGNORE(kube_link_send(s->o.link, message, -1, ERR_IGNORED));
}

/* The one of this process, made at most once: its clients see the same one until it is replaced. */
static enum err_code server_self_signed(struct kube_server *s, struct err *e)
{
    if (s->self_certificate != NULL)
        return ERR_OK;
    if (tls_self_signed(s->node_name, &s->self_certificate, &s->self_key, e) != ERR_OK)
        return e->code;
    if (!s->requests_certificate)
        server_tell_self_signed(s);
    return ERR_OK;
}

/* Connections that exist keep the certificate that they began with. */
static enum err_code server_take_certificates(struct kube_server *s, const json_t *from, struct err *e)
{
    const char *certificate = json_str(from, "certificate");
    struct tls_settings o = { .certificate = certificate,
                              .key = json_str(from, "key"),
                              .client_ca = json_str(from, "clientCA"),
                              .ciphers = json_object_get(s->config, "ciphers"),
                              .curves = json_object_get(s->config, "curves"),
                              .min_version = json_str(s->config, "minVersion") };
    SSL_CTX *made;

    if (certificate == NULL || certificate[0] == '\0') {
        if (server_self_signed(s, e) != ERR_OK)
            return e->code;
        o.certificate = s->self_certificate;
        o.key = s->self_key;
    }
    if (tls_context_new(&made, &o, e) != ERR_OK)
        return e->code;
    SSL_CTX_free(s->context);
    s->context = made;
    return ERR_OK;
}

/* ---- messages ---- */

static void server_take_config(struct kube_server *s, const json_t *message)
{
    json_t *config = json_object_get(message, "server");
    const char *name = json_str(message, "nodeName");
    struct err e = { 0 };

    if (s->config != NULL || !json_is_object(config) || !json_flag(config, "enabled") ||
        json_int(config, "port", 0) == 0)
        return;
    s->config = json_incref(config);
    s->node_name = strdup(name != NULL ? name : "");
    s->requests_certificate = json_flag(json_object_get(message, "certificates"), "rotateServer");
    server_take_rules(s);
    if (json_flag(config, "local") && s->o.local != NULL)
        s->on_request = s->o.local;
    /* Without files the port opens after the message `serving`, because without a CA it would refuse its
     * clients. */
    if (s->node_name == NULL)
        err_nomem(&e);
    else if (json_object_get(config, "certificate") == NULL && json_object_get(config, "clientCA") == NULL)
        return;
    else if (server_take_certificates(s, config, &e) == ERR_OK)
        ports_open(s);
    if (e.code != ERR_OK)
        log_error("cannot open the node's port", F_ERR(&e));
}

static void server_take_serving(struct kube_server *s, const json_t *message)
{
    struct err e = { 0 };

    if (s->config == NULL || s->node_name == NULL)
        return;
    if (server_take_certificates(s, message, &e) != ERR_OK)
        log_error("cannot use the new certificate of the node's port; keeping the previous one", F_ERR(&e));
    else if (s->listening && !str_eq(json_str(message, "certificate"), s->self_certificate))
        log_info("the node's port has another certificate");
    if (e.code == ERR_OK && !s->listening)
        ports_open(s);
}

void kube_server_message(struct kube_server *s, const char *type, json_t *message, int fd)
{
    fd_auto taken = fd;

    if (s->closing)
        return;
    if (strcmp(type, "config") == 0)
        server_take_config(s, message);
    else if (strcmp(type, "serving") == 0)
        server_take_serving(s, message);
    else if (strcmp(type, "served") == 0)
        upstream_served(s, (uint64_t)json_int(message, "id", 0), take_fd(&taken), json_str(message, "error"));
}

/* ---- opening ---- */

enum err_code kube_server_open(struct kube_server **ret, const struct kube_server_options *o, struct err *e)
{
    struct kube_server *s = calloc(1, sizeof(*s));
    struct sigaction now;

    if (s == NULL)
        return err_nomem(e);
    /* libuv writes without MSG_NOSIGNAL. */
    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
    s->o = *o;
    s->on_request = access_begin;
    s->health.since_ns = clock_wall_ns();
    LIST_INIT(&s->callers);
    LIST_INIT(&s->upstreams);
    review_cache_init(&s->tokens);
    review_cache_init(&s->decisions);
    s->spare = calloc(1, sizeof(*s->spare));
    if (s->spare == NULL) {
        free(s);
        return err_nomem(e);
    }
    *ret = s;
    return ERR_OK;
}
