/* SPDX-License-Identifier: Apache-2.0 */
/* Images from registries: what is asked and fetched, with which credentials, and what stays of a pull that
 * failed. */
#include "tests/unit/agent_image/image_helper.h"

static const char registry[] = "case $verb in\n"
                               "inspect) echo sha256:$(hex e) ;;\n"
                               "copy) for last; do :; done; last=${last#oci:}; mkdir ${last%%:image} ;;\n"
                               "esac\n";

static void a_pull_fetches_what_the_registry_named(void **state)
{
    struct world *w = *state;
    char *log, *env;
    struct bring t;

    open_store(w);
    write_file(w, "skopeo.answer", 0644, registry);
    write_file(w, "unpack.answer", 0644, "[ -d $source ] || exit 9; image a b\n");
    start(w, &t, "docker://busybox:1.36", NULL);
    wait_for(w, &t);
    if (t.result.code != ERR_OK)
        fail_msg("%s", t.result.text);
    assert_string_equal(t.names, "docker.io/library/busybox:1.36 ");
    assert_string_equal(t.image->digest, ID("e"));
    img_unref(t.image);

    log = read_file(w, "skopeo.log");
    assert_non_null(strstr(log, " inspect --no-tags --format {{.Digest}}{{range .Layers}} {{.}}{{end}} "
                                "docker://docker.io/library/busybox:1.36\n"));
    assert_non_null(strstr(
        log, " copy --quiet --preserve-digests --remove-signatures --dest-oci-accept-uncompressed-layers "
             "--dest-shared-blob-dir "));
    assert_non_null(strstr(log, " docker://docker.io/library/busybox@" ID("e") " oci:"));
    assert_null(strstr(log, "authfile"));
    free(log);
    env = read_file(w, "skopeo.env");
    assert_non_null(strstr(env, "HOME="));
    assert_non_null(strstr(env, "/images/tmp/"));
    assert_null(strstr(env, "NOTIFY_SOCKET"));
    free(env);
    log = read_file(w, "unpack.log");
    assert_non_null(strstr(log, "/layout --work "));
    assert_non_null(strstr(log, "/images/tmp/blobs --max-bytes"));
    free(log);
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void what_is_here_is_not_fetched_again(void **state)
{
    struct world *w = *state;
    struct bring t;

    open_store(w);
    write_file(w, "skopeo.answer", 0644, registry);
    bring(w, "docker://busybox:1", NULL);
    assert_int_equal(count_lines(w, "skopeo.log"), 2);
    bring(w, "docker://busybox:1", NULL); /* asks */
    assert_int_equal(count_lines(w, "skopeo.log"), 3);
    close_store(w);
    open_store(w);
    start(w, &t, "docker://quay.io/other/name:2", "localhost/mine");
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_OK);
    assert_string_equal(t.names, "localhost/mine:latest ");
    assert_string_equal(t.image->id, ID("a"));
    img_unref(t.image);
    assert_int_equal(count_lines(w, "skopeo.log"), 4);
    t.image = img_lookup(w->store, "localhost/mine@" ID("e"));
    assert_non_null(t.image);
    img_unref(t.image);
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void a_pull_without_skopeo_names_the_package(void **state)
{
    struct world *w = *state;
    char path[400];

    open_store_with(w, 0, 0, false);
    refused(w, "docker://busybox", NULL, ERR_PRECONDITION,
            "cannot pull docker.io/library/busybox:latest: skopeo is not installed (Debian package skopeo)");
    close_store(w);
    snprintf(path, sizeof(path), "%s/skopeo", w->dir);
    assert_int_equal(unlink(path), 0);
    open_store(w);
    refused(w, "docker://busybox", NULL, ERR_PRECONDITION,
            "cannot pull docker.io/library/busybox:latest: skopeo is not installed (Debian package skopeo)");
}

static void skopeos_own_words_come_through_with_a_fitting_code(void **state)
{
    struct world *w = *state;

    open_store(w);
    write_file(w, "skopeo.answer", 0644,
               "echo 'time=x level=warning msg=\"odd\"' >&2; fatal 'reading manifest 1 in r/x: manifest "
               "unknown: \\\\\"1\\\\\"'\n");
    refused(w, "docker://r.io/x:1", NULL, ERR_NOT_FOUND,
            "pull r.io/x:1: reading manifest 1 in r/x: manifest unknown: \"1\"");
    write_file(w, "skopeo.answer", 0644,
               "fatal 'unable to retrieve auth token: invalid username/password: unauthorized: no'\n");
    refused(w, "docker://r.io/x:1", NULL, ERR_UNAUTHENTICATED,
            "pull r.io/x:1: unable to retrieve auth token: invalid username/password: unauthorized: no "
            "(no credentials for r.io are given)");
    write_file(w, "skopeo.answer", 0644,
               "fatal 'pinging container registry r.io: dial tcp: connect: connection refused'\n");
    refused(w, "docker://r.io/x:1", NULL, ERR_UNAVAILABLE,
            "pull r.io/x:1: pinging container registry r.io: dial tcp: connect: connection refused");
    write_file(w, "skopeo.answer", 0644,
               "fatal 'Get \\\\\"https://r.io/b?X-Sig=key&v=1\\\\\": EOF? at https://cdn.io/?k=2 again'\n");
    refused(w, "docker://r.io/x:1", NULL, ERR_UNAVAILABLE,
            "pull r.io/x:1: Get \"https://r.io/b\": EOF? at https://cdn.io/ again");
    write_file(w, "skopeo.answer", 0644, "echo panic >&2; exit 2\n");
    refused(w, "docker://r.io/x:1", NULL, ERR_UNKNOWN, "pull r.io/x:1: skopeo inspect: exit status 2: panic");
    write_file(w, "skopeo.answer", 0644, "echo nothing like a digest\n");
    refused(w, "docker://r.io/x:1", NULL, ERR_UNKNOWN,
            "skopeo inspect: it did not print a digest for r.io/x:1");
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

#define R_IO "{\"auths\":{\"r.io\":{\"auth\":\"dTpw\"}}}"

static void credentials_stand_in_a_private_file_while_it_lasts(void **state)
{
    struct world *w = *state;
    struct bring t = { 0 };
    char *text, file[43] = "", home[400]; /* auth-<32 digits>.json */

    open_store(w);
    write_file(w, "skopeo.answer", 0644,
               "for a; do [ \"$last\" = --authfile ] && stat -c %%a $a > $D/mode && cat $a > $D/seen; "
               "last=$a; done; touch $HOME/token $XDG_RUNTIME_DIR/token2 || exit 9\n%s",
               registry);
    img_bring_start_auth(&t.b, w->store, "docker://r.io/x:1", NULL, R_IO, on_brought, &t);
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_OK);
    img_unref(t.image);
    text = read_file(w, "seen");
    assert_string_equal(text, "{\"auths\":{\"r.io\":{\"auth\":\"dTpw\"},\"r.io/x\":{\"auth\":\"dTpw\"}}}");
    free(text);
    text = read_file(w, "mode");
    assert_string_equal(text, "600\n");
    free(text);
    text = read_file(w, "skopeo.log");
    assert_non_null(strstr(text, "--src-authfile "));
    memcpy(file, strstr(text, "auth-"), sizeof(file) - 1);
    free(text);
    assert_true(str_ends(file, ".json"));
    assert_false(have(w, file));       /* gone */
    text = read_file(w, "skopeo.env"); /* what a helper keeps is beside it, and on no disk either */
    snprintf(home, sizeof(home), "HOME=%s/auth-", w->dir);
    assert_non_null(strstr(text, home));
    free(text);
    file[strlen("auth-") + 32] = '\0';
    assert_false(have(w, file));
}

static void the_same_name_with_other_credentials_is_asked_for_again(void **state)
{
    struct world *w = *state;
    struct bring one = { 0 }, two = { 0 };

    open_store(w);
    write_file(w, "skopeo.answer", 0644, "case $* in *authfile*) ;; *) fatal 'unauthorized' ;; esac\n%s",
               registry);
    img_bring_start_auth(&one.b, w->store, "docker://r.io/x:1", NULL, R_IO, on_brought, &one);
    start(w, &two, "docker://r.io/x:1", NULL); /* must not ride on the other's credentials */
    wait_for(w, &one);
    wait_for(w, &two);
    assert_int_equal(one.result.code, ERR_OK);
    assert_int_equal(two.result.code, ERR_UNAUTHENTICATED);
    img_unref(one.image);
}

static void credentials_are_tried_until_one_is_let_in(void **state)
{
    struct world *w = *state;
    struct bring t = { 0 };

    open_store(w);
    write_file(
        w, "skopeo.answer", 0644,
        "for a; do case $last in *authfile) grep -q Z29vZA== $a || fatal 'unauthorized' ;; esac; last=$a; "
        "done\n%s",
        registry);
    img_bring_start_auth(
        &t.b, w->store, "docker://r.io/x:1", NULL,
        "[{\"auths\":{\"r.io\":{\"auth\":\"YmFk\"}}},{\"auths\":{\"r.io\":{\"auth\":\"Z29vZA==\"}}}]",
        on_brought, &t);
    wait_for(w, &t);
    if (t.result.code != ERR_OK)
        fail_msg("%s", t.result.text);
    img_unref(t.image);
    assert_int_equal(count_lines(w, "skopeo.log"), 3); /* two questions, one copy */
    img_bring_start_auth(&t.b, w->store, "docker://r.io/y:1", NULL, "not JSON", on_brought, &t);
    t.calls = 0;
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_INVALID);
    assert_true(str_starts(t.result.text, "pull r.io/y:1: image pull secrets: "));
}

