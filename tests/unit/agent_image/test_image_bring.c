/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent_image/image_helper.h"

/* ---- imports --------------------------------------------------------------------------------- */

static void an_archive_comes_with_its_names(void **state)
{
    struct world *w = *state;
    struct bring t;
    char *log;

    open_store(w);
    write_file(w, "unpack.answer", 0644, "image a b localhost/busybox:1\n");
    start(w, &t, "/the/archive.tar", NULL);
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_OK);
    assert_string_equal(t.names, "localhost/busybox:1 ");
    assert_string_equal(w->added, "localhost/busybox:1 ");
    assert_string_equal(t.image->id, ID("a"));
    img_unref(t.image);

    log = read_file(w, "unpack.log");
    assert_true(str_starts(log, "--progress 3 --source /the/archive.tar --work "));
    assert_non_null(strstr(log, "/images/parts --max-bytes 17179869184 --reserve-bytes 67108864\n"));
    assert_null(strstr(log, "--name"));
    free(log);
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void a_given_name_is_made_whole_and_passed_on(void **state)
{
    struct world *w = *state;
    char *log;

    open_store_with(w, 1000, 0, false); /* archives need no skopeo */
    bring(w, "/a.tar", "busybox");
    assert_string_equal(w->added, "docker.io/library/busybox:latest ");
    log = read_file(w, "unpack.log");
    assert_non_null(
        strstr(log, "--max-bytes 1000 --reserve-bytes 67108864 --name docker.io/library/busybox:latest\n"));
    free(log);
}

static void bad_names_and_sources_end_before_anything_runs(void **state)
{
    struct world *w = *state;

    open_store(w);
    refused(w, "relative.tar", NULL, ERR_INVALID,
            "image source \"relative.tar\" is neither docker://<name> nor the absolute path of an OCI "
            "layout, an OCI archive or a "
            "docker archive");
    refused(w, "/a.tar", "UPPER", ERR_INVALID,
            "couldn't parse image name \"UPPER\": invalid reference format: repository name (library/UPPER) "
            "must be lowercase");
    refused(w, "docker://", NULL, ERR_INVALID, "couldn't parse image name \"\": invalid reference format");
    assert_int_equal(count_lines(w, "unpack.log") + count_lines(w, "skopeo.log"), 0);
}

static void what_unpack_reports_is_passed_on_with_its_code(void **state)
{
    struct world *w = *state;

    open_store(w);
    write_file(w, "unpack.answer", 0644,
               "mkdir $work/layer-0; echo '{\"error\":\"layer 1 of 2: it lies\",\"code\":\"DATA_LOSS\"}'; "
               "echo 'coracle-unpack: it "
               "lies' >&2; exit 1\n");
    refused(w, "/a.tar", "x", ERR_DATA_LOSS, "/a.tar: layer 1 of 2: it lies");
    write_file(w, "unpack.answer", 0644, "echo 'out of luck' >&2; exit 3\n");
    refused(w, "/a.tar", "x", ERR_UNKNOWN, "coracle-unpack: exit status 3: out of luck");
    settle(w);
    assert_int_equal(count_entries(w, "tmp") + count_entries(w, "refs") + count_entries(w, "images"), 0);
    assert_string_equal(w->added, "");
}

static void what_unpack_prints_is_not_believed(void **state)
{
    static const struct {
        const char *answer, *why;
    } cases[] = {
        { "echo hello", "coracle-unpack: line 1, column 1: invalid token near 'hello'" },
        { "echo '{}'", "coracle-unpack: its answer has no images" },
        { "echo '{\"images\":[{}]}'", "image record: sizeBytes is not a size" },
        { "image a b 'a b'", "coracle-unpack: a name is not valid" },
        { "image a b short", "coracle-unpack: a name is not valid" },
        { "image ../ b x", NULL },
    };
    struct world *w = *state;

    open_store(w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bring t;

        write_file(w, "unpack.answer", 0644, "%s\n", cases[i].answer);
        start(w, &t, "/a.tar", "x");
        wait_for(w, &t);
        assert_int_equal(t.result.code, ERR_INVALID);
        if (cases[i].why != NULL && !str_starts(t.result.text, "coracle-unpack: line"))
            assert_string_equal(t.result.text, cases[i].why);
    }
    assert_int_equal(count_entries(w, "refs") + count_entries(w, "images"), 0);
}

