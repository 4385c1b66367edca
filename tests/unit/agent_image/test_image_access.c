/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use an image that is here: what a pull leaves in its record, and what that is worth afterwards. */
#include "tests/unit/agent_image/image_helper.h"

static const char registry[] =
    "case $verb in\n"
    "inspect) for a; do case $last in *authfile) auth=$a ;; esac; last=$a; done\n"
    "    case $* in\n"
    "    */public/*) ;;\n"
    "    *) grep -qE 'Z29vZA==|YWxzbw==' ${auth:-/dev/null} || fatal unauthorized ;;\n"
    "    esac\n"
    "    echo sha256:$(hex e) ;;\n"
    "copy) for last; do :; done; last=${last#oci:}; mkdir ${last%%:image} ;;\n"
    "esac\n";

#define SECRET(namespace, name, pair)                                                                        \
    "{\"namespace\":\"" namespace "\",\"name\":\"" name "\",\"uid\":\"\",\"config\":{\"auths\":{\"r.io\":{"  \
                                  "\"auth\":\"" pair "\"}}}}"
#define GOOD "Z29vZA=="
#define ALSO "YWxzbw=="
#define BAD "YmFk"

static enum err_code pull(struct world *w, const char *name, const char *auth)
{
    char source[IMG_NAME_MAX + 16];
    struct bring t = { 0 };

    snprintf(source, sizeof(source), "docker://%s", name);
    img_bring_start_auth(&t.b, w->store, source, NULL, auth, on_brought, &t);
    wait_for(w, &t);
    img_unref(t.image);
    return t.result.code;
}

static void access_is(struct world *w, const char *name, enum img_access wanted)
{
    struct img_image *image = img_lookup(w->store, name);

    assert_non_null(image);
    assert_int_equal(img_access(w->store, image, name), wanted);
    img_unref(image);
}

struct asked {
    struct img_task t;
    int calls;
    bool yes;
};

static void on_answer(struct op *op, const struct err *result)
{
    struct asked *a = op->owner;

    a->calls++;
    a->yes = result->code == ERR_OK && json_is_true(a->t.answer);
}

static bool may(struct world *w, const char *name, const char *auth)
{
    struct asked a = { 0 };

    img_access_start(&a.t, w->store, name, auth, on_answer, &a);
    assert_int_equal(a.calls, 0);
    while (a.calls == 0 && uv_run(&w->loop, UV_RUN_ONCE) != 0)
        ;
    return a.yes;
}

static void prepare(struct world *w)
{
    open_store(w);
    w->store->short_names.redirects = false; /* whatever this machine's registries.conf says */
    write_file(w, "skopeo.answer", 0644, "%s", registry);
}

static void a_secret_that_pulled_an_image_may_use_it_and_no_other(void **state)
{
    struct world *w = *state;
    char *record;

    prepare(w);
    assert_int_equal(pull(w, "r.io/x:1", "[" SECRET("a", "s", BAD) "," SECRET("a", "t", GOOD) "]"), ERR_OK);
    access_is(w, "r.io/x:1", IMG_ACCESS_SECRETS);
    assert_true(may(w, "r.io/x:1", "[" SECRET("a", "t", BAD) "]")); /* as kubelet: the secret was changed */
    assert_true(may(w, "r.io/x:1", "[" SECRET("b", "u", GOOD) "]"));
    assert_true(may(w, "r.io/x:1", "[" SECRET("b", "u", BAD) "," SECRET("b", "v", GOOD) "]"));
    assert_false(may(w, "r.io/x:1", "[" SECRET("a", "s", BAD) "]")); /* was tried, not let in */
    assert_false(may(w, "r.io/x:1", "[" SECRET("b", "t", BAD) "]"));
    assert_false(may(w, "r.io/x:1", NULL));
    assert_false(may(w, "r.io/x:1", "no JSON"));
    assert_int_equal(pull(w, "r.io/x:1", "[" SECRET("b", "t", BAD) "]"), ERR_UNAUTHENTICATED);
    assert_false(may(w, "r.io/x:1", "[" SECRET("b", "t", BAD) "]"));
    assert_int_equal(pull(w, "r.io/x:1", "[" SECRET("b", "t", ALSO) "]"), ERR_OK);
    assert_true(may(w, "r.io/x:1", "[" SECRET("c", "c", ALSO) "]"));
    assert_true(may(w, "r.io/x:1", "[" SECRET("c", "c", GOOD) "]"));

    record = read_file(w, "images/images/" HEX("a") ".json");
    assert_non_null(strstr(record, "\"pulledFor\":{\"r.io/x\":[{\"namespace\":\"a\",\"name\":\"t\""));
    assert_null(strstr(record, GOOD));
    assert_null(strstr(record, ALSO));
    free(record);
}