static void refused_with(struct world *w, const char *secrets, const char *what)
{
    struct bring t = { 0 };
    char want[300];

    snprintf(want, sizeof(want), "pull r.io/x:1: unauthorized: authentication required (%s)", what);
    img_bring_start_auth(&t.b, w->store, "docker://r.io/x:1", NULL, secrets, on_brought, &t);
    wait_for(w, &t);
    assert_int_equal(t.result.code, ERR_UNAUTHENTICATED);
    assert_string_equal(t.result.text, want);
}

#define CONFIG(host) "{\"auths\":{\"" host "\":{\"auth\":\"YmFk\"}}}"
#define SECRET(name, host)                                                                                   \
    "{\"namespace\":\"a\",\"name\":\"" name "\",\"uid\":\"1\",\"config\":" CONFIG(host) "}"

/* Many registries answer the same to a wrong password and to none. */
static void a_wrong_password_and_none_are_told_apart(void **state)
{
    struct world *w = *state;

    open_store(w);
    write_file(w, "skopeo.answer", 0644, "fatal 'unauthorized: authentication required'\n");
    refused_with(w, NULL, "no credentials for r.io are given");
    refused_with(w, "[" SECRET("s", "other.io") "]", "no credentials for r.io are given");
    refused_with(w, CONFIG("r.io"), "refused with the credentials of a Secret");
    refused_with(w, "[" SECRET("s", "r.io") "]", "refused with the credentials of Secret a/s");
}

