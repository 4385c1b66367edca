/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/credentials/credentials.h"

#include "agent/kube/credentials/internal.h"
#include "agent/kube/credentials/pki.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

enum {
    SETTLE_MS = 50,       /* after an event: its writer may write the other file, too */
    TOKEN_MS = 60 * 1000, /* client-go's transport/token_source.go reads a token file as often */
    ANEW_MS = 1000,       /* a server that refuses everything does not make us read without end */
    RETRY_MIN_MS = 1000,
    RETRY_MAX_MS = 60 * 1000,
    EARLY_MS = 10 * 1000,      /* before an answer expires, but not in the first half of its life */
    SLEEP_MAX_MS = 600 * 1000, /* the wall clock may be set, and the machine may sleep */
};

static void cred_load(struct kube_credentials *c);
static void cred_use(struct kube_credentials *c);

/* ---- the end ---- */

void cred_free_if_over(struct kube_credentials *c)
{
    if (!c->closed || c->timer_open || c->load != NULL || c->plugin.running || c->writes > 0)
        return;
    cred_follow_done(&c->follow);
    kube_message_done(&c->message);
    kube_exec_done(&c->ran);
    kube_exec_answer_done(&c->answer);
    json_decref(c->sent);
    strs_done(&c->environment);
    free(c->kubeconfig);
    free(c->bootstrap);
    free(c->cert_dir);
    free(c);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct kube_credentials *c = h->data;

    c->timer_open = false;
    cred_free_if_over(c);
}

