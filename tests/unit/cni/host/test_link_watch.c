/* SPDX-License-Identifier: Apache-2.0 */
/* Needs root; in network namespaces of its own. */
#include "tests/unit/cni/rootns.h"

#include "cni/host/link_watch.h"
#include "cni/host/netns.h"
#include "cni/links.h"

static const char *why_not;

struct told {
    int calls;
    int32_t last;
    bool lost;
};

static void on_gone(void *arg, int32_t nsid)
{
    struct told *t = arg;

    t->calls++;
    t->last = nsid;
    t->lost = t->lost || nsid == CNI_NSID_ANY;
}

static bool was_told(void *arg)
{
    return ((struct told *)arg)->calls > 0;
}

static void in_netns(const struct place *p, const char *name, const char *command)
{
    str_auto text = str_printf("nsenter --net=%s/ns/%s/net %s 2>&1", p->dir, name, command);
    str_auto out = sh(text);

    if (out[0] != '\0')
        fail_msg("%s: %s", text, out);
}

static int32_t make(struct place *p, const char *name)
{
    str_auto dir = str_printf("%s/ns/%s", p->dir, name);
    str_auto path = str_printf("%s/ns/%s/net", p->dir, name);
    struct netns_spec spec = { .dir = dir, .net = true };
    struct ended d = { 0 };
    struct proc_call call;
    struct err e = { 0 };
    int32_t id = -1, again = -1;

    netns_create_start(&call, &spec, -1, NULL, &p->loop, on_ended, &d);
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_OK);
    assert_int_equal(cni_links_nsid(path, &id, &e), ERR_OK);
    assert_int_equal(cni_links_nsid(path, &again, &e), ERR_OK);
    assert_true(id >= 0);
    assert_int_equal(id, again);
    return id;
}

static void what_goes_in_a_namespace_is_told_with_its_id(void **state)
{
    struct place *p = *state;
    struct cni_link_watch *w = NULL;
    struct told t = { 0 };
    struct err e = { 0 };
    int32_t a, b;

    if (why_not != NULL)
        SKIP(why_not);
    mount_shared(p);
    a = make(p, "a");
    b = make(p, "b");
    assert_int_not_equal(a, b);
    in_netns(p, "b", "ip link add x type bridge");
    if (cni_link_watch_open(&w, &p->loop, on_gone, &t, &e) != ERR_OK)
        fail_msg("%s", e.text);
    /* What comes, and what goes here, is not told; the order of events shows it. */
    free(sh("ip link add y type bridge; ip link del y"));
    in_netns(p, "a", "ip link add x type bridge");
    in_netns(p, "a", "ip addr add 10.0.0.1/24 dev x");
    in_netns(p, "b", "ip link del x");
    run_until(p, was_told, &t);
    assert_int_equal(t.last, b);
    t.calls = 0;
    in_netns(p, "a", "ip addr del 10.0.0.1/24 dev x");
    run_until(p, was_told, &t);
    assert_int_equal(t.last, a);
    cni_link_watch_close(w);
    assert_int_equal(netns_remove(in_place(p, "ns/a"), &e), ERR_OK);
    assert_int_equal(netns_remove(in_place(p, "ns/b"), &e), ERR_OK);
}

/* More than the socket's buffer holds. */
static void after_lost_messages_others_are_still_heard(void **state)
{
    struct place *p = *state;
    struct cni_link_watch *w = NULL;
    struct told t = { 0 };
    struct err e = { 0 };
    int32_t a;

    if (why_not != NULL)
        SKIP(why_not);
    mount_shared(p);
    a = make(p, "a");
    if (cni_link_watch_open(&w, &p->loop, on_gone, &t, &e) != ERR_OK)
        fail_msg("%s", e.text);
    in_netns(p, "a",
             "sh -c 'for i in $(seq 2000); do echo addr add 10.0.0.1/24 dev lo; echo addr del 10.0.0.1/24 "
             "dev lo; done | ip -batch -'");
    run_until(p, was_told, &t);
    for (int i = 0; i < 100; i++) /* all that arrived is read */
        uv_run(&p->loop, UV_RUN_NOWAIT);
    assert_true(t.lost);
    t = (struct told){ 0 };
    in_netns(p, "a", "ip addr add 10.0.0.1/24 dev lo");
    in_netns(p, "a", "ip addr del 10.0.0.1/24 dev lo");
    run_until(p, was_told, &t);
    assert_int_equal(t.last, a);
    cni_link_watch_close(w);
    assert_int_equal(netns_remove(in_place(p, "ns/a"), &e), ERR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_goes_in_a_namespace_is_told_with_its_id, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(after_lost_messages_others_are_still_heard, place_make, place_remove),
    };

    why_not = rootns_enter();
    if (why_not == NULL && system("command -v ip nsenter >/dev/null") != 0)
        why_not = "no ip or nsenter";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
