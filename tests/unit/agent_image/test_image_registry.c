/* SPDX-License-Identifier: Apache-2.0 */
/* Registries that do not do what they should: what is said of it, and what stays of their blobs. */
#include "tests/unit/agent_image/image_helper.h"

static const char registry[] = "case $verb in\n"
                               "inspect) echo sha256:$(hex e) ;;\n"
                               "copy) for last; do :; done; last=${last#oci:}; mkdir ${last%%:image} ;;\n"
                               "esac\n";

static void fails(struct world *w, const char *said, enum err_code code, enum img_failure failure)
{
    struct bring t;

    write_file(w, "skopeo.answer", 0644, "fatal '%s'\n", said);
    start(w, &t, "docker://r.io/x:1", NULL);
    wait_for(w, &t);
    assert_int_equal(t.result.code, code);
    assert_int_equal(t.b.failure, failure);
}

static void failures_are_of_the_kinds_that_the_cri_knows(void **state)
{
    struct world *w = *state;

    open_store(w);
    fails(w, "pinging container registry r.io: dial tcp 1.2.3.4:443: connect: connection refused",
          ERR_UNAVAILABLE, IMG_REGISTRY_UNAVAILABLE);
    fails(w, "pinging container registry r.io: dial tcp 1.2.3.4:443: i/o timeout", ERR_UNAVAILABLE,
          IMG_REGISTRY_UNAVAILABLE);
    fails(w, "received unexpected HTTP status: 503 Service Unavailable", ERR_UNAVAILABLE,
          IMG_REGISTRY_UNAVAILABLE);
    fails(w, "Source image rejected: Running image docker://r.io/x:1 is rejected by policy.", ERR_PERMISSION,
          IMG_SIGNATURE_REJECTED);
    fails(w, "Source image rejected: A signature was required, but no signature exists", ERR_PERMISSION,
          IMG_SIGNATURE_REJECTED);
    fails(w, "reading manifest 1 in r.io/x: manifest unknown", ERR_NOT_FOUND, IMG_FAILED);
    fails(w, "lookup r.io: no such host", ERR_UNAVAILABLE, IMG_FAILED);
    fails(w, "unexpected EOF", ERR_UNAVAILABLE, IMG_FAILED);
}

/* As object stores lead to blobs. */
static void a_signed_address_hides_neither_its_key_nor_the_reason(void **state)
{
    static const struct {
        size_t path, query;
        const char *wanted;
    } cases[] = {
        { 10, 0, "pull r.io/x:1: Get \"https://s3.io/aaaaaaaaaa\": dial tcp: no luck" },
        { 10, 3000, "pull r.io/x:1: Get \"https://s3.io/aaaaaaaaaa\": dial tcp: no luck" },
        { 2000, 3000, "...\": dial tcp: no luck" },
        { 110, 0, "aaaa\": dial tcp: no luck" },
        { 112, 0, "aaaa\": dial tcp: no luck" },
        { 113, 0, "aaaa\": dial tcp: no luck" },
        { 115, 0, "aaaa...\": dial tcp: no luck" },
        { 10, 20000, "pull r.io/x:1: skopeo failed with a message of more than 16384 bytes" },
    };
    struct world *w = *state;

    open_store(w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bring t;

        write_file(
            w, "skopeo.answer", 0644,
            "q=$(printf %%0%zud 0 | tr 0 K); p=$(printf %%0%zud 0 | tr 0 a); [ %zu = 0 ] && q= || q=?Sig=$q\n"
            "fatal 'Get \\\\\"https://s3.io/'$p$q'\\\\\": dial tcp: no luck'\n",
            cases[i].query, cases[i].path, cases[i].query);
        start(w, &t, "docker://r.io/x:1", NULL);
        wait_for(w, &t);
        if (!str_ends(t.result.text, cases[i].wanted) || strstr(t.result.text, "KKK") != NULL)
            fail_msg("%zu: %s", i, t.result.text);
    }
}

static void a_byte_now_and_then_is_no_progress(void **state)
{
    struct world *w = *state;
    struct bring t, other;

    open_store_with(w, 0, 2, true);
    write_file(w, "skopeo.answer", 0644,
               "case \"$*\" in *inspect*r.io/slow*) echo sha256:$(hex d); exit ;; *copy*r.io/slow*)\n"
               "    mkdir $TMPDIR/layout; i=0\n"
               "    while [ $i -lt 1200 ]; do printf x >> $TMPDIR/layout/oci-put-blob1; sleep 0.1; "
               "i=$((i+1)); done\n"
               "    fatal 'it came to its end' ;;\n"
               "esac\n%s",
               registry);
    start(w, &t, "docker://r.io/slow:1", NULL);
    start(w, &other, "docker://q.io/x:1", NULL);
    wait_for(w, &other);
    assert_int_equal(other.result.code, ERR_OK); /* beside it */
    img_unref(other.image);
    w->store->stall_ms = 2000;
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_UNAVAILABLE);
    assert_int_equal(t.b.failure, IMG_REGISTRY_UNAVAILABLE);
    assert_true(str_starts(t.result.text, "pull r.io/slow:1: "));
    assert_true(str_ends(t.result.text, " 2 s"));
    assert_int_equal(w->store->running, 0); /* its place is free */
    settle(w);
}