static void layers_of_a_failed_bring_are_collected(void **state)
{
    struct world *w = *state;

    open_store(w);
    write_file(w, "unpack.answer", 0644, "mkdir $layers/$(hex 7); exit 1\n");
    refused(w, "/a.tar", "x", ERR_UNKNOWN, "coracle-unpack: exit status 1");
    settle(w);
    assert_int_equal(count_entries(w, "layers"), 0);
}

/* The record of y cannot be written: a folder stands in its place. */
#define NO_NAME                                                                                              \
    "X=docker.io/library/x:latest Y=docker.io/library/y:latest\n"                                            \
    "mkdir -p $D/images/refs/$(printf $Y | sha256sum | cut -c1-64).json/full\n"

static void an_image_whose_name_cannot_be_written_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct bring t;

    open_store(w);
    bring(w, "/a", "x");
    write_file(w, "unpack.answer", 0644, NO_NAME "image c d\n");
    start(w, &t, "/c", "y");
    wait_for(w, &t);
    assert_int_not_equal(t.result.code, ERR_OK);
    settle(w);
    assert_true(have(w, "images/images/" HEX("a") ".json"));
    assert_false(have(w, "images/images/" HEX("c") ".json"));
    assert_int_equal(count_entries(w, "layers"), 1);
}

static void a_name_that_could_be_written_stays_with_its_image(void **state)
{
    struct world *w = *state;
    struct img_image *now;
    struct bring t;

    open_store(w);
    bring(w, "/a", "x");
    write_file(w, "unpack.answer", 0644,
               NO_NAME "image c d $X | sed \"s|}]}]}|},$(names $Y | sed 's/.*\\[//; s/]$//')]}]}|\"\n");
    start(w, &t, "/c", NULL);
    wait_for(w, &t);
    assert_int_not_equal(t.result.code, ERR_OK);
    for (int again = 0; again < 2; again++) {
        now = img_lookup(w->store, "x");
        assert_non_null(now);
        assert_string_equal(now->id, ID("c"));
        img_unref(now);
        now = img_lookup(w->store, "y");
        assert_null(now);
        close_store(w);
        open_store(w);
        settle(w);
    }
    assert_int_equal(count_entries(w, "layers"), 2);
}

static void a_missing_helper_is_an_error_with_its_path(void **state)
{
    struct world *w = *state;
    char text[600], path[400];

    open_store(w);
    snprintf(path, sizeof(path), "%s/unpack", w->dir);
    assert_int_equal(unlink(path), 0);
    snprintf(text, sizeof(text), "coracle-unpack: %s: No such file or directory", path);
    refused(w, "/a.tar", "x", ERR_NOT_FOUND, text);
}

/* ---- side by side ---------------------------------------------------------------------------- */

static void the_same_source_twice_is_brought_once(void **state)
{
    struct world *w = *state;
    struct bring one, two;
    int gate;

    open_store(w);
    write_file(w, "unpack.answer", 0644, "gate; image a b\n");
    start(w, &one, "/a.tar", "x");
    gate = at_gate(w);
    start(w, &two, "/a.tar", "docker.io/library/x:latest");
    close(gate);
    wait_for(w, &one);
    wait_for(w, &two);
    assert_int_equal(one.result.code + two.result.code, ERR_OK);
    assert_ptr_equal(one.image, two.image);
    assert_int_equal(count_lines(w, "unpack.log"), 1);
    assert_string_equal(w->added, "docker.io/library/x:latest ");
    img_unref(one.image);
    img_unref(two.image);
}

