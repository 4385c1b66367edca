/* SPDX-License-Identifier: Apache-2.0 */
/* Scenes marked "case" are sessions of a real kubelet: its questions, its plugin's answers, its choices. */
#include "tests/unit/deviceplugin/scene.h"

#include "tests/unit/base/nomem.h"

#include <time.h>

enum kind { APP, INIT, SIDECAR };

struct step { /* one container's request */
    const char *pod, *container;
    enum kind kind;
    int64_t count;
    const char *hint;      /* NULL: none; "0,1": NUMA nodes */
    const char *available; /* what the plugin is asked; NULL: it is not */
    const char *must;
    const char *answer; /* NULL: none */
    const char *chosen; /* with NUMA nodes; NULL: an error */
    enum err_code code;
    const char *text;
};

struct pods { /* the containers so far, for reuse */
    struct {
        const char *pod;
        struct dp_predecessor c;
    } v[16];
    size_t n;
};

static uint64_t mask_of(const char *nodes)
{
    uint64_t mask = 0;
    char *at;

    for (; nodes != NULL && *nodes != '\0'; nodes = at + (*at == ','))
        mask |= 1ull << strtoul(nodes, &at, 10);
    return mask;
}

static size_t split(char *text, const char *from, const char **ids)
{
    char *save = NULL;
    size_t n = 0;

    strcpy(text, from);
    for (char *id = strtok_r(text, " ", &save); id != NULL; id = strtok_r(NULL, " ", &save))
        ids[n++] = id;
    return n;
}

static void reusable_of(const struct scene *s, const struct pods *all, const char *pod, struct strs *ret)
{
    struct dp_predecessor before[16];
    struct err e = { 0 };
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->v[i].pod, pod) == 0)
            before[n++] = all->v[i].c;
    assert_int_equal(dp_reusable(s->h, pod, DEV, before, n, ret, &e), ERR_OK);
}

static enum err_code choose(struct scene *s, const struct step *x, const struct dp_wish *w,
                            struct dp_choice *c, struct err *e)
{
    char text[1024], words[1024];
    const char *ids[64];
    size_t n;

    if (dp_choose_begin(&s->r, DEV, s->h, w, c, e) != ERR_OK)
        return e->code;
    if (c->ask != (x->available != NULL))
        fail_msg("pod %s, container %s: asked: %d", x->pod, x->container, c->ask);
    if (!c->ask)
        return ERR_OK;
    assert_int_equal(c->n, 0);
    assert_string_equal(scene_ids(text, sizeof(text), c->available, c->n_available), x->available);
    assert_string_equal(scene_ids(text, sizeof(text), c->must, c->n_must), x->must != NULL ? x->must : "");
    n = x->answer != NULL ? split(words, x->answer, ids) : 0;
    if (dp_choose_end(&s->r, DEV, s->h, w, x->answer != NULL ? ids : NULL, n, c, e) != ERR_OK)
        return e->code;
    assert_false(c->ask);
    return ERR_OK;
}

static void run(struct scene *s, const struct step *steps, size_t n)
{
    struct pods pods = { .n = 0 };

    for (size_t i = 0; i < n; i++) {
        const struct step *x = &steps[i];
        struct dp_wish w = { x->pod, x->container, x->count, NULL, 0, x->hint != NULL, mask_of(x->hint) };
        struct dp_choice c = { 0 };
        struct strs reusable = { 0 };
        struct err e = { 0 };

        reusable_of(s, &pods, x->pod, &reusable);
        w.reusable = strs_list(&reusable);
        w.n_reusable = reusable.n;
        if (choose(s, x, &w, &c, &e) == ERR_OK) {
            if (x->chosen == NULL || strcmp(help_text(c.devices, c.n), x->chosen) != 0)
                fail_msg("pod %s, container %s: %s", x->pod, x->container, help_text(c.devices, c.n));
            for (size_t k = 0; k < c.n; k++)
                assert_string_equal(c.ids[k], c.devices[k].id);
            help_holds(s->h, x->pod, x->container, x->chosen);
        } else if (x->chosen != NULL || e.code != x->code || strcmp(e.text, x->text) != 0) {
            fail_msg("pod %s, container %s: %s", x->pod, x->container, e.text);
        }
        pods.v[pods.n].pod = x->pod;
        pods.v[pods.n++].c = (struct dp_predecessor){ x->container, x->kind == INIT };
        dp_choice_done(&c);
        strs_done(&reusable);
    }
}

