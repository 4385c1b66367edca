/* SPDX-License-Identifier: Apache-2.0 */
/* reservedMemory against the node's reservation, and numbers among options, as in kubelet 1.36. */
#include "tests/unit/agent_placement/helper.h"

#include "agent/placement/options.h"
#include "agent/placement/reserve.h"

static struct quantity quantity_of(const char *text)
{
    struct quantity q;
    struct err e = { 0 };

    assert_int_equal(quantity_parse(text, &q, &e), ERR_OK);
    return q;
}

static void reserve(const char *first, const char *second, const char *type, const char *whole,
                    struct pl_reserved *ret, size_t *n, struct err *e)
{
    struct pl_machine *m = machine_of(1, 2, 1, 1, 1, false);
    const struct pl_reservation v[] = { { 1, type, quantity_of(first) }, { 1, type, quantity_of(second) } };
    const struct pl_reservation all = { 0, "memory", quantity_of(whole) };

    *e = (struct err){ 0 };
    ERR_IGNORE(pl_reserve(m, v, 2, &all, 1, ret, n, e));
    free(m);
}

static void the_last_of_several_amounts_counts(void **state)
{
    struct pl_reserved v[2];
    struct err e;
    size_t n = 0;

    (void)state;
    reserve("512Ki", "512Mi", "memory", "537395200", v, &n, &e);
    assert_int_equal(e.code, ERR_OK);
    assert_int_equal(n, 1);
    assert_int_equal(v[0].node, 1);
    assert_int_equal(v[0].bytes, 536870912);
}

static void the_total_has_the_format_of_the_last_amount(void **state)
{
    struct pl_reserved v[2];
    struct err e;
    size_t n = 0;

    (void)state;
    reserve("1Mi", "1024M", "memory", "441.25M", v, &n, &e);
    assert_int_equal(e.code, ERR_INVALID);
    assert_string_equal(e.text,
                        "the total amount \"1025048576\" of type \"memory\" is not equal to the value "
                        "\"441250k\" determined by Node Allocatable feature");
}

static void each_reserved_type_must_be_reserved_for_the_node(void **state)
{
    struct pl_reserved v[2];
    struct err e;
    size_t n = 0;

    (void)state;
    reserve("256Ki", "256Ki", "cpu", "0", v, &n, &e);
    assert_int_equal(e.code, ERR_INVALID);
    assert_string_equal(e.text, "the total amount \"512Ki\" of type \"cpu\" is not equal to the value \"0\" "
                                "determined by Node Allocatable feature");
}

static void most_nodes(const char *value, enum err_code code, const char *text)
{
    const struct pl_option o = { "max-allowable-numa-nodes", value };
    struct pl_topology t;
    struct err e = { 0 };

    assert_int_equal(pl_topology_read("best-effort", "pod", &o, 1, 9, true, &t, &e), code);
    if (code != ERR_OK)
        assert_non_null(strstr(e.text, text));
}

static void a_number_of_nodes_is_read_as_in_go(void **state)
{
    (void)state;
    most_nodes("+9", ERR_OK, "");
    most_nodes("010", ERR_OK, "");
    most_nodes("8", ERR_RANGE, "unsupported on machines with more than 8 NUMA Nodes");
    most_nodes("\t9", ERR_INVALID, ": invalid syntax");
    most_nodes("9 ", ERR_INVALID, ": invalid syntax");
    most_nodes("0x10", ERR_INVALID, ": invalid syntax");
    most_nodes("9223372036854775808", ERR_INVALID, "\"9223372036854775808\": value out of range");
    most_nodes("-99999999999999999999", ERR_INVALID, ": value out of range");
    most_nodes("99999999999999999999x", ERR_INVALID, ": invalid syntax");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_of_several_amounts_counts),
        cmocka_unit_test(the_total_has_the_format_of_the_last_amount),
        cmocka_unit_test(each_reserved_type_must_be_reserved_for_the_node),
        cmocka_unit_test(a_number_of_nodes_is_read_as_in_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