/* ---- whose blobs ------------------------------------------------------------------------------- */

/* r.io/x has the layers 1 and 2, r.io/y 2 and 3, and is copied until the gate opens. */
static const char overlapping[] =
    "case \"$*\" in *r.io/x*) id=e layers='1 2' ;; *) id=f layers='2 3' ;; esac\n"
    "if [ $verb = inspect ]; then printf sha256:$(hex $id); for l in $layers; do printf ' sha256:%s' $(hex "
    "$l); done; echo; exit; fi\n"
    "b=$D/images/tmp/blobs/sha256; mkdir -p $b\n"
    "for l in $layers; do echo $l > $b/$(hex $l); done\n"
    "for last; do :; done; last=${last#oci:}; mkdir ${last%:image}\n"
    "[ $id = f ] && gate\n"
    "exit 0\n";

#define BLOB(c) "images/tmp/blobs/sha256/" HEX(c)

static void blobs_go_with_their_pull_but_for_those_of_another(void **state)
{
    struct world *w = *state;
    struct bring x, y;
    int gate;

    open_store(w);
    write_file(w, "skopeo.answer", 0644, "%s", overlapping);
    start(w, &y, "docker://r.io/y:1", NULL);
    gate = at_gate(w);
    start(w, &x, "docker://r.io/x:1", NULL);
    wait_for(w, &x);
    assert_int_equal(x.result.code, ERR_OK);
    img_unref(x.image);
    assert_false(have(w, BLOB("1")));
    assert_true(have(w, BLOB("2")));
    assert_true(have(w, BLOB("3")));
    write_file(w, "unpack.answer", 0644, "[ -e $D/" BLOB("2") " ] || exit 9; image c d\n");
    close(gate);
    wait_for(w, &y);
    if (y.result.code != ERR_OK)
        fail_msg("%s", y.result.text);
    img_unref(y.image);
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void a_pull_that_never_fetched_keeps_no_blobs_of_others(void **state)
{
    struct world *w = *state;
    struct bring y;
    int gate;

    open_store(w);
    write_file(w, "skopeo.answer", 0644,
               "case \"$*\" in *inspect*r.io/x*) fatal 'unexpected EOF' ;; esac\n%s", overlapping);
    start(w, &y, "docker://r.io/y:1", NULL);
    gate = at_gate(w);
    refused(w, "docker://r.io/x:1", NULL, ERR_UNAVAILABLE, "pull r.io/x:1: unexpected EOF");
    close(gate);
    wait_for(w, &y);
    assert_int_equal(y.result.code, ERR_OK);
    img_unref(y.image);
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void blobs_that_wait_for_another_try_keep_no_others(void **state)
{
    struct world *w = *state;
    struct bring y;

    open_store(w);
    write_file(w, "skopeo.answer", 0644,
               "case \"$*\" in *copy*r.io/x*) mkdir -p $D/images/tmp/blobs/sha256\n"
               "    touch $D/" BLOB("1") "; fatal 'unexpected EOF' ;; esac\n%s",
               overlapping);
    refused(w, "docker://r.io/x:1", NULL, ERR_UNAVAILABLE, "pull r.io/x:1: unexpected EOF");
    start(w, &y, "docker://r.io/y:1", NULL);
    close(at_gate(w));
    wait_for(w, &y);
    assert_int_equal(y.result.code, ERR_OK);
    img_unref(y.image);
    settle(w);
    assert_true(have(w, BLOB("1")));
    assert_false(have(w, BLOB("2")));
    assert_false(have(w, BLOB("3")));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_make, world_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(failures_are_of_the_kinds_that_the_cri_knows),
        TEST(a_signed_address_hides_neither_its_key_nor_the_reason),
        TEST(a_byte_now_and_then_is_no_progress),
        TEST(blobs_go_with_their_pull_but_for_those_of_another),
        TEST(a_pull_that_never_fetched_keeps_no_blobs_of_others),
        TEST(blobs_that_wait_for_another_try_keep_no_others),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
