/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces of a network namespace, read from outside.  Needs root for the real ones. */
#include "rootns.h"

#include "cni/host/netns.h"
#include "cni/links.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

static const char *why_not;

static int setup(void **state)
{
    if (place_make(state) != 0)
        return -1;
    if (why_not == NULL)
        mount_shared(*state);
    return 0;
}

static void send_to(const char *address)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_int_equal(inet_pton(AF_INET, address, &to.sin_addr), 1);
    assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
    close(fd);
}

static void interfaces_are_read_with_addresses_and_counters(void **state)
{
    struct place *p = *state;
    struct netns_spec spec = { .net = true };
    struct cni_links *l = calloc(1, sizeof(*l));
    struct cni_result expected = { { "10.9.0.2", "fd09::2" }, 2 };
    const struct cni_link *eth = NULL;
    struct ended d = { 0 };
    struct proc_call call;
    struct err e = { 0 };
    str_auto dir = NULL;
    str_auto net = NULL;
    str_auto command = NULL;
    str_auto out = NULL;

    if (why_not != NULL) {
        free(l);
        SKIP(why_not);
    }
    dir = strdup(in_place(p, "ns/pod"));
    net = strdup(in_place(p, "ns/pod/net"));
    spec.dir = dir;
    netns_create_start(&call, &spec, -1, NULL, &p->loop, on_ended, &d);
    run_until_ended(p, &d);
    assert_int_equal(d.result.code, ERR_OK);
    assert_int_equal(cni_links_read(net, l, &e), ERR_OK);
    assert_int_equal(l->n, 1);
    assert_true(l->v[0].loopback && l->v[0].up);
    assert_int_equal(cni_links_check(l, "eth0", &expected, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "interface eth0 is gone");

    command = str_printf(
        "N='nsenter --net=%s'; ip link add crv0 mtu 1400 type veth peer name crv1; ip link set crv1 "
        "netns %s name eth0; ip addr add 10.9.0.1/24 dev crv0; ip link set crv0 up; $N ip addr add "
        "10.9.0.2/24 dev eth0; $N ip addr add fd09::2/64 dev eth0 nodad; $N ip link set eth0 up; "
        "ip neigh add 10.9.0.2 lladdr ff:ff:ff:ff:ff:ff dev crv0",
        net, net);
    out = sh(command);
    send_to("10.9.0.2");
    for (int i = 0; i < 5000; i++, usleep(1000)) { /* it arrives when the kernel has the time */
        e = (struct err){ 0 };
        if (cni_links_read(net, l, &e) != ERR_OK)
            fail_msg("%s", e.text);
        eth = cni_links_find(l, "eth0");
        assert_non_null(eth);
        if (eth->rx_packets > 0)
            break;
    }
    assert_true(eth->up && !eth->loopback);
    assert_int_equal(eth->mac[0] == '\0', false);
    assert_true(eth->rx_bytes > 0 && eth->rx_packets > 0);
    if (cni_links_check(l, "eth0", &expected, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(cni_links_read(net, l, &e), ERR_OK); /* again: the namespace has its id already */
    assert_int_equal(l->n, 2);
    assert_int_equal(cni_links_read_bare(net, l, &e), ERR_OK);
    assert_int_equal(l->n, 2);
    eth = cni_links_find(l, "eth0");
    assert_true(eth->rx_packets > 0 && eth->n_addresses == 0);

    free(take_ptr(&command));
    free(take_ptr(&out));
    command = str_printf("nsenter --net=%s ip addr del fd09::2/64 dev eth0", net);
    out = sh(command);
    assert_int_equal(cni_links_read(net, l, &e), ERR_OK);
    assert_int_equal(cni_links_check(l, "eth0", &expected, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "interface eth0 lost its address fd09::2");
    e = (struct err){ 0 };
    free(take_ptr(&command));
    free(take_ptr(&out));
    command = str_printf("nsenter --net=%s ip link set eth0 down", net);
    out = sh(command);
    assert_int_equal(cni_links_read(net, l, &e), ERR_OK);
    assert_int_equal(cni_links_check(l, "eth0", &expected, &e), ERR_PRECONDITION);
    assert_string_equal(e.text, "interface eth0 is down");
    free(l);
    e = (struct err){ 0 };
    assert_int_equal(netns_remove(dir, &e), ERR_OK);
}

static void what_is_no_namespace_is_said(void **state)
{
    struct place *p = *state;
    struct cni_links *l = calloc(1, sizeof(*l));
    struct err e = { 0 };

    assert_int_equal(cni_links_read(in_place(p, "nothing"), l, &e), ERR_NOT_FOUND);
    if (why_not == NULL) {
        put(p, "file", "x");
        e = (struct err){ 0 };
        assert_true(cni_links_read(in_place(p, "file"), l, &e) != ERR_OK);
        assert_non_null(strstr(e.text, "interfaces of "));
    }
    free(l);
}

static void messages_that_lie_about_their_length_are_passed_over(void **state)
{
    struct {
        struct nlmsghdr h;
        struct ifinfomsg m;
        struct rtattr a;
        char name[8];
    } message = { .h = { .nlmsg_len = sizeof(message), .nlmsg_type = RTM_NEWLINK },
                  .m = { .ifi_index = 3, .ifi_flags = 1 },
                  .a = { .rta_len = 4 + 5, .rta_type = IFLA_IFNAME },
                  .name = "eth0" };
    struct cni_links *l = calloc(1, sizeof(*l));

    (void)state;
    cni_links_parse(l, &message, sizeof(message));
    assert_int_equal(l->n, 1);
    assert_string_equal(l->v[0].name, "eth0");
    for (size_t n = 0; n < sizeof(message); n++) {
        l->n = 0;
        cni_links_parse(l, &message, n);
        assert_int_equal(l->n, 0);
    }
    message.a.rta_len = 400;
    cni_links_parse(l, &message, sizeof(message));
    message.a.rta_len = 1;
    cni_links_parse(l, &message, sizeof(message));
    assert_int_equal(l->n, 0);
    message.a.rta_len = 9;
    for (int i = 0; i < CNI_LINKS_MAX + 5; i++)
        cni_links_parse(l, &message, sizeof(message));
    assert_int_equal(l->n, CNI_LINKS_MAX);
    l->n = 0;
    message.h.nlmsg_len = (uint32_t)INT32_MAX + 5; /* negative, to libmnl */
    cni_links_parse(l, &message, sizeof(message));
    message.h.nlmsg_len = UINT32_MAX;
    cni_links_parse(l, &message, sizeof(message));
    assert_int_equal(l->n, 0);
    free(l);
}

/* ---- a kernel that answers what we like ------------------------------------------------------------------
 */

/* Puts a message at the end of a part; of NLMSG_ERROR and links: `value` is the error, the index. */
static void put_message(struct buf *part, uint16_t type, uint16_t flags, uint32_t seq, int value)
{
    _Alignas(struct nlmsghdr) char space[256];
    struct nlmsghdr *h = mnl_nlmsg_put_header(space);
    struct nlmsgerr *error;
    struct ifinfomsg *link;
    struct ifaddrmsg *address;

    h->nlmsg_type = type;
    h->nlmsg_flags = flags;
    h->nlmsg_seq = seq;
    switch (type) {
    case RTM_NEWNSID:
        mnl_nlmsg_put_extra_header(h, sizeof(struct rtgenmsg));
        mnl_attr_put_u32(h, NETNSA_NSID, (uint32_t)value);
        break;
    case RTM_NEWLINK:
        link = mnl_nlmsg_put_extra_header(h, sizeof(*link));
        link->ifi_index = value;
        link->ifi_flags = IFF_UP;
        mnl_attr_put_strz(h, IFLA_IFNAME, value == 2 ? "eth0" : "other");
        break;
    case RTM_NEWADDR:
        address = mnl_nlmsg_put_extra_header(h, sizeof(*address));
        address->ifa_family = AF_INET;
        address->ifa_index = (uint32_t)value;
        mnl_attr_put_u32(h, IFA_LOCAL, htonl(0x0a000009));
        break;
    default:
        error = mnl_nlmsg_put_extra_header(h, sizeof(*error));
        error->error = -value;
        break;
    }
    buf_add(part, space, h->nlmsg_len);
}

static void send_part(int fd, struct buf *part)
{
    assert_int_equal(send(fd, part->p, part->n, MSG_DONTWAIT), part->n);
    part->n = 0;
}

struct kernel { /* [0]: its end, [1]: ours */
    int fd[2];
    struct buf part;
    struct cni_links *links;
};

static void kernel_open(struct kernel *k)
{
    const struct timeval wait = { .tv_sec = 10 };

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, k->fd), 0);
    assert_int_equal(setsockopt(k->fd[1], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
    k->part = (struct buf)BUF_INIT(64 * 1024);
    k->links = calloc(1, sizeof(*k->links));
    assert_non_null(k->links);
}

static void kernel_close(struct kernel *k)
{
    close(k->fd[0]);
    close(k->fd[1]);
    buf_done(&k->part);
    free(k->links);
}

static void what_changes_while_it_is_listed_is_listed_again(void **state)
{
    const struct cni_result expected = { { "10.0.0.9" }, 1 };
    struct kernel k;
    struct err e = { 0 };

    (void)state;
    kernel_open(&k);
    put_message(&k.part, RTM_NEWNSID, 0, 1, 5);
    send_part(k.fd[0], &k.part);
    put_message(&k.part, RTM_NEWLINK, NLM_F_MULTI | NLM_F_DUMP_INTR, 2, 3); /* eth0 was not seen */
    put_message(&k.part, NLMSG_DONE, NLM_F_MULTI, 2, 0);
    send_part(k.fd[0], &k.part);
    put_message(&k.part, RTM_NEWNSID, 0, 3, 5);
    send_part(k.fd[0], &k.part);
    put_message(&k.part, NLMSG_ERROR, 0, 4, ENOBUFS);
    send_part(k.fd[0], &k.part);
    put_message(&k.part, RTM_NEWNSID, 0, 5, 5);
    send_part(k.fd[0], &k.part);
    put_message(&k.part, RTM_NEWLINK, NLM_F_MULTI, 4, 7); /* the rest of what was given up */
    put_message(&k.part, NLMSG_DONE, NLM_F_MULTI, 4, 0);
    send_part(k.fd[0], &k.part);
    put_message(&k.part, RTM_NEWLINK, NLM_F_MULTI, 6, 2);
    send_part(k.fd[0], &k.part);
    put_message(&k.part, NLMSG_DONE, NLM_F_MULTI, 6, 0);
    send_part(k.fd[0], &k.part);
    put_message(&k.part, RTM_NEWADDR, NLM_F_MULTI, 7, 2);
    put_message(&k.part, NLMSG_DONE, NLM_F_MULTI, 7, 0);
    send_part(k.fd[0], &k.part);
    if (cni_links_read_over(k.fd[1], k.fd[0], k.links, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(k.links->n, 1);
    assert_false(k.links->cut);
    assert_int_equal(cni_links_check(k.links, "eth0", &expected, &e), ERR_OK);
    kernel_close(&k);
}

static void what_never_stops_changing_is_not_known(void **state)
{
    struct kernel k;
    struct err e = { 0 };

    (void)state;
    kernel_open(&k);
    for (uint32_t seq = 1; seq < 2 * CNI_LINKS_TRIES; seq += 2) {
        put_message(&k.part, RTM_NEWNSID, 0, seq, 5);
        send_part(k.fd[0], &k.part);
        put_message(&k.part, NLMSG_DONE, NLM_F_MULTI | NLM_F_DUMP_INTR, seq + 1, 0);
        send_part(k.fd[0], &k.part);
    }
    assert_true(cni_links_read_over(k.fd[1], k.fd[0], k.links, &e) != ERR_OK);
    assert_int_equal(e.sys, EINTR);
    kernel_close(&k);
}

static void what_was_cut_off_is_not_known(void **state)
{
    static char long_part[33 * 1024];
    struct kernel k;
    struct err e = { 0 };

    (void)state;
    kernel_open(&k);
    put_message(&k.part, RTM_NEWNSID, 0, 1, 5);
    send_part(k.fd[0], &k.part);
    assert_int_equal(send(k.fd[0], long_part, sizeof(long_part), 0), sizeof(long_part));
    assert_true(cni_links_read_over(k.fd[1], k.fd[0], k.links, &e) != ERR_OK);
    assert_int_equal(e.sys, EMSGSIZE);
    kernel_close(&k);
}

static void of_a_list_without_end_nothing_is_missed(void **state)
{
    const struct cni_result expected = { { "10.0.0.9" }, 1 };
    struct kernel k;
    struct err e = { 0 };

    (void)state;
    kernel_open(&k);
    put_message(&k.part, RTM_NEWNSID, 0, 1, 5);
    send_part(k.fd[0], &k.part);
    for (int i = 0; i < CNI_LINKS_ANSWERS_MAX; i++) {
        put_message(&k.part, RTM_NEWLINK, NLM_F_MULTI, 2, 3);
        send_part(k.fd[0], &k.part);
    }
    if (cni_links_read_over(k.fd[1], k.fd[0], k.links, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_true(k.links->cut);
    assert_int_equal(cni_links_check(k.links, "eth0", &expected, &e), ERR_OK);
    assert_int_equal(cni_links_check(k.links, "other", &expected, &e), ERR_OK);
    kernel_close(&k);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, place_remove)
    const struct CMUnitTest tests[] = {
        TEST(interfaces_are_read_with_addresses_and_counters),
        TEST(what_is_no_namespace_is_said),
        TEST(messages_that_lie_about_their_length_are_passed_over),
        cmocka_unit_test(what_changes_while_it_is_listed_is_listed_again),
        cmocka_unit_test(what_never_stops_changing_is_not_known),
        cmocka_unit_test(what_was_cut_off_is_not_known),
        cmocka_unit_test(of_a_list_without_end_nothing_is_missed),
    };

    why_not = rootns_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
