/* SPDX-License-Identifier: Apache-2.0 */
/* Go templates and custom columns print what kubectl prints, and name the place of an error. */
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
        "{\"kind\": \"List\", \"n\": 3, \"half\": 0.5, \"big\": 1e21, \"yes\": true, \"none\": null, "
        "\"empty\": [],"
        " \"labels\": {\"a.b/c\": \"dots\", \"x\": \"y\"}, \"secret\": \"aGVsbG8=\","
        " \"items\": [{\"name\": \"one\", \"ips\": [{\"ip\": \"10.0.0.1\"}, {\"ip\": \"fd00::1\"}]},"
        " {\"name\": \"two\", \"ips\": []}]}",
        0, NULL);
}

/* The expected texts are those of Go's text/template. */
static void go_templates_print_what_kubectl_prints(void **state)
{
    static const char *const cases[][2] = {
        { "", "" },
        { "plain }} {x}", "plain }} {x}" },
        { "{{.kind}} {{.n}} {{.half}} {{.yes}} {{.big}}", "List 3 0.5 true 1e+21" },
        { "{{.none}}|{{.absent}}|{{.absent.more}}", "<no value>|<no value>|<no value>" },
        { "{{.labels}} {{.empty}}", "map[a.b/c:dots x:y] []" },
        { "{{index .labels \"a.b/c\"}} {{index .items 1 \"name\"}}", "dots two" },
        { "{{range .items}}{{.name}}:{{range .ips}} {{.ip}}{{else}} none{{end}}\n{{end}}",
          "one: 10.0.0.1 fd00::1\ntwo: none\n" },
        { "{{range $i, $x := .items}}{{$i}}={{$x.name}} of {{$.kind}} {{end}}",
          "0=one of List 1=two of List " },
        { "{{range $k, $v := .labels}}{{$k}}={{$v}};{{end}}", "a.b/c=dots;x=y;" },
        { "{{if .absent}}a{{else if eq .n 3}}b{{else}}c{{end}}", "b" },
        { "{{if and .yes (not .empty)}}a{{end}}{{if or .none \"\"}}b{{end}}", "a" },
        { "{{with .labels}}{{.x}}{{end}}{{with .absent}}x{{else}}!{{end}}", "y!" },
        { "{{$n := 0}}{{range .items}}{{$n = len .ips}}{{end}}{{$n}}", "0" },
        { "{{$x := \"a\"}}{{if true}}{{$x := \"b\"}}{{$x}}{{end}}{{$x}}", "ba" },
        { "{{- /* a comment */ -}} a {{- .kind -}} b", "aListb" },
        { "{{ .kind | len | printf \"%03d\" }}", "004" },
        { "{{printf \"%-6s|%5.2f|%q|%v|%t|%x%%\" .kind .half .kind .labels .yes \"az\"}}",
          "List  | 0.50|\"List\"|map[a.b/c:dots x:y]|true|617a%" },
        { "{{printf \"%d %s\" .kind .n}}{{printf \"%d\"}}{{printf \"a\" 1}}",
          "%!d(string=List) %!s(int64=3)%!d(MISSING)a%!(EXTRA int64=1)" },
        { "{{printf \"%.2s|%5v|%-5v|%T\" \"abc\" 1 \"x\" .items}}", "ab|    1|x    |[]interface {}" },
        { "{{print 1 2 \"a\" \"b\" 3}}{{println \"x\" 1}}", "1 2ab3x 1\n" },
        { "{{lt 1 2}}{{ge .half 0.5}}{{ne .kind \"x\"}}{{eq .kind \"a\" \"List\"}}{{gt \"a\" \"b\"}}{{le 2 "
          "1}}",
          "truetruetruetruefalsefalse" },
        { "{{exists . \"labels\" \"x\"}} {{exists . \"labels\" \"z\"}} {{base64decode .secret}}",
          "true false hello" },
        { "{{(index .items 0).name}} {{`raw\\n`}} {{\"\\x41\\t\"}}{{'a'}} {{-1}} {{0x10}}",
          "one raw\\n A\t97 -1 16" },
    };
    json_auto_t *o = object();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_auto out = BUF_INIT(4096);
        struct err e = { 0 };

        if (cli_go_template(cases[i][0], o, &out, &e) != ERR_OK)
            fail_msg("%s: %s", cases[i][0], e.text);
        if (strcmp(out.p, cases[i][1]) != 0)
            fail_msg("%s: %s instead of %s", cases[i][0], out.p, cases[i][1]);
    }
}

