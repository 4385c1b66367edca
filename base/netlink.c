/* SPDX-License-Identifier: Apache-2.0 */
#include "base/netlink.h"

#include "base/scope.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

static void mnl_socket_close_p(struct mnl_socket **s)
{
    if (*s != NULL)
        mnl_socket_close(*s);
}

/* Sends one request and passes every message of the answer to cb. */
static enum err_code netlink_talk(struct nlmsghdr *request, mnl_cb_t cb, void *data, struct err *e)
{
    struct mnl_socket *nl __attribute__((cleanup(mnl_socket_close_p))) =
        mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    _Alignas(struct nlmsghdr) char answer[32 * 1024]; /* a dump fills at most this much at once */
    unsigned int port, seq = (unsigned int)time(NULL);
    ssize_t n;
    int more = 1;

    if (nl == NULL || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0)
        return err_sys(e, errno, "open netlink socket");
    port = mnl_socket_get_portid(nl);
    request->nlmsg_seq = seq;
    if (mnl_socket_sendto(nl, request, request->nlmsg_len) < 0)
        return err_sys(e, errno, "send netlink request");
    while (more > 0) {
        n = mnl_socket_recvfrom(nl, answer, sizeof(answer));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, errno, "receive netlink answer");
        more = mnl_cb_run(answer, (size_t)n, seq, port, cb, data);
    }
    if (more < 0)
        return err_sys(e, errno, "netlink");
    return ERR_OK;
}

static enum err_code netlink_check_name(const char *name, struct err *e)
{
    size_t n = strnlen(name, IFNAMSIZ);

    if (n == 0 || n == IFNAMSIZ)
        return err_set(e, ERR_INVALID, "\"%.32s\" is not an interface name", name);
    return ERR_OK;
}

/* The text of netlink_talk() without its own word in front: "link eth0 up: Operation not permitted". */
static enum err_code link_failed(struct err *e, const char *doing, const char *name)
{
    if (e->sys != 0)
        return err_sys(e, e->sys, "%s link %s", doing, name);
    return err_wrap(e, "%s link %s", doing, name);
}

enum err_code nl_link_up(const char *name, struct err *e)
{
    _Alignas(struct nlmsghdr) char space[256];
    struct nlmsghdr *h = mnl_nlmsg_put_header(space);
    struct ifinfomsg *m;

    if (netlink_check_name(name, e) != ERR_OK)
        return e->code;
    h->nlmsg_type = RTM_NEWLINK;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
    m->ifi_family = AF_UNSPEC;
    m->ifi_change = IFF_UP;
    m->ifi_flags = IFF_UP;
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    if (netlink_talk(h, NULL, NULL, e) != ERR_OK)
        return link_failed(e, "set up", name);
    return ERR_OK;
}

enum err_code nl_link_delete(const char *name, struct err *e)
{
    _Alignas(struct nlmsghdr) char space[256];
    struct nlmsghdr *h = mnl_nlmsg_put_header(space);
    struct ifinfomsg *m;
    struct err why = { 0 };

    if (netlink_check_name(name, e) != ERR_OK)
        return e->code;
    h->nlmsg_type = RTM_DELLINK;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
    m->ifi_family = AF_UNSPEC;
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    if (netlink_talk(h, NULL, NULL, &why) == ERR_OK || why.sys == ENODEV)
        return ERR_OK;
    *e = why;
    return link_failed(e, "delete", name);
}

bool nl_link_exists(const char *name)
{
    struct err e = { 0 };

    return netlink_check_name(name, &e) == ERR_OK && if_nametoindex(name) != 0;
}

/* Asks in our own network namespace; /sys may show another one. */
bool nl_link_is(const char *name, const char *driver)
{
    fd_auto s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
    struct ifreq req = { .ifr_data = (char *)&info };

    if (s < 0 || strlen(name) >= sizeof(req.ifr_name))
        return false;
    strcpy(req.ifr_name, name);
    return ioctl(s, SIOCETHTOOL, &req) == 0 && strncmp(info.driver, driver, sizeof(info.driver)) == 0;
}

/* ---- the node's addresses ---- */

struct route_search {
    int family;
    uint32_t metric;
    int index; /* 0: none yet */
};

