/* SPDX-License-Identifier: Apache-2.0 */
/* When the sweep of reserved addresses is repeated, and what a repetition starts. */
#include "tests/unit/agent_pod/script_parts.h"
#include "tests/unit/base/failing.h"

#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/net_heal.h"
#include "agent/pod/sandbox/net_watch.h"

#define LOST "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static unsigned n_strays, n_lost; /* looks for strays, and what was handed to them */

void cni_strays_start(struct cni_strays *s, struct cni *c, const char *prefix, const char *ifname,
                      struct cni_stray_list *lost, op_done_fn done, void *owner)
{
    (void)s, (void)c, (void)prefix, (void)ifname, (void)done, (void)owner;
    n_strays++;
    n_lost += (unsigned)lost->n;
}

bool cni_has_network(const struct cni *c, const char *name)
{
    (void)c, (void)name;
    return true;
}

enum err_code cni_cached_ids(struct cni *c, struct strs *ret, struct err *e)
{
    (void)c, (void)ret, (void)e;
    return ERR_OK;
}

void cni_gc_start(struct cni_gc *g, struct cni *c, const char *const *living, const char *ifname,
                  op_done_fn done, void *owner)
{
    (void)g, (void)c, (void)living, (void)ifname, (void)done, (void)owner;
}

void net_watch_start(struct node *n)
{
    (void)n;
}

/* An entry of the only network: a file with this text, or a folder. */
static void put(const struct world *w, const char *name, const char *text /* NULL: a folder */)
{
    str_auto network = str_printf("%s/cni/networks/net", w->dir);
    str_auto path = str_printf("%s/%s", network, name);
    struct err e = { 0 };

    assert_int_equal(fs_mkdirs(network, 0755, &e), ERR_OK);
    if (text == NULL)
        assert_int_equal(mkdir(path, 0755), 0);
    else
        assert_int_equal(fs_replace_at(AT_FDCWD, path, text, strlen(text), 0644, false, &e), ERR_OK);
}

static bool is_retried(struct world *w)
{
    return uv_is_active((uv_handle_t *)&sandbox_node(&w->node)->heal.leases_timer);
}

static void begin(struct world *w)
{
    n_strays = n_lost = 0;
    net_heal_start(&w->node, false);
}

#define RETRIES_MAX 10 /* from 50 ms, doubled: far more than a test here needs */

/* False: they did not end. Afterwards there is none, or the loop would never end. */
static bool retries_end(struct world *w)
{
    bool over;

    for (unsigned i = 0; i < RETRIES_MAX && is_retried(w); i++)
        uv_run(&w->loop, UV_RUN_ONCE);
    over = !is_retried(w);
    uv_timer_stop(&sandbox_node(&w->node)->heal.leases_timer);
    return over;
}

static void what_no_retry_changes_is_reported_and_not_retried(void **state)
{
    struct world *w = *state;
    bool retried;

    put(w, "10.0.0.9", NULL);
    begin(w);
    retried = is_retried(w);
    uv_timer_stop(&sandbox_node(&w->node)->heal.leases_timer); /* or a failure would never end */
    assert_false(retried);
    assert_int_equal(n_strays, 1);
    assert_string_equal(sandbox_node(&w->node)->heal.leases_error,
                        "address 10.0.0.9 of network net: read 10.0.0.9: Is a directory");
}

static void a_retry_that_finds_nothing_lost_looks_for_no_strays(void **state)
{
    struct world *w = *state;

    put(w, "10.0.0.2", "nobody\r\neth0");
    failing_arm("readdir", "", EIO, 2);
    begin(w);
    assert_true(is_retried(w));
    assert_true(retries_end(w));
    assert_int_equal(n_strays, 1);
    assert_string_equal(sandbox_node(&w->node)->heal.leases_error, "");
}

static void what_a_retry_finds_lost_is_handed_on(void **state)
{
    struct world *w = *state;

    put(w, "10.0.0.2", LOST "\r\neth0");
    failing_arm("readdir", "", EIO, 1);
    begin(w);
    assert_int_equal(n_lost, 0);
    assert_true(retries_end(w));
    assert_int_equal(n_strays, 2);
    assert_int_equal(n_lost, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(what_no_retry_changes_is_reported_and_not_retried),
        WORLD_TEST(a_retry_that_finds_nothing_lost_looks_for_no_strays),
        WORLD_TEST(what_a_retry_finds_lost_is_handed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
