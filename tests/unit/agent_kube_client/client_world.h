/* SPDX-License-Identifier: Apache-2.0 */
/* client_world - the client beside a scripted apiserver, and the requests of a test. */
#ifndef TESTS_UNIT_AGENT_KUBE_CLIENT_CLIENT_WORLD_H
#define TESTS_UNIT_AGENT_KUBE_CLIENT_CLIENT_WORLD_H
#include "base/clock.h"
#include "tests/unit/agent_kube_client/apiserver.h"

struct world {
    struct apiserver server;
    uv_loop_t loop;
    struct kube_client *client;
    unsigned unauthorized, expired, reached, lost;
    char why[600];
    json_t *credentials;
};

/* All answers of a test: it looks at them when they are over. */
static json_t *answers;

struct asked {
    struct kube_request r;
    int calls, http;
    struct err result;
    json_t *answer;
    uint64_t retry_after_ms;
    unsigned lines, heads;
    json_t *last_line;
    unsigned stop_after;   /* lines */
    struct asked *cancels; /* upon a line */
};

static inline void on_unauthorized(bool expired, void *arg)
{
    struct world *w = arg;

    w->expired += expired;

    w->unauthorized++;
}

static inline void on_reachable(bool reachable, const char *why, void *arg)
{
    struct world *w = arg;

    reachable ? w->reached++ : w->lost++;
    snprintf(w->why, sizeof(w->why), "%s", why);
}

static inline int world_make_with(void **state, const char *option, uint64_t ping_ms)
{
    struct world *w = calloc(1, sizeof(*w));
    struct err e = { 0 };
    const struct kube_client_options o = { .loop = &w->loop,
                                           .user_agent = "coracle/test",
                                           .on_unauthorized = on_unauthorized,
                                           .on_reachable = on_reachable,
                                           .arg = w,
                                           .ping_ms = ping_ms,
                                           .pong_ms = 1000 };

    signal(SIGPIPE, SIG_IGN);
    answers = json_array();
    apiserver_start(&w->server, option);
    uv_loop_init(&w->loop);
    assert_int_equal(kube_client_open(&w->client, &o, &e), ERR_OK);
    w->credentials = json_object_get(w->server.first, "credentials");
    *state = w;
    return 0;
}

static inline int world_make(void **state)
{
    return world_make_with(state, NULL, 0);
}

static inline int world_make_1(void **state)
{
    return world_make_with(state, "--http1", 0);
}

static inline int world_make_pinging(void **state)
{
    return world_make_with(state, NULL, 300);
}

static inline int world_make_1_pinging(void **state)
{
    return world_make_with(state, "--http1", 300);
}

static inline int world_end(void **state)
{
    struct world *w = *state;

    kube_client_close(w->client);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(op_count(), 0);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    apiserver_end(&w->server);
    json_decref(answers);
    free(w);
    return 0;
}

static inline void trust(struct world *w)
{
    struct err e = { 0 };

    if (kube_client_credentials(w->client, w->credentials, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static inline void on_asked(struct op *op, const struct err *result)
{
    struct asked *a = op->owner;

    a->calls++;
    a->http = a->r.http;
    a->answer = a->r.answer;
    json_array_append(answers, a->answer); /* none is not added */
    a->retry_after_ms = a->r.retry_after_ms;
    a->result = *result;
}

static inline bool on_line(json_t *line, void *owner)
{
    struct asked *a = owner;

    json_decref(a->last_line);
    a->last_line = json_incref(line);
    a->lines++;
    if (a->cancels != NULL)
        kube_request_cancel(&a->cancels->r);
    return a->stop_after == 0 || a->lines < a->stop_after;
}

static inline void on_head(void *owner)
{
    struct asked *a = owner;

    a->heads++;
}

static inline bool is_asked(void *arg)
{
    const struct asked *a = arg;

    return a->calls > 0;
}

static inline void ask(struct world *w, struct asked *a, const struct kube_request_spec *spec)
{
    kube_request_start(&a->r, w->client, spec, on_asked, a);
}

static inline void wait_for(struct world *w, struct asked *a)
{
    assert_true(run_until(&w->loop, is_asked, a));
    assert_int_equal(a->calls, 1);
}

static inline bool is_past(void *arg)
{
    return clock_mono_ms() >= *(const uint64_t *)arg;
}

static inline void wait_ms(struct world *w, uint64_t ms)
{
    uint64_t end = clock_mono_ms() + ms;
    uv_timer_t timer;

    uv_timer_init(&w->loop, &timer);
    uv_timer_start(&timer, on_tick, 10, 10);
    assert_true(run_until(&w->loop, is_past, &end));
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&w->loop, UV_RUN_NOWAIT);
}

static inline void get(struct world *w, struct asked *a, const char *path)
{
    *a = (struct asked){ 0 };
    ask(w, a,
        &(struct kube_request_spec){ .method = "GET", .path = path, .subject = "it", .deadline_ms = 8000 });
    wait_for(w, a);
}

#define PODS "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1"
#define WITH(test) cmocka_unit_test_setup_teardown(test, world_make, world_end)
#endif