/* The default route of the main table with the lowest metric. */
static int on_route(const struct nlmsghdr *h, void *data)
{
    struct route_search *s = data;
    const struct rtmsg *r = mnl_nlmsg_get_payload(h);
    const struct nlattr *a;
    uint32_t metric = 0, table = r->rtm_table;
    int index = 0;

    if (h->nlmsg_type != RTM_NEWROUTE || r->rtm_family != s->family || r->rtm_dst_len != 0 ||
        r->rtm_type != RTN_UNICAST)
        return MNL_CB_OK;
    mnl_attr_for_each(a, h, sizeof(*r))
    {
        switch (mnl_attr_get_type(a)) {
        case RTA_OIF:
            index = (int)mnl_attr_get_u32(a);
            break;
        case RTA_PRIORITY:
            metric = mnl_attr_get_u32(a);
            break;
        case RTA_TABLE:
            table = mnl_attr_get_u32(a);
            break;
        case RTA_MULTIPATH:
            if (mnl_attr_get_payload_len(a) >= sizeof(struct rtnexthop))
                index = ((const struct rtnexthop *)mnl_attr_get_payload(a))->rtnh_ifindex;
            break;
        }
    }
    if (table == RT_TABLE_MAIN && index > 0 && (s->index == 0 || metric < s->metric)) {
        s->index = index;
        s->metric = metric;
    }
    return MNL_CB_OK;
}

#define DUMP_TRIES 10
#define DUMP_DATA_MAX 1024

/* `data`, of `size` bytes, is restored before the kernel is asked again. */
static enum err_code netlink_dump(uint16_t type, int family, mnl_cb_t cb, void *data, size_t size,
                                  struct err *e)
{
    unsigned char before[DUMP_DATA_MAX];
    _Alignas(struct nlmsghdr) char space[256];
    struct nlmsghdr *h = mnl_nlmsg_put_header(space);
    int tries = 0;
    struct rtmsg *m; /* longer than struct ifaddrmsg, and accepted by the kernel for both */
    size_t header = type == RTM_GETROUTE  ? sizeof(struct rtmsg)
                    : type == RTM_GETLINK ? sizeof(struct ifinfomsg)
                                          : sizeof(struct ifaddrmsg);

    h->nlmsg_type = type;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    m = mnl_nlmsg_put_extra_header(h, header);
    m->rtm_family = (unsigned char)family; /* the first byte of all three */
    assert(size <= sizeof(before));
    memcpy(before, data, size);
    do { /* EINTR: the list changed during the dump; ENOBUFS: the kernel dropped part of it */
        struct err why = { 0 };

        memcpy(data, before, size);
        if (netlink_talk(h, cb, data, &why) == ERR_OK) {
            *e = (struct err){ 0 }; /* from the previous try */
            return ERR_OK;
        }
        *e = why;
    } while ((e->sys == EINTR || e->sys == ENOBUFS) && ++tries < DUMP_TRIES);
    return e->code;
}

enum { LINKS_MAX = 4096 }; /* maximum number of interfaces; a node with 110 pods has about 250 */

struct address_search {
    int index;         /* the interface wanted; 0: the first that has one */
    unsigned char *up; /* with index 0: bitmap of links that are up and neither loopback nor bridge */
    char ipv4[INET_ADDRSTRLEN], ipv6[INET6_ADDRSTRLEN];
    bool temporary6; /* ipv6 is a privacy address: prefer a permanent one */
};

static bool is_bridge(const struct nlmsghdr *h)
{
    const struct nlattr *a, *info;

    mnl_attr_for_each(a, h, sizeof(struct ifinfomsg))
    {
        if (mnl_attr_get_type(a) != IFLA_LINKINFO)
            continue;
        mnl_attr_for_each_nested(info, a)
        {
            if (mnl_attr_get_type(info) == IFLA_INFO_KIND &&
                mnl_attr_get_payload_len(info) >= sizeof("bridge") &&
                memcmp(mnl_attr_get_payload(info), "bridge", sizeof("bridge")) == 0)
                return true;
        }
    }
    return false;
}

