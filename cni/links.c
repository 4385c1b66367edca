/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/links.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

/* The kernel reports that a dump was inconsistent (NLM_F_DUMP_INTR), or dropped parts of it (ENOBUFS). */
static bool must_ask_again(const struct err *e)
{
    return e->sys == EINTR || e->sys == ENOBUFS;
}

/* The kernel answers at once; a missing answer must not block the loop. */
#define WAIT_S 2

/* ---- messages ---- */

/* libmnl compares lengths as signed numbers, so one above INT_MAX would appear short. And it reads attributes
 * up to the padded end of a message, even if the padding is missing. */
static bool is_message(const struct nlmsghdr *h, int left)
{
    return mnl_nlmsg_ok(h, left) && h->nlmsg_len <= (uint32_t)left &&
           MNL_ALIGN(h->nlmsg_len) <= (uint32_t)left;
}

/* Only attributes that fit in the message and have at least `least` bytes. */
static const void *payload(const struct nlattr *a, size_t least)
{
    return mnl_attr_get_payload_len(a) >= least ? mnl_attr_get_payload(a) : NULL;
}

static void parse_counters(const struct nlattr *a, struct cni_link *l)
{
    struct rtnl_link_stats64 s = { 0 };
    size_t n = mnl_attr_get_payload_len(a);

    memcpy(&s, mnl_attr_get_payload(a), n < sizeof(s) ? n : sizeof(s)); /* older kernels have fewer fields */
    l->rx_bytes = s.rx_bytes;
    l->rx_packets = s.rx_packets;
    l->rx_errors = s.rx_errors;
    l->rx_dropped = s.rx_dropped;
    l->tx_bytes = s.tx_bytes;
    l->tx_packets = s.tx_packets;
    l->tx_errors = s.tx_errors;
    l->tx_dropped = s.tx_dropped;
}

static void parse_name(const struct nlattr *a, struct cni_link *l)
{
    const char *text = mnl_attr_get_payload(a);
    size_t n = strnlen(text, mnl_attr_get_payload_len(a));

    if (n < sizeof(l->name)) {
        memcpy(l->name, text, n);
        l->name[n] = '\0';
    }
}

