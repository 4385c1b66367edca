/* SPDX-License-Identifier: Apache-2.0 */
/* Files and nodes that come, change and go, with a real folder, real links to nodes, and an inventory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/declared/declared.h"
#include "base/boot_timer.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/process/process.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEADLINE_MS = 10000 };

struct scene {
    uv_loop_t loop;
    char dir[64], files[96];
    struct boot_timers *timers;
    struct dp_inventory *inventory;
    struct declared *declared;
    struct buf problems;
    uv_timer_t tick;
    bool done;
};

static void in_shell(const struct scene *s, const char *command)
{
    str_auto all = str_printf("cd %s && %s", s->dir, command);

    if (system(all) != 0)
        fail_msg("%s", all);
}

static void on_change(const struct dp_resource *r, enum dp_change what, void *arg)
{
    (void)r, (void)what, (void)arg;
}

static void on_problem(const char *what, const char *text, void *arg)
{
    buf_addf(&((struct scene *)arg)->problems, "%s: %s\n", what, text);
}

static void start(struct scene *s)
{
    const struct declared_options o = { .loop = &s->loop,
                                        .dir = s->files,
                                        .inventory = s->inventory,
                                        .cgroup_fd = -1,
                                        .problem = on_problem,
                                        .arg = s };
    struct err e = { 0 };

    assert_int_equal(declared_open(&s->declared, &o, &e), ERR_OK);
}

static void stop(struct scene *s)
{
    declared_cancel(s->declared);
    while (declared_busy(s->declared))
        uv_run(&s->loop, UV_RUN_ONCE);
    declared_close(s->declared);
    s->declared = NULL;
}

static int setup(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));
    struct err e = { 0 };

    *state = s;
    buf_init(&s->problems, 1 << 20);
    strcpy(s->dir, "/tmp/test-declared.XXXXXX");
    if (mkdtemp(s->dir) == NULL)
        return -1;
    snprintf(s->files, sizeof(s->files), "%s/devices.d", s->dir);
    in_shell(s, "mkdir dev devices.d");
    uv_loop_init(&s->loop);
    s->timers = boot_timers_new(&s->loop);
    uv_timer_init(&s->loop, &s->tick);
    return dp_inventory_new(&s->inventory, s->timers, on_change, s, &e) != ERR_OK;
}

static int teardown(void **state)
{
    struct scene *s = *state;

    if (s->declared != NULL)
        stop(s);
    dp_inventory_free(s->inventory);
    boot_timers_free(s->timers);
    uv_close((uv_handle_t *)&s->tick, NULL);
    proc_forget(&s->loop);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    in_shell(s, "rm -rf dev devices.d other");
    rmdir(s->dir);
    buf_done(&s->problems);
    free(s);
    return 0;
}

/* ---- what is there ---- */

static void put(const struct scene *s, const char *file, const char *text)
{
    str_auto path = str_printf("%s/%s", s->files, file);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    for (; *text != '\0'; text++)
        if (*text == '@')
            fputs(s->dir, f);
        else
            fputc(*text, f);
    assert_int_equal(fclose(f), 0);
}

#define TTYS(name) "devices: [{name: " name ", groups: [{paths: [{path: '@/dev/tty*'}]}]}]\n"

