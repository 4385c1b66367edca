/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/host/nft.h"

#include "base/buf.h"
#include "base/scope.h"
#include "cni/host/rules.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <string.h>

/* The kernel fills dumps up to 32 KiB. */
#define DUMP_SIZE 32768

/* The tables changed while they were listed (EINTR). */
#define LIST_TRIES 5

SCOPE_DEFINE(struct mnl_socket, mnl_socket_close)

static const struct {
    const char *name;
    uint8_t number;
} families[] = { { "ip", NFPROTO_IPV4 }, { "ip6", NFPROTO_IPV6 } };

static const char *family_name(uint8_t number)
{
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        if (families[i].number == number)
            return families[i].name;
    }
    return NULL;
}

/* ---- messages ---- */

static struct nlmsghdr *nft_put_header(char *at, int type, uint16_t flags, uint8_t family, uint16_t res_id,
                                       uint32_t seq)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(at);
    struct nfgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof(*g));

    h->nlmsg_type = (uint16_t)type;
    h->nlmsg_flags = NLM_F_REQUEST | flags;
    h->nlmsg_seq = seq;
    g->nfgen_family = family;
    g->version = NFNETLINK_V0;
    g->res_id = htons(res_id);
    return h;
}

static int message(int type)
{
    return (NFNL_SUBSYS_NFTABLES << 8) | type;
}

static struct mnl_socket *connect_netfilter(struct err *e)
{
    struct mnl_socket *s = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);

    if (s == NULL || mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0) {
        err_sys(e, errno, "netfilter netlink");
        if (s != NULL)
            mnl_socket_close(s);
        return NULL;
    }
    return s;
}

/* ---- listing ---- */

struct found { /* a chain or (chain NULL) a table; strings borrowed */
    const char *family, *table, *chain;
    bool hooked;     /* a base chain */
    uint32_t policy; /* NF_ACCEPT, NF_DROP */
};

struct list {
    bool chains;
    bool (*fn)(const struct found *f, void *arg);
    void *arg;
};

static int on_listed(const struct nlmsghdr *h, void *data)
{
    const struct list *l = data;
    const struct nfgenmsg *g = mnl_nlmsg_get_payload(h);
    struct found f = { .family = family_name(g->nfgen_family), .policy = NF_ACCEPT };
    const struct nlattr *a;

    mnl_attr_for_each(a, h, sizeof(*g))
    {
        int type = mnl_attr_get_type(a);

        if (l->chains && type == NFTA_CHAIN_TABLE && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0)
            f.table = mnl_attr_get_str(a);
        else if (l->chains && type == NFTA_CHAIN_NAME && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0)
            f.chain = mnl_attr_get_str(a);
        else if (l->chains && type == NFTA_CHAIN_HOOK)
            f.hooked = true;
        else if (l->chains && type == NFTA_CHAIN_POLICY && mnl_attr_validate(a, MNL_TYPE_U32) == 0)
            f.policy = ntohl(mnl_attr_get_u32(a));
        else if (!l->chains && type == NFTA_TABLE_NAME && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0)
            f.table = mnl_attr_get_str(a);
    }
    if (f.family == NULL || f.table == NULL || (l->chains && f.chain == NULL))
        return MNL_CB_OK;
    return l->fn(&f, l->arg) ? MNL_CB_OK : MNL_CB_STOP;
}

/* Calls fn for each table, or each chain, of ip and ip6; repeatedly for some if it has to start again. */
static enum err_code list_once(bool chains, bool (*fn)(const struct found *f, void *arg), void *arg,
                               struct err *e)
{
    struct err bad = { 0 };
    scoped(mnl_socket_close) struct mnl_socket *s = connect_netfilter(&bad);
    struct list l = { .chains = chains, .fn = fn, .arg = arg };
    char raw[DUMP_SIZE] __attribute__((aligned(8)));
    uint32_t seq = 1;
    struct nlmsghdr *h;
    ssize_t n;
    int more = MNL_CB_OK;

    if (s == NULL) /* EPROTONOSUPPORT, EAFNOSUPPORT: no netfilter at all */
        return bad.sys == EPROTONOSUPPORT || bad.sys == EAFNOSUPPORT ? ERR_OK : (*e = bad).code;
    h = nft_put_header(raw, message(chains ? NFT_MSG_GETCHAIN : NFT_MSG_GETTABLE), NLM_F_DUMP, NFPROTO_UNSPEC,
                       0, seq);
    if (mnl_socket_sendto(s, h, h->nlmsg_len) < 0)
        return err_sys(e, errno, "list nf_tables");
    while (more == MNL_CB_OK) {
        n = mnl_socket_recvfrom(s, raw, sizeof(raw));
        if (n < 0)
            return err_sys(e, errno, "list nf_tables");
        more = mnl_cb_run(raw, (size_t)n, seq, mnl_socket_get_portid(s), on_listed, &l);
    }
    /* EINVAL, EOPNOTSUPP: the kernel has netfilter but no nf_tables. */
    if (more < 0 && errno != EINVAL && errno != EOPNOTSUPP)
        return err_sys(e, errno, "list nf_tables");
    return ERR_OK;
}

