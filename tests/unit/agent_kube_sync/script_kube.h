/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_kube - the room `sync` between a scripted apiserver and a scripted daemon. Included by one file of a
 * test program: it defines the functions of the client, of reflectors and of the link, so the linker omits
 * those objects. Time is scripted (script_clock.h); pass() moves it and lets what is due run.
 */
#ifndef TESTS_UNIT_AGENT_KUBE_SYNC_SCRIPT_KUBE_H
#define TESTS_UNIT_AGENT_KUBE_SYNC_SCRIPT_KUBE_H
#include "tests/unit/base/helper.h"
#include "tests/unit/script_clock.h"

#include "agent/kube/link/link.h"
#include "agent/kube/sync/internal.h"
#include "base/codec/json.h"
#include "base/scope.h"

struct asked { /* a request that was sent */
    char method[8];
    char *path, *content_type;
    json_t *body;
    struct kube_request *r; /* NULL: answered */
    TAILQ_ENTRY(asked) link;
};

struct kube_reflector {
    struct kube_reflector_options o;
    char path[300], selector[300];
    bool synced;
    TAILQ_ENTRY(kube_reflector) link;
};

static struct {
    uv_loop_t loop;
    struct kube_sync *sync;
    TAILQ_HEAD(, asked) asked;
    TAILQ_HEAD(, kube_reflector) reflectors;
    json_t *told;    /* messages to the daemon */
    json_t *answers; /* lent to requests */
    bool with_csi;   /* requests about the CSINode are seen; otherwise they have no answer */
} kube;

/* ---- the client ---- */

static void asked_abort(struct op *op)
{
    struct kube_request *r = container_of(op, struct kube_request, op);
    struct asked *a;

    TAILQ_FOREACH (a, &kube.asked, link)
        if (a->r == r)
            a->r = NULL;
    op_finish(op, NULL);
}

void kube_request_start(struct kube_request *r, struct kube_client *c, const struct kube_request_spec *spec,
                        op_done_fn done, void *owner)
{
    struct asked *a;

    (void)c;
    *r = (struct kube_request){ 0 };
    op_init(&r->op, &kube.loop, "kube request", 0, asked_abort, done, owner);
    if (!kube.with_csi && strstr(spec->path, "/csinodes") != NULL)
        return;
    a = calloc(1, sizeof(*a));
    snprintf(a->method, sizeof(a->method), "%s", spec->method);
    a->path = strdup(spec->path);
    a->content_type = strdup(spec->content_type != NULL ? spec->content_type : "application/json");
    a->body = json_deep_copy(spec->body);
    a->r = r;
    TAILQ_INSERT_TAIL(&kube.asked, a, link);
}

void kube_request_cancel(struct kube_request *r)
{
    op_cancel(&r->op);
}

json_t *kube_client_answers(const struct kube_client *c)
{
    (void)c;
    return json_object();
}

static void asked_drop(struct asked *a)
{
    TAILQ_REMOVE(&kube.asked, a, link);
    free(a->path);
    free(a->content_type);
    json_decref(a->body);
    free(a);
}

/* ---- reflectors ---- */

enum err_code kube_reflector_open(struct kube_reflector **ret, const struct kube_reflector_options *o,
                                  struct err *e)
{
    struct kube_reflector *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return err_nomem(e);
    r->o = *o;
    snprintf(r->path, sizeof(r->path), "%s", o->path);
    snprintf(r->selector, sizeof(r->selector), "%s", o->field_selector != NULL ? o->field_selector : "");
    TAILQ_INSERT_TAIL(&kube.reflectors, r, link);
    *ret = r;
    return ERR_OK;
}

void kube_reflector_close(struct kube_reflector *r)
{
    if (r == NULL)
        return;
    TAILQ_REMOVE(&kube.reflectors, r, link);
    free(r);
}

bool kube_reflector_is_synced(const struct kube_reflector *r)
{
    return r->synced;
}

static inline struct kube_reflector *watch_of(const char *path, const char *selector)
{
    struct kube_reflector *r;

    TAILQ_FOREACH (r, &kube.reflectors, link)
        if (strcmp(r->path, path) == 0 && (selector == NULL || strcmp(r->selector, selector) == 0))
            return r;
    return NULL;
}

/* ---- the link ---- */

enum err_code kube_link_send(struct kube_link *l, json_t *message, int fd, struct err *e)
{
    (void)l;
    (void)fd;
    (void)e;
    json_array_append_new(kube.told, message);
    return ERR_OK;
}

/* ---- what a test does ---- */

static inline void turn(void)
{
    for (int i = 0; i < 6; i++)
        uv_run(&kube.loop, UV_RUN_NOWAIT);
}

static inline void pass_ms(uint64_t ms)
{
    script_clock_pass((int64_t)ms * 1000000);
    boot_timers_count_anew(kube.sync->timers);
    turn();
}

