/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "agent/status/internal.h"

#include <sys/resource.h>

static int times_in(const char *text, const char *part)
{
    int n = 0;

    for (text = strstr(text, part); text != NULL; text = strstr(text + 1, part))
        n++;
    return n;
}

static struct client watch(struct fixture *f, const char *url)
{
    struct client c = dial(f);
    char request[400];

    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", url);
    send_text(&c, request);
    return c;
}

static void event(struct fixture *f, const char *type, json_t *pod /* stolen */)
{
    status_server_pod_event(f->server, type, pod);
    json_decref(pod);
}

static void a_watch_begins_with_all_pods_and_goes_on_with_changes(void **state)
{
    struct fixture *f = *state;
    struct client c = watch(f, "/api/v1/namespaces/default/pods?watch=true");

    assert_false(status_server_has_watchers(f->server));
    to_see(f, &c, "\"name\":\"db\"");
    assert_true(status_server_has_watchers(f->server));
    assert_non_null(strstr(c.got.p, "Transfer-Encoding: chunked\r\n"));
    assert_non_null(
        strstr(c.got.p, "{\"type\":\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\""));
    assert_null(strstr(c.got.p, "\"namespace\":\"other\""));

    forget(&c);
    event(f, "MODIFIED", fake_pod("default", "web", "web2"));
    to_see(f, &c, "\"app\":\"web2\"");
    assert_non_null(strstr(c.got.p, "{\"type\":\"MODIFIED\",\"object\":"));
    assert_non_null(strstr(c.got.p, "\"app\":\"web2\""));
    forget(&c);
    event(f, "ADDED", fake_pod("default", "new", "x"));
    to_see(f, &c, "{\"type\":\"ADDED\"");
    forget(&c);
    event(f, "MODIFIED", fake_pod("other", "web", "x")); /* not of this namespace */
    event(f, "DELETED", fake_pod("default", "new", "x"));
    to_see(f, &c, "{\"type\":\"DELETED\"");
    assert_null(strstr(c.got.p, "other"));
    hang_up(&c);
    c = dial(f);
    for (int i = 0; status_server_has_watchers(f->server) && i < 100; i++)
        turn(f, &c);
    assert_false(status_server_has_watchers(f->server));
    hang_up(&c);
}

static void versions_only_grow_and_lists_and_events_agree(void **state)
{
    struct fixture *f = *state;
    unsigned long long first, second, listed;
    struct client c = watch(f, "/api/v1/namespaces/default/pods/web?watch=1");
    char *answer;

    to_see(f, &c, "\"name\":\"web\"");
    first = strtoull(strstr(c.got.p, "resourceVersion\":\"") + 18, NULL, 10);
    forget(&c);
    event(f, "MODIFIED", fake_pod("default", "web", "web"));
    to_see(f, &c, "resourceVersion");
    second = strtoull(strstr(c.got.p, "resourceVersion\":\"") + 18, NULL, 10);
    assert_true(second > first);
    answer = ask(f, "GET /api/v1/namespaces/default/pods/web");
    listed = strtoull(strstr(answer, "resourceVersion\":\"") + 18, NULL, 10);
    assert_true(listed == second);
    free(answer);
    hang_up(&c);
}

static json_t *fake_event(const char *name, const char *reason)
{
    return json_pack("{s:{s:s, s:s}, s:{s:s, s:s}, s:s}", "metadata", "namespace", "default", "name", name,
                     "involvedObject", "kind", "Pod", "name", "web", "reason", reason);
}

static void tell_event(struct fixture *f, const char *type, json_t *event)
{
    status_server_event(f->server, type, event);
    json_decref(event);
}

static void events_are_watched_like_pods_and_apart_from_them(void **state)
{
    struct fixture *f = *state;
    struct client pods = watch(f, "/api/v1/pods?watch=1&labelSelector=app%3Dnone");
    struct client c = watch(f, "/api/v1/events?watch=1&fieldSelector=reason%3DBackOff");

    to_see(f, &pods, "\r\n\r\n");
    to_see(f, &c, "\r\n\r\n");
    assert_true(status_server_has_event_watchers(f->server));
    tell_event(f, "ADDED", fake_event("web.1", "Pulled"));
    tell_event(f, "ADDED", fake_event("web.2", "BackOff"));
    to_see(f, &c, "{\"type\":\"ADDED\"");
    assert_null(strstr(c.got.p, "Pulled"));
    forget(&c);
    tell_event(f, "MODIFIED", fake_event("web.2", "BackOff"));
    to_see(f, &c, "{\"type\":\"MODIFIED\"");
    tell_event(f, "DELETED", fake_event("web.2", "BackOff"));
    to_see(f, &c, "{\"type\":\"DELETED\"");
    event(f, "MODIFIED", fake_pod("default", "web", "none"));
    to_see(f, &pods, "{\"type\":\"ADDED\"");
    assert_null(strstr(pods.got.p, "BackOff"));
    hang_up(&pods);
    hang_up(&c);
}

