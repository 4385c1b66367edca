/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/sync/certs.h"

#include "agent/kube/sync/internal.h"
#include "base/codec/base64.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

#define REQUESTS "/apis/certificates.k8s.io/v1/certificatesigningrequests"

struct cert_line { /* one of the two certificates */
    struct kube_sync *sync;
    const char *usage; /* "client", "server" */
    bool serving, wanted /* now */, rotates;
    char *certificate; /* PEM in force; NULL: none */
    int64_t rotate_at_ns;
    int64_t not_after_ns; /* of the one in force; 0: there is none */
    uint64_t errors;      /* attempts that brought none: kubelet's ..._expiration_renew_errors */
    EVP_PKEY *key;        /* of the request under way */
    char name[X509_NAME_SIZE];
    struct sync_call call;
    struct kube_reflector *reflector; /* waits for the approval */
    struct sync_timer timer, closer;
    uint64_t wait_ms;
    char *saved; /* the key of before a restart, to be used once; NULL: none */
};

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

/* ---- one certificate ---- */

static void cert_step(void *owner);

static const char *cert_part_name(const struct cert_line *l)
{
    return l->serving ? "serving certificate" : "client certificate";
}

static void cert_close_watch(void *owner)
{
    struct cert_line *l = owner;

    kube_reflector_close(l->reflector);
    l->reflector = NULL;
    cert_step(l);
}

static void cert_failed(struct cert_line *l)
{
    l->errors++;
    state_part_changed(l->sync->state);
}

static void cert_waited_in_vain(void *owner)
{
    cert_failed(owner);
    cert_close_watch(owner);
}

/* The caller may be the watch: it is closed on the next turn. */
static void cert_forget_request(struct cert_line *l)
{
    sync_timer_start(l->sync, &l->closer, 0, cert_close_watch, l);
    EVP_PKEY_free(l->key);
    l->key = NULL;
    l->name[0] = '\0';
}

static void cert_again(struct cert_line *l, const char *why, uint64_t least_ms)
{
    cert_failed(l);
    l->wait_ms = l->wait_ms == 0 ? 2000 : l->wait_ms * 2 < 32000 ? l->wait_ms * 2 : 32000;
    state_part_say(l->sync->state, cert_part_name(l), why);
    sync_timer_start(l->sync, &l->timer, sync_jitter_ms(l->wait_ms > least_ms ? l->wait_ms : least_ms, 0.1),
                     cert_step, l);
}

static void cert_tell(struct cert_line *l, const char *pem)
{
    char *key = x509_key_pem(l->key);

    if (key != NULL)
        sync_send(l->sync, json_pack("{s:s, s:s, s:s*, s:s}", "type", "certificate", "usage", l->usage,
                                     "certificate", pem, "key", key));
    if (key != NULL)
        explicit_bzero(key, strlen(key));
    free(key);
}

static void cert_take(struct cert_line *l, const char *pem, double chance)
{
    struct x509_times t;
    struct err e = { 0 };

    if (str_eq(pem, l->certificate))
        return;
    free(l->certificate);
    l->certificate = pem != NULL ? strdup(pem) : NULL;
    l->rotate_at_ns = l->not_after_ns = 0;
    if (pem != NULL && x509_certificate(pem, NULL, &t, &e) == ERR_OK) {
        l->rotate_at_ns = certs_rotate_at_ns(&t, chance);
        l->not_after_ns = t.not_after_ns;
    }
    state_part_changed(l->sync->state);
}

static void cert_issued(struct cert_line *l, const char *pem)
{
    struct x509_times t;
    struct err e = { 0 };

    if (x509_certificate(pem, l->key, &t, &e) != ERR_OK) {
        cert_forget_request(l);
        cert_again(l, e.text, 0);
        return;
    }
    cert_tell(l, pem);
    cert_take(l, pem, sync_random());
    cert_forget_request(l);
    l->wanted = false;
    l->wait_ms = 0;
    state_part_say(l->sync->state, cert_part_name(l), NULL);
    cert_step(l);
}

/* ---- waiting for the approval ---- */

static void cert_on_request(json_t *request, void *arg)
{
    struct cert_line *l = arg;
    char why[400] = "";
    str_auto pem = NULL;

    if (l->key == NULL || !str_eq(json_str(json_object_get(request, "metadata"), "name"), l->name))
        return;
    switch (certs_judge(request, &pem, why, sizeof(why))) {
    case CERTS_PENDING:
        state_part_say(l->sync->state, cert_part_name(l),
                       "the certificate signing request waits for its approval");
        return;
    case CERTS_ISSUED:
        cert_issued(l, pem);
        return;
    case CERTS_DENIED:
        cert_forget_request(l);
        cert_again(l, why, CERTS_DENIED_MS);
        return;
    }
}

