/* SPDX-License-Identifier: Apache-2.0 */
/* Watches: from a version, from everything, with bookmarks, with initial events, too old, behind. */
#include "world.h"

#include "base/clock.h"

#define MAPS "/api/v1/namespaces/default/configmaps"

static void three(void)
{
    config_map("a", "\"w\":\"1\"", 11);
    config_map("b", "\"w\":\"2\"", 12);
    config_map("c", "\"w\":\"1\"", 13);
}

static void everything_then_changes(void **state)
{
    (void)state;
    three();
    struct answer *w = get(MAPS "?watch=true&labelSelector=w%3D1", "");
    config_map("b", "\"w\":\"1\"", 14); /* begins to match */
    config_map("a", "\"w\":\"2\"", 15); /* ceases to */
    config_map("d", "\"w\":\"2\"", 16); /* never did */
    removed("c", 17);
    assert_string_equal(events_of(w), "ADDED a 11\nADDED c 13\nADDED b 14\nDELETED a 15\nDELETED c 13\n");
    assert_int_equal(w->code, 200);
}

static void from_a_version_only_what_came_after(void **state)
{
    (void)state;
    api->stock.forgotten = 10;
    three();
    struct answer *w = get(MAPS "?watch=1&resourceVersion=12", "");
    assert_string_equal(events_of(w), "ADDED c 13\n");
    struct answer *ahead = get(MAPS "?watch=1&resourceVersion=20", "");
    config_map("d", "", 15);
    config_map("e", "", 21);
    assert_string_equal(events_of(ahead), "ADDED e 21\n");
}

static void from_a_forgotten_version_410_and_the_end(void **state)
{
    (void)state;
    api->stock.forgotten = 12;
    three();
    struct answer *w = get(MAPS "?watch=1&resourceVersion=11", "");
    assert_string_equal(events_of(w), "ERROR Expired \n");
    assert_true(w->ended);
}

