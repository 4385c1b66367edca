/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "agent/api/selector.h"

#define T(text) ((char[]){ text })

static struct api_kv pairs[] = {
    { T("app"), T("web") }, { T("empty"), T("") }, { T("env"), T("prod") }, { T("example.com/size"), T("12") }
};
static const struct api_kvs labels = { pairs, 4 };

static bool matches(const char *text)
{
    scoped(api_selector_free) struct api_selector *s = NULL;
    struct err e = { 0 };

    if (api_selector_parse(text, &s, &e) != ERR_OK)
        fail_msg("%s: %s", text, e.text);
    return api_selector_matches(s, &labels);
}

static void refused(const char *text, const char *wanted)
{
    struct api_selector *s = NULL;
    struct err e = { 0 };

    assert_int_equal(api_selector_parse(text, &s, &e), ERR_INVALID);
    assert_string_equal(e.text, wanted);
    assert_null(s);
}

static void an_empty_selector_selects_everything(void **state)
{
    (void)state;
    assert_true(matches(""));
    assert_true(matches("  \t"));
}

static void equality_takes_one_or_two_signs_and_blanks(void **state)
{
    (void)state;
    assert_true(matches("app=web"));
    assert_true(matches("app==web"));
    assert_true(matches(" app = web , env == prod "));
    assert_false(matches("app=db"));
    assert_false(matches("other=x"));
    assert_true(matches("empty="));
    assert_false(matches("app="));
    assert_true(matches("empty=,app=web"));
    assert_true(matches("example.com/size=12"));
}

static void inequality_holds_for_what_is_absent(void **state)
{
    (void)state;
    assert_false(matches("app!=web"));
    assert_true(matches("app!=db"));
    assert_true(matches("other!=x"));
    assert_true(matches("other notin (x,y)"));
    assert_false(matches("env notin (dev,prod)"));
}

static void sets_hold_values_and_perhaps_the_empty_one(void **state)
{
    (void)state;
    assert_true(matches("env in (dev, prod)"));
    assert_false(matches("env in (dev)"));
    assert_false(matches("other in (dev)"));
    assert_true(matches("empty in (,a)"));
    assert_true(matches("empty in (a,)"));
    assert_true(matches("env in (a,b,c,d,e,f,g,prod)"));
}

static void existence_and_absence_need_only_the_key(void **state)
{
    (void)state;
    assert_true(matches("app"));
    assert_false(matches("other"));
    assert_true(matches("!other"));
    assert_false(matches("!app"));
    assert_true(matches("app,!other,empty"));
}

static void greater_and_less_compare_numbers(void **state)
{
    (void)state;
    assert_true(matches("example.com/size>11"));
    assert_false(matches("example.com/size > 12"));
    assert_true(matches("example.com/size<13"));
    assert_false(matches("app>1"));
    assert_false(matches("other<1"));
}

static void in_and_notin_may_be_keys_and_values(void **state)
{
    (void)state;
    assert_true(matches("!in"));
    assert_true(matches("in!=notin"));
    assert_false(matches("in in (in)"));
}

static void mistakes_say_what_was_expected(void **state)
{
    (void)state;
    refused("app=web,", "label selector \"app=web,\" ends where a label key is expected");
    refused(",app", "label selector \",app\": found \",\" where a label key is expected");
    refused("app=(web)", "label selector \"app=(web)\": found \"(\" where a value is expected");
    refused("app in web", "label selector \"app in web\": found \"web\" where '(' is expected");
    refused("app in (web", "label selector \"app in (web\" ends where ',' or ')' is expected");
    refused("app in ()", "label selector \"app in ()\": the set of values of app is empty");
    refused("app web",
            "label selector \"app web\": found \"web\" where one of , = == != > < in notin is expected");
    refused("app>x", "label selector \"app>x\": found \"x\" where a whole number is expected");
    refused("!app=web", "label selector \"!app=web\": found \"=\" where ',' is expected");
    refused("-a=b",
            "label selector: the key \"-a\" must be a name of 1 to 63 characters (letters, digits, '-', '_', "
            "'.', beginning and ending with a letter or digit), optionally behind a DNS name and '/'");
    refused(
        "a=-b",
        "label selector: the value \"-b\" of a must be empty or 1 to 63 letters, digits, '-', '_' and '.', "
        "beginning and ending with a letter or digit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_selector_selects_everything),
        cmocka_unit_test(equality_takes_one_or_two_signs_and_blanks),
        cmocka_unit_test(inequality_holds_for_what_is_absent),
        cmocka_unit_test(sets_hold_values_and_perhaps_the_empty_one),
        cmocka_unit_test(existence_and_absence_need_only_the_key),
        cmocka_unit_test(greater_and_less_compare_numbers),
        cmocka_unit_test(in_and_notin_may_be_keys_and_values),
        cmocka_unit_test(mistakes_say_what_was_expected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