static void parse_mac(const struct nlattr *a, struct cni_link *l)
{
    const unsigned char *b = payload(a, 6);

    if (b != NULL && mnl_attr_get_payload_len(a) == 6)
        snprintf(l->mac, sizeof(l->mac), "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5]);
}

static void parse_link(const struct nlmsghdr *h, struct cni_links *ret)
{
    const struct ifinfomsg *m = mnl_nlmsg_get_payload(h);
    struct cni_link l = { 0 };
    const struct nlattr *a;
    const uint32_t *mtu;

    if (mnl_nlmsg_get_payload_len(h) < sizeof(*m))
        return;
    if (ret->n == CNI_LINKS_MAX) {
        ret->cut = true;
        return;
    }
    l.index = m->ifi_index;
    l.up = (m->ifi_flags & IFF_UP) != 0;
    l.loopback = (m->ifi_flags & IFF_LOOPBACK) != 0;
    mnl_attr_for_each(a, h, sizeof(*m))
    {
        switch (mnl_attr_get_type(a)) {
        case IFLA_IFNAME:
            parse_name(a, &l);
            break;
        case IFLA_ADDRESS:
            parse_mac(a, &l);
            break;
        case IFLA_MTU:
            mtu = payload(a, sizeof(*mtu));
            if (mtu != NULL)
                memcpy(&l.mtu, mtu, sizeof(l.mtu));
            break;
        case IFLA_STATS64:
            parse_counters(a, &l);
            break;
        }
    }
    if (l.name[0] != '\0')
        ret->v[ret->n++] = l;
}

static void links_parse_address(const struct nlmsghdr *h, struct cni_links *ret)
{
    const struct ifaddrmsg *m = mnl_nlmsg_get_payload(h);
    const struct nlattr *a;
    const void *raw = NULL;
    bool local = false;
    size_t size;

    if (mnl_nlmsg_get_payload_len(h) < sizeof(*m) || (m->ifa_family != AF_INET && m->ifa_family != AF_INET6))
        return;
    size = m->ifa_family == AF_INET ? 4 : 16;
    mnl_attr_for_each(a, h, sizeof(*m))
    {
        /* On a point-to-point link IFA_ADDRESS is the peer's. */
        bool is_local = mnl_attr_get_type(a) == IFA_LOCAL;

        if ((is_local || (mnl_attr_get_type(a) == IFA_ADDRESS && !local)) && payload(a, size) != NULL) {
            raw = payload(a, size);
            local = local || is_local;
        }
    }
    for (size_t i = 0; i < ret->n && raw != NULL; i++) {
        struct cni_link *l = &ret->v[i];

        if (l->index == (int)m->ifa_index && l->n_addresses < CNI_LINK_ADDRESSES_MAX &&
            inet_ntop(m->ifa_family, raw, l->addresses[l->n_addresses], sizeof(l->addresses[0])) != NULL)
            l->n_addresses++;
    }
}

void cni_links_parse(struct cni_links *ret, const void *messages, size_t n)
{
    const struct nlmsghdr *h = messages;
    int left = n > INT32_MAX ? INT32_MAX : (int)n;

    for (; is_message(h, left); h = mnl_nlmsg_next(h, &left)) {
        if (h->nlmsg_type == RTM_NEWLINK)
            parse_link(h, ret);
        else if (h->nlmsg_type == RTM_NEWADDR)
            links_parse_address(h, ret);
    }
}

/* ---- asking ---- */

struct talk {
    int fd, seq;
    bool cut;  /* an answer had too many parts; nothing more can be asked on this socket */
    bool bare; /* nobody asks for the addresses */
    _Alignas(struct nlmsghdr) char answer[32 * 1024]; /* a dump fills at most this much at once */
};

static enum err_code talk_open(struct talk *t, struct err *e)
{
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    struct timeval wait = { .tv_sec = WAIT_S };
    int on = 1;

    t->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    /* Connected, so that no other process can answer. */
    if (t->fd < 0 || connect(t->fd, (struct sockaddr *)&kernel, sizeof(kernel)) != 0 ||
        setsockopt(t->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) != 0)
        return err_sys(e, errno, "open netlink socket");
    /* Without it the kernel ignores the namespace id in a request for addresses. */
    if (setsockopt(t->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on)) != 0)
        return err_sys(e, errno, "netlink requests about other namespaces (Linux 4.20)");
    return ERR_OK;
}

/* Whether the answer ends here; *e: how. */
static bool is_last(const struct nlmsghdr *m, bool interrupted, struct err *e)
{
    if (m->nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *error = mnl_nlmsg_get_payload(m);

        if (mnl_nlmsg_get_payload_len(m) < sizeof(*error))
            err_sys(e, EBADMSG, "netlink");
        else if (error->error != 0)
            err_sys(e, -error->error, "netlink");
        return true;
    }
    if (m->nlmsg_type != NLMSG_DONE && (m->nlmsg_flags & NLM_F_MULTI) != 0)
        return false;
    if (interrupted)
        err_sys(e, EINTR, "netlink: the list changed while it was read");
    return true;
}

/* Sends a request and passes each part of the answer to fn, until it is complete or cut. */
static enum err_code links_ask(struct talk *t, struct nlmsghdr *h,
                               void (*fn)(void *arg, const void *p, size_t n), void *arg, struct err *e)
{
    bool interrupted = false;

    h->nlmsg_seq = (uint32_t)++t->seq;
    if (send(t->fd, h, h->nlmsg_len, 0) < 0)
        return err_sys(e, errno, "send netlink request");
    for (int parts = 0; parts < CNI_LINKS_ANSWERS_MAX;) {
        ssize_t n = recv(t->fd, t->answer, sizeof(t->answer), MSG_TRUNC);
        const struct nlmsghdr *m = (const struct nlmsghdr *)t->answer;
        int left = (int)n;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, errno, "receive netlink answer");
        if ((size_t)n > sizeof(t->answer)) /* the missing part may be the one needed */
            return err_sys(e, EMSGSIZE, "receive netlink answer");
        parts++;
        if (!is_message(m, left) || m->nlmsg_seq != h->nlmsg_seq)
            continue; /* the rest of an abandoned answer */
        if (fn != NULL)
            fn(arg, t->answer, (size_t)n);
        for (; is_message(m, left); m = mnl_nlmsg_next(m, &left)) {
            interrupted = interrupted || (m->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
            if (is_last(m, interrupted, e))
                return e->code;
        }
    }
    t->cut = true;
    return ERR_OK;
}

