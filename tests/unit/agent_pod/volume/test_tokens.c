/* SPDX-License-Identifier: Apache-2.0 */
/* Service account tokens: what is asked for, the file's owner and mode, when it is asked for again. */
#include "agent/pod/volume/internal.h"
#include "agent/pod/volume/tokens.h"
#include "tests/unit/agent_pod/world.h"

#include "agent/pod/volume/payload.h"
#include "tests/unit/script_clock.h"

#define SECOND SCRIPT_SECOND

struct server { /* gives out what it is told to */
    const char *text;
    int64_t expires_ns;
    enum err_code code;
    char asked[400];
    unsigned calls;
};

static enum err_code get(void *arg, const struct pod_token_request *r, struct pod_token *ret, struct err *e)
{
    struct server *s = arg;

    s->calls++;
    snprintf(s->asked, sizeof(s->asked), "%s/%s for %s (%s) at %s, %lld s", r->namespace_, r->service_account,
             r->pod_name, r->pod_uid, r->audience != NULL ? r->audience : "-",
             (long long)r->expiration_seconds);
    if (s->code != ERR_OK)
        return err_set(e, s->code, "the server says no");
    *ret = (struct pod_token){ .text = s->text, .size = strlen(s->text), .expires_ns = s->expires_ns };
    return ERR_OK;
}

/* A pod of an API server with one projected volume whose only source is a token. */
static struct pod *with_token(struct world *w, const char *spec)
{
    str_auto text =
        str_printf("volumes: [{name: v, projected: {sources: [{configMap: {name: cm}}]}}], %s", spec);
    struct pod *p = world_pod(w, "p", text);
    struct api_payload_source *s = &p->api->spec.volumes[0].sources[0];
    static char path[] = "token", audience[] = "vault";

    p->api->origin = API_FROM_SERVER;
    s->kind = API_SRC_TOKEN;
    s->name = NULL;
    s->path = path;
    s->token_audience = audience;
    s->token_expiration_seconds = 3600;
    return p;
}

#define PLAIN "containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /v}]}]"

static void without_a_server_the_volume_says_so(void **state)
{
    struct world *w = *state;
    struct pod *p = with_token(w, PLAIN);
    struct arena a = { 0 };
    struct payload made;
    struct err e = { 0 };

    assert_int_equal(payload_build(p, &p->api->spec.volumes[0], &a, &made, &e), ERR_PRECONDITION);
    assert_string_equal(
        e.text, "failed to fetch token: service account tokens need an API server, and there is none");
    arena_done(&a);
}

static void a_pod_of_the_folder_of_a_lone_node_has_no_token(void **state)
{
    struct world *w = *state;
    struct pod *p = with_token(w, PLAIN);
    struct arena a = { 0 };
    struct payload made;
    struct err e = { 0 };

    p->api->origin = API_FROM_FOLDER;
    assert_int_equal(payload_build(p, &p->api->spec.volumes[0], &a, &made, &e), ERR_OK);
    assert_int_equal(made.n_files, 0);
    arena_done(&a);
}

static void a_token_is_asked_for_with_all_that_it_is_bound_to(void **state)
{
    struct world *w = *state;
    struct server s = { .text = "t0ken", .expires_ns = clock_wall_ns() + 3600 * SECOND };
    const struct pod_tokens tokens = { .get = get, .arg = &s };
    struct pod *p = with_token(w, PLAIN);
    struct arena a = { 0 };
    struct payload made;
    struct err e = { 0 };
    char asked[400];

    w->node.o.tokens = &tokens;
    assert_int_equal(payload_build(p, &p->api->spec.volumes[0], &a, &made, &e), ERR_OK);
    snprintf(asked, sizeof(asked), "default/default for p (%s) at vault, 3600 s", p->uid);
    assert_string_equal(s.asked, asked);
    assert_int_equal(made.n_files, 1);
    assert_string_equal(made.files[0].path, "token");
    assert_memory_equal(made.files[0].data, "t0ken", 5);
    assert_int_equal(made.files[0].mode, 0644);
    assert_false(made.files[0].has_owner);
    assert_in_range(clock_boot_left_ns(made.renew_at), 2871 * SECOND, 2880 * SECOND);
    arena_done(&a);

    s.code = ERR_PERMISSION;
    assert_int_equal(payload_build(p, &p->api->spec.volumes[0], &a, &made, &e), ERR_PERMISSION);
    assert_string_equal(e.text, "failed to fetch token: the server says no");
    arena_done(&a);
}

