/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that rooms keep of the node and of pods, and the loops over the table of rooms. */
#include "agent/pod/core/pod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int opened, freed, closed, inits;

static void on_open(struct node *n)
{
    (void)n;
    opened++;
}

static uv_timer_t handle;

static void on_free(struct node *n)
{
    freed++;
    rooms_close_handle(n, (uv_handle_t *)&handle);
}

static bool on_busy(const struct node *n)
{
    return *(const char *)n->parts[ROOM_LIMITS] != 0;
}

static void on_init(struct pod *p)
{
    memset(p->parts[ROOM_USAGE], 0xff, 5);
    inits++;
}

static bool on_pod_busy(const struct pod *p)
{
    return *(const unsigned char *)p->parts[ROOM_USAGE] == 0xff;
}

static bool on_knows(const struct pod *p, const char *id)
{
    return strcmp(p->uid, id) == 0;
}

static const struct room plain = { .id = ROOM_LIMITS, .node = { .size = 3, .busy = on_busy } };
static const struct room full = {
    .id = ROOM_USAGE,
    .node = { .size = 100, .open = on_open, .free = on_free },
    .pod = { .size = 5, .ctr_size = 3, .init = on_init, .busy = on_pod_busy, .knows = on_knows },
};
static const struct room last = { .id = ROOM_SHOW, .node = { .size = 1 }, .pod = { .size = 8 } };
static const struct room *const rooms[] = { &plain, &full, &last, NULL };

static void on_closed(struct node *n)
{
    (void)n;
    closed++;
}

static void each_room_has_a_part_of_its_own_that_begins_as_zeros(void **state)
{
    struct node n = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(rooms_make_node(&n, rooms, &e), ERR_OK);
    for (size_t i = 0; rooms[i] != NULL; i++) {
        const char *part = n.parts[rooms[i]->id];

        assert_int_equal((uintptr_t)part % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < rooms[i]->node.size; k++)
            assert_int_equal(part[k], 0);
        memset(n.parts[rooms[i]->id], (int)i + 1, rooms[i]->node.size);
    }
    for (size_t i = 0; rooms[i] != NULL; i++)
        for (size_t k = 0; k < rooms[i]->node.size; k++)
            assert_int_equal(((char *)n.parts[rooms[i]->id])[k], i + 1);
    free(n.parts_memory);
}

static void the_node_is_closed_once_after_its_last_handle(void **state)
{
    struct node n = { 0 };
    struct err e = { 0 };
    uv_timer_t own;
    uv_loop_t loop;

    (void)state;
    uv_loop_init(&loop);
    uv_timer_init(&loop, &handle);
    uv_timer_init(&loop, &own);
    assert_int_equal(rooms_make_node(&n, rooms, &e), ERR_OK);
    opened = freed = closed = 0;
    rooms_open_node(&n);
    assert_int_equal(opened, 1);
    assert_false(rooms_node_busy(&n));
    *(char *)n.parts[ROOM_LIMITS] = 1;
    assert_true(rooms_node_busy(&n));
    rooms_close_handle(&n, (uv_handle_t *)&own);
    rooms_free_node(&n, on_closed);
    assert_int_equal(freed, 1);
    assert_int_equal(closed, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(closed, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void a_pod_has_the_parts_of_its_rooms(void **state)
{
    struct node n = { .rooms = rooms };
    struct pod *p = rooms_make_pod(&n, 2);

    (void)state;
    assert_non_null(p);
    assert_ptr_equal(p->node, &n);
    assert_false(rooms_pod_busy(p));
    inits = 0;
    rooms_init_pod(p);
    assert_int_equal(inits, 1);
    assert_true(rooms_pod_busy(p));
    for (size_t k = 0; k < 8; k++) /* not written by the other room's init */
        assert_int_equal(((char *)p->parts[ROOM_SHOW])[k], 0);
    rooms_step_pod(p); /* rooms without the function are skipped */
    rooms_cancel_pod(p);
    rooms_end_pod(p);
    rooms_reset_pod(p);
    rooms_free_pod(p);
    free(p);
}

/* Each byte of each part is its own. */
static void added_containers_have_parts_that_do_not_overlap(void **state)
{
    struct node n = { .rooms = rooms };
    struct pod *p = rooms_make_pod(&n, 4);
    struct ctr *ctrs[4];

    (void)state;
    assert_non_null(p);
    for (size_t i = 0; i < 4; i++) {
        ctrs[i] = rooms_add_ctr(p);
        assert_non_null(ctrs[i]);
        assert_ptr_equal(ctrs[i], p->ctrs[i]);
        assert_ptr_equal(ctrs[i]->pod, p);
        assert_int_equal(ctrs[i]->index, i);
    }
    assert_null(rooms_add_ctr(p)); /* no place */
    rooms_init_pod(p);
    memset(p->parts[ROOM_SHOW], 0xee, 8);
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(((char *)ctrs[i]->parts[ROOM_USAGE])[k], 0);
        memset(ctrs[i]->parts[ROOM_USAGE], (int)i + 1, 3);
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(((char *)ctrs[i]->parts[ROOM_USAGE])[2], i + 1);
    assert_int_equal(((unsigned char *)p->parts[ROOM_USAGE])[4], 0xff);
    assert_int_equal(((unsigned char *)p->parts[ROOM_SHOW])[7], 0xee);
    rooms_free_memory(p);
}

static void what_a_room_of_any_pod_knows_is_known(void **state)
{
    struct node n = { .rooms = rooms };
    struct pod *p = rooms_make_pod(&n, 1);

    (void)state;
    assert_non_null(p);
    assert_false(rooms_know(&n, "a"));
    n.pods = p;
    snprintf(p->uid, sizeof(p->uid), "a");
    assert_true(rooms_know(&n, "a"));
    assert_false(rooms_know(&n, "b"));
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_room_has_a_part_of_its_own_that_begins_as_zeros),
        cmocka_unit_test(the_node_is_closed_once_after_its_last_handle),
        cmocka_unit_test(a_pod_has_the_parts_of_its_rooms),
        cmocka_unit_test(added_containers_have_parts_that_do_not_overlap),
        cmocka_unit_test(what_a_room_of_any_pod_knows_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