static int on_link(const struct nlmsghdr *h, void *data)
{
    const struct ifinfomsg *m = mnl_nlmsg_get_payload(h);
    unsigned char *up = data;

    if (h->nlmsg_type == RTM_NEWLINK && m->ifi_index > 0 && m->ifi_index < LINKS_MAX &&
        (m->ifi_flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP && !is_bridge(h))
        up[m->ifi_index / 8] |= (unsigned char)(1 << m->ifi_index % 8);
    return MNL_CB_OK;
}

static bool netlink_wanted(struct address_search *s, int index)
{
    if (s->index != 0)
        return index == s->index;
    return index > 0 && index < LINKS_MAX && (s->up[index / 8] >> index % 8 & 1) != 0;
}

static int on_address(const struct nlmsghdr *h, void *data)
{
    struct address_search *s = data;
    const struct ifaddrmsg *m = mnl_nlmsg_get_payload(h);
    const struct nlattr *a, *best = NULL;
    uint32_t flags = m->ifa_flags;
    size_t size = m->ifa_family == AF_INET ? 4 : 16;

    if (h->nlmsg_type != RTM_NEWADDR || (m->ifa_family != AF_INET && m->ifa_family != AF_INET6) ||
        m->ifa_scope != RT_SCOPE_UNIVERSE || !netlink_wanted(s, (int)m->ifa_index))
        return MNL_CB_OK;
    mnl_attr_for_each(a, h, sizeof(*m))
    {
        /* On point-to-point links IFA_LOCAL is ours and IFA_ADDRESS the peer's. */
        if (mnl_attr_get_type(a) == IFA_LOCAL || (mnl_attr_get_type(a) == IFA_ADDRESS && best == NULL))
            best = a;
        else if (mnl_attr_get_type(a) == IFA_FLAGS)
            flags = mnl_attr_get_u32(a);
    }
    if (best == NULL || mnl_attr_get_payload_len(best) < size)
        return MNL_CB_OK;
    if (m->ifa_family == AF_INET) {
        if (s->ipv4[0] == '\0') {
            inet_ntop(AF_INET, mnl_attr_get_payload(best), s->ipv4, sizeof(s->ipv4));
            s->index = (int)m->ifa_index;
        }
        return MNL_CB_OK;
    }
    if ((flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED)) != 0)
        return MNL_CB_OK;
    if (s->ipv6[0] == '\0' || (s->temporary6 && (flags & IFA_F_TEMPORARY) == 0)) {
        inet_ntop(AF_INET6, mnl_attr_get_payload(best), s->ipv6, sizeof(s->ipv6));
        s->temporary6 = (flags & IFA_F_TEMPORARY) != 0;
        s->index = (int)m->ifa_index;
    }
    return MNL_CB_OK;
}

enum err_code nl_default_addresses(char ipv4[16], char ipv6[46], struct err *e)
{
    struct route_search route = { .family = AF_INET };
    unsigned char up[LINKS_MAX / 8] = { 0 };
    struct address_search s = { .up = up };

    if (netlink_dump(RTM_GETROUTE, AF_INET, on_route, &route, sizeof(route), e) != ERR_OK)
        return err_wrap(e, "routes");
    if (route.index == 0) {
        route.family = AF_INET6;
        if (netlink_dump(RTM_GETROUTE, AF_INET6, on_route, &route, sizeof(route), e) != ERR_OK)
            return err_wrap(e, "routes");
    }
    s.index = route.index;
    if (s.index == 0 && netlink_dump(RTM_GETLINK, AF_UNSPEC, on_link, up, sizeof(up), e) != ERR_OK)
        return err_wrap(e, "links");
    if (netlink_dump(RTM_GETADDR, AF_INET, on_address, &s, sizeof(s), e) != ERR_OK ||
        netlink_dump(RTM_GETADDR, AF_INET6, on_address, &s, sizeof(s), e) != ERR_OK)
        return err_wrap(e, "addresses");
    if (s.ipv4[0] == '\0' && s.ipv6[0] == '\0')
        return err_set(e, ERR_NOT_FOUND, "no interface with a global address");
    memcpy(ipv4, s.ipv4, sizeof(s.ipv4));
    memcpy(ipv6, s.ipv6, sizeof(s.ipv6));
    return ERR_OK;
}