static void scene(const char *devices, bool preferred, const struct step *steps, size_t n)
{
    struct scene s;

    scene_open(&s, devices, preferred);
    run(&s, steps, n);
    scene_close(&s);
}

#define NONE_LEFT                                                                                            \
    .code = ERR_EXHAUSTED,                                                                                   \
    .text = "requested number of devices unavailable for " DEV ". Requested: 1, Available: 0"
#define FOUR "dev-0 dev-1 dev-2 dev-3"

static void two_containers_share_nothing_case_02(void **state)
{
    static const struct step steps[] = {
        { "a", "one", APP, 2, .available = FOUR, .answer = "dev-3 dev-2", .chosen = "dev-2 dev-3" },
        /* Asked also when all that is free is needed. */
        { "a", "two", APP, 2, .available = "dev-0 dev-1", .answer = "dev-1 dev-0", .chosen = "dev-0 dev-1" },
        { "b", "main", APP, 1, NONE_LEFT },
    };

    (void)state;
    scene(FOUR, true, steps, ARRAY_LEN(steps));
}

static void devices_of_init_containers_are_used_again_case_03(void **state)
{
    static const struct step steps[] = {
        { "a", "init-one", INIT, 2, .available = FOUR, .answer = "dev-3 dev-2", .chosen = "dev-2 dev-3" },
        { "a", "init-two", INIT, 1, .chosen = "dev-2" }, /* reuse suffices: not asked */
        { "a", "main", APP, 2, .chosen = "dev-2 dev-3" },
        { "a", "side", APP, 1, .available = "dev-0 dev-1", .answer = "dev-1", .chosen = "dev-1" },
        { "b", "main", APP, 1, .available = "dev-0", .answer = "dev-0", .chosen = "dev-0" },
        { "c", "main", APP, 1, NONE_LEFT },
    };

    (void)state;
    scene(FOUR, true, steps, ARRAY_LEN(steps));
}

static void a_sidecar_keeps_its_devices_case_04(void **state)
{
    static const struct step steps[] = {
        { "a", "sidecar", SIDECAR, 1, .available = FOUR, .answer = "dev-3", .chosen = "dev-3" },
        { "a", "prep", INIT, 1, .available = "dev-0 dev-1 dev-2", .answer = "dev-2", .chosen = "dev-2" },
        { "a", "main", APP, 1, .chosen = "dev-2" },
        { "b", "main", APP, 2, .available = "dev-0 dev-1", .answer = "dev-1 dev-0", .chosen = "dev-0 dev-1" },
        { "c", "main", APP, 1, NONE_LEFT },
    };

    (void)state;
    scene(FOUR, true, steps, ARRAY_LEN(steps));
}

static void a_sidecar_takes_from_an_init_container_case_45(void **state)
{
    static const struct step steps[] = {
        { "a", "prep", INIT, 2, .available = "dev-0 dev-1 dev-2", .answer = "dev-2 dev-1",
          .chosen = "dev-1 dev-2" },
        { "a", "sidecar", SIDECAR, 1, .chosen = "dev-1" },
        { "a", "main", APP, 1, .chosen = "dev-2" },
        { "b", "main", APP, 1, .available = "dev-0", .answer = "dev-0", .chosen = "dev-0" },
    };

    (void)state;
    scene("dev-0 dev-1 dev-2", true, steps, ARRAY_LEN(steps));
}