/* "example.com/a capacity/allocatable ids; ..." */
static void add_state(const struct scene *s, struct buf *out)
{
    for (const struct dp_resource *r = NULL; (r = dp_inventory_next(s->inventory, r)) != NULL;) {
        buf_addf(out, "%s %d/%d", r->name, (int)dp_resource_capacity(r), (int)dp_resource_allocatable(r));
        for (size_t i = 0; i < r->n_devices; i++)
            buf_addf(out, " %s", strstr(r->devices[i].id, "/dev/") + 5);
        buf_adds(out, "; ");
    }
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void comes_to(struct scene *s, const char *wanted)
{
    uint64_t deadline = clock_mono_ms() + DEADLINE_MS;
    buf_auto now = BUF_INIT(65536);

    uv_timer_start(&s->tick, on_tick, 50, 50);
    for (;;) {
        buf_reset(&now);
        add_state(s, &now);
        if (strcmp(now.p, wanted) == 0 && declared_ready(s->declared))
            break;
        if (clock_mono_ms() > deadline)
            fail_msg("\"%s\" instead of \"%s\"; %s", now.p, wanted, s->problems.p);
        uv_run(&s->loop, UV_RUN_ONCE);
    }
    uv_timer_stop(&s->tick);
}

static void told(struct scene *s, const char *wanted)
{
    uint64_t deadline = clock_mono_ms() + DEADLINE_MS;

    uv_timer_start(&s->tick, on_tick, 50, 50);
    while (strstr(s->problems.p, wanted) == NULL) {
        if (clock_mono_ms() > deadline)
            fail_msg("\"%s\" instead of \"%s\"", s->problems.p, wanted);
        uv_run(&s->loop, UV_RUN_ONCE);
    }
    uv_timer_stop(&s->tick);
}

static void count(const char *what, const char *text, void *arg)
{
    (void)what, (void)text;
    ++*(size_t *)arg;
}

static void problems_are(const struct scene *s, size_t wanted)
{
    size_t n = 0;

    declared_problems(s->declared, count, &n);
    assert_int_equal(n, wanted);
}

/* ---- files ---- */

static void declarations_at_the_start_are_resources(void **state)
{
    struct scene *s = *state;

    in_shell(s, "ln -s /dev/null dev/tty1; ln -s /dev/zero dev/tty2");
    put(s, "a.yaml", TTYS("example.com/a"));
    put(s, "b.json",
        "{\"devices\": [{\"name\": \"example.com/b\", \"groups\": [{\"count\": 2, \"paths\": "
        "[{\"path\": \"@/dev/tty1\"}]}]}]}");
    put(s, "ignored.txt", "nonsense");
    put(s, ".hidden.yaml", "nonsense");
    start(s);
    comes_to(s, "example.com/a 2/2 tty1 tty2; example.com/b 2/2 tty1 tty1#2; ");
    problems_are(s, 0);
}

static void files_are_followed(void **state)
{
    struct scene *s = *state;

    in_shell(s, "ln -s /dev/null dev/tty1");
    start(s);
    comes_to(s, "");
    put(s, "a.yaml", TTYS("example.com/a"));
    comes_to(s, "example.com/a 1/1 tty1; ");
    put(s, "a.yaml", TTYS("example.com/b"));
    comes_to(s, "example.com/a 1/0 tty1; example.com/b 1/1 tty1; ");
    in_shell(s, "rm devices.d/a.yaml");
    comes_to(s, "example.com/a 1/0 tty1; example.com/b 1/0 tty1; ");
}

static void a_bad_edit_leaves_what_is_in_force(void **state)
{
    struct scene *s = *state;

    in_shell(s, "ln -s /dev/null dev/tty1");
    put(s, "a.yaml", TTYS("example.com/a"));
    start(s);
    comes_to(s, "example.com/a 1/1 tty1; ");
    put(s, "a.yaml", "devices: 3\n");
    told(s, "a.yaml: line 1, column 1: devices: not a list with an element\n");
    comes_to(s, "example.com/a 1/1 tty1; ");
    problems_are(s, 1);
    put(s, "a.yaml",
        "devices: [{name: example.com/a, groups: [{count: 3, paths: [{path: '@/dev/tty*'}]}]}]\n");
    comes_to(s, "example.com/a 3/3 tty1 tty1#2 tty1#3; ");
    problems_are(s, 0);
}

static void of_two_files_the_first_declares(void **state)
{
    struct scene *s = *state;

    in_shell(s, "ln -s /dev/null dev/tty1; ln -s /dev/null dev/x");
    put(s, "b.yaml", "devices: [{name: example.com/a, groups: [{paths: [{path: '@/dev/x'}]}]}]\n");
    start(s);
    comes_to(s, "example.com/a 1/1 x; ");
    put(s, "a.yaml", TTYS("example.com/a"));
    comes_to(s, "example.com/a 1/1 tty1; ");
    told(s, "devices: b.yaml declares example.com/a, which an earlier file has already\n");
}

static void a_folder_that_is_gone_removes_nothing(void **state)
{
    struct scene *s = *state;

    in_shell(s, "ln -s /dev/null dev/tty1");
    put(s, "a.yaml", TTYS("example.com/a"));
    start(s);
    comes_to(s, "example.com/a 1/1 tty1; ");
    in_shell(s, "mv devices.d other");
    told(s, "the folder is gone; its declarations stay in force until it is back");
    comes_to(s, "example.com/a 1/1 tty1; ");
    in_shell(s, "mkdir devices.d");
    comes_to(s, "example.com/a 1/0 tty1; ");
    problems_are(s, 0);
}

static void a_folder_may_come_later(void **state)
{
    struct scene *s = *state;

    in_shell(s, "ln -s /dev/null dev/tty1; rmdir devices.d");
    start(s);
    comes_to(s, "");
    problems_are(s, 0);
    in_shell(s, "mkdir devices.d");
    put(s, "a.yaml", TTYS("example.com/a"));
    comes_to(s, "example.com/a 1/1 tty1; ");
}

static void what_is_no_file_is_named(void **state)
{
    struct scene *s = *state;

    in_shell(s, "mkfifo devices.d/a.yaml; mkdir devices.d/b.yaml; ln -s nowhere devices.d/c.yaml; head -c "
                "300000 /dev/zero > devices.d/d.yaml");
    start(s);
    comes_to(s, "");
    assert_string_equal(s->problems.p,
                        "a.yaml: is not a file\nb.yaml: is not a file\nc.yaml: cannot be read: "
                        "No such file or directory\nd.yaml: has 300000 bytes, allowed are "
                        "262144\n");
}

/* ---- nodes ---- */

static void nodes_are_followed(void **state)
{
    struct scene *s = *state;

    put(s, "a.yaml", TTYS("example.com/a"));
    start(s);
    comes_to(s, "example.com/a 0/0; ");
    in_shell(s, "ln -s /dev/null dev/tty1; ln -s /dev/zero dev/other");
    comes_to(s, "example.com/a 1/1 tty1; ");
    in_shell(s, "mv dev/other dev/tty2");
    comes_to(s, "example.com/a 2/2 tty1 tty2; ");
    in_shell(s, "rm dev/tty1");
    comes_to(s, "example.com/a 1/1 tty2; ");
}

static void folders_of_nodes_come_and_go(void **state)
{
    struct scene *s = *state;

    put(s, "a.yaml",
        "devices: [{name: example.com/a, groups: [{paths: [{path: '@/dev/serial/by-id/*'}]}]}]\n");
    start(s);
    comes_to(s, "example.com/a 0/0; ");
    in_shell(s, "mkdir -p dev/serial/by-id; ln -s /dev/null dev/serial/by-id/x");
    comes_to(s, "example.com/a 1/1 serial/by-id/x; ");
    in_shell(s, "rm -r dev/serial");
    comes_to(s, "example.com/a 0/0; ");
    in_shell(s, "mkdir -p dev/serial/by-id; ln -s /dev/null dev/serial/by-id/y");
    comes_to(s, "example.com/a 1/1 serial/by-id/y; ");
}

static void a_new_start_finds_the_same_ids(void **state)
{
    struct scene *s = *state;

    in_shell(s, "ln -s /dev/null dev/tty1; ln -s /dev/zero dev/tty2");
    put(s, "a.yaml", TTYS("example.com/a"));
    start(s);
    comes_to(s, "example.com/a 2/2 tty1 tty2; ");
    stop(s);
    start(s);
    comes_to(s, "example.com/a 2/2 tty1 tty2; ");
}

/* The link's target is in a folder that is not watched: as the node behind a link of udev's. */
static void an_event_of_the_kernel_is_a_reason_to_look(void **state)
{
    struct scene *s = *state;

    if (system("echo add > /sys/class/mem/null/uevent") != 0) {
        print_message("only root can have the kernel send an event\n");
        skip();
    }
    in_shell(s, "mkdir other; ln -s ../other/node dev/tty1");
    put(s, "a.yaml", TTYS("example.com/a"));
    start(s);
    comes_to(s, "example.com/a 0/0; ");
    in_shell(s, "ln -s /dev/null other/node && echo add > /sys/class/mem/null/uevent");
    comes_to(s, "example.com/a 1/1 tty1; ");
}

/* A daemon whose start fails waits for nothing. */
static void it_can_be_closed_at_any_time(void **state)
{
    struct scene *s = *state;

    in_shell(s, "ln -s /dev/null dev/tty1");
    put(s, "a.yaml", TTYS("example.com/a"));
    for (int turns = 0; turns < 12; turns++) {
        start(s);
        for (int i = 0; i < turns; i++)
            uv_run(&s->loop, UV_RUN_NOWAIT);
        declared_close(s->declared);
        s->declared = NULL;
    }
}

/* ---- Allocate ---- */

static void on_answer(struct op *op, const struct err *result)
{
    struct scene *s = op->owner;

    if (result->code != ERR_OK)
        buf_addf(&s->problems, "answer: %s\n", result->text);
    s->done = true;
}

static void ask(struct scene *s, struct dp_ask *a, const char *name, const char *node, bool prepare)
{
    str_auto id = str_printf("%s/dev/%s", s->dir, node);
    struct dp_provider *p = dp_inventory_find(s->inventory, name)->provider;
    const char *ids[] = { id };

    s->done = false;
    (prepare ? p->pre_start : p->allocate)(p, a, ids, 1, on_answer, s);
    assert_false(s->done); /* on a later turn */
    while (!s->done)
        uv_run(&s->loop, UV_RUN_ONCE);
}

static void allocate_is_answered_at_once(void **state)
{
    struct scene *s = *state;
    struct dp_ask a = { 0 };
    char text[200];

    in_shell(s, "ln -s /dev/null dev/tty1");
    put(s, "a.yaml",
        "devices: [{name: example.com/a, groups: [{paths: [{path: '@/dev/tty*', mountPath: "
        "/dev/modem, permissions: rw, env: MODEM}]}]}]\n");
    start(s);
    comes_to(s, "example.com/a 1/1 tty1; ");
    ask(s, &a, "example.com/a", "tty1", false);
    assert_int_equal(a.answer->n_nodes, 1);
    assert_string_equal(a.answer->nodes[0].container_path, "/dev/modem");
    assert_string_equal(a.answer->nodes[0].permissions, "rw");
    assert_string_equal(a.answer->envs[0].name, "MODEM");
    assert_true(a.n_raw > 0);
    free(a.answer);
    free(a.raw);
    ask(s, &a, "example.com/a", "tty2", false);
    assert_null(a.answer);
    assert_non_null(strstr(s->problems.p, "/dev/tty2 is gone"));
    dp_inventory_find(s->inventory, "example.com/a")
        ->provider->describe(dp_inventory_find(s->inventory, "example.com/a")->provider, text, sizeof(text));
    assert_non_null(strstr(text, "devices.d/a.yaml"));
}

/* What is gone leaves the container what it had. */
static void a_start_brings_the_nodes_as_they_are(void **state)
{
    struct scene *s = *state;
    struct dp_ask a = { 0 };

    in_shell(s, "ln -s /dev/null dev/tty1");
    put(s, "a.yaml", TTYS("example.com/a"));
    start(s);
    comes_to(s, "example.com/a 1/1 tty1; ");
    ask(s, &a, "example.com/a", "tty1", true);
    assert_int_equal(a.answer->n_nodes, 1);
    free(a.answer);
    free(a.raw);
    ask(s, &a, "example.com/a", "tty2", true);
    assert_null(a.answer);
    assert_null(a.raw);
    assert_string_equal(s->problems.p, "");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(declarations_at_the_start_are_resources),
        TEST(files_are_followed),
        TEST(a_bad_edit_leaves_what_is_in_force),
        TEST(of_two_files_the_first_declares),
        TEST(a_folder_that_is_gone_removes_nothing),
        TEST(a_folder_may_come_later),
        TEST(what_is_no_file_is_named),
        TEST(nodes_are_followed),
        TEST(folders_of_nodes_come_and_go),
        TEST(a_new_start_finds_the_same_ids),
        TEST(an_event_of_the_kernel_is_a_reason_to_look),
        TEST(it_can_be_closed_at_any_time),
        TEST(allocate_is_answered_at_once),
        TEST(a_start_brings_the_nodes_as_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