static void note_id(void *arg, const void *p, size_t n)
{
    const struct nlmsghdr *h = p;
    const struct nlattr *a;
    int left = (int)n;

    if (!is_message(h, left) || h->nlmsg_type != RTM_NEWNSID)
        return;
    mnl_attr_for_each(a, h, sizeof(struct rtgenmsg))
    {
        const void *id = payload(a, sizeof(int32_t));

        if (mnl_attr_get_type(a) == NETNSA_NSID && id != NULL)
            memcpy(arg, id, sizeof(int32_t));
    }
}

static enum err_code ask_id(struct talk *t, uint16_t type, int ns, int32_t *ret, struct err *e)
{
    _Alignas(struct nlmsghdr) char space[256];
    struct nlmsghdr *h = mnl_nlmsg_put_header(space);
    struct rtgenmsg *m;

    h->nlmsg_type = type;
    h->nlmsg_flags = NLM_F_REQUEST | (type == RTM_NEWNSID ? NLM_F_ACK : 0);
    m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
    m->rtgen_family = AF_UNSPEC;
    mnl_attr_put_u32(h, NETNSA_FD, (uint32_t)ns);
    if (type == RTM_NEWNSID)
        mnl_attr_put_u32(h, NETNSA_NSID, (uint32_t)-1); /* any free one */
    return links_ask(t, h, type == RTM_GETNSID ? note_id : NULL, ret, e);
}

/* The namespace's id in ours, assigned if it has none yet; it ends with the namespace. */
static enum err_code id_of(struct talk *t, int ns, int32_t *ret, struct err *e)
{
    struct err given = { 0 };

    *ret = -1;
    if (ask_id(t, RTM_GETNSID, ns, ret, e) != ERR_OK || *ret >= 0)
        return e->code;
    if (ask_id(t, RTM_NEWNSID, ns, ret, &given) != ERR_OK && given.sys != EEXIST) {
        *e = given;
        return e->code;
    }
    if (ask_id(t, RTM_GETNSID, ns, ret, e) != ERR_OK)
        return e->code;
    return *ret >= 0 ? ERR_OK : err_set(e, ERR_INTERNAL, "the network namespace has no id");
}

static void add_messages(void *arg, const void *p, size_t n)
{
    cni_links_parse(arg, p, n);
}

static enum err_code links_dump(struct talk *t, uint16_t type, size_t header, uint16_t attribute, int32_t id,
                                struct cni_links *ret, struct err *e)
{
    _Alignas(struct nlmsghdr) char space[256];
    struct nlmsghdr *h = mnl_nlmsg_put_header(space);

    h->nlmsg_type = type;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    mnl_nlmsg_put_extra_header(h, header); /* all zero: every interface, every family */
    mnl_attr_put_u32(h, attribute, (uint32_t)id);
    return links_ask(t, h, add_messages, ret, e);
}

static enum err_code read_once(struct talk *t, int ns, struct cni_links *ret, struct err *e)
{
    int32_t id;

    ret->n = 0;
    ret->cut = false;
    if (id_of(t, ns, &id, e) != ERR_OK ||
        links_dump(t, RTM_GETLINK, sizeof(struct ifinfomsg), IFLA_TARGET_NETNSID, id, ret, e) != ERR_OK)
        return e->code;
    if (!t->cut && !t->bare)
        links_dump(t, RTM_GETADDR, sizeof(struct ifaddrmsg), IFA_TARGET_NETNSID, id, ret, e);
    ret->cut = ret->cut || t->cut;
    return e->code;
}