static void another_source_of_the_same_name_waits(void **state)
{
    struct world *w = *state;
    struct bring one, two;
    struct img_image *now;
    int gate;

    open_store(w);
    write_file(w, "unpack.answer", 0644, "case $source in /a) gate; image a b ;; *) image c d ;; esac\n");
    start(w, &one, "/a", "x");
    start(w, &two, "/c", "x");
    gate = at_gate(w);
    assert_int_equal(count_lines(w, "unpack.log"), 1);
    close(gate);
    wait_for(w, &one);
    wait_for(w, &two);
    assert_string_equal(one.image->id, ID("a"));
    assert_string_equal(two.image->id, ID("c"));
    now = img_lookup(w->store, "x"); /* the later one has the name */
    assert_ptr_equal(now, two.image);
    img_unref(now);
    img_unref(one.image);
    img_unref(two.image);
}

static void no_more_than_the_limit_run_at_once(void **state)
{
    struct world *w = *state;
    struct bring one, two;
    int gate;

    open_store_with(w, 0, 1, true);
    write_file(w, "unpack.answer", 0644, "case $source in /a) gate ;; esac; image a b\n");
    start(w, &one, "/a", "first");
    start(w, &two, "/b", "second");
    gate = at_gate(w);
    assert_int_equal(count_lines(w, "unpack.log"), 1);
    close(gate);
    wait_for(w, &two);
    assert_int_equal(one.calls, 1);
    assert_int_equal(count_lines(w, "unpack.log"), 2);
    img_unref(one.image);
    img_unref(two.image);
}

static void who_cancels_leaves_the_others_alone(void **state)
{
    struct world *w = *state;
    struct bring one, two;
    int gate;

    open_store(w);
    write_file(w, "unpack.answer", 0644, "gate; image a b\n");
    start(w, &one, "/a", "x");
    start(w, &two, "/a", "x");
    gate = at_gate(w);
    op_cancel(&one.b.op);
    wait_for(w, &one);
    assert_int_equal(one.result.code, ERR_CANCELLED);
    assert_int_equal(two.calls, 0);
    close(gate);
    wait_for(w, &two);
    assert_int_equal(two.result.code, ERR_OK);
    img_unref(two.image);
}

static void the_last_who_cancels_ends_the_work(void **state)
{
    struct world *w = *state;
    struct bring one, waiting;
    int gate;

    open_store(w);
    write_file(w, "unpack.answer", 0644, "mkdir $layers/$(hex 7); touch $work/half; gate; image a b\n");
    start(w, &one, "/a", "x");
    start(w, &waiting, "/b", "x");
    gate = at_gate(w);
    op_cancel(&waiting.b.op); /* it never ran */
    op_cancel(&one.b.op);
    wait_for(w, &one);
    wait_for(w, &waiting);
    assert_int_equal(one.result.code, ERR_CANCELLED);
    assert_int_equal(waiting.result.code, ERR_CANCELLED);
    settle(w);
    close(gate);
    assert_int_equal(count_lines(w, "unpack.log"), 1);
    assert_int_equal(count_entries(w, "tmp") + count_entries(w, "layers") + count_entries(w, "refs"), 0);
}

static void closing_the_store_cancels_what_is_under_way(void **state)
{
    struct world *w = *state;
    struct bring one, two, late;
    int gate;

    open_store_with(w, 0, 1, true);
    write_file(w, "unpack.answer", 0644, "gate\n");
    start(w, &one, "/a", "x");
    start(w, &two, "/b", "y");
    gate = at_gate(w);
    img_store_close(w->store);
    start(w, &late, "/c", "z");
    w->store = NULL;
    wait_for(w, &one);
    wait_for(w, &two);
    wait_for(w, &late);
    assert_int_equal(one.result.code, ERR_CANCELLED);
    assert_int_equal(two.result.code, ERR_CANCELLED);
    assert_int_equal(late.result.code, ERR_CANCELLED);
    close(gate);
}