static void what_a_killed_agent_left_of_credentials_is_removed(void **state)
{
    struct world *w = *state;

    char path[400];

    write_file(w, "auth-00.json", 0600, "secret");
    snprintf(path, sizeof(path), "%s/auth-00", w->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file(w, "auth-00/token", 0600, "secret");
    open_store(w);
    assert_false(have(w, "auth-00.json"));
    assert_false(have(w, "auth-00"));
    assert_true(have(w, "skopeo"));
}

static unsigned jobs_in(const struct world *w, enum img_job_state state)
{
    const struct img_job *j;
    unsigned n = 0;

    TAILQ_FOREACH (j, &w->store->jobs, more)
        n += j->state == state;
    return n;
}

static void one_digest_under_two_names_is_fetched_once(void **state)
{
    struct world *w = *state;
    struct bring one, two, three;
    char *log;
    int gate;

    open_store(w);
    write_file(w, "skopeo.answer", 0644, "case \"$*\" in *copy*) gate ;; esac\n%s", registry);
    start(w, &one, "docker://r.io/x:1", NULL);
    gate = at_gate(w);
    start(w, &two, "docker://r.io/y:1", NULL);
    start(w, &three, "docker://q.io/z:1", NULL);
    while (jobs_in(w, JOB_TWIN) < 2)
        uv_run(&w->loop, UV_RUN_ONCE);
    op_cancel(&two.b.op); /* who waits may go */
    wait_for(w, &two);
    assert_int_equal(two.result.code, ERR_CANCELLED);
    close(gate);
    wait_for(w, &one);
    wait_for(w, &three);
    assert_int_equal(one.result.code, ERR_OK);
    assert_int_equal(three.result.code, ERR_OK);
    assert_ptr_equal(one.image, three.image);
    log = read_file(w, "skopeo.log");
    assert_null(strstr(strstr(log, " copy ") + 1, " copy "));
    free(log);
    img_unref(one.image);
    img_unref(three.image);
}

static void called(struct world *w, const struct img_image *image, const char *reference, const char *wanted)
{
    char *got = img_repo_digest(w->store, image->id, reference);

    assert_string_equal(got, wanted);
    free(got);
}

static void an_image_is_called_by_the_digest_it_was_pulled_by(void **state)
{
    struct world *w = *state;
    struct img_image *image;

    open_store(w);
    bring(w, "/a/layout", "here.io/import:1");
    image = img_lookup(w->store, "here.io/import:1");
    called(w, image, "here.io/import:1", image->id);

    write_file(w, "skopeo.answer", 0644, registry);
    bring(w, "docker://r.io:5000/team/x:1", NULL);
    bring(w, "docker://q.io/team/y:1", NULL);
    called(w, image, "r.io:5000/team/x:1", "r.io:5000/team/x@" ID("e"));
    called(w, image, "r.io:5000/team/x@" ID("e"), "r.io:5000/team/x@" ID("e"));
    called(w, image, "q.io/team/y:1", "q.io/team/y@" ID("e"));
    called(w, image, "here.io/import:1", "q.io/team/y@" ID("e")); /* as containerd: the first */

    close_store(w);
    img_unref(image);
    open_store(w);
    image = img_lookup(w->store, "here.io/import:1");
    called(w, image, "r.io:5000/team/x:1", "r.io:5000/team/x@" ID("e"));
    img_unref(image);
}

static void a_registry_that_hangs_leaves_a_place_for_others(void **state)
{
    struct world *w = *state;
    struct bring one, two, other;
    int gate;

    open_store_with(w, 0, 2, true);
    write_file(w, "skopeo.answer", 0644, "case \"$*\" in *inspect*r.io/x*) gate ;; esac\n%s", registry);
    start(w, &one, "docker://r.io/x:1", NULL);
    start(w, &two, "docker://r.io/y:1", NULL);
    start(w, &other, "docker://q.io/z:1", NULL);
    gate = at_gate(w);
    wait_for(w, &other);
    assert_int_equal(other.result.code, ERR_OK);
    assert_int_equal(two.calls, 0);
    close(gate);
    wait_for(w, &one);
    wait_for(w, &two);
    img_unref(one.image);
    img_unref(two.image);
    img_unref(other.image);
}

/* A whole blob, and then the connection breaks. */
static const char breaks[] = "[ $verb = inspect ] && { echo sha256:$(hex e); exit; }\n"
                             "mkdir -p $D/images/tmp/blobs/sha256; touch $D/images/tmp/blobs/sha256/whole\n"
                             "fatal 'unexpected EOF'\n";

static void whole_blobs_of_a_pull_that_broke_off_wait_for_the_next(void **state)
{
    struct world *w = *state;

    open_store(w);
    write_file(w, "skopeo.answer", 0644, "%s", breaks);
    refused(w, "docker://r.io/x:1", NULL, ERR_UNAVAILABLE, "pull r.io/x:1: unexpected EOF");
    settle(w);
    assert_true(have(w, "images/tmp/blobs/sha256/whole"));
    close_store(w);
    open_store(w); /* also across a restart */
    settle(w);
    assert_true(have(w, "images/tmp/blobs/sha256/whole"));
    assert_int_equal(count_entries(w, "tmp"), 1);
    refused(w, "docker://r.io/x:1", NULL, ERR_UNAVAILABLE, "pull r.io/x:1: unexpected EOF");
    write_file(w, "skopeo.answer", 0644, "%s", registry);
    bring(w, "docker://r.io/x:1", NULL);
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void bad_blobs_do_not_stay(void **state)
{
    struct world *w = *state;

    open_store(w);
    write_file(w, "skopeo.answer", 0644, "%s", breaks);
    refused(w, "docker://r.io/x:1", NULL, ERR_UNAVAILABLE, "pull r.io/x:1: unexpected EOF");
    write_file(w, "skopeo.answer", 0644, "%s", registry);
    write_file(w, "unpack.answer", 0644,
               "echo '{\"error\":\"its digest is wrong\",\"code\":\"DATA_LOSS\"}'; exit 1\n");
    refused(w, "docker://r.io/x:1", NULL, ERR_DATA_LOSS, "r.io/x:1: its digest is wrong");
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void a_download_past_the_limit_is_stopped(void **state)
{
    struct world *w = *state;

    open_store_with(w, 1 << 20, 0, true);
    write_file(w, "skopeo.answer", 0644,
               "[ $verb = inspect ] && { echo sha256:$(hex e); exit; }\nmkdir $TMPDIR/layout; head -c "
               "3000000 /dev/zero > "
               "$TMPDIR/layout/oci-put-blob1; gate\n");
    refused(w, "docker://r.io/x:1", NULL, ERR_EXHAUSTED,
            "pull r.io/x:1: the image is larger than the limit of 1048576 bytes");
    settle(w);
    assert_int_equal(count_entries(w, "tmp"), 0);
}

static void on_late(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* Longer than blobs are left uncounted. */
static void let_count(struct world *w)
{
    bool late = false;
    uv_timer_t timer;

    uv_timer_init(&w->loop, &timer);
    timer.data = &late;
    uv_timer_start(&timer, on_late, IMG_USAGE_PERIOD_MS + 200, 0);
    while (!late)
        uv_run(&w->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&w->loop, UV_RUN_NOWAIT);
}

/* Each brings less than the limit; the blobs of all stay until no registry is asked any more. */
static void blobs_of_others_do_not_make_an_image_too_large(void **state)
{
    struct world *w = *state;
    struct bring one, two;
    int gate;

    open_store_with(w, 1 << 20, 0, true);
    write_file(w, "skopeo.answer", 0644,
               "case $* in *inspect*r.io/two*) gate; echo sha256:$(hex f); exit ;; esac\n"
               "case $verb in inspect) echo sha256:$(hex e); exit ;; esac\n"
               "mkdir -p $TMPDIR/layout $D/images/tmp/blobs/sha256\n"
               "case $* in *r.io/two*) b=two ;; *) b=one ;; esac\n"
               "head -c 900000 /dev/zero > $D/images/tmp/blobs/sha256/$b\n"
               "case $b in two) gate ;; esac; true\n");
    start(w, &two, "docker://r.io/two:1", NULL);
    gate = at_gate(w);
    start(w, &one, "docker://r.io/one:1", NULL);
    wait_for(w, &one);
    assert_int_equal(one.result.code, ERR_OK);
    assert_true(have(w, "images/tmp/blobs/sha256/one"));
    close(gate);
    while (jobs_in(w, JOB_COPY) == 0)
        uv_run(&w->loop, UV_RUN_ONCE);
    gate = at_gate(w);
    let_count(w);
    close(gate);
    wait_for(w, &two);
    if (two.result.code != ERR_OK)
        fail_msg("%s", two.result.text);
    img_unref(one.image);
    img_unref(two.image);
}

static void a_name_may_move_to_another_image(void **state)
{
    struct world *w = *state;
    struct img_image *old, *now;
    struct err e = { 0 };

    open_store(w);
    bring(w, "/a", "x");
    write_file(w, "unpack.answer", 0644, "image c d\n");
    bring(w, "/c", "x");
    old = img_lookup(w->store, ID("a")); /* containers may run from it */
    now = img_lookup(w->store, "x");
    assert_non_null(old);
    assert_string_equal(now->id, ID("c"));
    img_unref(old);
    img_unref(now);
    assert_int_equal(img_remove(w->store, ID("a"), NULL, NULL, &e), ERR_OK);
    settle(w);
    assert_int_equal(count_entries(w, "layers"), 1);
}

static void the_source_for_skopeo_has_a_tag_or_a_digest(void **state)
{
    static const struct {
        const char *reference, *digest, *wanted;
    } cases[] = {
        { "docker.io/library/a:1", NULL, "docker://docker.io/library/a:1" },
        { "docker.io/library/a:1", ID("e"), "docker://docker.io/library/a@" ID("e") },
        { "h:5000/a@" ID("c"), NULL, "docker://h:5000/a@" ID("c") },
        { "h:5000/a:1@" ID("c"), NULL, "docker://h:5000/a@" ID("c") },
        { "h:5000/a", ID("e"), "docker://h:5000/a@" ID("e") },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *got = img_skopeo_source(cases[i].reference, cases[i].digest);

        assert_string_equal(got, cases[i].wanted);
        free(got);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_make, world_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pull_fetches_what_the_registry_named),
        TEST(what_is_here_is_not_fetched_again),
        TEST(a_pull_without_skopeo_names_the_package),
        TEST(skopeos_own_words_come_through_with_a_fitting_code),
        TEST(credentials_stand_in_a_private_file_while_it_lasts),
        TEST(the_same_name_with_other_credentials_is_asked_for_again),
        TEST(credentials_are_tried_until_one_is_let_in),
        TEST(a_wrong_password_and_none_are_told_apart),
        TEST(what_a_killed_agent_left_of_credentials_is_removed),
        TEST(one_digest_under_two_names_is_fetched_once),
        TEST(an_image_is_called_by_the_digest_it_was_pulled_by),
        TEST(a_registry_that_hangs_leaves_a_place_for_others),
        TEST(whole_blobs_of_a_pull_that_broke_off_wait_for_the_next),
        TEST(bad_blobs_do_not_stay),
        TEST(a_download_past_the_limit_is_stopped),
        TEST(blobs_of_others_do_not_make_an_image_too_large),
        TEST(a_name_may_move_to_another_image),
        TEST(the_source_for_skopeo_has_a_tag_or_a_digest),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