static void initial_events_end_with_a_marked_bookmark(void **state)
{
    (void)state;
    three();
    struct answer *w = get(MAPS "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
                                "allowWatchBookmarks=true",
                           "");
    assert_string_equal(events_of(w), "ADDED a 11\nADDED b 12\nADDED c 13\nBOOKMARK  13\n");
    assert_non_null(strstr(w->body.p, "\"k8s.io/initial-events-end\":\"true\""));
    struct answer *silent = get(MAPS "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "");
    assert_string_equal(events_of(silent), "ADDED a 11\nADDED b 12\nADDED c 13\n");
    struct answer *none = get(MAPS "?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", "");
    assert_string_equal(events_of(none), "");
}

/* Or a client that begins again there would miss what came while it did not read. */
static void the_first_set_has_its_own_version(void **state)
{
    (void)state;
    three();
    unread = true;
    struct answer *w = get(MAPS "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
                                "allowWatchBookmarks=true",
                           "");
    unread = false;
    config_map("b", "\"w\":\"3\"", 20);
    w->caller.high = false;
    w->caller.source->drained(&w->caller);
    world_turn();
    assert_string_equal(events_of(w), "ADDED a 11\nADDED b 12\nADDED c 13\nBOOKMARK  13\nMODIFIED b 20\n");
}

static void bookmarks_come_by_time_and_the_watch_ends(void **state)
{
    (void)state;
    three();
    struct answer *w = get(MAPS "?watch=1&resourceVersion=13&allowWatchBookmarks=true&timeoutSeconds=3", "");
    api_watch_tick(api);
    assert_string_equal(events_of(w), "");
    for (int i = 0; i < 1000 && !w->ended; i++) {
        usleep(10000);
        api_watch_tick(api);
    }
    assert_true(w->ended);
    assert_string_equal(events_of(w), "BOOKMARK  13\n");
}

static void a_client_that_does_not_read_is_ended_and_bounded(void **state)
{
    (void)state;
    three();
    struct answer *w = get(MAPS "?watch=1", "");
    w->caller.high = true;
    for (uint64_t i = 0; i < API_CHANGES_MAX + 2 && !w->closed; i++)
        config_map("a", i % 2 ? "\"x\":\"1\"" : "\"x\":\"2\"", 14 + i);
    assert_true(w->closed);
    assert_true(LIST_EMPTY(&api->watches));
}

/* A table has its columns once. */
static void tables_are_watched_too(void **state)
{
    static const char columns[] = "columnDefinitions\":[{";

    (void)state;
    three();
    struct answer *w = get(MAPS "?watch=1", "application/json;as=Table;v=v1;g=meta.k8s.io");
    const char *first = strstr(w->body.p, columns);
    assert_non_null(first);
    assert_null(strstr(first + 1, columns));
}

static void events_k8s_io_shows_core_events(void **state)
{
    (void)state;
    put_text(
        "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"e\",\"namespace\":\"default\"},"
        "\"involvedObject\":{\"kind\":\"Pod\"},\"message\":\"m\"}",
        5);
    struct answer *w = get("/apis/events.k8s.io/v1/namespaces/default/events?watch=1", "");
    assert_non_null(strstr(w->body.p, "\"regarding\":{\"kind\":\"Pod\"}"));
    assert_non_null(strstr(w->body.p, "\"apiVersion\":\"events.k8s.io/v1\""));
    assert_null(strstr(w->body.p, "involvedObject"));
}

/* ---- recorded answers ---- */

static void replay_refusal(const json_t *recorded)
{
    const char *name = text_at(recorded, "name"),
               *accept = json_str(json_object_get(recorded, "requestHeaders"), "Accept");
    const json_t *status = json_object_get(recorded, "status");
    char url[2048];

    if (json_int(recorded, "code", 0) == 200)
        return;
    snprintf(url, sizeof(url), "%s?%s", text_at(recorded, "path"), text_at(recorded, "query"));
    struct answer *a = get(url, accept);
    JSON_AUTO *v = body_of(a);
    if (a->code != json_int(recorded, "code", 0) ||
        strcmp(text_at(v, "reason"), status != NULL ? text_at(status, "reason") : "NotAcceptable") != 0 ||
        (strcmp(text_at(v, "reason"), "Invalid") == 0 && !json_equal(v, status)))
        fail_msg("%s: %s", name, a->body.p);
}

/* What was asked between, as changes of the stock. */
static void play(const json_t *request, uint64_t version)
{
    const char *method = text_at(request, "method"), *path = text_at(request, "path");
    json_t *body = json_object_get(request, "body");
    struct stock_object *o;
    json_t *object;

    if (strcmp(method, "POST") == 0) {
        put(json_deep_copy(body), version);
        return;
    }
    o = stock_find(&api->stock, &api_kinds[API_KIND_CONFIG_MAP], "default", strrchr(path, '/') + 1);
    assert_non_null(o);
    if (strcmp(method, "DELETE") == 0) {
        removed(strrchr(path, '/') + 1, version);
        return;
    }
    object = json_deep_copy(o->object);
    json_object_update_recursive(object, body);
    if (json_equal(object, o->object))
        json_decref(object); /* nothing changes */
    else
        put(object, version);
}

static void replay_changes(const json_t *recorded)
{
    const json_t *meanwhile = json_object_get(recorded, "meanwhile"), *one;
    char url[2048], wanted[4096] = "";
    const char *query = text_at(recorded, "query"), *at = strstr(query, "<rv:1>");
    static uint64_t base;
    size_t i, n = 0;

    if (strcmp(text_at(recorded, "name"), "watch-selector-in-and-out") != 0 &&
        strcmp(text_at(recorded, "name"), "watch-partialobjectmetadata") != 0)
        return; /* the others' writes are not plain merges */
    base += 100;
    config_map("before", base % 200 == 0 ? "\"x\":\"1\"" : "", base);
    snprintf(url, sizeof(url), "%s?%.*s%llu", text_at(recorded, "path"), (int)(at - query), query,
             (unsigned long long)base);
    struct answer *a = get(url, json_str(json_object_get(recorded, "requestHeaders"), "Accept"));
    json_array_foreach (meanwhile, i, one)
        play(one, base + 1 + i);
    json_array_foreach (json_object_get(recorded, "events"), i, one)
        n += (size_t)snprintf(wanted + n, sizeof(wanted) - n, "%s ", text_at(one, "type"));
    for (char *line = strtok((char *)(uintptr_t)events_of(a), "\n"); line != NULL;
         line = strtok(NULL, "\n")) {
        const size_t word = strcspn(line, " ");

        if (strncmp(wanted, line, word) != 0)
            fail_msg("%s: %s where %s is left", text_at(recorded, "name"), line, wanted);
        memmove(wanted, wanted + word + 1, strlen(wanted + word + 1) + 1);
    }
    assert_string_equal(wanted, "");
}

static void recorded_watches_hold(void **state)
{
    (void)state;
    api->stock.forgotten = 10;
    each_case("list-watch", "watch", replay_refusal);
    each_case("list-watch", "watch", replay_changes);
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(everything_then_changes),
        T(from_a_version_only_what_came_after),
        T(from_a_forgotten_version_410_and_the_end),
        T(initial_events_end_with_a_marked_bookmark),
        T(the_first_set_has_its_own_version),
        T(bookmarks_come_by_time_and_the_watch_ends),
        T(a_client_that_does_not_read_is_ended_and_bounded),
        T(tables_are_watched_too),
        T(events_k8s_io_shows_core_events),
        T(recorded_watches_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