static void too_few_devices_are_an_error_with_both_numbers_case_05(void **state)
{
    static const struct step steps[] = {
        { "a", "main", APP, 3, .code = ERR_EXHAUSTED,
          .text = "requested number of devices unavailable for " DEV ". Requested: 3, Available: 2" },
        { "b", "init", INIT, 1, .chosen = "dev-0" },
        /* "Requested" is what is needed beside the reused ones. */
        { "b", "main", APP, 3, .code = ERR_EXHAUSTED,
          .text = "requested number of devices unavailable for " DEV ". Requested: 2, Available: 1" },
        { "d", "main", APP, 1, .chosen = "dev-1" },
        { "e", "main", APP, INT64_MAX, .code = ERR_EXHAUSTED,
          .text = "requested number of devices unavailable for " DEV
                  ". Requested: 9223372036854775807, Available: 0" },
    };

    (void)state;
    scene("dev-0 dev-1", false, steps, ARRAY_LEN(steps));
}

static void reused_devices_must_be_in_the_preferred_ones_case_12(void **state)
{
    static const struct step steps[] = {
        { "a", "main", APP, 2, .available = "dev-0 dev-1 dev-2 dev-3 dev-4", .answer = "dev-4 dev-3",
          .chosen = "dev-3 dev-4" },
        { "b", "init", INIT, 1, .available = "dev-0 dev-1 dev-2", .answer = "dev-2", .chosen = "dev-2" },
        { "b", "main", APP, 2, .available = "dev-0 dev-1 dev-2", .must = "dev-2", .answer = "dev-2 dev-1",
          .chosen = "dev-1 dev-2" },
    };

    (void)state;
    scene("dev-0 dev-1 dev-2 dev-3 dev-4", true, steps, ARRAY_LEN(steps));
}

static void aligned_devices_are_taken_first_cases_31_32_34(void **state)
{
    static const struct step best_effort[] = {
        { "a", "main", APP, 1, "0", .available = "dev-0 dev-2", .answer = "dev-2", .chosen = "dev-2@0" },
        { "b", "main", APP, 2, "1", .chosen = "dev-1@1 dev-3@1" }, /* just enough: not asked */
        { "d", "main", APP, 1, "0", .chosen = "dev-0@0" },
    };
    static const struct step pod_scope[] = {
        { "a", "one", APP, 1, "0", .available = "dev-0 dev-2 dev-4", .answer = "dev-4", .chosen = "dev-4@0" },
        { "a", "two", APP, 1, "0", .available = "dev-0 dev-2", .answer = "dev-2", .chosen = "dev-2@0" },
        { "d", "one", APP, 2, "1", .available = "dev-1 dev-3 dev-5", .answer = "dev-5 dev-3",
          .chosen = "dev-3@1 dev-5@1" },
        { "d", "two", APP, 1, "1", .chosen = "dev-1@1" },
    };

    (void)state;
    scene("dev-0@0 dev-1@1 dev-2@0 dev-3@1", true, best_effort, ARRAY_LEN(best_effort));
    scene("dev-0@0 dev-1@1 dev-2@0 dev-3@1 dev-4@0 dev-5@1", true, pod_scope, ARRAY_LEN(pod_scope));
}

static void unaligned_devices_come_before_those_without_topology(void **state)
{
    static const struct step asked[] = {
        /* Too few are aligned: all of them are taken, and have to be in the answer. */
        { "a", "main", APP, 2, "1", .available = "dev-0 dev-1 dev-2 dev-3", .must = "dev-1",
          .answer = "dev-1 dev-0", .chosen = "dev-0 dev-1@1" },
    };
    static const struct step not_asked[] = {
        { "a", "main", APP, 2, "1", .chosen = "dev-1@1 dev-2@0" },
        { "b", "main", APP, 1, "1", .chosen = "dev-3@0,64" },
        { "c", "main", APP, 1, "1", .chosen = "dev-0" },
    };

    (void)state;
    scene("dev-0 dev-1@1 dev-2@0 dev-3@0,64", true, asked, ARRAY_LEN(asked));
    scene("dev-0 dev-1@1 dev-2@0 dev-3@0,64", false, not_asked, ARRAY_LEN(not_asked));
}

static void a_hint_means_nothing_to_devices_without_topology_cases_33_36(void **state)
{
    static const struct step steps[] = {
        { "d", "main", APP, 1, "0", .available = "gpu0 gpu1", .answer = "gpu1", .chosen = "gpu1" },
    };
    static const struct step no_hint[] = {
        { "a", "main", APP, 2, .available = "dev-0 dev-1 dev-2", .answer = "dev-2 dev-1",
          .chosen = "dev-1@1 dev-2@0" }, /* case 35 */
    };

    (void)state;
    scene("gpu0 gpu1", true, steps, ARRAY_LEN(steps));
    scene("dev-0@0 dev-1@1 dev-2@0", true, no_hint, ARRAY_LEN(no_hint));
}

