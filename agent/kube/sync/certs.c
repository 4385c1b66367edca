/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/sync/certs.h"

#include "agent/kube/sync/cert_line.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

struct certs_part {
    struct kube_sync *sync;
    struct cert_line client, server;
    bool started, serving_known;
};

int64_t certs_rotate_at_ns(const struct x509_times *t, double chance)
{
    return t->not_before_ns + (int64_t)((double)(t->not_after_ns - t->not_before_ns) * (0.7 + 0.2 * chance));
}

enum certs_verdict certs_judge(const json_t *request, char **ret_pem, char *why, size_t why_size)
{
    const json_t *status = json_object_get(request, "status");
    const char *encoded = json_str(status, "certificate");
    size_t n = encoded != NULL ? strlen(encoded) : 0;
    json_t *c;
    size_t i;

    json_array_foreach (json_object_get(status, "conditions"), i, c) {
        const char *type = json_str(c, "type"), *message = json_str(c, "message");

        if (!str_eq(type, "Denied") && !str_eq(type, "Failed"))
            continue;
        snprintf(why, why_size, "certificate request %s: %s", type[0] == 'D' ? "denied" : "failed",
                 message != NULL ? message : "");
        return CERTS_DENIED;
    }
    if (n == 0 || n > X509_PEM_MAX)
        return CERTS_PENDING;
    *ret_pem = malloc(BASE64_DECODED_MAX(n) + 1);
    if (*ret_pem == NULL || !base64_decode(encoded, n, (unsigned char *)*ret_pem, &n)) {
        free(*ret_pem);
        *ret_pem = NULL;
        return CERTS_PENDING;
    }
    (*ret_pem)[n] = '\0';
    return CERTS_ISSUED;
}

/* ---- the part ---- */

static json_t *cert_state(const struct cert_line *l)
{
    json_t *o = json_pack("{s:I}", "errors", (json_int_t)l->errors);

    if (l->not_after_ns != 0)
        json_object_set_new(o, "notAfter", json_integer(l->not_after_ns / 1000000000));
    return o;
}

json_t *certs_part_state(const struct certs_part *c)
{
    json_t *o = json_object();

    if (c->client.rotates)
        json_object_set_new(o, "client", cert_state(&c->client));
    if (c->server.rotates)
        json_object_set_new(o, "server", cert_state(&c->server));
    return o;
}

struct certs_part *certs_part_new(struct kube_sync *s)
{
    struct certs_part *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return NULL;
    c->sync = s;
    c->client = (struct cert_line){ .sync = s, .usage = "client" };
    c->server = (struct cert_line){ .sync = s, .usage = "server", .serving = true };
    return c;
}

void certs_part_credentials(struct certs_part *c, const json_t *message)
{
    const json_t *settings = json_object_get(c->sync->config, "certificates");
    const bool bootstrap = json_flag(message, "bootstrap");

    c->client.rotates = json_flag(settings, "rotateClient");
    if (!bootstrap)
        cert_take(&c->client, json_str(message, "certificate"), sync_random());
    if (bootstrap && !c->client.wanted) {
        c->client.wanted = true;
        if (json_str(message, "waitingKey") != NULL && c->client.key == NULL && c->client.saved == NULL)
            c->client.saved = strdup(json_str(message, "waitingKey"));
    }
    sync_timer_stop(c->sync, &c->client.timer);
    if (c->client.reflector != NULL)
        cert_wait(&c->client);
    if (c->started)
        cert_step(&c->client);
    if (!bootstrap)
        certs_part_addresses(c);
}

static void certs_without_serving(void *owner)
{
    struct certs_part *c = owner;

    c->serving_known = true;
    certs_part_addresses(c);
}

void certs_part_serving(struct certs_part *c, const json_t *message)
{
    const char *pem = json_str(message, "certificate");

    c->serving_known = true;
    if (pem != NULL && c->server.certificate == NULL && c->sync->node_name != NULL &&
        x509_is_of_node(pem, c->sync->node_name))
        cert_take(&c->server, pem, sync_random());
    certs_part_addresses(c);
}

void certs_part_addresses(struct certs_part *c)
{
    const json_t *settings = json_object_get(c->sync->config, "certificates"),
                 *addresses = node_part_addresses(c->sync->node);
    struct cert_line *l = &c->server;

    /* It is requested with the node's own credentials, once its addresses are known. */
    if (!json_flag(settings, "rotateServer") || c->client.wanted || !c->started ||
        json_array_size(addresses) == 0)
        return;
    l->rotates = true;
    if (!c->serving_known) {
        if (!c->server.closer.runs)
            sync_timer_start(c->sync, &c->server.closer, CERTS_SERVING_MS, certs_without_serving, c);
        return;
    }
    if (l->key != NULL || l->wanted)
        return;
    l->wanted = l->certificate == NULL || !x509_names_are(l->certificate, addresses);
    if (l->wanted)
        sync_timer_stop(c->sync, &l->timer);
    cert_step(l);
}

void certs_part_start(struct certs_part *c)
{
    if (c->started)
        return;
    c->started = true;
    cert_step(&c->client);
}

void certs_part_stop(struct certs_part *c)
{
    c->started = false;
    cert_stop(&c->client);
    cert_stop(&c->server);
}

void certs_part_free(struct certs_part *c)
{
    if (c == NULL)
        return;
    cert_done(&c->client);
    cert_done(&c->server);
    free(c);
}
