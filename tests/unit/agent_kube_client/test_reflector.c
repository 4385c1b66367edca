/* SPDX-License-Identifier: Apache-2.0 */
/* The reflector against a client of this test's own: what it asks, in order, and what it makes of the
 * answers. */
#include "tests/unit/base/helper.h"

#include "agent/kube/client/reflector.h"
#include "base/clock.h"
#include "base/codec/json.h"

#include <errno.h>

/* ---- the client: one request at a time ---- */

static struct scripted {
    struct kube_request *request; /* NULL: none is under way */
    uv_loop_t *loop;
    op_done_fn done;
    bool stream;
    bool (*on_line)(json_t *line, void *owner);
    void (*on_head)(void *owner);
    char path[1024];
    unsigned asked;
} script;

static void script_finish(int http, json_t *answer, const struct err *e)
{
    struct kube_request *r = script.request;

    script.request = NULL;
    r->http = http;
    r->answer = answer;
    op_finish(&r->op, e);
}

static void script_on_abort(struct op *op)
{
    (void)op;
    script_finish(0, NULL, NULL);
}

static void script_on_done(struct op *op, const struct err *result)
{
    struct kube_request *r = (struct kube_request *)((char *)op - offsetof(struct kube_request, op));
    json_t *answer = r->answer;

    r->user_done(op, result);
    json_decref(answer);
}

void kube_request_start(struct kube_request *r, struct kube_client *c, const struct kube_request_spec *spec,
                        op_done_fn done, void *owner)
{
    (void)c;
    assert_null(script.request);
    *r = (struct kube_request){ .user_done = done };
    op_init(&r->op, script.loop, "scripted", 0, script_on_abort, script_on_done, owner);
    script.request = r;
    script.stream = spec->on_line != NULL;
    script.on_line = spec->on_line;
    script.on_head = spec->on_head;
    script.asked++;
    snprintf(script.path, sizeof(script.path), "%s", spec->path);
}

void kube_request_cancel(struct kube_request *r)
{
    op_cancel(&r->op);
}

/* ---- what the reflector says ---- */

struct heard {
    uv_loop_t loop;
    struct kube_reflector *r;
    char said[4096]; /* "+a -b synced ..." */
    int trouble_http;
    char trouble[600];
    bool closes; /* upon the next object */
};

static void say(struct heard *h, const char *what, const char *name)
{
    size_t n = strlen(h->said);

    snprintf(h->said + n, sizeof(h->said) - n, "%s%s%s", n > 0 ? " " : "", what, name);
}

static void on_put(json_t *object, void *arg)
{
    struct heard *h = arg;

    assert_string_equal(json_str(object, "kind"), "Pod");
    assert_string_equal(json_str(object, "apiVersion"), "v1");
    say(h, "+", json_str(json_object_get(object, "metadata"), "name"));
    if (h->closes) {
        kube_reflector_close(h->r);
        h->r = NULL;
    }
}

static void on_gone(const char *namespace_, const char *name, const char *uid, void *arg)
{
    assert_string_equal(namespace_, "ns");
    assert_non_null(uid);
    say(arg, "-", name);
}

static void on_synced(void *arg)
{
    say(arg, "synced", "");
}

static void on_trouble(const struct err *why, int http, void *arg)
{
    struct heard *h = arg;

    say(h, why != NULL ? "trouble" : "works", "");
    h->trouble_http = http;
    snprintf(h->trouble, sizeof(h->trouble), "%s", why != NULL ? why->text : "");
}

static bool expected; /* of the next one */

static int open_one(void **state)
{
    struct heard *h = calloc(1, sizeof(*h));
    struct err e = { 0 };
    const struct kube_reflector_options o = { .loop = &h->loop,
                                              .path = "/api/v1/pods",
                                              .field_selector = "spec.nodeName=n",
                                              .subject = "pods",
                                              .objects_max = 3,
                                              .expected = expected,
                                              .on_put = on_put,
                                              .on_gone = on_gone,
                                              .on_synced = on_synced,
                                              .on_trouble = on_trouble,
                                              .arg = h };

    uv_loop_init(&h->loop);
    script = (struct scripted){ .loop = &h->loop };
    assert_int_equal(kube_reflector_open(&h->r, &o, &e), ERR_OK);
    *state = h;
    return 0;
}

