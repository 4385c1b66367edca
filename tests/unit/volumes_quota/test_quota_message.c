/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "volumes/quota/internal.h"

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/quota.h>
#include <sys/sysmacros.h>

#define FAMILY 27

struct message {
    _Alignas(struct nlmsghdr) char bytes[1024];
    size_t n;
};

/* As fs/quota/netlink.c makes it; `without`: an attribute to leave out. */
static void add(struct message *m, uint32_t kind, uint64_t id, uint32_t type, int without)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(m->bytes + m->n);
    struct genlmsghdr *g;

    h->nlmsg_type = FAMILY;
    g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
    g->cmd = QUOTA_NL_C_WARNING;
    g->version = 1;
    if (without != QUOTA_NL_A_QTYPE)
        mnl_attr_put_u32(h, QUOTA_NL_A_QTYPE, kind);
    if (without != QUOTA_NL_A_EXCESS_ID)
        mnl_attr_put_u64(h, QUOTA_NL_A_EXCESS_ID, id);
    if (without != QUOTA_NL_A_WARNING)
        mnl_attr_put_u32(h, QUOTA_NL_A_WARNING, type);
    if (without != QUOTA_NL_A_DEV_MAJOR)
        mnl_attr_put_u32(h, QUOTA_NL_A_DEV_MAJOR, 253);
    if (without != QUOTA_NL_A_DEV_MINOR)
        mnl_attr_put_u32(h, QUOTA_NL_A_DEV_MINOR, 16);
    mnl_attr_put_u64(h, QUOTA_NL_A_CAUSED_ID, 1000);
    m->n += h->nlmsg_len;
}

struct seen {
    struct quota_warning w[4];
    size_t n;
};

static void on_warning(const struct quota_warning *w, void *arg)
{
    struct seen *s = arg;

    assert_true(s->n < ARRAY_LEN(s->w));
    s->w[s->n++] = *w;
}

static bool read_message(const struct message *m, struct seen *s)
{
    memset(s, 0, sizeof(*s));
    return quota_message_read(m->bytes, m->n, FAMILY, on_warning, s);
}

static void warnings_about_projects_are_read(void **state)
{
    struct message m = { .n = 0 };
    struct seen s;

    (void)state;
    add(&m, PRJQUOTA, 1048577, QUOTA_NL_BSOFTWARN, -1);
    add(&m, USRQUOTA, 1000, QUOTA_NL_BHARDWARN, -1); /* not of a project */
    add(&m, PRJQUOTA, UINT32_MAX, QUOTA_NL_IHARDWARN, -1);
    assert_true(read_message(&m, &s));
    assert_int_equal(s.n, 2);
    assert_int_equal(s.w[0].project, 1048577);
    assert_int_equal(s.w[0].type, QUOTA_NL_BSOFTWARN);
    assert_int_equal(s.w[0].device, makedev(253, 16));
    assert_false(s.w[0].lost);
    assert_int_equal(s.w[1].type, QUOTA_NL_IHARDWARN);
}

static void damaged_messages_are_noticed(void **state)
{
    static const int attributes[] = { QUOTA_NL_A_QTYPE, QUOTA_NL_A_EXCESS_ID, QUOTA_NL_A_WARNING,
                                      QUOTA_NL_A_DEV_MAJOR, QUOTA_NL_A_DEV_MINOR };
    struct seen s;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++) {
        struct message m = { .n = 0 };
        add(&m, PRJQUOTA, 5, 1, attributes[i]);
        assert_false(read_message(&m, &s));
        assert_int_equal(s.n, 0);
    }
    for (size_t cut = 1;; cut++) {
        struct message m = { .n = 0 };
        add(&m, PRJQUOTA, 5, 1, -1);
        if (cut > m.n)
            break;
        m.n -= cut;
        assert_false(read_message(&m, &s));
    }
    {
        struct message m = { .n = 0 };
        add(&m, PRJQUOTA, 5, 1, -1);
        ((struct nlmsghdr *)m.bytes)->nlmsg_len = 0x80000010u; /* beyond 2 GiB */
        assert_false(read_message(&m, &s));
        ((struct nlmsghdr *)m.bytes)->nlmsg_len = (uint32_t)m.n;
        assert_false(quota_message_read(m.bytes, m.n, FAMILY + 1, on_warning, &s));
    }
}

static void on_other(const struct quota_warning *w, void *arg)
{
    (void)w;
    (void)arg;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

/* Kernels without the family say so; with it, opening and closing leaves nothing on the loop. */
static void the_kernels_warnings_are_listened_to(void **state)
{
    struct quota_warn *w = NULL;
    struct err e = { 0 };
    bool closed = false;
    uv_loop_t loop;

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    if (quota_warn_open(&w, &loop, on_other, NULL, &e) == ERR_OK) {
        quota_warn_close(w, on_closed, &closed);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_true(closed);
    } else {
        assert_int_equal(e.code, ERR_PRECONDITION);
        print_message("%s\n", e.text);
    }
    quota_warn_close(NULL, NULL, NULL);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings_about_projects_are_read),
        cmocka_unit_test(damaged_messages_are_noticed),
        cmocka_unit_test(the_kernels_warnings_are_listened_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