static void cert_on_gone(const char *namespace_, const char *name, const char *uid, void *arg)
{
    struct cert_line *l = arg;

    (void)namespace_;
    (void)uid;
    if (l->key != NULL && str_eq(name, l->name))
        sync_timer_start(l->sync, &l->closer, 0, cert_close_watch, l); /* made again, with the same key */
}

/* That it was made is known from the answer to its POST. */
static void cert_on_synced(void *arg)
{
    (void)arg;
}

static void cert_on_trouble(const struct err *why, int http, void *arg)
{
    struct cert_line *l = arg;

    (void)http;
    if (why != NULL)
        state_part_say(l->sync->state, cert_part_name(l), why->text);
}

static void cert_watch(struct cert_line *l)
{
    struct err e = { 0 };
    char selector[128];
    const struct kube_reflector_options o = { .loop = l->sync->o.loop,
                                              .client = l->sync->o.client,
                                              .path = REQUESTS,
                                              .field_selector = selector,
                                              .subject = l->serving
                                                             ? "the request for the serving certificate"
                                                             : "the request for the client certificate",
                                              .objects_max = 1,
                                              .on_put = cert_on_request,
                                              .on_gone = cert_on_gone,
                                              .on_synced = cert_on_synced,
                                              .on_trouble = cert_on_trouble,
                                              .arg = l };

    snprintf(selector, sizeof(selector), "metadata.name=%s", l->name);
    if (kube_reflector_open(&l->reflector, &o, &e) != ERR_OK)
        cert_again(l, e.text, 0);
    else
        sync_timer_start(l->sync, &l->timer, CERTS_WAIT_MS, cert_waited_in_vain, l);
}

/* ---- making a request ---- */

static void cert_answered(void *owner, const struct sync_answer *a)
{
    struct cert_line *l = owner;

    if (a->error->code == ERR_CANCELLED || l->key == NULL)
        return;
    if (a->error->code == ERR_OK || a->error->code == ERR_EXISTS)
        cert_watch(l); /* that it exists: this key's request of before a restart */
    else
        cert_again(l, a->error->text, a->retry_after_ms);
}

static void cert_wipe(char *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

static enum err_code cert_make_key(struct cert_line *l, struct err *e)
{
    char *saved = take_ptr(&l->saved);
    struct err ignored = { 0 };

    if (l->key == NULL && saved != NULL)
        ERR_IGNORE(x509_key_read(saved, &l->key, &ignored));
    cert_wipe(saved);
    if (l->key != NULL)
        return ERR_OK;
    if (x509_key_make(&l->key, e) == ERR_OK && !l->serving)
        cert_tell(l, NULL);
    return e->code;
}

static void cert_request(struct cert_line *l)
{
    struct err e = { 0 };
    json_t *body = NULL;
    const json_t *addresses = l->serving ? node_part_addresses(l->sync->node) : NULL;

    if (cert_make_key(l, &e) == ERR_OK) {
        const struct x509_request_spec spec = {
            .key = l->key, .node = l->sync->node_name, .serving = l->serving, .addresses = addresses
        };
        ERR_IGNORE(x509_request(&spec, &body, l->name, &e));
    }
    if (e.code != ERR_OK) {
        cert_again(l, e.text, 0);
        return;
    }
    sync_call(l->sync, &l->call,
              &(struct kube_request_spec){
                  .method = "POST", .path = REQUESTS, .body = body, .subject = cert_part_name(l) },
              cert_answered, l);
    json_decref(body);
}

static void cert_step(void *owner)
{
    struct cert_line *l = owner;
    int64_t now_ns = clock_wall_ns();

    if (l->call.busy || l->reflector != NULL || l->timer.runs)
        return;
    if (l->rotates && l->rotate_at_ns != 0 && now_ns >= l->rotate_at_ns)
        l->wanted = true;
    if (l->wanted)
        cert_request(l);
    else if (l->rotates && l->rotate_at_ns != 0)
        sync_timer_start(l->sync, &l->timer, (uint64_t)((l->rotate_at_ns - now_ns) / 1000000) + 1, cert_step,
                         l);
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
        sync_timer_start(c->sync, &c->client.timer, CERTS_WAIT_MS, cert_waited_in_vain, &c->client);
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

    /* It is asked for with the node's own credentials, once its addresses are known. */
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

static void cert_stop(struct cert_line *l)
{
    sync_timer_stop(l->sync, &l->timer);
    sync_timer_stop(l->sync, &l->closer);
    sync_call_cancel(&l->call);
    kube_reflector_close(l->reflector);
    l->reflector = NULL;
    EVP_PKEY_free(l->key);
    l->key = NULL;
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
    cert_wipe(c->client.saved);
    free(c->client.certificate);
    free(c->server.certificate);
    free(c);
}