static void a_device_on_several_nodes_is_aligned_to_each(void **state)
{
    static const struct step steps[] = {
        { "a", "main", APP, 1, "1", .chosen = "dev-1@0,1" },
        { "b", "main", APP, 1, "0", .chosen = "dev-2@0,1" },
        { "c", "main", APP, 1, "0,1", .chosen = "dev-0@-7,2,64" },
    };

    (void)state;
    scene("dev-0@-7,2,64 dev-1@0,1 dev-2@0,1", false, steps, ARRAY_LEN(steps));
}

static void a_plugins_answer_is_a_preference_only(void **state)
{
    static const struct step steps[] = {
        { "a", "main", APP, 1, .available = FOUR, .answer = NULL, .chosen = "dev-0" }, /* the call failed */
        { "b", "main", APP, 1, .available = "dev-1 dev-2 dev-3", .answer = "", .chosen = "dev-1" },
        /* One that another pod holds, one that does not exist, one twice. */
        { "c", "main", APP, 1, .available = "dev-2 dev-3", .answer = "dev-0 dev-9 \xff dev-3 dev-3 dev-2",
          .chosen = "dev-3" },
        { "d", "main", APP, 1, .available = "dev-2", .answer = "dev-3", .chosen = "dev-2" },
    };
    static const struct step too_many[] = {
        { "a", "main", APP, 2, .available = FOUR, .answer = "dev-3 dev-1 dev-0 dev-2",
          .chosen = "dev-1 dev-3" },
    };
    static const struct step beside_the_aligned[] = {
        { "a", "main", APP, 1, "0", .available = "dev-0 dev-2", .answer = "dev-1 dev-2",
          .chosen = "dev-2@0" },
    };
    static const struct step too_few[] = {
        { "a", "main", APP, 3, .available = FOUR, .answer = "dev-3", .chosen = "dev-0 dev-1 dev-3" },
    };

    (void)state;
    scene(FOUR, true, steps, ARRAY_LEN(steps));
    scene(FOUR, true, too_many, ARRAY_LEN(too_many));
    scene("dev-0@0 dev-1@1 dev-2@0 dev-3@1", true, beside_the_aligned, ARRAY_LEN(beside_the_aligned));
    scene(FOUR, true, too_few, ARRAY_LEN(too_few));
}

static void ids_are_taken_in_natural_order(void **state)
{
    static const struct step steps[] = {
        { "a", "main", APP, 2, .chosen = "dev-1 dev-2" },
        { "b", "main", APP, 2, .chosen = "dev-9 dev-10" },
        { "c", "main", APP, 1, .chosen = "gpu-0" },
    };

    (void)state;
    scene("dev-1 dev-2 dev-9 dev-10 gpu-0 gpu-1", false, steps, ARRAY_LEN(steps));
}

static void unhealthy_devices_are_not_chosen_cases_07_08_42(void **state)
{
    static const struct step steps[] = {
        { "a", "main", APP, 1, .chosen = "dev-1" },
        { "b", "main", APP, 1, NONE_LEFT },
    };
    static const struct step all[] = {
        { "a", "main", APP, 1, .code = ERR_UNAVAILABLE,
          .text = "no healthy devices present; cannot allocate unhealthy devices " DEV },
        { "b", "main", APP, 0, .code = ERR_UNAVAILABLE,
          .text = "no healthy devices present; cannot allocate unhealthy devices " DEV },
    };
    static const struct step nothing[] = { { "a", "main", APP, 0, .chosen = "" } };

    (void)state;
    scene("dev-0! dev-1", false, steps, ARRAY_LEN(steps));
    scene("dev-0! dev-1!", false, all, ARRAY_LEN(all));
    scene("", true, all, ARRAY_LEN(all));
    scene("dev-0", true, nothing, ARRAY_LEN(nothing));
}