void kube_credentials_close(struct kube_credentials *c)
{
    if (c == NULL || c->closed)
        return;
    c->closed = true;
    cred_follow_done(&c->follow);
    if (c->load != NULL)
        op_cancel(&c->work.op);
    if (c->plugin.running)
        proc_cancel(&c->plugin.proc);
    uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

/* ---- the next load ---- */

static void on_timer(uv_timer_t *t)
{
    cred_load(t->data);
}

/* The earliest wins; a load sets the timer anew when it is over. */
void cred_due_in(struct kube_credentials *c, uint64_t ms)
{
    if (!uv_is_active((uv_handle_t *)&c->timer) || uv_timer_get_due_in(&c->timer) > ms)
        uv_timer_start(&c->timer, on_timer, ms, 0);
}

static void cred_trouble(struct kube_credentials *c, const struct err *e)
{
    bool known = strcmp(c->trouble.text, e->text) == 0;

    c->trouble = *e;
    c->retry_ms = c->retry_ms == 0                 ? RETRY_MIN_MS
                  : c->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS
                                                   : c->retry_ms * 2;
    cred_due_in(c, c->retry_ms);
    if (!known)
        c->o.on_trouble(e, c->o.arg);
}

static uint64_t until_expiry_ms(const struct kube_credentials *c)
{
    int64_t left = c->answer.expires_ns - clock_wall_ns(), life = c->answer.expires_ns - c->answered_ns,
            early = (int64_t)EARLY_MS * 1000000;

    if (early > life / 2)
        early = life / 2;
    left -= early;
    return left <= 0 ? 0 : (uint64_t)(left / 1000000) + 1;
}

/* ---- giving them away ---- */

/* Takes the reference. */
static void cred_give(struct kube_credentials *c, json_t *message)
{
    struct err nothing = { 0 };
    bool recovered = c->trouble.code != ERR_OK;

    c->trouble = nothing;
    c->retry_ms = 0;
    if (recovered)
        c->o.on_trouble(NULL, c->o.arg);
    if (c->closed || json_equal(c->sent, message)) {
        json_decref(message);
        return;
    }
    json_decref(c->sent);
    c->sent = message;
    c->o.on_credentials(message, c->o.arg);
}

static void cred_give_answer(struct kube_credentials *c)
{
    json_t *message = kube_message_answer(&c->message, &c->answer);
    struct err e = { 0 };

    if (message == NULL) {
        err_nomem(&e);
        cred_trouble(c, &e);
        return;
    }
    if (c->answer.expires_ns != 0) {
        uint64_t ms = until_expiry_ms(c);
        /* An answer that has expired already is used, as by the real client, and asked for again. */
        cred_due_in(c, ms < RETRY_MIN_MS ? RETRY_MIN_MS : ms > SLEEP_MAX_MS ? SLEEP_MAX_MS : ms);
    }
    cred_give(c, message);
}

/* ---- the plugin ---- */

static bool same_strs(const struct strs *a, const struct strs *b)
{
    for (size_t i = 0; i < a->n && i < b->n; i++)
        if (strcmp(a->v[i], b->v[i]) != 0)
            return false;
    return a->n == b->n;
}

static bool cred_answer_is_good(const struct kube_credentials *c)
{
    return c->has_answer && !c->run_anew && same_strs(&c->ran.argv, &c->message.exec.argv) &&
           same_strs(&c->ran.env, &c->message.exec.env) &&
           (c->answer.expires_ns == 0 || until_expiry_ms(c) > 0);
}

static void on_answer(struct cred_plugin *p, struct kube_exec_answer *answer, const struct err *result)
{
    struct kube_credentials *c = container_of(p, struct kube_credentials, plugin);

    if (c->closed) {
        cred_free_if_over(c);
        return;
    }
    if (result->code != ERR_OK) {
        cred_trouble(c, result);
        return;
    }
    kube_exec_answer_done(&c->answer);
    c->answer = *answer;
    *answer = (struct kube_exec_answer){ 0 };
    c->has_answer = true;
    c->answered_ns = clock_wall_ns();
    if (c->message.exec.argv.n > 0 && c->load == NULL)
        cred_give_answer(c);
}

static void cred_run_plugin(struct kube_credentials *c)
{
    uint64_t now = clock_mono_ms();
    struct err e = { 0 };

    if (c->plugin.running) /* its answer follows */
        return;
    if (c->ran_ms != 0 && now - c->ran_ms < ANEW_MS) {
        cred_due_in(c, ANEW_MS - (now - c->ran_ms));
        return;
    }
    kube_exec_done(&c->ran);
    if (!strs_copy(&c->ran.argv, &c->message.exec.argv) || !strs_copy(&c->ran.env, &c->message.exec.env)) {
        err_nomem(&e);
        cred_trouble(c, &e);
        return;
    }
    c->ran_ms = now;
    c->run_anew = c->has_answer = false;
    cred_plugin_start(&c->plugin, &c->message.exec, &c->o);
}

static void cred_use(struct kube_credentials *c)
{
    if (c->message.token_file)
        cred_due_in(c, TOKEN_MS);
    if (c->message.exec.argv.n == 0)
        cred_give(c, json_incref(c->message.json));
    else if (cred_answer_is_good(c))
        cred_give_answer(c);
    else
        cred_run_plugin(c);
}

/* ---- loading ---- */

static void on_changed(struct cred_follow *f)
{
    cred_due_in(container_of(f, struct kube_credentials, follow), SETTLE_MS);
}

static void on_loaded(struct op *op, const struct err *result)
{
    struct kube_credentials *c = op->owner;
    struct cred_load *l = take_ptr(&c->load);
    struct err e = *result;
    bool unwatched = false, again = c->again;

    if (!c->closed) {
        c->again = false;
        if (cred_follow(&c->follow, c->o.loop, l, &unwatched, &e) != ERR_OK && result->code == ERR_OK)
            log_debug("credentials: files are not followed", F_ERR(&e));
        if (again || unwatched)
            cred_due_in(c, 0);
        if (result->code == ERR_OK) {
            kube_message_done(&c->message);
            c->message = l->message;
            l->message = (struct kube_message){ 0 };
            c->is_bootstrap = l->bootstrap;
            cred_use(c);
        } else {
            cred_trouble(c, result);
        }
    }
    cred_load_done(l);
    free(l);
    cred_free_if_over(c);
}

static void cred_load(struct kube_credentials *c)
{
    struct err e = { 0 };

    if (c->closed)
        return;
    if (c->load != NULL) {
        c->again = true;
        return;
    }
    c->load = calloc(1, sizeof(*c->load));
    if (c->load == NULL) {
        err_nomem(&e);
        cred_trouble(c, &e);
        return;
    }
    uv_timer_stop(&c->timer);
    c->load->names = &c->names;
    c->load->want_bootstrap = c->want_bootstrap;
    c->loaded_ms = clock_mono_ms();
    work_start(&c->work, "load credentials", c->kubeconfig, cred_load_run, c->load, c->o.loop, on_loaded, c);
}

/* ---- the entry ---- */

static bool cred_take_names(struct kube_credentials *c, const struct kube_credentials_options *o)
{
    bool bootstrap = o->bootstrap != NULL && o->bootstrap[0] != '\0';

    c->kubeconfig = strdup(o->kubeconfig);
    c->cert_dir = strdup(o->cert_dir);
    c->bootstrap = bootstrap ? strdup(o->bootstrap) : NULL;
    for (const char *const *p = o->environment; p != NULL && *p != NULL; p++)
        if (!strs_add(&c->environment, *p))
            return false;
    c->names = (struct cred_names){ c->kubeconfig, c->bootstrap, c->cert_dir, strs_list(&c->environment),
                                    o->rotate };
    return c->kubeconfig != NULL && c->cert_dir != NULL && (!bootstrap || c->bootstrap != NULL);
}

enum err_code kube_credentials_open(struct kube_credentials **ret, const struct kube_credentials_options *o,
                                    struct err *e)
{
    struct kube_credentials *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_nomem(e);
    c->o = *o;
    if (!cred_take_names(c, o)) {
        c->closed = true;
        cred_free_if_over(c);
        return err_nomem(e);
    }
    c->follow.changed = on_changed;
    c->plugin.done = on_answer;
    uv_timer_init(o->loop, &c->timer);
    c->timer.data = c;
    c->timer_open = true;
    cred_load(c);
    *ret = c;
    return ERR_OK;
}

const json_t *kube_credentials_message(const struct kube_credentials *c)
{
    return c->sent;
}

void kube_credentials_anew(struct kube_credentials *c, const char *why)
{
    uint64_t since = clock_mono_ms() - c->loaded_ms;

    c->run_anew = c->message.exec.argv.n > 0;
    if (strcmp(why, "expired") == 0 && c->bootstrap != NULL && !c->is_bootstrap && c->message.json != NULL &&
        json_str(c->message.json, "certificate") != NULL)
        c->want_bootstrap = true;
    if (c->load != NULL)
        c->again = true;
    else
        cred_due_in(c, since >= ANEW_MS ? 0 : ANEW_MS - since);
}
