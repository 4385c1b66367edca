/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces that pods renamed, moved or removed: what of an attachment is still there, and goes with its
 * DEL. */
#include "oracle_run.h"
#include "rootns.h"

#include "cni/host/netns.h"
#include "cni/links.h"

#define MAC "0a:58:0a:00:00:09"
#define RESULT(interfaces)                                                                                   \
    "out {\"cniVersion\":\"1.0.0\",\"interfaces\":[" interfaces "],\"ips\":[{\"address\":\"10.0.0.9/"        \
    "24\"}]}\n"
#define BRIDGE "{\"name\":\"crbr0\",\"mac\":\"0a:58:0a:00:00:01\"}"
#define HOST_END "{\"name\":\"crv0\",\"mac\":\"0a:58:0a:00:00:02\"}"
#define INSIDE "{\"name\":\"eth0\",\"mac\":\"0A:58:0A:00:00:09\",\"sandbox\":\"/n\"}"

static const char *why_not;

struct world {
    struct place *p;
    struct cni *c;
    char *dir, *net;
    struct cni_attachment pod;
    struct cni_links *links;
};

static int setup(void **state)
{
    if (place_make(state) != 0)
        return -1;
    if (why_not == NULL)
        mount_shared(*state);
    return 0;
}

/* A namespace, and an attachment whose plugins gave `result`, which is true by `commands` ("$N": inside). */
static void make(struct world *w, struct place *p, const char *result, const char *commands)
{
    struct netns_spec spec = { .net = true };
    struct ended d = { 0 };
    struct proc_call call;
    str_auto command = NULL;
    str_auto out = NULL;
    struct err e;

    *w = (struct world){ .p = p };
    w->dir = strdup(in_place(p, "ns/pod"));
    w->net = strdup(in_place(p, "ns/pod/net"));
    w->links = calloc(1, sizeof(*w->links));
    spec.dir = w->dir;
    netns_create_start(&call, &spec, -1, NULL, &p->loop, on_ended, &d);
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_OK);
    command =
        str_printf("NET=%s; N=\"nsenter --net=$NET\"; ip link add crbr0 type bridge; %s", w->net, commands);
    out = sh(command);
    one_plugin(p, "1.0.0", "");
    oracle_tell(p, "main", "ADD", result);
    w->c = open_cni(p);
    w->pod = (struct cni_attachment){ .container_id = ID, .netns = w->net, .ifname = "eth0" };
    e = run_one(p, w->c, cni_add_start, &w->pod);
    if (e.code != ERR_OK)
        fail_msg("%s", e.text);
}

static void unmake(struct world *w)
{
    struct err e = run_one(w->p, w->c, cni_del_start, &w->pod);

    if (e.code != ERR_OK)
        fail_msg("%s", e.text);
    cni_close(w->c);
    assert_int_equal(netns_remove(w->dir, &e), ERR_OK);
    free(sh("for l in crbr0 crv0 crdummy; do ip link del $l 2>/dev/null; done"));
    free(w->dir);
    free(w->net);
    free(w->links);
}

static void in_pod(const struct world *w, const char *what)
{
    str_auto command = str_printf("nsenter --net=%s %s", w->net, what);

    free(sh(command));
}

static bool lives(struct world *w)
{
    struct err e = { 0 };

    if (cni_links_read(w->net, w->links, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_null(cni_links_find(w->links, "eth0"));
    return presence_of(cni_look_interface(w->c, ID, "eth0", w->links, &e)) == PRESENCE_PRESENT;
}

#define VETH                                                                                                 \
    "ip link add crv0 type veth peer name crv1; ip link set crv0 master crbr0; ip link set crv1 netns $NET " \
    "name eth0"

static void an_interface_that_was_renamed_is_not_gone(void **state)
{
    struct world w;

    if (why_not != NULL)
        SKIP(why_not);
    make(&w, *state, RESULT(BRIDGE "," HOST_END "," INSIDE), VETH);
    in_pod(&w, "ip link set eth0 name other");
    assert_true(lives(&w));
    in_pod(&w, "ip link del other");
    assert_false(lives(&w));
    unmake(&w);

    /* Of one without an end here its address tells, in any case. */
    make(&w, *state, RESULT(BRIDGE "," INSIDE), "$N ip link add other address " MAC " type bridge");
    assert_true(lives(&w));
    in_pod(&w, "ip link del other");
    assert_false(lives(&w));
    unmake(&w);
}

static void an_interface_that_was_moved_away_goes_with_the_del(void **state)
{
    struct world w;
    str_auto command = NULL;
    str_auto out = NULL;

    if (why_not != NULL)
        SKIP(why_not);
    make(&w, *state, RESULT(BRIDGE "," HOST_END "," INSIDE), VETH "; ip link add crdummy type bridge");
    command =
        str_printf("nsenter --net=%s ip link set eth0 netns $$ name crmoved", w.net); /* to us: it stays */
    out = sh(command);
    assert_true(nl_link_exists("crmoved"));
    assert_true(lives(&w));
    unmake(&w);
    assert_false(nl_link_exists("crmoved"));
    assert_false(nl_link_exists("crv0"));
}

static void what_is_no_end_or_others_name_stays(void **state)
{
    struct cni_attachment other;
    struct world w;
    struct err e;

    if (why_not != NULL)
        SKIP(why_not);
    make(&w, *state, RESULT(BRIDGE ",{\"name\":\"crdummy\"}," HOST_END "," INSIDE),
         VETH "; ip link add crdummy type bridge");
    other = w.pod;
    other.container_id = "other";
    e = run_one(w.p, w.c, cni_add_start, &other);
    assert_int_equal(e.code, ERR_OK);
    in_pod(&w, "ip link set eth0 name renamed");
    e = run_one(w.p, w.c, cni_del_start, &w.pod);
    assert_int_equal(e.code, ERR_OK);
    assert_true(nl_link_exists("crbr0") && nl_link_exists("crdummy") && nl_link_exists("crv0"));
    e = run_one(w.p, w.c, cni_del_start, &other);
    assert_int_equal(e.code, ERR_OK);
    assert_true(nl_link_exists("crbr0") && nl_link_exists("crdummy"));
    assert_false(nl_link_exists("crv0"));
    unmake(&w);
}

int main(int argc, char **argv)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(an_interface_that_was_renamed_is_not_gone),
        TEST(an_interface_that_was_moved_away_goes_with_the_del),
        TEST(what_is_no_end_or_others_name_stays),
    };

    if (oracle_is_called())
        return oracle_main(argc, argv);
    why_not = rootns_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