static void an_image_being_brought_is_not_removed_under_it(void **state)
{
    struct world *w = *state;
    struct bring t;
    struct err e = { 0 };
    int gate;

    open_store(w);
    bring(w, "/a", "x");
    write_file(w, "unpack.answer", 0644, "image a b > $D/record; gate; cat $D/record\n");
    start(w, &t, "/b", "y");
    gate = at_gate(w);
    /* It has seen the layer and counts on it: the image may go, the layer stays until the bring is over. */
    assert_int_equal(img_remove(w->store, "x", NULL, NULL, &e), ERR_OK);
    assert_true(have(w, "images/layers/" HEX("b")));
    close(gate);
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_OK);
    img_unref(t.image);
    settle(w);
    assert_true(have(w, "images/layers/" HEX("b")));
    close_store(w);
    open_store(w);
    t.image = img_lookup(w->store, "y");
    assert_non_null(t.image);
    img_unref(t.image);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_make, world_remove)

static void note_wanted(uint64_t wanted, void *arg)
{
    uint64_t *all = arg;

    all[0]++;
    all[1] = wanted;
}

static void an_archive_that_takes_what_is_kept_free_is_refused(void **state)
{
    struct world *w = *state;
    uint64_t asked[2] = { 0 };
    char path[400];
    struct bring t;

    open_store(w);
    write_file(w, "large.tar", 0644, "not read");
    snprintf(path, sizeof(path), "%s/large.tar", w->dir);
    img_keep_free(w->store, UINT64_C(1) << 60);
    img_on_short(w->store, note_wanted, asked);
    start(w, &t, path, NULL);
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_EXHAUSTED);
    assert_non_null(strstr(t.result.text, "large.tar: no space left for it: it takes 0 MiB, "));
    assert_non_null(strstr(t.result.text, " and 1099511627776 MiB of these are kept free (evictionHard)"));
    assert_int_equal(asked[0], 1);
    assert_true(asked[1] > UINT64_C(1) << 59);
    assert_int_equal(count_lines(w, "unpack.log"), 0);
    img_keep_free(w->store, 0);
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void what_is_being_brought_is_stopped_with_the_reason(void **state)
{
    struct world *w = *state;
    struct err why = { 0 };
    struct bring t;
    int gate;

    open_store(w);
    write_file(w, "unpack.answer", 0644, "gate; image a b x\n");
    assert_false(img_is_writing(w->store));
    start(w, &t, "/a.tar", "x");
    gate = at_gate(w);
    assert_true(img_is_writing(w->store));
    err_set(&why, ERR_EXHAUSTED, "the node is short of imagefs.available");
    assert_int_equal(img_stop_writers(w->store, &why), 1);
    assert_int_equal(img_stop_writers(w->store, &why), 0); /* it is ending */
    wait_for(w, &t);
    close(gate);
    assert_int_equal(t.result.code, ERR_EXHAUSTED);
    assert_string_equal(t.result.text, "import /a.tar: the node is short of imagefs.available");
    assert_false(img_is_writing(w->store));
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_archive_comes_with_its_names),
        TEST(a_given_name_is_made_whole_and_passed_on),
        TEST(bad_names_and_sources_end_before_anything_runs),
        TEST(what_unpack_reports_is_passed_on_with_its_code),
        TEST(what_unpack_prints_is_not_believed),
        TEST(layers_of_a_failed_bring_are_collected),
        TEST(an_image_whose_name_cannot_be_written_leaves_nothing),
        TEST(a_name_that_could_be_written_stays_with_its_image),
        TEST(a_missing_helper_is_an_error_with_its_path),
        TEST(the_same_source_twice_is_brought_once),
        TEST(another_source_of_the_same_name_waits),
        TEST(no_more_than_the_limit_run_at_once),
        TEST(who_cancels_leaves_the_others_alone),
        TEST(the_last_who_cancels_ends_the_work),
        TEST(closing_the_store_cancels_what_is_under_way),
        TEST(an_image_being_brought_is_not_removed_under_it),
        TEST(an_archive_that_takes_what_is_kept_free_is_refused),
        TEST(what_is_being_brought_is_stopped_with_the_reason),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