static inline json_t *json_of(const char *text)
{
    json_error_t why;
    json_t *v = json_loads(text, 0, &why);

    if (v == NULL)
        fail_msg("test JSON: %s at %d: %s", why.text, why.position, text);
    return v;
}

static inline void tell(const char *text)
{
    json_t *m = json_of(text);

    kube_sync_message(kube.sync, json_str(m, "type"), m);
    json_decref(m);
    turn();
}

/* The next request, which must be this one; `answer` is due. */
static inline struct asked *expect(const char *method, const char *path)
{
    struct asked *a = TAILQ_FIRST(&kube.asked);

    if (a == NULL)
        fail_msg("no request; expected %s %s", method, path);
    if (strcmp(a->method, method) != 0 || strcmp(a->path, path) != 0)
        fail_msg("%s %s; expected %s %s", a->method, a->path, method, path);
    return a;
}

static inline void expect_none(void)
{
    struct asked *a = TAILQ_FIRST(&kube.asked);

    if (a != NULL)
        fail_msg("unexpected %s %s", a->method, a->path);
}

/* Answers and forgets the request. `text` NULL: as sent. */
static inline void answer(struct asked *a, int http, const char *text)
{
    struct kube_request *r = a->r;
    struct err why = { 0 };
    enum err_code code = http < 400    ? ERR_OK
                         : http == 404 ? ERR_NOT_FOUND
                         : http == 409
                             ? (text != NULL && strstr(text, "AlreadyExists") ? ERR_EXISTS : ERR_ABORTED)
                         : http == 403 ? ERR_PERMISSION
                         : http == 422 ? ERR_INVALID
                         : http == 429 ? ERR_EXHAUSTED
                                       : ERR_UNAVAILABLE;

    r->http = http;
    if (code != ERR_OK)
        err_set(&why, code, "%s", text != NULL ? text : "refused");
    else
        r->answer = text != NULL ? json_of(text) : json_deep_copy(a->body);
    if (r->answer != NULL)
        json_array_append_new(kube.answers, r->answer);
    asked_drop(a);
    op_finish(&r->op, code != ERR_OK ? &why : NULL);
    turn();
}

static inline void no_answer(struct asked *a)
{
    struct kube_request *r = a->r;
    struct err why = { 0 };

    err_set(&why, ERR_UNAVAILABLE, "connection refused");
    asked_drop(a);
    op_finish(&r->op, &why);
    turn();
}

static inline void watch_put(struct kube_reflector *r, const char *text)
{
    json_t *o = json_of(text);

    r->o.on_put(o, r->o.arg);
    json_decref(o);
    turn();
}

static inline void watch_synced(struct kube_reflector *r)
{
    r->synced = true;
    r->o.on_synced(r->o.arg);
    turn();
}

/* Takes the first message of this type out of those that the daemon got; NULL: none. The caller's. */
static inline json_t *told(const char *type)
{
    json_t *m;
    size_t i;

    json_array_foreach (kube.told, i, m)
        if (strcmp(json_str(m, "type"), type) == 0) {
            json_incref(m);
            json_array_remove(kube.told, i);
            return m;
        }
    return NULL;
}

/* The message exists, and is this one. */
static inline void assert_told(const char *text)
{
    json_t *wanted = json_of(text), *m = told(json_str(wanted, "type"));

    if (m == NULL || !json_equal(m, wanted))
        fail_msg("told %s\nexpected %s", m != NULL ? json_dumps(m, JSON_COMPACT) : "nothing", text);
    json_decref(wanted);
    json_decref(m);
}

static inline void assert_json(const json_t *v, const char *text)
{
    json_t *wanted = json_of(text);

    if (!json_equal(v, wanted))
        fail_msg("%s\nexpected %s", json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS),
                 json_dumps(wanted, JSON_COMPACT | JSON_SORT_KEYS));
    json_decref(wanted);
}

static inline int kube_begin(void **state)
{
    struct err e = { 0 };

    (void)state;
    script_clock_reset();
    TAILQ_INIT(&kube.asked);
    TAILQ_INIT(&kube.reflectors);
    kube.told = json_array();
    kube.answers = json_array();
    uv_loop_init(&kube.loop);
    return kube_sync_open(&kube.sync, &(struct kube_sync_options){ .loop = &kube.loop }, &e) == ERR_OK ? 0
                                                                                                       : -1;
}

/* Everything is closed: no request, no watch, no handle is left. */
static inline int kube_end(void **state)
{
    int bad = 0;

    (void)state;
    kube_sync_close(kube.sync);
    turn();
    if (op_count() != 0 || !TAILQ_EMPTY(&kube.reflectors) || uv_loop_close(&kube.loop) != 0)
        bad = 1;
    while (!TAILQ_EMPTY(&kube.asked))
        asked_drop(TAILQ_FIRST(&kube.asked));
    json_decref(kube.told);
    json_decref(kube.answers);
    return bad;
}
#endif