static void a_pod_that_begins_or_ends_to_match_comes_and_goes(void **state)
{
    struct fixture *f = *state;
    struct client c = watch(f, "/api/v1/pods?watch=1&labelSelector=app%3Dblue");

    to_see(f, &c, "\r\n\r\n");
    event(f, "MODIFIED", fake_pod("default", "web", "blue"));
    to_see(f, &c, "{\"type\":\"ADDED\"");
    forget(&c);
    event(f, "MODIFIED", fake_pod("default", "web", "green"));
    to_see(f, &c, "{\"type\":\"DELETED\"");
    forget(&c);
    event(f, "DELETED", fake_pod("default", "web", "green"));
    event(f, "ADDED", fake_pod("default", "db", "blue"));
    to_see(f, &c, "\"name\":\"db\"");
    assert_null(strstr(c.got.p, "DELETED"));
    hang_up(&c);
}

static void a_client_that_does_not_read_is_dropped_and_the_others_go_on(void **state)
{
    struct fixture *f = *state;
    struct client slow = watch(f, "/api/v1/pods?watch=1"), quick = watch(f, "/api/v1/pods?watch=1");
    char *filler = malloc(100001);

    memset(filler, 'x', 100000);
    filler[100000] = '\0';
    to_see(f, &quick, "\"namespace\":\"other\"");
    to_see(f, &slow, "\"namespace\":\"other\"");
    for (int i = 0; i < 60; i++) { /* 6 MB: more than the socket and the limit hold */
        json_t *pod = fake_pod("default", "web", "x");

        json_object_set_new(pod, "filler", json_string(filler));
        event(f, "MODIFIED", pod);
        turn(f, &quick);
    }
    event(f, "MODIFIED", fake_pod("default", "web", "the-last"));
    to_see(f, &quick, "the-last");
    to_see(f, &slow, NULL); /* closed in the middle */
    assert_null(strstr(slow.got.p, "the-last"));
    hang_up(&slow);
    hang_up(&quick);
    free(filler);
}

static void a_first_set_of_any_size_is_no_reason_to_drop_a_client(void **state)
{
    struct fixture *f = *state;
    char *filler = malloc(100001), name[20];
    struct client c;

    memset(filler, 'x', 100000);
    filler[100000] = '\0';
    for (int i = 0; i < 80; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        json_array_append_new(f->pods, fake_pod("default", name, filler));
    }
    c = watch(f, "/api/v1/pods?watch=1");
    for (int i = 0; i < 5; i++)
        uv_run(&f->loop, UV_RUN_NOWAIT);
    to_see(f, &c, "\"other\""); /* the last one of them */
    assert_non_null(strstr(c.got.p, "\"p79\""));
    event(f, "MODIFIED", fake_pod("default", "web", "later"));
    to_see(f, &c, "later");
    hang_up(&c);
    free(filler);
}

static void the_end_of_a_pod_is_told_before_its_turn_in_the_first_set(void **state)
{
    struct fixture *f = *state;
    char *filler = malloc(100001), name[20];
    struct client c;

    memset(filler, 'x', 100000);
    filler[100000] = '\0';
    for (int i = 10; i < 90; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        json_array_append_new(f->pods, fake_pod("default", name, filler));
    }
    c = watch(f, "/api/v1/namespaces/default/pods?watch=1&labelSelector=app!%3Dhidden");
    for (int i = 0; i < 5; i++)
        uv_run(&f->loop, UV_RUN_NOWAIT); /* the client takes nothing yet */
    assert_true(status_server_has_watchers(f->server));
    json_array_remove(f->pods, json_array_size(f->pods) - 1);
    event(f, "DELETED", fake_pod("default", "p89", "x"));
    event(f, "DELETED", fake_pod("default", "p88", "hidden"));
    to_see(f, &c, "\"name\":\"web\"");
    assert_non_null(strstr(c.got.p, "{\"type\":\"DELETED\""));
    assert_int_equal(times_in(c.got.p, "\"p89\""), 1);
    assert_int_equal(times_in(c.got.p, "DELETED"), 1);
    hang_up(&c);
    free(filler);
}

