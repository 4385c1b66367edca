/* SPDX-License-Identifier: Apache-2.0 */
/* Which images go, and when: the collector over a store and a disk of the test's. */
#include "agent/pod/core/node_options.h"
#include "agent/pod/image/image_gc.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MINUTE_MS UINT64_C(60000)
#define HOUR (60 * MINUTE_MS)

struct image {
    const char *id;
    uint64_t bytes;
    bool used, pinned, awaited, gone;
    enum err_code refuses; /* removal: ERR_OK: it does not */
};

struct fixture {
    struct image_gc_records *records;
    struct image images[8];
    size_t n;
    struct image_gc_disk disk;
    struct image_gc_policy policy;
    struct image_gc_outcome outcome;
    uint64_t now;
    char removed[200]; /* in order, a blank after each */
    struct err e;
};

static void each(void *arg, void (*see)(const struct image_gc_image *i, void *arg2), void *arg2)
{
    struct fixture *f = arg;

    for (size_t i = 0; i < f->n; i++)
        if (!f->images[i].gone)
            see(&(struct image_gc_image){ .id = f->images[i].id,
                                          .used = f->images[i].used,
                                          .pinned = f->images[i].pinned,
                                          .awaited = f->images[i].awaited,
                                          .bytes = f->images[i].bytes },
                arg2);
}

static enum err_code remove_image(void *arg, const char *id, uint64_t *ret_bytes, struct err *e)
{
    struct fixture *f = arg;
    size_t i = 0, n = strlen(f->removed);

    while (i < f->n && strcmp(f->images[i].id, id) != 0)
        i++;
    assert_true(i < f->n && !f->images[i].gone && !f->images[i].used && !f->images[i].pinned);
    if (f->images[i].refuses != ERR_OK)
        return err_set(e, f->images[i].refuses, "%s refuses", id);
    f->images[i].gone = true;
    *ret_bytes = f->images[i].bytes;
    snprintf(f->removed + n, sizeof(f->removed) - n, "%s ", id);
    return ERR_OK;
}

static struct image *add(struct fixture *f, const char *id, uint64_t bytes)
{
    f->images[f->n] = (struct image){ .id = id, .bytes = bytes };
    return &f->images[f->n++];
}

static enum err_code run(struct fixture *f)
{
    const struct image_gc_host host = { .each = each, .remove = remove_image, .arg = f };

    f->e = (struct err){ 0 };
    f->removed[0] = '\0';
    return image_gc_run(f->records, &host, &f->policy, &f->disk, f->now, &f->outcome, &f->e);
}

/* Full, of 1000 bytes. */
static void disk(struct fixture *f, uint64_t used)
{
    f->disk = (struct image_gc_disk){ .capacity = 1000, .available = 1000 - used };
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    if (f == NULL)
        return -1;
    f->now = HOUR;
    f->records = image_gc_records_new(f->now);
    f->policy =
        (struct image_gc_policy){ .high_percent = 85, .low_percent = 80, .min_age_ms = 2 * MINUTE_MS };
    disk(f, 500);
    *state = f;
    return f->records == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    image_gc_records_free(f->records);
    free(f);
    return 0;
}

/* a, b, c and d of 50 bytes each, used in the order c, a, b; d never; all old enough. */
static void four(struct fixture *f)
{
    static const char *const order[] = { "c", "a", "b" };

    for (const char *const *id = (const char *const[]){ "a", "b", "c", "d", NULL }; *id != NULL; id++)
        add(f, *id, 50);
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < f->n; i++)
            f->images[i].used = strcmp(f->images[i].id, order[k]) == 0;
        assert_int_equal(run(f), ERR_OK);
        f->now += 10 * MINUTE_MS;
    }
    f->images[1].used = false;
}

static void nothing_goes_below_the_high_threshold(void **state)
{
    struct fixture *f = *state;

    four(f);
    disk(f, 840);
    assert_int_equal(run(f), ERR_OK);
    assert_string_equal(f->removed, "");
    assert_int_equal(f->outcome.percent, 84);
}