static void an_old_token_is_asked_for_again_but_not_all_the_time(void **state)
{
    struct world *w = *state;
    struct server s = { .text = "old", .expires_ns = clock_wall_ns() + SECOND };
    const struct pod_tokens tokens = { .get = get, .arg = &s };
    struct pod *p = with_token(w, PLAIN);
    struct arena a = { 0 };
    struct payload made;
    struct err e = { 0 };

    w->node.o.tokens = &tokens;
    assert_int_equal(payload_build(p, &p->api->spec.volumes[0], &a, &made, &e), ERR_OK);
    assert_int_equal(clock_boot_left_ns(made.renew_at), 60 * SECOND);
    arena_done(&a);
}

static void is_owned(struct world *w, const char *spec, bool owned, uid_t owner, mode_t mode)
{
    struct server s = { .text = "t", .expires_ns = clock_wall_ns() + 3600 * SECOND };
    const struct pod_tokens tokens = { .get = get, .arg = &s };
    struct pod *p = with_token(w, spec);
    struct arena a = { 0 };
    struct payload made;
    struct err e = { 0 };

    w->node.o.tokens = &tokens;
    assert_int_equal(payload_build(p, &p->api->spec.volumes[0], &a, &made, &e), ERR_OK);
    assert_int_equal(made.files[0].has_owner, owned);
    if (owned)
        assert_int_equal(made.files[0].owner, owner);
    assert_int_equal(made.files[0].mode, mode);
    arena_done(&a);
    world_forget(w);
}

static void the_one_user_of_all_containers_owns_it_alone(void **state)
{
    struct world *w = *state;

    is_owned(w, PLAIN, false, 0, 0644);
    is_owned(w, "securityContext: {fsGroup: 7}, " PLAIN, false, 0,
             0600); /* the group is added by the writer */
    is_owned(w, "securityContext: {runAsUser: 1000}, " PLAIN, true, 1000, 0600);
    is_owned(w,
             "securityContext: {runAsUser: 1000}, initContainers: [{name: i, image: x, securityContext: "
             "{runAsUser: 0}}], " PLAIN,
             false, 0, 0644);
    is_owned(w,
             "containers: [{name: a, image: x, securityContext: {runAsUser: 5}}, {name: b, image: x, "
             "securityContext: {runAsUser: 5}}]",
             true, 5, 0600);
    is_owned(w, "containers: [{name: a, image: x, securityContext: {runAsUser: 5}}, {name: b, image: x}]",
             false, 0, 0644);
}

/* Until a token of `life_s` is asked for again that the server gave out `ago_s` before now. */
static int64_t renewed_in_s(int64_t life_s, int64_t ago_s, unsigned jitter_s)
{
    int64_t expires_ns = clock_wall_ns() + (life_s - ago_s) * SECOND;

    return clock_boot_left_ns(pod_token_renew_at(expires_ns, life_s, jitter_s)) / SECOND;
}

static void a_fifth_before_its_end_or_after_a_day_it_is_renewed(void **state)
{
    const int64_t day = 24 * 3600;

    (void)state;
    assert_int_equal(renewed_in_s(600, 0, 0), 480);
    assert_int_equal(renewed_in_s(600, 0, 9), 471);
    assert_int_equal(renewed_in_s(600, 100, 0), 380);
    assert_int_equal(renewed_in_s(30 * day, 0, 0), day);
    assert_int_equal(renewed_in_s(INT64_C(1) << 32, 0, 0), day);
}

static void a_wall_clock_that_is_behind_holds_no_renewal(void **state)
{
    (void)state;
    assert_int_equal(renewed_in_s(600, -56 * 365 * INT64_C(86400), 0), 480); /* 1970 */
    assert_int_equal(renewed_in_s(600, 3600, 0), 60);                        /* ahead: once a minute */
}

static void a_token_that_arrives_wakes_its_pod(void **state)
{
    struct world *w = *state;
    struct pod *p = with_token(w, PLAIN);

    worker_node(&w->node)->runner_active = true; /* nothing of it is to run here */
    volumes_of(p)->vols_retry_at = clock_boot_in_ms(60000);
    volumes_of(p)->payload_stale = false;
    node_token_changed(&w->node, "nobody's");
    assert_false(volumes_of(p)->payload_stale);
    node_token_changed(&w->node, p->uid);
    assert_true(volumes_of(p)->payload_stale);
    assert_false(clock_boot_is_set(volumes_of(p)->vols_retry_at));
    assert_true(p->dirty_queued);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(without_a_server_the_volume_says_so),
        WORLD_TEST(a_pod_of_the_folder_of_a_lone_node_has_no_token),
        WORLD_TEST(a_token_is_asked_for_with_all_that_it_is_bound_to),
        WORLD_TEST(an_old_token_is_asked_for_again_but_not_all_the_time),
        WORLD_TEST(the_one_user_of_all_containers_owns_it_alone),
        WORLD_TEST(a_fifth_before_its_end_or_after_a_day_it_is_renewed),
        WORLD_TEST(a_wall_clock_that_is_behind_holds_no_renewal),
        WORLD_TEST(a_token_that_arrives_wakes_its_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