static void the_end_of_the_server_ends_a_watch(void **state)
{
    struct fixture *f = *state;
    struct client c = watch(f, "/api/v1/pods?watch=1");

    to_see(f, &c, "\"namespace\":\"other\"");
    status_server_close(f->server);
    f->server = NULL;
    to_see(f, &c, NULL);
    hang_up(&c);
}

/* So that the next client, which is in this process, too, leaves one descriptor too few. */
static void be_short_with_the_next(struct rlimit *ret_before)
{
    struct stat st;
    rlim_t used;
    struct rlimit l;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, ret_before), 0);
    l = *ret_before;
    assert_int_equal(stat("/proc/self/fd", &st), 0);
    used = (rlim_t)st.st_size;
    if (used == 0)
        skip(); /* before Linux 6.2 */
    for (l.rlim_cur = used + 3; used + 2 + l.rlim_cur / 4 / 2 > l.rlim_cur + 1;)
        l.rlim_cur++;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
}

static void the_idlest_watch_gives_way_with_a_status_when_descriptors_run_short(void **state)
{
    struct fixture *f = *state;
    struct client idle = watch(f, "/api/v1/pods?watch=1"), busy, quick;
    struct rlimit before;

    to_see(f, &idle, "\"name\":\"db\"");
    busy = watch(f, "/api/v1/pods?watch=1");
    to_see(f, &busy, "\"name\":\"db\"");
    be_short_with_the_next(&before);
    quick = dial(f);
    send_text(&quick, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n");
    to_see(f, &quick, "\r\n\r\nok");
    to_see(f, &idle, "{\"type\":\"ERROR\",\"object\":");
    to_see(f, &idle, "reserved for pods");
    to_see(f, &idle, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(f->server->count.few_files, 1);
    assert_int_equal(f->server->n_watches, 1);
    assert_int_equal(f->server->n_giving, 0);
    forget(&busy);
    event(f, "MODIFIED", fake_pod("default", "web", "web2"));
    to_see(f, &busy, "{\"type\":\"MODIFIED\"");
    hang_up(&idle);
    hang_up(&busy);
    hang_up(&quick);
}

static void watches_have_a_limit_of_their_own(void **state)
{
    struct fixture *f = *state;
    struct client c[STATUS_WATCHES_MAX], more;

    for (size_t i = 0; i < STATUS_WATCHES_MAX; i++) {
        c[i] = watch(f, "/api/v1/events?watch=1");
        to_see(f, &c[i], "\r\n\r\n");
    }
    more = watch(f, "/api/v1/pods?watch=1");
    to_see(f, &more, "503 Service Unavailable");
    to_see(f, &more, "too many watches");
    forget(&more);
    send_text(&more, "GET /healthz HTTP/1.1\r\n\r\n");
    to_see(f, &more, "\r\n\r\nok"); /* it is no connection too many */
    for (size_t i = 0; i < STATUS_WATCHES_MAX; i++)
        hang_up(&c[i]);
    for (int i = 0; f->server->n_watches > 0 && i < 100; i++)
        turn(f, &more);
    assert_int_equal(f->server->n_watches, 0);
    hang_up(&more);
}

static void what_came_in_counts_among_what_is_held(void **state)
{
    struct fixture *f = *state;
    struct client c = watch(f, "/api/v1/events?watch=1"), other = dial(f);
    char text[30001];

    to_see(f, &c, "\r\n\r\n");
    memset(text, 'x', 30000);
    text[30000] = '\0';
    send_text(&c, text);
    for (int i = 0; f->server->held < 30000 && i < 100; i++)
        turn(f, &c);
    assert_int_equal(f->server->held, 30000);
    hang_up(&c);
    for (int i = 0; f->server->held > 0 && i < 100; i++)
        turn(f, &other);
    assert_int_equal(f->server->held, 0);
    hang_up(&other);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_watch_begins_with_all_pods_and_goes_on_with_changes),
        T(the_idlest_watch_gives_way_with_a_status_when_descriptors_run_short),
        T(watches_have_a_limit_of_their_own),
        T(what_came_in_counts_among_what_is_held),
        T(versions_only_grow_and_lists_and_events_agree),
        T(events_are_watched_like_pods_and_apart_from_them),
        T(a_pod_that_begins_or_ends_to_match_comes_and_goes),
        T(a_client_that_does_not_read_is_dropped_and_the_others_go_on),
        T(a_first_set_of_any_size_is_no_reason_to_drop_a_client),
        T(the_end_of_a_pod_is_told_before_its_turn_in_the_first_set),
        T(the_end_of_the_server_ends_a_watch),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