static enum err_code nft_list(bool chains, bool (*fn)(const struct found *f, void *arg), void *arg,
                              struct err *e)
{
    enum err_code code = ERR_OK;

    for (int i = 0; i < LIST_TRIES; i++) {
        code = list_once(chains, fn, arg, e);
        if (code == ERR_OK || e->sys != EINTR)
            break;
    }
    return code;
}

struct names {
    struct strs *ret;
    bool ok;
};

static bool nft_add_name(const struct found *f, void *arg)
{
    struct names *v = arg;

    str_auto name = f->chain != NULL ? str_printf("%s %s %s", f->family, f->table, f->chain)
                                     : str_printf("%s %s", f->family, f->table);

    v->ok = name != NULL && strs_add_once(v->ret, name);
    return v->ok;
}

enum err_code cni_nft_list(struct strs *ret, struct err *e)
{
    struct names v = { .ret = ret, .ok = true };

    if (nft_list(false, nft_add_name, &v, e) != ERR_OK || nft_list(true, nft_add_name, &v, e) != ERR_OK)
        return e->code;
    return v.ok ? ERR_OK : err_nomem(e);
}

/* ---- removing ---- */

static bool is_iptables_table(const char *table)
{
    return strcmp(table, "nat") == 0 || strcmp(table, "filter") == 0;
}

static bool add_removable(const struct found *f, void *arg)
{
    struct names *v = arg;

    if (!is_iptables_table(f->table) ||
        (f->chain != NULL && (!f->hooked || f->policy != NF_ACCEPT || !cni_rules_is_built_in(f->chain))))
        return true;
    return nft_add_name(f, arg) && v->ok;
}

/* A batch of one deletion: BEGIN, the deletion, END. 0, or the kernel's errno. */
static int delete_one(struct mnl_socket *s, const char *family, const char *table, const char *chain,
                      uint32_t seq)
{
    char raw[1024] __attribute__((aligned(8)));
    uint8_t number = strcmp(family, "ip") == 0 ? NFPROTO_IPV4 : NFPROTO_IPV6;
    struct nlmsghdr *h = nft_put_header(raw, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, seq);
    char *end = raw + h->nlmsg_len;
    ssize_t n;

    h = nft_put_header(end, message(chain != NULL ? NFT_MSG_DELCHAIN : NFT_MSG_DELTABLE),
                       NLM_F_NONREC | NLM_F_ACK, number, 0, seq + 1);
    mnl_attr_put_strz(h, chain != NULL ? NFTA_CHAIN_TABLE : NFTA_TABLE_NAME, table);
    if (chain != NULL)
        mnl_attr_put_strz(h, NFTA_CHAIN_NAME, chain);
    end += h->nlmsg_len;
    h = nft_put_header(end, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, seq + 2);
    end += h->nlmsg_len;
    if (mnl_socket_sendto(s, raw, (size_t)(end - raw)) < 0)
        return errno;
    n = mnl_socket_recvfrom(s, raw, sizeof(raw));
    if (n < 0)
        return errno;
    return mnl_cb_run(raw, (size_t)n, 0, mnl_socket_get_portid(s), NULL, NULL) < 0 ? errno : 0;
}

static enum err_code nft_remove_all(const struct strs *names, const struct strs *before, struct err *e)
{
    scoped(mnl_socket_close) struct mnl_socket *s = names->n > 0 ? connect_netfilter(e) : NULL;

    if (names->n > 0 && s == NULL)
        return e->code;
    for (size_t i = 0; i < names->n; i++) {
        char family[8], table[128], chain[128] = "";
        int n, sys;

        if (strs_has(before, names->v[i]))
            continue;
        n = sscanf(names->v[i], "%7s %127s %127s", family, table, chain);
        if (n < 2)
            continue;
        sys = delete_one(s, family, table, n == 3 ? chain : NULL, 10 * (uint32_t)(i + 1));
        if (sys != 0 && sys != EBUSY && sys != ENOENT)
            return err_sys(e, sys, "remove nf_tables %s", names->v[i]);
    }
    return ERR_OK;
}

enum err_code cni_nft_remove_empty(const struct strs *before, struct err *e)
{
    struct strs chains = { 0 }, tables = { 0 };
    struct names c = { .ret = &chains, .ok = true }, t = { .ret = &tables, .ok = true };
    enum err_code code = nft_list(true, add_removable, &c, e);

    if (code == ERR_OK)
        code = nft_list(false, add_removable, &t, e);
    if (code == ERR_OK && !(c.ok && t.ok))
        code = err_nomem(e);
    if (code == ERR_OK)
        code = nft_remove_all(&chains, before, e);
    if (code == ERR_OK)
        code = nft_remove_all(&tables, before, e);
    strs_done(&chains);
    strs_done(&tables);
    return code;
}
