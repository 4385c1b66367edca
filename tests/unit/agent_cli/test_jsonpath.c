/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static json_t *object(void)
{
    return json_loads(
        "{\"kind\": \"List\", \"deep\": {\"a\": {\"b\": \"deep\"}}, \"numbers\": [1, 2, 3.5], \"n\": 3, "
        "\"yes\": true, \"none\": null, \"labels\": {\"a.b/c\": \"dots\", "
        "\"x\": \"y\"},"
        " \"items\": [{\"name\": \"one\", \"ips\": [{\"ip\": \"10.0.0.1\"}, {\"ip\": \"fd00::1\"}]},"
        " {\"name\": \"two\", \"ips\": []}]}",
        0, NULL);
}

static void templates_print_what_kubectl_prints(void **state)
{
    static const char *const cases[][2] = {
        { "{.kind}", "List" },
        { ".kind", "List" },
        { "{$.kind}", "List" },
        { "{.n} {.yes}", "3 true" },
        { "{.items[0].name}", "one" },
        { "{.items[-1].name}", "two" },
        { "{.items[*].name}", "one two" },
        { "{.items[0].ips[*].ip}", "10.0.0.1 fd00::1" },
        { "{.items..name}", "one two" },
        { "{..ip}", "10.0.0.1 fd00::1" },
        { "{..['ip']}", "10.0.0.1 fd00::1" },
        { "{.items[?(@.name==\"one\")].ips[0].ip}", "10.0.0.1" },
        { "{.items[?(@.name != 'one')].name}", "two" },
        { "{.items[?(@.ips[0])].name}", "one" },
        { "{.items[?(@.ips[?(@.ip==\"fd00::1\")])].name}", "one" },
        { "{.items[?(@.name > \"one\")].name}|{.items[?(@.absent)].name}", "two|" },
        { "{.numbers[?(@ >= 2)]}", "2 3.5" },
        { "{.numbers[?(@ == $.n)]}|{.numbers[?(@ == 2.0)]}|{.numbers[?(@ < \"x\")]}", "|2|" },
        { "{.numbers[0:2]}|{.numbers[1:]}|{.numbers[:-1]}|{.numbers[-1:]}|{.numbers[::2]}",
          "1 2|2 3.5|1 2|3.5|1 3.5" },
        { "{.numbers[0,2]} {.items[0]['name', 'ips'][0].ip}", "1 3.5 10.0.0.1" },
        { "{.items[0]['absent','ips[0].ip']}{.deep['a.b']}", "deep" },
        { "{range .items[?(@.name)]}{.name}{end}", "onetwo" },
        { "{.labels.a\\.b/c}", "dots" },
        { "{.labels['a.b/c']}", "dots" },
        { "{.labels.*}", "dots y" },
        { "{.labels}", "{\"a.b/c\":\"dots\",\"x\":\"y\"}" },
        { "{.absent.and.more}|{.items[7].name}", "|" },
        { "{range .items[*]}{.name}{\"\\t\"}{.ips[0].ip}{\"\\n\"}{end}", "one\t10.0.0.1\ntwo\t\n" },
        { "{range .items[*]}{.name}:{range .ips[*]} {.ip}{end};{end}done",
          "one: 10.0.0.1 fd00::1;two:;done" },
        { "{range .items[*]}{.name} of {$.kind}, {end}", "one of List, two of List, " },
        { "{ .kind }{'}'}{\"a}b\"}", "List}a}b" },
        { "plain", NULL },
        { "{range .items[*]}{.name}{  end }!", "onetwo!" },
    };
    json_auto_t *o = object();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_auto out = BUF_INIT(4096);
        struct err e = { 0 };

        if (cli_jsonpath(cases[i][0], o, &out, &e) != (cases[i][1] != NULL ? ERR_OK : ERR_INVALID))
            fail_msg("%s: %s", cases[i][0], e.text);
        if (cases[i][1] != NULL && strcmp(out.p, cases[i][1]) != 0)
            fail_msg("%s: %s instead of %s", cases[i][0], out.p, cases[i][1]);
    }
}

static void what_cannot_be_understood_is_named(void **state)
{
    static const char *const cases[][2] = {
        { "{.kind", "jsonpath: a } is missing: {.kind}" },
        { "{kind}", "jsonpath: a path like .status.podIP or .items[0].metadata.name is expected: {kind}" },
        { "{.items[?(@.name=one)]}", "jsonpath: one of == != < <= > >= is expected: {@.name=one}" },
        { "{.items[?(@.name==one)]}",
          "jsonpath: a path, a \"string\", a number, true or false is expected: {one}" },
        { "{.absent[?(@.name==)]}", "jsonpath: a filter like ?(@.name==\"web\") is expected: {@.name==}" },
        { "{.numbers[::0]}", "jsonpath: [n], [from:to:step], [*], ['key'] or [?(...)] is expected: {::0}" },
        { "{.items[?(@..name==1)]}", NULL },
        { "{.items[x]}", "jsonpath: [n], [from:to:step], [*], ['key'] or [?(...)] is expected: {x}" },
        { "{range .items[*]}{.name}", "jsonpath: its {end} is missing: {range .items[*]}" },
        { "{end}", "jsonpath: there is no range before it: {end}" },
        { "{.items[", "jsonpath: a } is missing: {.items[}" },
        { "{.items['x}", "jsonpath: a } is missing: {.items['x}}" },
        { "{}", NULL },
    };
    json_auto_t *o = object();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_auto out = BUF_INIT(4096);
        struct err e = { 0 };

        (void)!cli_jsonpath(cases[i][0], o, &out, &e);
        assert_string_equal(e.text, cases[i][1] != NULL ? cases[i][1] : "");
    }
}

static void ranges_are_not_nested_without_end(void **state)
{
    json_auto_t *o = object();
    buf_auto text = BUF_INIT(64 * 1024), out = BUF_INIT(64 * 1024);
    struct err e = { 0 };

    (void)state;
    for (int i = 0; i < 100; i++)
        buf_adds(&text, "{range $}");
    for (int i = 0; i < 100; i++)
        buf_adds(&text, "{end}");
    assert_int_equal(cli_jsonpath(text.p, o, &out, &e), ERR_INVALID);
    assert_string_equal(e.text, "jsonpath: ranges are nested too deep: {range $}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_print_what_kubectl_prints),
        cmocka_unit_test(what_cannot_be_understood_is_named),
        cmocka_unit_test(ranges_are_not_nested_without_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