static void a_resource_that_was_forgotten_is_unregistered_case_26(void **state)
{
    const struct dp_wish w = { .pod_uid = "a", .container = "main", .count = 1 };
    struct dp_holdings *h = help_new();
    struct dp_choice c = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(dp_choose_begin(NULL, DEV, h, &w, &c, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "cannot allocate unregistered device " DEV);
    dp_holdings_free(h);
}

static void what_a_container_holds_is_kept(void **state)
{
    struct dp_wish w = { .pod_uid = "a", .container = "main", .count = 2 };
    struct dp_choice c = { 0 };
    struct err e = { 0 };
    struct scene s;

    (void)state;
    scene_open(&s, "dev-0@0 dev-1@1 dev-2", true);
    help_holds(s.h, "a", "main", "dev-2 dev-1@1");
    assert_int_equal(dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e), ERR_OK);
    assert_true(c.kept);
    assert_false(c.ask);
    assert_string_equal(help_text(c.devices, c.n), "dev-1@1 dev-2");
    w.count = 3;
    assert_int_equal(dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e), ERR_PRECONDITION);
    assert_string_equal(e.text,
                        "pod \"a\" container \"main\" changed request for resource \"" DEV "\" from 2 to 3");
    assert_int_equal(c.n, 2); /* as it was */
    w.count = 2;
    scene_list(&s, "dev-0 dev-1! dev-2");
    assert_int_equal(dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e), ERR_UNAVAILABLE);
    assert_string_equal(e.text, "previously allocated devices are no longer healthy; cannot allocate "
                                "unhealthy devices " DEV);
    scene_list(&s, "dev-0 dev-1");
    assert_int_equal(dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e), ERR_UNAVAILABLE);
    dp_choice_done(&c);
    scene_close(&s);
}

static void reuse_does_not_ask_for_health_nor_whether_the_device_still_exists(void **state)
{
    const char *reusable[] = { "dev-9", "dev-0", "dev-5", "dev-9" };
    struct dp_wish w = { "a", "main", 3, reusable, ARRAY_LEN(reusable), false, 0 };
    struct dp_choice c = { 0 };
    struct err e = { 0 };
    char text[256];
    struct scene s;

    (void)state;
    scene_open(&s, "dev-0 dev-5 dev-9@3", true);
    help_holds(s.h, "a", "init", "dev-5 dev-9@3");
    help_holds(s.h, "b", "main", "dev-0"); /* not this pod's, whatever the caller says */
    scene_list(&s, "dev-0 dev-1 dev-5! dev-10");
    assert_int_equal(dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e), ERR_OK);
    assert_true(c.ask);
    assert_string_equal(scene_ids(text, sizeof(text), c.available, c.n_available),
                        "dev-1 dev-5 dev-9 dev-10");
    assert_string_equal(scene_ids(text, sizeof(text), c.must, c.n_must), "dev-5 dev-9");
    assert_int_equal(dp_choose_end(&s.r, DEV, s.h, &w, (const char *[]){ "dev-10" }, 1, &c, &e), ERR_OK);
    assert_string_equal(help_text(c.devices, c.n), "dev-5 dev-9@3 dev-10");
    dp_choice_done(&c);
    scene_close(&s);
}

static void what_changed_while_the_plugin_was_asked_is_seen(void **state)
{
    const struct dp_wish w = { .pod_uid = "a", .container = "main", .count = 1 };
    const char *preferred[] = { "dev-1", "dev-2" };
    struct dp_choice c = { 0 };
    struct err e = { 0 };
    struct scene s;

    (void)state;
    scene_open(&s, "dev-0 dev-1 dev-2", true);
    assert_int_equal(dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e), ERR_OK);
    assert_int_equal(c.n_available, 3);
    help_holds(s.h, "b", "main", "dev-1");
    assert_int_equal(dp_choose_end(&s.r, DEV, s.h, &w, preferred, 2, &c, &e), ERR_OK);
    assert_string_equal(help_text(c.devices, c.n), "dev-2");

    assert_int_equal(dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e), ERR_OK);
    scene_list(&s, "dev-0 dev-1 dev-2!");
    assert_int_equal(dp_choose_end(&s.r, DEV, s.h, &w, preferred, 2, &c, &e), ERR_OK);
    assert_string_equal(help_text(c.devices, c.n), "dev-0");

    assert_int_equal(dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e), ERR_OK);
    help_holds(s.h, "b", "main", "dev-0 dev-1");
    assert_int_equal(dp_choose_end(&s.r, DEV, s.h, &w, preferred, 2, &c, &e), ERR_EXHAUSTED);
    assert_true(c.ask); /* as it was */
    assert_int_equal(dp_choose_end(NULL, DEV, s.h, &w, preferred, 2, &c, &e), ERR_NOT_FOUND);
    dp_choice_done(&c);
    scene_close(&s);
}