static void down_to_the_low_threshold_the_least_recently_used_first(void **state)
{
    struct fixture *f = *state;

    four(f);
    disk(f, 841); /* 15.9 % free space count as 15, as kubelet rounds */
    assert_int_equal(run(f), ERR_OK);
    assert_string_equal(f->removed, "d ");
    f->images[3].gone = false;
    f->now += 2 * MINUTE_MS;
    disk(f, 840);
    assert_int_equal(run(f), ERR_OK);
    f->now += 2 * MINUTE_MS;
    disk(f, 900);
    assert_int_equal(run(f), ERR_OK);
    assert_int_equal(f->outcome.percent, 90);
    assert_int_equal(f->outcome.wanted, 100);
    assert_string_equal(f->removed, "d c "); /* never used, then the one used longest ago; enough */
    assert_int_equal(f->outcome.freed, 100);
    assert_null(f->outcome.event);
}

static void never_one_that_is_used_or_pinned_or_too_young(void **state)
{
    struct fixture *f = *state;

    four(f);
    f->images[2].used = true;   /* c */
    f->images[0].pinned = true; /* a */
    disk(f, 990);
    add(f, "young", 500);
    assert_int_equal(run(f), ERR_EXHAUSTED);
    assert_string_equal(f->removed, "d b ");
    assert_string_equal(f->outcome.event, "FreeDiskSpaceFailed");
    assert_string_equal(f->e.text,
                        "Failed to garbage collect required amount of images. Attempted to free 190 "
                        "bytes, but only found 100 bytes eligible to free.");
    f->now += 2 * MINUTE_MS - 1;
    assert_int_equal(run(f), ERR_EXHAUSTED);
    assert_string_equal(f->removed, "");
    f->now += 1;
    assert_int_equal(run(f), ERR_OK);
    assert_string_equal(f->removed, "young ");
}

static void one_that_somebody_takes_meanwhile_stays_and_the_next_goes(void **state)
{
    struct fixture *f = *state;

    four(f);
    f->images[3].refuses = ERR_PRECONDITION; /* d */
    disk(f, 850);
    assert_int_equal(run(f), ERR_OK);
    assert_string_equal(f->removed, "c ");
}

static void a_removal_that_fails_is_told_and_others_go_all_the_same(void **state)
{
    struct fixture *f = *state;

    four(f);
    f->images[3].refuses = ERR_DATA_LOSS;
    disk(f, 850);
    assert_int_equal(run(f), ERR_DATA_LOSS);
    assert_string_equal(f->removed, "c ");
    assert_string_equal(
        f->e.text,
        "wanted to free 50 bytes, but freed 50 bytes space with errors in image deletion: d refuses");
    assert_null(f->outcome.event);
}

static void the_greatest_age_counts_from_the_last_use_and_from_the_start(void **state)
{
    struct fixture *f = *state;

    f->policy.max_age_ms = HOUR;
    four(f); /* began at 1:00; c used at 1:00, a at 1:10, b at 1:20, d seen at 1:00 */
    f->now = 2 * HOUR;
    assert_int_equal(run(f), ERR_OK);
    assert_string_equal(f->removed, ""); /* the agent knows for an hour only */
    f->now += 1;
    assert_int_equal(run(f), ERR_OK);
    assert_int_equal(f->outcome.n_old, 2);
    assert_true(f->images[2].gone && f->images[3].gone);
    f->images[0].used = true;
    f->now += HOUR;
    assert_int_equal(run(f), ERR_OK);
    assert_string_equal(f->removed, "b ");
}

static void an_image_that_came_again_is_young_again(void **state)
{
    struct fixture *f = *state;

    four(f);
    f->images[3].gone = true;
    assert_int_equal(run(f), ERR_OK);
    f->images[3].gone = false;
    f->images[0].gone = f->images[1].gone = f->images[2].gone = true;
    disk(f, 850);
    assert_int_equal(run(f), ERR_EXHAUSTED);
    assert_string_equal(f->removed, "");
}

static void a_disk_without_a_size_is_told(void **state)
{
    struct fixture *f = *state;

    four(f);
    f->disk = (struct image_gc_disk){ 0 };
    assert_int_equal(run(f), ERR_PRECONDITION);
    assert_string_equal(f->outcome.event, "InvalidDiskCapacity");
    assert_string_equal(f->e.text, "invalid capacity 0 on image filesystem");
}

