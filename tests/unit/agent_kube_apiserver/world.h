/* SPDX-License-Identifier: Apache-2.0 */
/* world - the local API's answers without a connection: a stock, one caller whose answer is kept, and watches
 * that write into texts. Stands in for agent/kube/server/caller.c and agent/kube/apiserver/api.c. */
#ifndef TESTS_UNIT_AGENT_KUBE_APISERVER_WORLD_H
#define TESTS_UNIT_AGENT_KUBE_APISERVER_WORLD_H
#include "tests/unit/agent_api/serve_helper.h"

#include "agent/kube/apiserver/internal.h"
#include "base/codec/json.h"

#include <stdio.h>

#define CALLERS 128

struct answer {
    struct caller caller;
    char url[2048];
    int code;
    char type[64];
    struct buf body;
    bool ended, closed;
};

static uv_loop_t loop; /* of what gives others a turn */
static struct kube_api *api;
static struct answer *answers[CALLERS];
static size_t n_answers;
static bool unread; /* clients read nothing */

static struct answer *answer_of(struct caller *c)
{
    return (struct answer *)(void *)((char *)c - offsetof(struct answer, caller));
}

/* ---- what agent/kube/server does ---- */

void caller_begin(struct caller *c, int http, const char *type, int64_t length)
{
    (void)length;
    answer_of(c)->code = http;
    snprintf(answer_of(c)->type, sizeof(answer_of(c)->type), "%s", type);
}

void caller_piece(struct caller *c, const void *p, size_t n)
{
    buf_add(&answer_of(c)->body, p, n);
}

void caller_end(struct caller *c)
{
    answer_of(c)->ended = true;
}

void caller_answer(struct caller *c, int http, const char *type, const char *extra_head, const void *body,
                   size_t n)
{
    (void)extra_head;
    caller_begin(c, http, type, (int64_t)n);
    caller_piece(c, body, n);
    caller_end(c);
}

void caller_text(struct caller *c, int http, const char *text)
{
    caller_answer(c, http, "text/plain; charset=utf-8", "", text, strlen(text));
}

void caller_json(struct caller *c, int http, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);

    caller_answer(c, http, "application/json", "", text, strlen(text));
    free(text);
    json_decref(body);
}

void caller_close(struct caller *c)
{
    const struct caller_source *source = c->source;

    answer_of(c)->closed = true;
    c->source = NULL;
    if (source != NULL)
        source->gone(c);
}

/* Lets every watch and list that gave others a turn go on to its end. */
static void world_turn(void)
{
    while (!TAILQ_EMPTY(&api->turns.first) || !TAILQ_EMPTY(&api->turns.others))
        uv_run(&loop, UV_RUN_NOWAIT);
}

void api_changed(struct kube_api *a)
{
    api_watch_notify(a);
}

/* ---- what tests do ---- */

static int world_open(void **state)
{
    (void)state;
    api = calloc(1, sizeof(*api));
    assert_non_null(api);
    stock_init(&api->stock);
    api_told_forget(api);
    LIST_INIT(&api->watches);
    uv_loop_init(&loop);
    background_init(&api->turns, &loop);
    api->node_name = strdup("node1");
    return 0;
}

static int world_close(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_answers; i++) {
        if (answers[i]->caller.source != NULL)
            caller_close(&answers[i]->caller);
        http_parser_done(&answers[i]->caller.parser);
        buf_done(&answers[i]->body);
        free(answers[i]);
    }
    n_answers = 0;
    stock_done(&api->stock);
    api_told_forget(api);
    background_close(&api->turns, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    free(api->node_name);
    free(api);
    return 0;
}

/* Takes the object. */
static void put(json_t *object, uint64_t version)
{
    const struct stock_change *change = NULL;

    assert_non_null(object);
    json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                        json_sprintf("%llu", (unsigned long long)version));
    assert_true(stock_put(&api->stock, object, 1, &change));
    api_changed(api);
    world_turn();
    json_decref(object);
}

static void put_text(const char *text, uint64_t version)
{
    put(json_loads(text, 0, NULL), version);
}

static void config_map(const char *name, const char *labels, uint64_t version)
{
    char text[512];

    snprintf(text, sizeof(text),
             "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
             "\"default\","
             "\"labels\":{%s}}}",
             name, labels);
    put_text(text, version);
}

static void removed(const char *name, uint64_t version)
{
    struct stock_object *o = stock_find(&api->stock, &api_kinds[API_KIND_CONFIG_MAP], "default", name);

    assert_non_null(o);
    stock_remove(&api->stock, o, version, NULL);
    api_changed(api);
    world_turn();
}

/* GET of a path with its query, as api.c does it for paths of objects. The answer lives until the end. */
static inline struct answer *get(const char *url, const char *accept)
{
    struct answer *a = calloc(1, sizeof(*a));
    struct api_request r = { .api = api };
    json_t *status = NULL;
    char text[4096], path[2048];
    bool watch = false;

    assert_true(a != NULL && n_answers < CALLERS);
    answers[n_answers++] = a;
    buf_init(&a->body, SIZE_MAX - 1);
    http_parser_init(&a->caller.parser);
    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", url);
    http_parser_feed(&a->caller.parser, text, strlen(text));
    assert_int_equal(a->caller.parser.state, PARSE_DONE);
    snprintf(path, sizeof(path), "%.*s", (int)strcspn(url, "?"), url);
    r.caller = &a->caller;
    a->caller.high = unread;
    if (!api_target_parse(path, &r.target)) {
        caller_text(&a->caller, 404, "");
    } else if (!api_accept_read(accept, &r.accept, &status)) {
        api_answer_status(&a->caller, status);
    } else {
        assert_int_equal(http_param_flag(&a->caller.parser.request, "watch", &watch, ERR_IGNORED), ERR_OK);
        if (r.target.name[0] != '\0')
            api_get(&r);
        else if (watch)
            api_watch_begin(&r);
        else
            api_list(&r);
    }
    world_turn();
    return a;
}

static inline json_t *body_of(const struct answer *a)
{
    json_t *v = json_loadb(a->body.p, a->body.n, 0, NULL);

    assert_non_null(v);
    return v;
}

/* "a b c": the names of the items. */
static inline const char *names_of(const json_t *list)
{
    static char names[4096];
    const json_t *one;
    size_t i, n = 0;

    names[0] = '\0';
    json_array_foreach (json_object_get(list, "items"), i, one)
        n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i > 0 ? " " : "",
                              json_str(json_object_get(one, "metadata"), "name"));
    return names;
}

/* "ADDED a 5\n": type, name and version of each event so far. */
static inline const char *events_of(const struct answer *a)
{
    static char events[16384];
    size_t at = 0, n = 0;

    events[0] = '\0';
    while (at < a->body.n) {
        const char *end = memchr(a->body.p + at, '\n', a->body.n - at);
        JSON_AUTO *event = json_loadb(a->body.p + at, (size_t)(end - (a->body.p + at)), 0, NULL);
        const json_t *object = json_object_get(event, "object"), *meta = json_object_get(object, "metadata");
        const char *name = json_str(meta, "name"), *version = json_str(meta, "resourceVersion");

        assert_non_null(event);
        n +=
            (size_t)snprintf(events + n, sizeof(events) - n, "%s %s %s\n", text_at(event, "type"),
                             name != NULL ? name : text_at(object, "reason"), version != NULL ? version : "");
        at = (size_t)(end - a->body.p) + 1;
    }
    return events;
}
#endif