static void reusable_is_what_init_containers_had_and_nobody_took(void **state)
{
    static const struct dp_predecessor before[] = {
        { "init-one", true },   { "sidecar", false }, { "init-two", true },
        { "not-asking", true }, { "main", false },
    };
    static const char *const after[] = {
        "", "dev-1 dev-2 dev-10", "dev-2 dev-10", "dev-0 dev-2 dev-10", "dev-0 dev-2 dev-10", "dev-0"
    };
    struct dp_holdings *h = help_new();
    struct strs ids = { 0 };
    struct err e = { 0 };
    char text[256];

    (void)state;
    help_holds(h, "a", "init-one", "dev-10 dev-2 dev-1");
    help_holds(h, "a", "sidecar", "dev-1 dev-3");
    help_holds(h, "a", "init-two", "dev-0 dev-2");
    help_holds(h, "a", "main", "dev-2 dev-10");
    help_holds(h, "b", "init-one", "dev-7");
    assert_int_equal(help_put(h, "a", "init-one", "example.com/net", "net-0", &e), ERR_OK);
    for (size_t n = 0; n < ARRAY_LEN(after); n++) {
        assert_int_equal(dp_reusable(h, "a", DEV, before, n, &ids, &e), ERR_OK);
        assert_string_equal(scene_ids(text, sizeof(text), strs_list(&ids), ids.n), after[n]);
    }
    strs_done(&ids);
    dp_holdings_free(h);
}

static void free_devices_are_healthy_and_nobodys(void **state)
{
    struct scene s;

    (void)state;
    scene_open(&s, "dev-0 dev-1! dev-2 dev-3", false);
    assert_int_equal(dp_free_count(&s.r, s.h), 3);
    help_holds(s.h, "a", "init", "dev-0 dev-1 gone");
    help_holds(s.h, "a", "main", "dev-0");
    assert_int_equal(dp_free_count(&s.r, s.h), 2);
    scene_close(&s);
}

static void without_memory_nothing_is_chosen(void **state)
{
    const char *reusable[] = { "dev-0", "dev-7" };
    const struct dp_wish w = { "a", "main", 4, reusable, 2, true, 1 };
    const struct dp_predecessor before = { "init", true };
    struct err e = { 0 };
    bool ok = false;
    struct scene s;

    (void)state;
    scene_open(&s, "dev-0@0 dev-1@1 dev-2@0 dev-3@1", true);
    help_holds(s.h, "a", "init", "dev-0 dev-7@1");
    NOMEM_EACH(ok, {
        struct strs ids = { 0 };
        struct dp_choice c = { 0 };

        ok = dp_reusable(s.h, "a", DEV, &before, 1, &ids, &e) == ERR_OK &&
             dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e) == ERR_OK;
        if (ok && dp_choose_end(&s.r, DEV, s.h, &w, NULL, 0, &c, &e) != ERR_OK)
            ok = false;
        if (!ok)
            assert_true(err_is_shortage(&e) && c.n == 0);
        else
            assert_int_equal(c.n, 4);
        dp_choice_done(&c);
        strs_done(&ids);
    });
    scene_close(&s);
}

/* Of processor time: other tests run beside this one. */
static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* 110 pods with two containers, of a resource with as many devices as one may have.  The limit is far above
 * what it takes (CHOOSE_TIMES=1 prints it): it catches what grows with the square of the devices. */