static void what_was_said_holds_after_a_restart_and_by_name_after_a_boot(void **state)
{
    struct world *w = *state;

    prepare(w);
    assert_int_equal(pull(w, "r.io/x:1", "[" SECRET("a", "t", GOOD) "]"), ERR_OK);
    close_store(w);
    open_store(w);
    access_is(w, "r.io/x:1", IMG_ACCESS_SECRETS);
    assert_true(may(w, "r.io/x:1", "[" SECRET("b", "u", GOOD) "]"));
    close_store(w);
    write_file(w, "proof-key", 0600, "lost"); /* tmpfs begins empty */
    open_store(w);
    assert_false(may(w, "r.io/x:1", "[" SECRET("b", "u", GOOD) "]"));
    assert_true(may(w, "r.io/x:1", "[" SECRET("a", "t", GOOD) "]"));
}

static void what_needs_no_secret_is_for_all_and_what_was_never_pulled_for_a_pod_too(void **state)
{
    struct world *w = *state;

    prepare(w);
    bring(w, "/an/archive", "here.io/import:1");
    access_is(w, "here.io/import:1", IMG_ACCESS_GRANTED);
    bring(w, "docker://r.io/public/cli:1", NULL); /* by an administrator */
    access_is(w, "r.io/public/cli:1", IMG_ACCESS_GRANTED);
    assert_int_equal(pull(w, "r.io/public/x:1", NULL), ERR_OK);
    access_is(w, "r.io/public/x:1", IMG_ACCESS_GRANTED);
    access_is(w, "here.io/import:1", IMG_ACCESS_GRANTED); /* somebody with access to the node called it so */
    assert_int_equal(pull(w, "r.io/x:1", "[" SECRET("a", "t", GOOD) "]"), ERR_OK);
    access_is(w, "r.io/public/x:1", IMG_ACCESS_GRANTED);
    access_is(w, "r.io/x:1", IMG_ACCESS_SECRETS);
    access_is(w, "r.io/public/cli:1", IMG_ACCESS_REFUSED); /* no pod has pulled it from there */
    assert_int_equal(pull(w, "r.io/public/x:1", "[" SECRET("a", "t", BAD) "]"), ERR_OK);
    access_is(w, "r.io/public/x:1", IMG_ACCESS_GRANTED); /* stays so, whoever else may */
}

static void secrets_for_mirrors_are_nobodys_right(void **state)
{
    struct world *w = *state;

    prepare(w);
    w->store->short_names.redirects = true;
    assert_int_equal(pull(w, "r.io/x:1", "[" SECRET("a", "t", GOOD) "]"), ERR_OK);
    access_is(w, "r.io/x:1", IMG_ACCESS_REFUSED); /* perhaps a mirror's own, or of another secret */
    assert_int_equal(pull(w, "q.io/public/x:1", "[" SECRET("a", "t", GOOD) "]"), ERR_OK);
    access_is(w, "q.io/public/x:1", IMG_ACCESS_REFUSED); /* of r.io: perhaps the mirror's */
    assert_int_equal(pull(w, "q.io/public/x:1", NULL), ERR_OK);
    access_is(w, "q.io/public/x:1", IMG_ACCESS_GRANTED);
}