static void sizes_of_any_disk_are_counted_right(void **state)
{
    struct fixture *f = *state;

    four(f);
    f->disk = (struct image_gc_disk){ .capacity = UINT64_MAX, .available = UINT64_MAX / 10 };
    assert_int_equal(run(f), ERR_EXHAUSTED);
    assert_int_equal(f->outcome.percent, 90);
    assert_true(f->outcome.wanted > UINT64_MAX / 11 && f->outcome.wanted < UINT64_MAX / 9);
    f->disk = (struct image_gc_disk){ .capacity = 1000, .available = 5000 }; /* as some file systems say */
    assert_int_equal(run(f), ERR_OK);
    assert_int_equal(f->outcome.percent, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- under pressure ---- */

static enum err_code reclaim(struct fixture *f, uint64_t wanted)
{
    const struct image_gc_host host = { .each = each, .remove = remove_image, .arg = f };

    f->e = (struct err){ 0 };
    f->removed[0] = '\0';
    return image_gc_reclaim_unused(f->records, &host, &f->policy, wanted, f->now, &f->outcome, &f->e);
}

static void under_pressure_all_unused_ones_that_are_old_enough_go(void **state)
{
    struct fixture *f = *state;

    four(f);
    f->images[2].used = true;   /* c */
    f->images[0].pinned = true; /* a */
    add(f, "young", 500);
    assert_int_equal(reclaim(f, 1), ERR_OK);
    assert_string_equal(f->removed, "d b ");
    assert_int_equal(f->outcome.n_full, 2);
}

/* kubelet keeps it and evicts a pod. */
static void under_pressure_a_new_one_goes_before_a_pod_has_to(void **state)
{
    struct fixture *f = *state;

    add(f, "young", 500);
    add(f, "taken", 500)->used = true;
    assert_int_equal(reclaim(f, 100), ERR_OK);
    assert_string_equal(f->removed, "young ");
    assert_int_equal(f->outcome.freed, 500);
    assert_int_equal(reclaim(f, UINT64_MAX), ERR_OK);
    assert_string_equal(f->removed, "");
}

static void under_pressure_one_that_a_pod_comes_back_to_goes_last_and_only_if_it_is_enough(void **state)
{
    struct fixture *f = *state;

    add(f, "young", 100);
    add(f, "awaited", 500)->awaited = true;
    assert_int_equal(reclaim(f, 100), ERR_OK);
    assert_string_equal(f->removed, "young ");
    assert_int_equal(reclaim(f, 501), ERR_OK); /* a pod goes all the same */
    assert_string_equal(f->removed, "");
    assert_int_equal(reclaim(f, UINT64_MAX), ERR_OK);
    assert_string_equal(f->removed, "");
    assert_int_equal(reclaim(f, 500), ERR_OK);
    assert_string_equal(f->removed, "awaited ");
}

static void one_that_a_pod_comes_back_to_is_as_good_as_used(void **state)
{
    struct fixture *f = *state;

    add(f, "awaited", 500)->awaited = true;
    assert_int_equal(run(f), ERR_OK);
    f->now += HOUR;
    disk(f, 990);
    assert_int_equal(run(f), ERR_EXHAUSTED);
    assert_string_equal(f->removed, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(nothing_goes_below_the_high_threshold),
        T(down_to_the_low_threshold_the_least_recently_used_first),
        T(never_one_that_is_used_or_pinned_or_too_young),
        T(one_that_somebody_takes_meanwhile_stays_and_the_next_goes),
        T(a_removal_that_fails_is_told_and_others_go_all_the_same),
        T(the_greatest_age_counts_from_the_last_use_and_from_the_start),
        T(an_image_that_came_again_is_young_again),
        T(a_disk_without_a_size_is_told),
        T(sizes_of_any_disk_are_counted_right),
        T(under_pressure_all_unused_ones_that_are_old_enough_go),
        T(under_pressure_a_new_one_goes_before_a_pod_has_to),
        T(under_pressure_one_that_a_pod_comes_back_to_goes_last_and_only_if_it_is_enough),
        T(one_that_a_pod_comes_back_to_is_as_good_as_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