static int open_expected(void **state)
{
    int ret;

    expected = true;
    ret = open_one(state);
    expected = false;
    return ret;
}

static int close_one(void **state)
{
    struct heard *h = *state;

    kube_reflector_close(h->r);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    assert_int_equal(op_count(), 0);
    assert_int_equal(uv_loop_close(&h->loop), 0);
    free(h);
    return 0;
}

/* ---- a test's words ---- */

static bool feed(const char *format, ...) PRINTF_LIKE(1, 2);
static bool feed(const char *format, ...)
{
    char text[4096];
    json_t *line;
    va_list ap;
    bool more;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    assert_non_null(script.request);
    assert_true(script.stream);
    line = json_loads(text, 0, NULL);
    assert_non_null(line);
    more = script.on_line(line, script.request->op.owner);
    json_decref(line);
    return more;
}

#define POD                                                                                                  \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"%" \
    "s\",\"resourceVersion\":\"%d\"}}"

static bool event(const char *type, const char *name, const char *uid, int version)
{
    return feed("{\"type\":\"%s\",\"object\":" POD "}", type, name, uid, version);
}

static bool bookmark(int version, bool end)
{
    return feed(
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"%d\"%s}}}",
        version, end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
}

static void head(void)
{
    script.on_head(script.request->op.owner);
}

/* The request ends, and the reflector has done what it does then at once. */
static void over(struct heard *h, int http, const char *answer, enum err_code code, int sys)
{
    struct err e = { .code = code, .sys = sys, .text = "scripted" };

    script_finish(http, answer != NULL ? json_loads(answer, 0, NULL) : NULL, code != ERR_OK ? &e : NULL);
    for (int i = 0; i < 5; i++)
        uv_run(&h->loop, UV_RUN_NOWAIT);
}

/* Waits for its next request; the milliseconds that it took. */
static uint64_t next(struct heard *h)
{
    uint64_t began = clock_mono_ms();

    while (script.request == NULL && clock_mono_ms() - began < 20000)
        uv_run(&h->loop, UV_RUN_ONCE);
    assert_non_null(script.request);
    return clock_mono_ms() - began;
}

static void said(struct heard *h, const char *what)
{
    assert_string_equal(h->said, what);
    h->said[0] = '\0';
}

static void path_has(const char *part)
{
    if (strstr(script.path, part) == NULL)
        fail_msg("%s is not in %s", part, script.path);
}

static void path_lacks(const char *part)
{
    if (strstr(script.path, part) != NULL)
        fail_msg("%s is in %s", part, script.path);
}

/* Two pods, by WatchList. */
static void sync_two(struct heard *h)
{
    head();
    event("ADDED", "a", "u1", 3);
    event("ADDED", "b", "u2", 7);
    bookmark(10, true);
    said(h, "+a +b synced");
}

/* ---- */

static void the_first_request_is_kubelets(void **state)
{
    (void)state;
    path_has(
        "/api/v1/"
        "pods?allowWatchBookmarks=true&fieldSelector=spec.nodeName%3Dn&resourceVersionMatch=NotOlderThan&"
        "sendInitialEvents=true&timeoutSeconds=");
    path_has("&watch=true");
    path_lacks("resourceVersion=");
}

static void the_initial_events_are_one_set_and_the_stream_goes_on(void **state)
{
    struct heard *h = *state;

    sync_two(h);
    assert_true(kube_reflector_is_synced(h->r));
    event("MODIFIED", "a", "u1", 11);
    event("DELETED", "b", "u2", 12);
    event("DELETED", "b", "u2", 12);    /* unknown by now */
    event("DELETED", "a", "other", 12); /* an earlier one of the name */
    said(h, "+a -b");
    over(h, 200, NULL, ERR_OK, 0); /* brief, but not without events */
    assert_in_range(next(h), 700, 2500);
    path_has("resourceVersion=12&");
    path_lacks("sendInitialEvents");
    said(h, "");
}

static void a_name_with_another_uid_was_gone_meanwhile(void **state)
{
    struct heard *h = *state;

    sync_two(h);
    event("ADDED", "a", "u3", 13);
    said(h, "-a +a");
}

static void after_410_what_is_missing_is_gone(void **state)
{
    struct heard *h = *state;

    sync_two(h);
    assert_false(feed("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":"
                      "\"Expired\",\"message\":\"too old\"}}"));
    over(h, 200, NULL, ERR_OK, 0);
    assert_in_range(next(h), 700, 2500);
    path_has("sendInitialEvents=true");
    path_has("resourceVersion=10&");
    head();
    event("ADDED", "b", "u2", 7);
    said(h, "+b");
    bookmark(20, true);
    said(h, "-a synced");
}

static void a_set_that_is_suddenly_empty_is_asked_for_again(void **state)
{
    struct heard *h = *state;

    sync_two(h);
    feed("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}");
    over(h, 200, NULL, ERR_OK, 0);
    next(h);
    head();
    assert_false(bookmark(30, true));
    said(h, "");
    over(h, 200, NULL, ERR_OK, 0);
    assert_false(script.stream); /* a consistent read, at once */
    path_has("?fieldSelector=spec.nodeName%3Dn&limit=500");
    path_lacks("resourceVersion");
    over(h, 200,
         "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"31\"},\"items\":[{"
         "\"metadata\":{"
         "\"namespace\":\"ns\",\"name\":\"a\",\"uid\":\"u1\",\"resourceVersion\":\"3\"}}]}",
         ERR_OK, 0);
    said(h, "+a -b synced");
    assert_true(script.stream);
    path_has("resourceVersion=31&");
}

static void what_is_empty_twice_is_empty(void **state)
{
    struct heard *h = *state;

    sync_two(h);
    feed("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}");
    over(h, 200, NULL, ERR_OK, 0);
    next(h);
    head();
    bookmark(30, true);
    over(h, 200, NULL, ERR_OK, 0);
    over(h, 500, NULL, ERR_UNAVAILABLE, 0); /* an error is no answer */
    said(h, "trouble");
    next(h);
    path_has("limit=500");
    over(
        h, 200,
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"31\"},\"items\":[]}",
        ERR_OK, 0);
    said(h, "-a -b synced works");
}

static void a_first_set_that_is_empty_is_asked_for_again_where_objects_are_expected(void **state)
{
    struct heard *h = *state;

    head();
    assert_false(bookmark(30, true));
    said(h, "");
    over(h, 200, NULL, ERR_OK, 0);
    assert_false(script.stream);
    path_has("limit=500");
    path_lacks("resourceVersion");
    over(
        h, 200,
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"31\"},\"items\":[]}",
        ERR_OK, 0);
    said(h, "synced");
}

static void a_server_without_watch_list_is_asked_for_pages(void **state)
{
    struct heard *h = *state;

    over(h, 422, NULL, ERR_INVALID, 0);
    assert_false(script.stream);
    path_has("?fieldSelector=spec.nodeName%3Dn&limit=500&resourceVersion=0");
    over(h, 200,
         "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"5\",\"continue\":"
         "\"to/ken\"},\"items\":[{"
         "\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\",\"uid\":\"u1\"}}]}",
         ERR_OK, 0);
    path_has("continue=to%2Fken");
    over(h, 200,
         "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{"
         "\"metadata\":{"
         "\"namespace\":\"ns\",\"name\":\"b\",\"uid\":\"u2\"}}]}",
         ERR_OK, 0);
    said(h, "+a +b synced");
    assert_true(script.stream);
    path_has("resourceVersion=5&");
    path_lacks("sendInitialEvents");
}

static void a_version_of_the_future_is_read_consistently_at_once(void **state)
{
    struct heard *h = *state;

    over(h, 422, NULL, ERR_INVALID, 0);
    over(h, 504, "{\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}}", ERR_DEADLINE, 0);
    assert_false(script.stream);
    path_lacks("resourceVersion");
    said(h, "");
}

static void a_refused_watch_is_tried_again_without_a_list(void **state)
{
    struct heard *h = *state;

    sync_two(h);
    over(h, 200, NULL, ERR_UNAVAILABLE, 0); /* the server was killed */
    next(h);
    path_has("resourceVersion=10&");
    over(h, 0, NULL, ERR_UNAVAILABLE, ECONNREFUSED);
    said(h, "trouble");
    assert_in_range(next(h), 700, 2500); /* the first failure */
    path_has("resourceVersion=10&");
    path_lacks("sendInitialEvents");
    head();
    said(h, "works");
    over(h, 429, NULL, ERR_EXHAUSTED, 0);
    assert_int_equal(h->trouble_http, 429);
}

static void a_500_lists_anew(void **state)
{
    struct heard *h = *state;

    sync_two(h);
    event("MODIFIED", "a", "u1", 11);
    over(h, 200, NULL, ERR_UNAVAILABLE, 0);
    next(h);
    over(h, 500, NULL, ERR_UNAVAILABLE, 0);
    said(h, "+a trouble");
    next(h);
    path_has("sendInitialEvents");
}

static void a_watch_without_events_that_ends_at_once_is_no_reason_to_hurry(void **state)
{
    struct heard *h = *state;

    head();
    bookmark(10, true);
    over(h, 200, NULL, ERR_OK, 0);
    next(h);
    path_lacks("sendInitialEvents");
    head();
    over(h, 200, NULL, ERR_OK, 0);
    assert_in_range(next(h), 700, 4500);
    path_has("sendInitialEvents");
}

static void events_that_make_no_sense_list_anew(void **state)
{
    struct heard *h = *state;

    sync_two(h);
    assert_false(feed("{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{}}}"));
    over(h, 200, NULL, ERR_OK, 0);
    said(h, "trouble");
    assert_string_equal(h->trouble, "pods: an event without a type or a name");
    next(h);
    path_has("sendInitialEvents");
    assert_false(feed("{\"type\":[]}"));
    over(h, 200, NULL, ERR_OK, 0);
}

static void no_more_objects_than_allowed_are_taken(void **state)
{
    struct heard *h = *state;

    head();
    for (int i = 0; i < 6; i++) {
        char name[8];

        snprintf(name, sizeof(name), "p%d", i);
        event("ADDED", name, name, i + 1);
    }
    bookmark(10, true);
    said(h, "+p0 +p1 +p2 synced");
}

static void a_list_that_is_none_ends_nothing(void **state)
{
    struct heard *h = *state;

    over(h, 422, NULL, ERR_INVALID, 0);
    over(h, 200, "{\"items\":[]}", ERR_OK, 0);
    said(h, "trouble");
    assert_string_equal(h->trouble, "pods: the list has no resourceVersion");
    next(h);
    over(h, 200, "{\"items\":7,\"metadata\":{\"resourceVersion\":\"1\"}}", ERR_OK, 0);
    said(h, "trouble");
    assert_string_equal(h->trouble, "pods: the answer is not a list");
    next(h);
    over(h, 200, "{\"items\":[3,{},{\"metadata\":{\"name\":1}}],\"metadata\":{\"resourceVersion\":\"1\"}}",
         ERR_OK, 0);
    said(h, "synced works");
}

static void it_can_be_closed_from_an_object(void **state)
{
    struct heard *h = *state;

    head();
    h->closes = true;
    assert_false(event("ADDED", "a", "u1", 1));
    said(h, "+a");
    for (int i = 0; i < 5; i++)
        uv_run(&h->loop, UV_RUN_NOWAIT);
    assert_null(script.request);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, open_one, close_one)
    const struct CMUnitTest tests[] = {
        WITH(the_first_request_is_kubelets),
        WITH(the_initial_events_are_one_set_and_the_stream_goes_on),
        WITH(a_name_with_another_uid_was_gone_meanwhile),
        WITH(after_410_what_is_missing_is_gone),
        WITH(a_set_that_is_suddenly_empty_is_asked_for_again),
        WITH(what_is_empty_twice_is_empty),
        cmocka_unit_test_setup_teardown(
            a_first_set_that_is_empty_is_asked_for_again_where_objects_are_expected, open_expected,
            close_one),
        WITH(a_server_without_watch_list_is_asked_for_pages),
        WITH(a_version_of_the_future_is_read_consistently_at_once),
        WITH(a_refused_watch_is_tried_again_without_a_list),
        WITH(a_500_lists_anew),
        WITH(a_watch_without_events_that_ends_at_once_is_no_reason_to_hurry),
        WITH(events_that_make_no_sense_list_anew),
        WITH(no_more_objects_than_allowed_are_taken),
        WITH(a_list_that_is_none_ends_nothing),
        WITH(it_can_be_closed_from_an_object),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
