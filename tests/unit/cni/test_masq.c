/* SPDX-License-Identifier: Apache-2.0 */
/* Which rules and chains of a masquerading plugin are removed, from the text of iptables-save. */
#include "cni/masq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define MINE "CNI-baaa2afb2a9ea21404655d14"
#define OTHER "CNI-174ad1a2fcc4f8d1e93565a1"

static const char both[] =
    "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n*nat\n:POSTROUTING ACCEPT [0:0]\n:" MINE " - [0:0]\n:" OTHER
    " - [0:0]\n-A POSTROUTING -s 10.1.0.2/32 -m comment --comment \"name: \\\"x\\\"\" -j " MINE
    "\n-A POSTROUTING -s 10.1.0.3/32 -j " OTHER "\n-A " MINE " -d 10.1.0.0/16 -j ACCEPT\nCOMMIT\n";

static void jump_and_chain_are_removed_by_their_text(void **state)
{
    buf_auto out = BUF_INIT(65536);
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cni_masq_removal(both, MINE, &out, &e), ERR_OK);
    assert_string_equal(
        out.p, "*nat\n-D POSTROUTING -s 10.1.0.2/32 -m comment --comment \"name: \\\"x\\\"\" -j " MINE
               "\n-F " MINE "\n-X " MINE "\nCOMMIT\n");
}

static void an_empty_unreferenced_chain_is_removed(void **state)
{
    buf_auto out = BUF_INIT(65536);
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cni_masq_removal("*nat\n:" MINE " - [0:0]\nCOMMIT\n", MINE, &out, &e), ERR_OK);
    assert_string_equal(out.p, "*nat\n-F " MINE "\n-X " MINE "\nCOMMIT\n");
}

static void nothing_is_done_when_the_chain_is_not_there(void **state)
{
    buf_auto out = BUF_INIT(65536);
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cni_masq_removal("*nat\n:" OTHER " - [0:0]\nCOMMIT\n", MINE, &out, &e), ERR_OK);
    assert_int_equal(out.n, 0);
    assert_int_equal(cni_masq_removal("*filter\n:" MINE " - [0:0]\nCOMMIT\n", MINE, &out, &e), ERR_OK);
    assert_int_equal(out.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jump_and_chain_are_removed_by_their_text),
        cmocka_unit_test(an_empty_unreferenced_chain_is_removed),
        cmocka_unit_test(nothing_is_done_when_the_chain_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
