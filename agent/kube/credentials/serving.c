/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/credentials/serving.h"

#include "agent/kube/config/file.h"
#include "agent/kube/config/pem.h"
#include "agent/kube/credentials/internal.h"
#include "agent/kube/credentials/pki.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

enum { SETTLE_MS = 50, RETRY_MIN_MS = 1000, RETRY_MAX_MS = 60 * 1000 };

struct kube_serving {
    struct kube_serving_options o;
    char *cert_dir, *cert_file, *key_file, *ca_file; /* "": not given */
    uv_timer_t timer;
    bool timer_open, running, again, closed;
    struct work work;
    json_t *made;           /* by the job */
    struct cred_load watch; /* its folders and bases alone, by the job */
    struct cred_follow follow;
    json_t *sent;
    struct err trouble;
    uint64_t retry_ms;
};

/* ---- on the pool ---- */

static enum err_code serving_read_pair(const struct kube_serving *s, json_t *to, struct err *e)
{
    bool given = s->cert_file[0] != '\0' && s->key_file[0] != '\0', put;
    char *certificate = NULL, *key = NULL;

    if (pki_read_serving(s->cert_dir, s->cert_file, s->key_file, s->o.rotate, &certificate, &key, e) !=
        ERR_OK) {
        if (!given && e->sys == ENOENT)
            *e = (struct err){ 0 }; /* not yet */
        return e->code;
    }
    put = json_object_set_new(to, "certificate", json_string_of(certificate)) == 0 &&
          json_object_set_new(to, "key", json_string_of(key)) == 0;
    kube_file_wipe(certificate, strlen(certificate));
    kube_file_wipe(key, strlen(key));
    return put ? ERR_OK : err_nomem(e);
}

static enum err_code serving_read_ca(const struct kube_serving *s, json_t *to, struct err *e)
{
    str_auto text = NULL;
    size_t n = 0;

    if (s->ca_file[0] == '\0')
        return ERR_OK;
    if (kube_file_read(s->ca_file, KUBE_FILE_MAX, &text, &n, e) != ERR_OK)
        return err_wrap(e, "client CA");
    if (strlen(text) != n || !pem_has_certificate(text))
        return err_set(e, ERR_INVALID, "client CA: %s: failed to find any PEM data in it", s->ca_file);
    return json_object_set_new(to, "clientCA", json_string_of(text)) == 0 ? ERR_OK : err_nomem(e);
}

static enum err_code serving_run(void *arg, struct err *e)
{
    struct kube_serving *s = arg;
    str_auto current = str_printf("%s/kubelet-server-current.pem", s->cert_dir);
    str_auto crt = str_printf("%s/kubelet.crt", s->cert_dir);
    str_auto key = str_printf("%s/kubelet.key", s->cert_dir);
    const char *const paths[] = { current, crt, key, s->cert_file, s->key_file, s->ca_file };

    s->made = json_object();
    if (current == NULL || crt == NULL || key == NULL || s->made == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (paths[i][0] != '\0' && !cred_watch_path(&s->watch, paths[i]))
            return err_nomem(e);
    if (serving_read_pair(s, s->made, e) != ERR_OK)
        return err_wrap(e, "certificate of the node's port");
    return serving_read_ca(s, s->made, e);
}

/* ---- on the loop ---- */

static void serving_free_if_over(struct kube_serving *s)
{
    if (!s->closed || s->timer_open || s->running)
        return;
    cred_follow_done(&s->follow);
    json_decref(s->sent);
    free(s->cert_dir);
    free(s->cert_file);
    free(s->key_file);
    free(s->ca_file);
    free(s);
}

static void serving_on_timer_closed(uv_handle_t *h)
{
    struct kube_serving *s = h->data;

    s->timer_open = false;
    serving_free_if_over(s);
}

static void serving_load(struct kube_serving *s);

static void serving_on_timer(uv_timer_t *t)
{
    serving_load(t->data);
}

static void serving_on_changed(struct cred_follow *f)
{
    struct kube_serving *s = container_of(f, struct kube_serving, follow);

    uv_timer_start(&s->timer, serving_on_timer, SETTLE_MS, 0);
}

static void serving_trouble(struct kube_serving *s, const struct err *e)
{
    bool known = strcmp(s->trouble.text, e->text) == 0;

    s->trouble = *e;
    s->retry_ms = s->retry_ms == 0 ? RETRY_MIN_MS : s->retry_ms * 2;
    if (s->retry_ms > RETRY_MAX_MS)
        s->retry_ms = RETRY_MAX_MS;
    uv_timer_start(&s->timer, serving_on_timer, s->retry_ms, 0);
    if (!known)
        s->o.on_trouble(e, s->o.arg);
}

/* Takes the reference. */
static void serving_give(struct kube_serving *s, json_t *message)
{
    bool recovered = s->trouble.code != ERR_OK;

    s->trouble = (struct err){ 0 };
    s->retry_ms = 0;
    if (recovered)
        s->o.on_trouble(NULL, s->o.arg);
    if (s->closed || json_equal(s->sent, message)) {
        json_decref(message);
        return;
    }
    json_decref(s->sent);
    s->sent = message;
    s->o.on_serving(message, s->o.arg);
}

static void serving_on_loaded(struct op *op, const struct err *result)
{
    struct kube_serving *s = op->owner;
    json_t *made = take_ptr(&s->made);
    bool again = s->again, unwatched = false;
    struct err e = { 0 };

    s->running = s->again = false;
    if (!s->closed) {
        if (cred_follow(&s->follow, s->o.loop, &s->watch, &unwatched, &e) != ERR_OK)
            log_debug("serving certificate: files are not followed", F_ERR(&e));
        if (again || unwatched)
            uv_timer_start(&s->timer, serving_on_timer, 0, 0);
        if (result->code == ERR_OK)
            serving_give(s, take_ptr(&made));
        else
            serving_trouble(s, result);
    }
    json_decref(made);
    cred_load_done(&s->watch);
    serving_free_if_over(s);
}

static void serving_load(struct kube_serving *s)
{
    if (s->closed)
        return;
    if (s->running) {
        s->again = true;
        return;
    }
    s->running = true;
    work_start(&s->work, "load serving certificate", s->cert_dir, serving_run, s, s->o.loop,
               serving_on_loaded, s);
}

static char *serving_copy(const char *text)
{
    return strdup(text != NULL ? text : "");
}

enum err_code kube_serving_open(struct kube_serving **ret, const struct kube_serving_options *o,
                                struct err *e)
{
    struct kube_serving *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return err_nomem(e);
    s->o = *o;
    s->cert_dir = serving_copy(o->cert_dir);
    s->cert_file = serving_copy(o->cert_file);
    s->key_file = serving_copy(o->key_file);
    s->ca_file = serving_copy(o->client_ca_file);
    s->follow.changed = serving_on_changed;
    if (s->cert_dir == NULL || s->cert_file == NULL || s->key_file == NULL || s->ca_file == NULL) {
        s->closed = true;
        serving_free_if_over(s);
        return err_nomem(e);
    }
    uv_timer_init(o->loop, &s->timer);
    s->timer.data = s;
    s->timer_open = true;
    serving_load(s);
    *ret = s;
    return ERR_OK;
}

void kube_serving_close(struct kube_serving *s)
{
    if (s == NULL || s->closed)
        return;
    s->closed = true;
    cred_follow_done(&s->follow);
    uv_close((uv_handle_t *)&s->timer, serving_on_timer_closed);
}

const json_t *kube_serving_message(const struct kube_serving *s)
{
    return s->sent;
}
