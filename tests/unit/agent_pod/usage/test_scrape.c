/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of metrics through a real server, of pods whose cgroups are a folder that imitates cgroupfs. */
#include "agent/pod/show/internal.h"
#include "agent/pod/usage/internal.h"
#include "agent/pod/worker/pods.h"
#include "tests/unit/agent_pod/world.h"

#include "agent/pod/show/provider.h"
#include "agent/pod/usage/scrape.h"
#include "agent/pod/usage/usage.h"
#include "agent/status/server.h"
#include "base/clock.h"
#include "cgroups/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PODS = 40, DEADLINE_MS = 10000, TURNS_OF_READING = (1 + PODS) / SCRAPE_TURN_PIECES };

struct scene {
    struct world *w;
    struct cg_tree tree;
    struct status_server *server;
    struct pod *pods[PODS];
    char path[128];
};

static void make_cgroup(const struct scene *s, const char *cgroup)
{
    static const char *const files[][2] = {
        { "cpu.stat", "usage_usec 2000000\nuser_usec 1500000\nsystem_usec 500000\n" },
        { "memory.current", "1000000\n" },
        { "memory.stat", "anon 600000\nfile 400000\ninactive_file 300000\n" },
        { "memory.max", "2000000\n" },
    };
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        str_auto dir = str_printf("%s/cgroup/%s", s->w->dir, cgroup);
        str_auto path = str_printf("%s/%s", dir, files[i][0]);
        assert_int_equal(fs_mkdirs(dir, 0755, &e), ERR_OK);
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(files[i][1], out);
        fclose(out);
    }
}

static int scene_setup(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));
    struct err e = { 0 };
    void *world = NULL;

    assert_int_equal(world_setup(&world), 0);
    s->w = world;
    make_cgroup(s, "");
    for (int i = 0; i < PODS; i++) {
        str_auto manifest = str_printf("{apiVersion: v1, kind: Pod, metadata: {name: p%d, uid: u%d}, "
                                       "spec: {containers: [{name: c, image: i}]}}",
                                       i, i);
        str_auto cgroup = str_printf("kubepods/besteffort/podu%d", i);
        s->pods[i] = world_add(s->w, manifest);
        s->pods[i]->cgroup_made = true;
        make_cgroup(s, cgroup);
    }
    str_auto root = str_printf("%s/cgroup", s->w->dir);
    s->tree.n_hiers = 1;
    s->tree.layout = CG_V2;
    s->tree.hiers[0].backend = &cg_backend_v2;
    s->tree.hiers[0].controllers = CG_CTL_CPU | CG_CTL_MEMORY;
    s->tree.hiers[0].fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s->w->node.o.cgroups = &s->tree;
    provider_init(&s->w->node);
    snprintf(s->path, sizeof(s->path), "%s/socket", s->w->dir);
    *state = s;
    return status_server_open(&s->server,
                              &(struct status_options){ .loop = &s->w->loop,
                                                        .path = s->path,
                                                        .provider = &show_node(&s->w->node)->provider },
                              &e) == ERR_OK
               ? 0
               : -1;
}

static int scene_teardown(void **state)
{
    struct scene *s = *state;
    void *world = s->w;

    scrapes_close(&s->w->node);
    usage_close(&s->w->node);
    status_server_close(s->server);
    uv_run(&s->w->loop, UV_RUN_DEFAULT);
    close(s->tree.hiers[0].fd);
    free(s);
    return world_teardown(&world);
}

/* ---- clients --------------------------------------------------------------------------------- */

static int ask(const struct scene *s, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(address.sun_path, s->path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_true(dprintf(fd, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path) > 0);
    return fd;
}

static bool answered(int fd)
{
    char c;

    return recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
}

static void turn(struct scene *s)
{
    uv_run(&s->w->loop, UV_RUN_NOWAIT);
}

/* The whole answer, to free(). */
static char *rest(struct scene *s, int fd)
{
    uint64_t until = clock_mono_ms() + DEADLINE_MS;
    struct buf got = BUF_INIT(64 << 20);
    char piece[65536], *text;
    ssize_t n;

    while ((n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT)) != 0) {
        assert_true(clock_mono_ms() < until);
        if (n > 0)
            buf_add(&got, piece, (size_t)n);
        else if (errno == EAGAIN)
            turn(s);
        else
            fail();
    }
    close(fd);
    text = buf_detach(&got);
    assert_non_null(text);
    return text;
}

/* Asks for a page and lets some turns go by in which it is made, fewer than it needs. */
static int begin(struct scene *s)
{
    uint64_t until = clock_mono_ms() + DEADLINE_MS;
    int fd = ask(s, "/metrics/cadvisor");

    while (usage_node(&s->w->node)->scrapes == NULL) {
        assert_true(clock_mono_ms() < until);
        turn(s);
    }
    turn(s);
    turn(s);
    assert_false(answered(fd));
    return fd;
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;

    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
        n++;
    return n;
}

