/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "agent/api/yaml/yaml.h"

#include <time.h>

static json_t *read_all(const char *text, size_t n, int **numbers)
{
    json_t *docs = NULL;
    struct err e = { 0 };

    if (yaml_to_json(text, n, &docs, numbers, NULL, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return docs;
}

/* The text's only document as compact JSON with sorted keys. */
static void becomes(const char *text, const char *wanted)
{
    int *numbers = NULL;
    json_t *docs = read_all(text, strlen(text), &numbers);
    char *got = json_dumps(json_array_get(docs, 0), JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    if (got == NULL || strcmp(got, wanted) != 0)
        fail_msg("%s\nbecame %s\nnot    %s", text, got, wanted);
    assert_int_equal(json_array_size(docs), 1);
    free(got);
    free(numbers);
    json_decref(docs);
}

static void refused_n(const char *text, size_t n, const char *wanted, size_t good_docs)
{
    json_t *docs = NULL;
    int *numbers = NULL;
    struct err e = { 0 };

    assert_int_equal(yaml_to_json(text, n, &docs, &numbers, NULL, &e), ERR_INVALID);
    assert_string_equal(e.text, wanted);
    assert_int_equal(json_array_size(docs), good_docs);
    json_decref(docs);
    free(numbers);
}

static void refused(const char *text, const char *wanted)
{
    refused_n(text, strlen(text), wanted, 0);
}

static void scalars_are_typed_as_kubernetes_does(void **state)
{
    (void)state;
    becomes("[yes, No, on, OFF, true, False]", "[true,false,true,false,true,false]");
    becomes("[y, n, Y, N, yEs, maybe]", "[\"y\",\"n\",\"Y\",\"N\",\"yEs\",\"maybe\"]");
    becomes("[~, null, NULL, ]", "[null,null,null]");
    becomes("a:", "{\"a\":null}");
    becomes("[1, -2, +3, 0, 1_000]", "[1,-2,3,0,1000]");
    becomes("[0644, 0o644, 0x1F, 0b101, -0b11, -0x10]", "[420,420,31,5,-3,-16]");
    becomes("[08, 1.5, .5, 5., 1e3, 1.5e-3]", "[8.0,1.5,0.5,5.0,1000.0,0.0015]");
    becomes("[9223372036854775807, -9223372036854775808]", "[9223372036854775807,-9223372036854775808]");
    becomes("[18446744073709551616]", "[1.8446744073709552e19]");
    becomes("[2001-01-01, 12:30:45, 1.2.3.4, 1e999, 0x, 0xg, 1e, '-', + ]",
            "[\"2001-01-01\",\"12:30:45\",\"1.2.3.4\",\"1e999\",\"0x\",\"0xg\",\"1e\",\"-\",\"+\"]");
}

static void quotes_and_tags_decide(void **state)
{
    (void)state;
    becomes("['1', \"yes\", '~', !!str 5, ! 5]", "[\"1\",\"yes\",\"~\",\"5\",\"5\"]");
    becomes("[!!int '5', !!float 5, !!bool 'on', !!null '']", "[5,5.0,true,null]");
    becomes("!!map {a: !!seq [1]}", "{\"a\":[1]}");
    refused("a: !!int x", "document 1: line 1 column 4: this value does not fit its tag");
    refused("a: !!binary aGVsbG8=",
            "document 1: line 1 column 4: this value has a tag that is not supported, allowed "
            "are !!str !!int !!float !!bool !!null");
    refused("a: !custom {b: 1}", "document 1: line 1 column 4: this tag is not supported here; a text that "
                                 "begins with ! needs quotes");
    refused("a: .inf", "document 1: line 1 column 4: this value is not a valid JSON number, put it in "
                       "quotes if it is a text");
}

static void an_escaped_single_quote_in_double_quotes_is_one(void **state)
{
    (void)state;
    becomes("a: [\"it\\'s\", 'x', \"\\\\'\"]\nb: \"\\'\"", "{\"a\":[\"it's\",\"x\",\"\\\\'\"],\"b\":\"'\"}");
    becomes("\xef\xbb\xbf\xc3\xa4: \"\xc3\xb6\\'\\'\\n\\\"\\'\"", "{\"\xc3\xa4\":\"\xc3\xb6''\\n\\\"'\"}");
    becomes("{a: \"\\'\", b: \"\\\n  \\'\"}", "{\"a\":\"'\",\"b\":\"'\"}");
    refused("a: \"\\q\"", "document 1: line 1 column 5: found unknown escape character (while parsing a "
                          "quoted scalar that began in line 1)");
    refused("a: \"\\'\\q\"", "document 1: line 1 column 6: found unknown escape character (while parsing a "
                             "quoted scalar that began in line 1)");
    refused("a: \"\\'",
            "document 1: line 1 column 6: found unexpected end of stream (while scanning a quoted "
            "scalar that began in line 1)");
}

static void block_texts_keep_their_lines(void **state)
{
    (void)state;
    becomes("a: |\n  one\n  two\nb: >-\n  x\n  y\n", "{\"a\":\"one\\ntwo\\n\",\"b\":\"x y\"}");
    becomes("a: |-\n  1\n", "{\"a\":\"1\"}");
}

static void aliases_are_copied_and_merge_keys_followed(void **state)
{
    (void)state;
    becomes("a: &x {b: 1}\nc: *x\n", "{\"a\":{\"b\":1},\"c\":{\"b\":1}}");
    becomes("a: &x 5\nb: *x\n", "{\"a\":5,\"b\":5}");
    becomes("base: &x {a: 1, b: 2}\nc:\n  a: 3\n  <<: *x\n",
            "{\"base\":{\"a\":1,\"b\":2},\"c\":{\"a\":3,\"b\":2}}");
    becomes("x: &x {a: 1}\ny: &y {a: 2, b: 2}\nc:\n  <<: [*x, *y]\n  b: 9\n",
            "{\"c\":{\"a\":1,\"b\":9},\"x\":{\"a\":1},\"y\":{\"a\":2,\"b\":2}}");
    becomes("'<<': 1", "{\"<<\":1}");
    becomes("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}");
    refused("a: 1\n<<: 2\n", "document 1: line 2 column 5: \"<<\" needs a mapping or a list of mappings");
    refused("a: *nope",
            "document 1: line 1 column 4: unknown anchor; a text that begins with * needs quotes");
    refused("a: &x [1, *x]", "document 1: line 1 column 11: this anchor contains itself");
}

static void an_anchor_of_an_earlier_document_is_not_known(void **state)
{
    static const char text[] = "a: &x 1\n---\nb: *x\n";

    (void)state;
    refused_n(text, strlen(text),
              "document 2: line 3 column 4: unknown anchor; a text that begins with * needs quotes", 1);
}

static void keys_must_be_texts_and_unique(void **state)
{
    (void)state;
    refused("a: 1\nb: 2\na: 3\n", "document 1: line 3 column 1: the key \"a\" is given twice");
    refused("1: x", "document 1: line 1 column 1: the key \"1\" is not read as a text, put it in quotes");
    refused("on: x", "document 1: line 1 column 1: the key \"on\" is not read as a text, put it in quotes");
    refused("?\n: x", "document 1: line 1 column 2: a key is missing in front of ':'");
    refused("[1]: x", "document 1: line 1 column 1: a key must be a text, not a mapping or a list");
    refused("? {a: 1}\n: x", "document 1: line 1 column 3: a key must be a text, not a mapping or a list");
    becomes("y: 1\n'2': x\n", "{\"2\":\"x\",\"y\":1}");
}

static void documents_are_counted_and_empty_ones_left_out(void **state)
{
    static const char text[] = "# nothing\n---\na: 1\n---\n# empty\n---\nb: 2\n...\n";
    int *numbers = NULL;
    json_t *docs;

    (void)state;
    docs = read_all(text, strlen(text), &numbers);
    assert_int_equal(json_array_size(docs), 2);
    assert_int_equal(numbers[0], 1);
    assert_int_equal(numbers[1], 3);
    free(numbers);
    json_decref(docs);

    docs = read_all("", 0, &numbers);
    assert_int_equal(json_array_size(docs), 0);
    free(numbers);
    json_decref(docs);
}

static void documents_before_a_mistake_are_kept(void **state)
{
    static const char text[] = "a: 1\n---\nb: [\n---\nc: 3\n";

    (void)state;
    refused_n(text, strlen(text),
              "document 2: line 4 column 1: did not find expected node content (while parsing a flow node "
              "that began in "
              "line 4)",
              1);
}

static void a_tab_is_named_as_such(void **state)
{
    (void)state;
    refused("a:\n\tb: 1\n", "document 1: line 2 column 1: a tab cannot be used for indentation, use blanks");
}

static void bytes_that_are_no_text_are_refused(void **state)
{
    (void)state;
    refused_n("a: x\0y\n", 7,
              "document 1: line 1 column 5: control characters are not allowed (byte 0x00), a manifest "
              "is UTF-8 text",
              0);
    refused("a: b\nc: \xff\xfe\n",
            "document 1: line 2 column 4: invalid leading UTF-8 octet (byte 0xff), a manifest is "
            "UTF-8 text");
    refused("a: \"x\\0y\"", "document 1: line 1 column 4: this value contains a NUL character");
    refused("{\"a\": \"x\\u0000y\"}",
            "document 1: line 1 column 16: not JSON: a value contains a NUL character");
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void aliases_that_multiply_end_at_once(void **state)
{
    struct buf b = BUF_INIT(1 << 20);
    double began = seconds();

    (void)state;
    buf_adds(&b, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 30; i++)
        buf_addf(&b, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    refused(b.p, "document 1: line 6 column 22: more than 500000 values after expanding aliases");
    buf_reset(&b);
    buf_adds(&b, "a: &a '");
    for (int i = 0; i < 900000; i++)
        buf_addc(&b, 'x');
    buf_adds(&b, "'\nb: [");
    for (int i = 0; i < 100; i++)
        buf_adds(&b, "*a,");
    buf_adds(&b, "]\n");
    refused(b.p, "document 1: line 2 column 113: more than 32 MiB after expanding aliases");
    buf_done(&b);
    assert_true(seconds() - began < 5); /* some 30 ms; sanitizers are slow */
}

static void nesting_has_a_limit(void **state)
{
    struct buf b = BUF_INIT(1 << 20);

    (void)state;
    for (int i = 0; i < 64; i++)
        buf_addc(&b, '[');
    for (int i = 0; i < 64; i++)
        buf_addc(&b, ']');
    {
        int *numbers = NULL;
        json_t *docs = read_all(b.p, b.n, &numbers);
        json_decref(docs);
        free(numbers);
    }
    buf_reset(&b);
    for (int i = 0; i < 65; i++)
        buf_addc(&b, '[');
    refused(b.p, "document 1: line 1 column 65: more than 64 levels deep");
    buf_reset(&b);
    for (int i = 0; i < 100000; i++)
        buf_adds(&b, "{\"a\":");
    refused(b.p, "document 1: line 1 column 10241: not JSON: maximum parsing depth reached");
    buf_reset(&b);
    buf_adds(&b, "a: &a [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n"
                 "b: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[*a]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n");
    refused(b.p, "document 1: line 2 column 44: more than 64 levels deep");
    buf_done(&b);
}

static void a_brace_begins_json(void **state)
{
    (void)state;
    becomes("{\"a\": 1,\t\"b\": \"\\ud83d\\ude00\\/\"}", "{\"a\":1,\"b\":\"\xf0\x9f\x98\x80/\"}");
    becomes("\xef\xbb\xbf\n\t {\n\t\"a\": [\n\t\t1\n\t]\n}\n", "{\"a\":[1]}");
    refused("{\"a\": 1, \"a\": 2}",
            "document 1: line 1 column 12: not JSON: duplicate object key near '\"a\"'");
    refused("{\"a\": [1,}", "document 1: line 1 column 10: not JSON: unexpected token");
    refused("{\"a\": \"secret\" \"b\"}", "document 1: line 1 column 18: not JSON: '}' expected");
}

static void a_brace_without_a_quote_begins_yaml_in_flow_style(void **state)
{
    (void)state;
    becomes("{a: 1, b: yes}", "{\"a\":1,\"b\":true}");
    /* As the examples of the Kubernetes documentation are written. */
    becomes(
        "---\n{\n  # why\n  a: \"\\\n     one\\n\\\n     two\\n\\\n    \", # here\n  b: [{ c: 1, }, ],\n}\n",
        "{\"a\":\"one\\ntwo\\n\",\"b\":[{\"c\":1}]}");
    refused(
        "{ a: 1,\n b: [1 }",
        "document 1: line 2 column 8: did not find expected ',' or ']' (while parsing a flow sequence that "
        "began in line 2)");
}

static void json_documents_may_follow_one_another(void **state)
{
    static const char text[] = "{\"a\": 1}\n{\"b\": 2}\n---\n{\"c\": 3}\n";
    static const char broken[] = "{\"a\": 1}\n\n{\"b\": ]}\n";
    int *numbers = NULL;
    json_t *docs;

    (void)state;
    docs = read_all(text, strlen(text), &numbers);
    assert_int_equal(json_array_size(docs), 3);
    assert_int_equal(numbers[2], 3);
    free(numbers);
    json_decref(docs);
    refused_n(broken, strlen(broken), "document 2: line 3 column 7: not JSON: unexpected token", 1);
}

static void printed(const char *json, const char *wanted)
{
    json_t *v = json_loads(json, JSON_DECODE_ANY, NULL);
    char *text = yaml_from_json(v);

    assert_non_null(v);
    assert_string_equal(text, wanted);
    free(text);
    json_decref(v);
}

static void json_prints_as_kubectl_does(void **state)
{
    (void)state;
    printed("{\"b\":1,\"a\":[{\"x\":true,\"w\":null},\"s\"],\"c\":{},\"d\":[]}",
            "a:\n- w: null\n  x: true\n- s\nb: 1\nc: {}\nd: []\n");
    printed("{\"a\":\"yes\",\"b\":\"12\",\"c\":\"\",\"d\":\"a: b\",\"e\":\"n\",\"f\":\"plain "
            "text\",\"g\":\"0x1f\"}",
            "a: \"yes\"\nb: \"12\"\nc: \"\"\nd: 'a: b'\ne: \"n\"\nf: plain text\ng: \"0x1f\"\n");
    printed("{\"a\":\"one\\ntwo\\n\",\"b\":\"\xc3\xa9\"}", "a: |\n  one\n  two\nb: \xc3\xa9\n");
    printed("{\"a\":1.5,\"b\":-3}", "a: 1.5\nb: -3\n");
}

/* Other readers of YAML 1.1 would take them for times, and for numbers to the base of 60. */
static void texts_that_look_like_times_are_quoted(void **state)
{
    static const char *const quoted[] = {
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.123456Z",
        "2026-01-02t3:4:5+02:00",
        "2026-01-02",
        "2026-1-2",
        "2026-01-02 03:04:05",
        "2026-01-02 03:04:05.5",
        "1:30",
        "-12:30:45.25",
        "1_0:59",
    };
    static const char *const plain[] = {
        "2026-01-02T03:04:05",
        "2026-13-02",
        "2026-01-02T24:00:00Z",
        "12026-01-02",
        "2026-01-02x",
        "2026-01-02T03:04:05X",
        "1:60",
        "80:8080",
        "1:2:x",
        "10.0.0.1:80",
        "a1:30",
        "1-2-3",
        "2026-01-02 03:04:05Z",
        "2026-01-02T03",
        "+x",
    };
    char json[100], wanted[100];

    (void)state;
    for (size_t i = 0; i < sizeof(quoted) / sizeof(quoted[0]); i++) {
        snprintf(json, sizeof(json), "{\"t\":\"%s\"}", quoted[i]);
        snprintf(wanted, sizeof(wanted), "t: \"%s\"\n", quoted[i]);
        printed(json, wanted);
    }
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        snprintf(json, sizeof(json), "{\"t\":\"%s\"}", plain[i]);
        snprintf(wanted, sizeof(wanted), "t: %s\n", plain[i]);
        printed(json, wanted);
    }
}

static void what_is_printed_reads_back(void **state)
{
    static const char *const values[] = {
        "{\"a\":\"# no comment\",\"b\":\" lead\",\"c\":\"trail \",\"d\":\"- "
        "x\",\"e\":\"*a\",\"f\":\"!t\",\"g\":\"%\"}",
        "{\"a\":\"tab\\there\",\"b\":\"x\\n\\n "
        "y\\n\",\"c\":\"\\n\",\"d\":\"{\",\"e\":\"null\",\"f\":\"1e3\",\"g\":\"<<\"}",
        "{\"on\":{\"1\":[[],[[1]]]},\"~\":\"\\u007f\\u0085\\u2028\"}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        json_t *v = json_loads(values[i], 0, NULL);
        char *text = yaml_from_json(v);
        int *numbers = NULL;
        json_t *docs = read_all(text, strlen(text), &numbers);

        assert_non_null(v);
        if (!json_equal(v, json_array_get(docs, 0)))
            fail_msg("%s", text);
        json_decref(docs);
        json_decref(v);
        free(numbers);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_are_typed_as_kubernetes_does),
        cmocka_unit_test(quotes_and_tags_decide),
        cmocka_unit_test(an_escaped_single_quote_in_double_quotes_is_one),
        cmocka_unit_test(block_texts_keep_their_lines),
        cmocka_unit_test(aliases_are_copied_and_merge_keys_followed),
        cmocka_unit_test(an_anchor_of_an_earlier_document_is_not_known),
        cmocka_unit_test(keys_must_be_texts_and_unique),
        cmocka_unit_test(documents_are_counted_and_empty_ones_left_out),
        cmocka_unit_test(texts_that_look_like_times_are_quoted),
        cmocka_unit_test(documents_before_a_mistake_are_kept),
        cmocka_unit_test(a_tab_is_named_as_such),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(aliases_that_multiply_end_at_once),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(a_brace_begins_json),
        cmocka_unit_test(a_brace_without_a_quote_begins_yaml_in_flow_style),
        cmocka_unit_test(json_documents_may_follow_one_another),
        cmocka_unit_test(json_prints_as_kubectl_does),
        cmocka_unit_test(what_is_printed_reads_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
