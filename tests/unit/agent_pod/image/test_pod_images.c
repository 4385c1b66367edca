/* SPDX-License-Identifier: Apache-2.0 */
/* The images of a pod over an edit: what stays keeps what is known of it. */
#include "agent/pod/image/images.h"
#include "agent/pod/image/internal.h"
#include "tests/unit/agent_pod/world.h"

static void build(struct pod *p)
{
    struct err e = { 0 };

    assert_int_equal(images_build(p, &e), ERR_OK);
}

static void each_image_is_listed_once_with_the_strictest_policy(void **state)
{
    struct pod *p = world_pod(*state, "p",
                              "containers: [{name: a, image: x, imagePullPolicy: IfNotPresent},"
                              "{name: b, image: 'y:1'}, {name: c, image: x, imagePullPolicy: Always}]");

    assert_int_equal(images_of(p)->n_images, 2);
    assert_int_equal(images_find(p, "x")->policy, API_PULL_ALWAYS);
    assert_int_equal(images_find(p, "y:1")->policy, API_PULL_IF_NOT_PRESENT);
}

static void an_edit_keeps_what_is_known_of_the_images_that_stay(void **state)
{
    struct pod *p = world_pod(*state, "p", "containers: [{name: a, image: x}, {name: b, image: y}]");
    struct pod *edited =
        world_pod(*state, "edited", "containers: [{name: a, image: z}, {name: b, image: y}]");
    struct pod_image *y = images_find(p, "y");

    y->backoff_ms = 20000;
    for (size_t i = 0; i < p->n_ctrs; i++)
        p->ctrs[i]->spec = edited->ctrs[i]->spec;
    build(p);
    assert_int_equal(images_of(p)->n_images, 2);
    assert_null(images_find(p, "x"));
    assert_non_null(images_find(p, "z"));
    assert_ptr_equal(images_find(p, "y"), y);
    assert_ptr_equal(y->reference, edited->ctrs[1]->spec->image);
    assert_int_equal(y->backoff_ms, 20000);
}

static void one_that_goes_while_it_is_brought_keeps_the_pod_busy(void **state)
{
    struct pod *p = world_pod(*state, "p", "containers: [{name: a, image: x}]");
    struct pod_image *x = images_find(p, "x");

    x->bringing = true; /* its bring never began: a cancel finds nothing to do */
    images_clear(p);
    assert_true(images_busy(p));
    assert_true(x->dropped);
    assert_int_equal(images_of(p)->n_images, 0);
    free(x);
    images_of(p)->images_dropped = 0;
    assert_false(images_busy(p));
}

static void images_of_volumes_are_brought_too_when_a_container_mounts_them(void **state)
{
    struct pod *p =
        world_pod(*state, "p",
                  "containers: [{name: a, image: x, imagePullPolicy: IfNotPresent,"
                  "volumeMounts: [{name: v, mountPath: /v}, {name: same, mountPath: /s}]}],"
                  "volumes: [{name: v, image: {reference: data}}, {name: unused, image: {reference: u}},"
                  "{name: same, image: {reference: x, pullPolicy: Always}}]");
    struct img_image *image = calloc(1, sizeof(*image));
    const struct pod_image *missing = NULL;

    assert_int_equal(images_of(p)->n_images, 2);
    assert_int_equal(images_find(p, "data")->policy, API_PULL_ALWAYS); /* it has no tag */
    assert_int_equal(images_find(p, "x")->policy, API_PULL_ALWAYS);
    assert_false(images_ready(p->ctrs[0], &missing));
    assert_ptr_equal(missing, images_find(p, "x"));
    image->refs = 3;
    images_find(p, "x")->image = image;
    assert_false(images_ready(p->ctrs[0], &missing));
    assert_ptr_equal(missing, images_find(p, "data"));
    images_find(p, "data")->image = image;
    assert_true(images_ready(p->ctrs[0], &missing));
    images_find(p, "x")->image = images_find(p, "data")->image = NULL;
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(each_image_is_listed_once_with_the_strictest_policy),
        WORLD_TEST(an_edit_keeps_what_is_known_of_the_images_that_stay),
        WORLD_TEST(one_that_goes_while_it_is_brought_keeps_the_pod_busy),
        WORLD_TEST(images_of_volumes_are_brought_too_when_a_container_mounts_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