static void expect_pod(const char *page, int i, size_t times)
{
    str_auto line = str_printf(
        "container_memory_usage_bytes{container=\"\",id=\"/kubepods/besteffort/podu%d\",image=\"\",name=\"\","
        "namespace=\"default\",pod=\"p%d\"} 1000000\n",
        i, i);

    if (count(page, line) != times)
        fail_msg("%zu times %sin: %s", times, line, page);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_page_has_everything_once(void **state)
{
    struct scene *s = *state;
    int first = ask(s, "/metrics/cadvisor"), second = ask(s, "/metrics/resource"), third = begin(s);
    char *pages[] = { rest(s, first), rest(s, third) }, *resources = rest(s, second);

    for (size_t k = 0; k < ARRAY_LEN(pages); k++) {
        for (int i = 0; i < PODS; i++)
            expect_pod(pages[k], i, 1);
        assert_int_equal(count(pages[k], "# TYPE container_memory_usage_bytes gauge\n"), 1);
        assert_int_equal(count(pages[k], "machine_memory_bytes "), 3);
        assert_int_equal(count(pages[k], "# TYPE container_network_transmit_packets_dropped_total"), 1);
    }
    for (int i = 0; i < PODS; i++) {
        str_auto line =
            str_printf("\npod_memory_working_set_bytes{namespace=\"default\",pod=\"p%d\"} 700000 ", i);
        const char *at = strstr(resources, line);

        assert_int_equal(count(resources, line), 1);
        assert_true(llabs(strtoll(at + strlen(line), NULL, 10) - clock_wall_ns() / 1000000) < 600000);
    }
    assert_int_equal(count(resources, "\nresource_scrape_error 0\n"), 1);
    assert_int_equal(count(resources, "container_network"), 0);
    free(pages[0]);
    free(pages[1]);
    free(resources);
}

static void others_are_answered_meanwhile(void **state)
{
    struct scene *s = *state;
    int page = begin(s), other = ask(s, "/healthz");
    char *text;

    for (int i = 0; i < 2; i++) /* taken on, then read */
        turn(s);
    assert_true(answered(other));
    assert_false(answered(page));
    text = rest(s, other);
    assert_int_equal(count(text, "\r\n\r\nok"), 1);
    free(text);
    text = rest(s, page);
    expect_pod(text, PODS - 1, 1);
    free(text);
}

static void pods_may_come_and_go_meanwhile(void **state)
{
    struct scene *s = *state;
    int fd = begin(s);
    char *page;

    usage_forget(&s->w->node, "/kubepods/besteffort/podu0"); /* was read */
    pods_free(s->pods[0]);
    pods_free(s->pods[PODS - 1]); /* not yet */
    world_pod(s->w, "late", "containers: [{name: c, image: i}]")->cgroup_made = true;
    page = rest(s, fd);
    expect_pod(page, PODS - 1, 0);
    for (int i = 0; i < PODS - 1; i++)
        expect_pod(page, i, 1);
    assert_int_equal(count(page, "pod=\"late\""), 0);
    free(page);
}

static void other_readings_meanwhile_disturb_nothing(void **state)
{
    struct scene *s = *state;
    struct buf text = BUF_INIT(1 << 20);
    size_t missing = 0;
    int fd = begin(s);
    struct summary *other;
    char *page;

    pods_free(s->pods[3]);
    other = summary_new(&s->w->node, true, false);
    while (summary_step(other))
        ;
    assert_true(summary_end(other, &text, &missing));
    summary_free(other);
    buf_done(&text);
    page = rest(s, fd);
    for (int i = PODS / 2; i < PODS; i++)
        expect_pod(page, i, 1);
    free(page);
    struct buf out = BUF_INIT(1 << 20);
    usage_metrics_agent(&s->w->node, &out); /* all but the one, and the root */
    assert_int_equal(count(out.p, "coracle_usage_cgroups 40\n"), 1);
    buf_done(&out);
}

static void a_client_that_goes_ends_its_page(void **state)
{
    struct scene *s = *state;
    uint64_t until = clock_mono_ms() + DEADLINE_MS;
    struct buf out = BUF_INIT(4096);

    int fd = begin(s);

    assert_int_equal(shutdown(fd, SHUT_WR), 0); /* still there */
    turn(s);
    assert_true(uv_backend_timeout(&s->w->loop) == 0);
    close(fd);
    while (uv_backend_timeout(&s->w->loop) == 0) {
        assert_true(clock_mono_ms() < until);
        turn(s);
    }
    scrapes_metrics(&s->w->node, &out);
    const char *turns = strstr(out.p, "\ncoracle_metrics_turns ");
    assert_non_null(turns);
    assert_true(atoi(turns + strlen("\ncoracle_metrics_turns ")) <= TURNS_OF_READING);
    buf_done(&out);
}

static void an_agent_that_ends_says_so(void **state)
{
    struct scene *s = *state;
    int fd = begin(s);
    char *text;

    scrapes_cancel(&s->w->node);
    text = rest(s, fd);
    assert_int_equal(strncmp(text, "HTTP/1.1 503 ", 13), 0);
    free(text);
    s->w->node.closing = true;
    text = rest(s, ask(s, "/metrics/cadvisor"));
    assert_int_equal(strncmp(text, "HTTP/1.1 503 ", 13), 0);
    free(text);
}

#define SCENE(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(a_page_has_everything_once),       SCENE(others_are_answered_meanwhile),
        SCENE(pods_may_come_and_go_meanwhile),   SCENE(other_readings_meanwhile_disturb_nothing),
        SCENE(a_client_that_goes_ends_its_page), SCENE(an_agent_that_ends_says_so),
    };

    cmocka_set_test_filter(getenv("TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