static void a_full_node_chooses_from_many_devices_in_no_time(void **state)
{
    struct dp_device *list = calloc(DP_DEVICES_MAX, sizeof(*list));
    static const int64_t nodes[] = { 0, 1 };
    char *ids = malloc((size_t)DP_DEVICES_MAX * 16);

    (void)state;
    for (size_t i = 0; i < DP_DEVICES_MAX; i++) {
        snprintf(ids + 16 * i, 16, "dev-%zu", i);
        list[i] = (struct dp_device){ ids + 16 * i, true, &nodes[i / 16 % 2], 1 };
    }
    for (int mode = 0; mode < 3; mode++) {
        struct scene s;
        double begin, all = 0, most = 0;

        scene_open(&s, "", mode == 2);
        s.r.devices = list;
        s.r.n_devices = s.r.n_healthy = DP_DEVICES_MAX;
        for (int i = 0; i < 220; i++) {
            struct dp_wish w = { .container = i % 2 != 0 ? "one" : "two",
                                 .count = 2,
                                 .has_hint = mode == 1,
                                 .numa = 1ull << (i % 2) };
            struct dp_choice c = { 0 };
            struct err e = { 0 };
            char pod[16];

            snprintf(pod, sizeof(pod), "pod-%d", i / 2);
            w.pod_uid = pod;
            begin = seconds();
            assert_int_equal(dp_choose_begin(&s.r, DEV, s.h, &w, &c, &e), ERR_OK);
            if (c.ask)
                assert_int_equal(dp_choose_end(&s.r, DEV, s.h, &w, NULL, 0, &c, &e), ERR_OK);
            assert_int_equal(c.n, 2);
            assert_int_equal(dp_holdings_put(s.h,
                                             &(struct dp_holding){ pod, w.container, DEV, c.devices, c.n,
                                                                   (const uint8_t *)"", 0 },
                                             &e),
                             ERR_OK);
            begin = seconds() - begin;
            all += begin;
            most = begin > most ? begin : most;
            dp_choice_done(&c);
        }
        if (getenv("CHOOSE_TIMES") != NULL)
            printf("%s: mean %.0f us, at most %.0f us\n",
                   (const char *[]){ "plain", "hint", "preferred" }[mode], all / 220 * 1e6, most * 1e6);
        assert_true(all < 10);
        scene_close(&s);
    }
    free(ids);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_containers_share_nothing_case_02),
        cmocka_unit_test(devices_of_init_containers_are_used_again_case_03),
        cmocka_unit_test(a_sidecar_keeps_its_devices_case_04),
        cmocka_unit_test(a_sidecar_takes_from_an_init_container_case_45),
        cmocka_unit_test(too_few_devices_are_an_error_with_both_numbers_case_05),
        cmocka_unit_test(reused_devices_must_be_in_the_preferred_ones_case_12),
        cmocka_unit_test(aligned_devices_are_taken_first_cases_31_32_34),
        cmocka_unit_test(unaligned_devices_come_before_those_without_topology),
        cmocka_unit_test(a_hint_means_nothing_to_devices_without_topology_cases_33_36),
        cmocka_unit_test(a_device_on_several_nodes_is_aligned_to_each),
        cmocka_unit_test(a_plugins_answer_is_a_preference_only),
        cmocka_unit_test(ids_are_taken_in_natural_order),
        cmocka_unit_test(unhealthy_devices_are_not_chosen_cases_07_08_42),
        cmocka_unit_test(a_resource_that_was_forgotten_is_unregistered_case_26),
        cmocka_unit_test(what_a_container_holds_is_kept),
        cmocka_unit_test(reuse_does_not_ask_for_health_nor_whether_the_device_still_exists),
        cmocka_unit_test(what_changed_while_the_plugin_was_asked_is_seen),
        cmocka_unit_test(reusable_is_what_init_containers_had_and_nobody_took),
        cmocka_unit_test(free_devices_are_healthy_and_nobodys),
        cmocka_unit_test(a_full_node_chooses_from_many_devices_in_no_time),
    };
    const struct CMUnitTest nomem[] = { cmocka_unit_test(without_memory_nothing_is_chosen) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed + NOMEM_RUN(nomem);
}
