/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the family VFS_DQUOT, as fs/quota/netlink.c makes them. */
#include "volumes/quota/internal.h"

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/quota.h>
#include <sys/sysmacros.h>

struct seen {
    uint32_t kind, type, major, minor;
    uint64_t id;
    unsigned have; /* a bit for each attribute */
};

static bool take_u32(const struct nlattr *a, uint32_t *ret, struct seen *s)
{
    if (mnl_attr_validate(a, MNL_TYPE_U32) < 0)
        return false;
    *ret = mnl_attr_get_u32(a);
    s->have |= 1u << mnl_attr_get_type(a);
    return true;
}

static int on_attribute(const struct nlattr *a, void *data)
{
    struct seen *s = data;

    switch (mnl_attr_get_type(a)) {
    case QUOTA_NL_A_QTYPE:
        return take_u32(a, &s->kind, s) ? MNL_CB_OK : MNL_CB_ERROR;
    case QUOTA_NL_A_WARNING:
        return take_u32(a, &s->type, s) ? MNL_CB_OK : MNL_CB_ERROR;
    case QUOTA_NL_A_DEV_MAJOR:
        return take_u32(a, &s->major, s) ? MNL_CB_OK : MNL_CB_ERROR;
    case QUOTA_NL_A_DEV_MINOR:
        return take_u32(a, &s->minor, s) ? MNL_CB_OK : MNL_CB_ERROR;
    case QUOTA_NL_A_EXCESS_ID:
        if (mnl_attr_validate(a, MNL_TYPE_U64) < 0)
            return MNL_CB_ERROR;
        s->id = mnl_attr_get_u64(a);
        s->have |= 1u << QUOTA_NL_A_EXCESS_ID;
        return MNL_CB_OK;
    default:
        return MNL_CB_OK;
    }
}

static bool read_one(const struct nlmsghdr *h, struct seen *s)
{
    const unsigned needed = 1u << QUOTA_NL_A_QTYPE | 1u << QUOTA_NL_A_WARNING | 1u << QUOTA_NL_A_DEV_MAJOR |
                            1u << QUOTA_NL_A_DEV_MINOR | 1u << QUOTA_NL_A_EXCESS_ID;

    if (mnl_nlmsg_get_payload_len(h) < sizeof(struct genlmsghdr) ||
        ((const struct genlmsghdr *)mnl_nlmsg_get_payload(h))->cmd != QUOTA_NL_C_WARNING)
        return false;
    return mnl_attr_parse(h, sizeof(struct genlmsghdr), on_attribute, s) == MNL_CB_OK &&
           (s->have & needed) == needed;
}

bool quota_message_read(const void *data, size_t n, unsigned family,
                        void (*fn)(const struct quota_warning *w, void *arg), void *arg)
{
    const struct nlmsghdr *h = data;
    int left = n > INT32_MAX ? 0 : (int)n;

    if (left == 0)
        return false;
    while (left > 0) {
        struct seen s = { 0 };

        /* mnl_nlmsg_ok() compares signed lengths. */
        if (left < (int)sizeof(*h) || h->nlmsg_len > (uint32_t)left || !mnl_nlmsg_ok(h, left) ||
            h->nlmsg_type != family || !read_one(h, &s))
            return false;
        if (s.kind == PRJQUOTA && s.id <= UINT32_MAX) {
            const struct quota_warning w = { .device = makedev(s.major, s.minor),
                                             .project = (uint32_t)s.id,
                                             .type = s.type };
            fn(&w, arg);
        }
        h = mnl_nlmsg_next(h, &left);
    }
    return true;
}