static enum err_code links_read_all(struct talk *t, int ns, struct cni_links *ret, struct err *e)
{
    int tries = 0;

    do
        *e = (struct err){ 0 };
    while (read_once(t, ns, ret, e) != ERR_OK && must_ask_again(e) && ++tries < CNI_LINKS_TRIES);
    return e->code;
}

static void talk_free(struct talk *t)
{
    if (t == NULL)
        return;
    if (t->fd >= 0)
        close(t->fd);
    free(t);
}
SCOPE_DEFINE(struct talk, talk_free)

static enum err_code open_both(const char *netns_path, int *ret_ns, struct talk **ret, struct err *e)
{
    scoped(talk_free) struct talk *t = calloc(1, sizeof(*t));
    fd_auto ns = -1;

    if (t == NULL)
        return err_nomem(e);
    t->fd = -1;
    ns = open(netns_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (ns < 0)
        return err_sys(e, errno, "open %s", netns_path);
    if (talk_open(t, e) != ERR_OK)
        return err_wrap(e, "interfaces of %s", netns_path);
    *ret_ns = take_fd(&ns);
    *ret = take_ptr(&t);
    return ERR_OK;
}

static enum err_code links_read(const char *netns_path, bool bare, struct cni_links *ret, struct err *e)
{
    scoped(talk_free) struct talk *t = NULL;
    fd_auto ns = -1;

    if (open_both(netns_path, &ns, &t, e) != ERR_OK)
        return e->code;
    t->bare = bare;
    if (links_read_all(t, ns, ret, e) != ERR_OK)
        err_wrap(e, "interfaces of %s", netns_path);
    return e->code;
}

enum err_code cni_links_read(const char *netns_path, struct cni_links *ret, struct err *e)
{
    return links_read(netns_path, false, ret, e);
}

enum err_code cni_links_read_bare(const char *netns_path, struct cni_links *ret, struct err *e)
{
    return links_read(netns_path, true, ret, e);
}

enum err_code cni_links_read_over(int fd, int netns, struct cni_links *ret, struct err *e)
{
    mem_auto struct talk *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return err_nomem(e);
    t->fd = fd;
    return links_read_all(t, netns, ret, e);
}

enum err_code cni_links_nsid(const char *netns_path, int32_t *ret, struct err *e)
{
    scoped(talk_free) struct talk *t = NULL;
    fd_auto ns = -1;

    if (open_both(netns_path, &ns, &t, e) != ERR_OK)
        return e->code;
    if (id_of(t, ns, ret, e) != ERR_OK)
        err_wrap(e, "id of %s", netns_path);
    return e->code;
}

/* ---- searching ---- */

const struct cni_link *cni_links_find(const struct cni_links *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->v[i].name, name) == 0)
            return &l->v[i];
    return NULL;
}

static bool has_address(const struct cni_link *l, const char *address)
{
    for (size_t i = 0; i < l->n_addresses; i++)
        if (strcmp(l->addresses[i], address) == 0)
            return true;
    return false;
}

enum err_code cni_links_check(const struct cni_links *l, const char *ifname,
                              const struct cni_result *expected, struct err *e)
{
    const struct cni_link *link = cni_links_find(l, ifname);

    if (link == NULL && l->cut)
        return ERR_OK;
    if (link == NULL)
        return err_set(e, ERR_NOT_FOUND, "interface %s is gone", ifname);
    if (!link->up)
        return err_set(e, ERR_PRECONDITION, "interface %s is down", ifname);
    for (size_t i = 0; i < expected->n_ips; i++)
        if (!l->cut && link->n_addresses < CNI_LINK_ADDRESSES_MAX && !has_address(link, expected->ips[i]))
            return err_set(e, ERR_NOT_FOUND, "interface %s lost its address %s", ifname, expected->ips[i]);
    return ERR_OK;
}