static void errors_name_the_place(void **state)
{
    static const char *const cases[][2] = {
        { "{{.a", "line 1 column 5: }} is missing" },
        { "a\n{{if .x}}", "line 2 column 3: its {{end}} is missing" },
        { "{{end}}", "line 1 column 8: {{end}} without a block before it" },
        { "{{else}}", "line 1 column 7: {{else}} without a block before it" },
        { "{{$x}}", "line 1 column 3: undefined variable \"$x\"" },
        { "{{if true}}{{$x := 1}}{{end}}{{$x}}", "line 1 column 32: undefined variable \"$x\"" },
        { "{{.kind.x}}", "line 1 column 3: field x of a value of type string" },
        { "{{range .n}}{{end}}", "line 1 column 8: range cannot go over a value of type int64" },
        { "{{index .items 7}}", "line 1 column 3: index 7 is out of range: there are 2" },
        { "{{eq 1 \"a\"}}", "line 1 column 3: int64 and string cannot be compared" },
        { "{{lt true false}}", "line 1 column 3: bool and bool have no order" },
        { "{{len 3}}", "line 1 column 3: len of a value of type int64" },
        { "{{len}}", "line 1 column 3: len with 0 arguments: 1 is expected" },
        { "{{.a .b}}", "line 1 column 3: a value that is no function has arguments" },
        { "{{\"a}}", "line 1 column 3: the string has no end" },
        { "{{template \"x\"}}",
          "line 1 column 3: {{template}} is not supported: there are if, else, range, with and end" },
        { "{{}}", "line 1 column 3: a value is missing" },
        { "{{.a | .b}}", "line 1 column 8: a function is expected after |" },
        { "{{(.a}}", "line 1 column 6: unexpected \"}\"" },
        { "{{1x}}", "line 1 column 3: \"1x\" is no number" },
        { "{{base64decode \"%\"}}", "line 1 column 3: base64decode: not base64" },
    };
    json_auto_t *o = object();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_auto out = BUF_INIT(4096);
        struct err e = { 0 };

        assert_int_equal(cli_go_template(cases[i][0], o, &out, &e), ERR_INVALID);
        if (strncmp(e.text, "go-template: ", 13) != 0 || strcmp(e.text + 13, cases[i][1]) != 0)
            fail_msg("%s: %s instead of %s", cases[i][0], e.text, cases[i][1]);
    }
}

static void templates_are_bounded(void **state)
{
    buf_auto deep = BUF_INIT(64 * 1024), loops = BUF_INIT(64 * 1024), out = BUF_INIT(4096);
    json_auto_t *o = object();
    struct err e = { 0 };

    (void)state;
    for (int i = 0; i < 1000; i++)
        buf_adds(&deep, "{{if (");
    assert_int_equal(cli_go_template(deep.p, o, &out, &e), ERR_INVALID);
    for (int i = 0; i < 30; i++)
        buf_adds(&loops, "{{range $.items}}");
    for (int i = 0; i < 30; i++)
        buf_adds(&loops, "{{end}}");
    e = (struct err){ 0 };
    assert_int_equal(cli_go_template(loops.p, o, &out, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "more than 2000000 steps"));
}

static void custom_columns_are_cells(void **state)
{
    static const char *const cases[][2] = {
        { "NAME:.name,IP:.ips[*].ip", "NAME\tIP\none\t10.0.0.1,fd00::1\ntwo\t<none>\n" },
        { "N:{.name},X:name,Y:{name}", "N\tX\tY\none\tone\tone\ntwo\ttwo\ttwo\n" },
        { "A:.ips[0,1].ip", "A\n10.0.0.1,fd00::1\n<none>\n" },
        { "A:.ips", "A\n[map[ip:10.0.0.1] map[ip:fd00::1]]\n[]\n" },
        { "A", NULL },
        { "A:", NULL },
        { ":.a", NULL },
        { "A:.a,", NULL },
        { "A:{.a}x", NULL },
        { "A:.a[x]", NULL },
    };
    json_auto_t *o = object();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_auto out = BUF_INIT(4096);
        struct err e = { 0 };

        if (cli_columns(cases[i][0], json_object_get(o, "items"), true, &out, &e) !=
            (cases[i][1] != NULL ? ERR_OK : ERR_INVALID))
            fail_msg("%s: %s", cases[i][0], e.text);
        if (cases[i][1] != NULL)
            assert_string_equal(out.p, cases[i][1]);
    }
}

static void a_file_of_columns_has_two_lines(void **state)
{
    buf_auto spec = BUF_INIT(4096), other = BUF_INIT(4096);
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cli_columns_of_file("NAME   IP\n.name  .ip\n", &spec, &e), ERR_OK);
    assert_string_equal(spec.p, "NAME:.name,IP:.ip");
    assert_int_equal(cli_columns_of_file("NAME   IP\n.name\n", &other, &e), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(go_templates_print_what_kubectl_prints),
        cmocka_unit_test(errors_name_the_place),
        cmocka_unit_test(templates_are_bounded),
        cmocka_unit_test(custom_columns_are_cells),
        cmocka_unit_test(a_file_of_columns_has_two_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