static void a_policy_says_what_is_looked_at(void **state)
{
    static char repository[] = "r.io/x", beginning[] = "here.io/*";
    static char *except[] = { repository, beginning, NULL };
    static const struct {
        enum img_verify verify;
        enum img_access import, secret, other;
    } cases[] = {
        { IMG_VERIFY_PULLED, IMG_ACCESS_GRANTED, IMG_ACCESS_SECRETS, IMG_ACCESS_SECRETS },
        { IMG_VERIFY_NEVER, IMG_ACCESS_GRANTED, IMG_ACCESS_GRANTED, IMG_ACCESS_GRANTED },
        { IMG_VERIFY_LISTED, IMG_ACCESS_GRANTED, IMG_ACCESS_GRANTED, IMG_ACCESS_SECRETS },
        { IMG_VERIFY_ALWAYS, IMG_ACCESS_REFUSED, IMG_ACCESS_SECRETS, IMG_ACCESS_SECRETS },
    };
    struct world *w = *state;

    prepare(w);
    bring(w, "/an/archive", "here.io/import:1");
    assert_int_equal(pull(w, "r.io/x:1", "[" SECRET("a", "t", GOOD) "]"), ERR_OK);
    assert_int_equal(pull(w, "r.io/x/y:1", "[" SECRET("a", "t", GOOD) "]"), ERR_OK);
    w->store->verify_not = (struct strs){ except, 2 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        w->store->verify = cases[i].verify;
        access_is(w, "here.io/import:1", cases[i].import);
        access_is(w, "r.io/x:1", cases[i].secret);
        access_is(w, "r.io/x/y:1", cases[i].other);
    }
    w->store->verify_not = (struct strs){ 0 };
}

/* ---- one record, several writers --------------------------------------------------------------- */

static void several_that_write_one_record_lose_nothing(void **state)
{
    enum { N = 6 };
    struct world *w = *state;
    struct bring t[N] = { 0 };
    struct asked pinned = { 0 };
    struct img_image *image;
    char name[100];
    int gate;

    prepare(w);
    bring(w, "/an/archive", "one"); /* the same id, under way once more */
    write_file(w, "unpack.answer", 0644, "gate; image a b\n");
    img_bring_start_auth(&t[0].b, w->store, "docker://r.io/x0:1", NULL, "[" SECRET("a", "t", GOOD) "]",
                         on_brought, &t[0]);
    gate = at_gate(w);
    for (int i = 1; i < N; i++) {
        snprintf(name, sizeof(name), "docker://r.io/x%d:1", i);
        img_bring_start_auth(&t[i].b, w->store, name, NULL, "[" SECRET("a", "t", GOOD) "]", on_brought,
                             &t[i]);
    }
    img_pin_start(&pinned.t, w->store, "one", true, on_answer, &pinned);
    close(gate);
    for (int i = 0; i < N; i++) {
        wait_for(w, &t[i]);
        assert_int_equal(t[i].result.code, ERR_OK);
        img_unref(t[i].image);
    }
    settle(w);
    assert_int_equal(pinned.calls, 1);
    close_store(w);

    open_store(w);
    image = img_lookup(w->store, "one");
    assert_true(image->pinned);
    assert_int_equal(json_object_size(image->pulled_for), N);
    img_unref(image);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_make, world_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_secret_that_pulled_an_image_may_use_it_and_no_other),
        TEST(what_was_said_holds_after_a_restart_and_by_name_after_a_boot),
        TEST(what_needs_no_secret_is_for_all_and_what_was_never_pulled_for_a_pod_too),
        TEST(secrets_for_mirrors_are_nobodys_right),
        TEST(a_policy_says_what_is_looked_at),
        TEST(several_that_write_one_record_lose_nothing),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
