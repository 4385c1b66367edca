/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/sync/cert_line.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <stdio.h>
#include <string.h>

#define REQUESTS "/apis/certificates.k8s.io/v1/certificatesigningrequests"

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

void cert_wait(struct cert_line *l)
{
    sync_timer_start(l->sync, &l->timer, CERTS_WAIT_MS, cert_waited_in_vain, l);
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
    state_part_report(l->sync->state, cert_part_name(l), why);
    sync_timer_start(l->sync, &l->timer, sync_jitter_ms(l->wait_ms > least_ms ? l->wait_ms : least_ms, 0.1),
                     cert_step, l);
}

static void cert_tell(struct cert_line *l, const char *pem)
{
    char *key = x509_key_pem(l->key);

    if (key != NULL)
        sync_send(l->sync, json_pack("{s:s, s:s, s:s*, s:s}", "type", "certificate", "usage", l->usage,
                                     "certificate", pem, "key", key));
    str_wipe(key);
}

void cert_take(struct cert_line *l, const char *pem, double chance)
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
    state_part_report(l->sync->state, cert_part_name(l), NULL);
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
        state_part_report(l->sync->state, cert_part_name(l),
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
        state_part_report(l->sync->state, cert_part_name(l), why->text);
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
        cert_wait(l);
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

static enum err_code cert_make_key(struct cert_line *l, struct err *e)
{
    char *saved = take_ptr(&l->saved);
    struct err ignored = { 0 };

    if (l->key == NULL && saved != NULL)
        ERR_IGNORE(x509_key_read(saved, &l->key, &ignored));
    str_wipe(saved);
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

void cert_step(void *owner)
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

/* ---- the end ---- */

void cert_stop(struct cert_line *l)
{
    sync_timer_stop(l->sync, &l->timer);
    sync_timer_stop(l->sync, &l->closer);
    sync_call_cancel(&l->call);
    kube_reflector_close(l->reflector);
    l->reflector = NULL;
    EVP_PKEY_free(l->key);
    l->key = NULL;
}

void cert_done(struct cert_line *l)
{
    str_wipe(l->saved);
    free(l->certificate);
}
