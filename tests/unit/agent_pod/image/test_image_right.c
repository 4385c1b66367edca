/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod may use an image that is here, while its secrets change. */
#define world store_world /* both helpers have one */
#include "agent/pod/image/internal.h"
#include "tests/unit/agent_image/image_helper.h"
#undef world
#include "agent/pod/image/images.h"
#include "tests/unit/agent_pod/world.h"

#include "agent/pod/image/image_right.h"

#define NAME "r.io/x:1"
#define GOOD "Z29vZA=="
#define BAD "YmFk"
#define OTHERS                                                                                               \
    "[{\"namespace\":\"other\",\"name\":\"t\",\"uid\":\"\",\"config\":{\"auths\":{\"r.io\":{\"auth\":"       \
    "\"" GOOD "\"}}}}]"

struct scene {
    struct store_world *images;
    struct world *w;
    struct img_image *image; /* pulled with a secret of another namespace that has GOOD */
    struct pod *p;
    struct pod_image *i;
};

static void put_secret(struct scene *s, const char *name, const char *pair)
{
    str_auto text = str_printf(
        "{apiVersion: v1, kind: Secret, type: kubernetes.io/dockerconfigjson, metadata: {name: %s}, "
        "stringData: {.dockerconfigjson: '{\"auths\":{\"r.io\":{\"auth\":\"%s\"}}}'}}",
        name, pair);

    world_add(s->w, text);
}

static int scene_setup(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));
    struct bring t = { 0 };
    void *one = NULL, *other = NULL;

    if (s == NULL || world_make(&one) != 0 || world_setup(&other) != 0)
        return -1;
    s->images = one;
    s->w = other;
    open_store(s->images);
    s->images->store->short_names.redirects = false; /* whatever this machine's registries.conf says */
    write_file(s->images, "skopeo.answer", 0644,
               "[ $verb = inspect ] && { echo sha256:$(hex e); exit; }\n"
               "for last; do :; done; last=${last#oci:}; mkdir ${last%%:image}\n");
    img_bring_start_auth(&t.b, s->images->store, "docker://" NAME, NULL, OTHERS, on_brought, &t);
    wait_for(s->images, &t);
    s->image = t.image;
    s->w->node.o.images = s->images->store;
    worker_node(&s->w->node)->runner_active = true; /* pods that are woken wait in vain */
    s->p =
        world_pod(s->w, "p", "imagePullSecrets: [{name: mine}], containers: [{name: c, image: '" NAME "'}]");
    s->i = images_find(s->p, NAME);
    *state = s;
    return s->image != NULL && s->i != NULL ? 0 : -1;
}

static int scene_teardown(void **state)
{
    struct scene *s = *state;
    void *one = s->images, *other = s->w;
    int bad;

    img_unref(s->image);
    bad = world_teardown(&other);
    if (world_remove(&one) != 0)
        bad = -1;
    free(s);
    return bad;
}

static void look(struct scene *s)
{
    image_right_look(s->i, s->image, NAME);
}

/* Until the comparison that is under way is over. */
static enum image_right known(struct scene *s)
{
    while (s->i->checking && uv_run(&s->images->loop, UV_RUN_ONCE) != 0)
        ;
    assert_false(s->i->checking);
    return s->i->right;
}

static void the_same_credentials_are_a_right_and_others_are_none(void **state)
{
    struct scene *s = *state;

    put_secret(s, "mine", GOOD);
    look(s);
    assert_true(s->i->checking);
    assert_int_equal(known(s), RIGHT_GRANTED);
    put_secret(s, "mine", BAD);
    images_secret_changed(s->p, "mine");
    assert_int_equal(s->i->right, RIGHT_UNKNOWN);
    look(s);
    assert_int_equal(known(s), RIGHT_REFUSED);
}

/* What the old ones were worth says nothing of the new ones, neither way. */
static void an_answer_about_secrets_that_changed_meanwhile_counts_for_nothing(void **state)
{
    static const struct {
        const char *before, *after;
        enum image_right wanted;
    } cases[] = { { BAD, GOOD, RIGHT_GRANTED }, { GOOD, BAD, RIGHT_REFUSED } };
    struct scene *s = *state;

    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        put_secret(s, "mine", cases[k].before);
        images_secret_changed(s->p, "mine");
        look(s);
        assert_true(s->i->checking);
        put_secret(s, "mine", cases[k].after);
        images_secret_changed(s->p, "mine");
        assert_true(s->i->stale);
        look(s); /* the old comparison is not over */
        assert_int_equal(known(s), RIGHT_UNKNOWN);
        look(s);
        assert_false(s->i->stale);
        assert_int_equal(known(s), cases[k].wanted);
    }
}

static void a_secret_of_others_makes_nothing_stale(void **state)
{
    struct scene *s = *state;

    put_secret(s, "mine", GOOD);
    look(s);
    put_secret(s, "theirs", BAD);
    images_secret_changed(s->p, "theirs");
    assert_false(s->i->stale);
    assert_int_equal(known(s), RIGHT_GRANTED);
}

/* Nothing is compared then: what changes later is looked at from the beginning. */
static void a_change_while_nothing_is_compared_leaves_nothing_stale(void **state)
{
    struct scene *s = *state;

    put_secret(s, "mine", GOOD);
    images_secret_changed(s->p, "mine");
    assert_false(s->i->stale);
    look(s);
    assert_int_equal(known(s), RIGHT_GRANTED);
}

#define SCENE(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(the_same_credentials_are_a_right_and_others_are_none),
        SCENE(an_answer_about_secrets_that_changed_meanwhile_counts_for_nothing),
        SCENE(a_secret_of_others_makes_nothing_stale),
        SCENE(a_change_while_nothing_is_compared_leaves_nothing_stale),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
