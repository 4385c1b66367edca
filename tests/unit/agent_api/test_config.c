/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMap and Secret. */
#include "helper.h"

#include "agent/api/manifest/internal.h"

#define CONFIG_MAP(rest) "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" rest
#define SECRET(rest) "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n" rest

static const struct api_config *the_config(const struct decoded *d)
{
    for (size_t i = 0; i < d->problems.n; i++)
        print_message("%s: %s\n", d->problems.v[i].field, d->problems.v[i].message);
    assert_int_equal(d->objects.n, 1);
    return d->objects.v[0].config;
}

static void holds(const struct api_config *c, const char *key, const char *wanted, bool binary)
{
    const struct api_datum *d = api_config_get(c, key);

    assert_non_null(d);
    assert_int_equal(d->size, strlen(wanted));
    assert_memory_equal(d->data, wanted, d->size);
    assert_int_equal(d->binary, binary);
}

static void values_are_sorted_by_key_and_found(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d, CONFIG_MAP("immutable: true\ndata: {b: two, c: '', a: one}\nbinaryData: {bin: aGk=}\n"));
    assert_int_equal(the_config(&d)->n_data, 4);
    assert_true(the_config(&d)->immutable);
    assert_string_equal(the_config(&d)->data[0].key, "a");
    holds(the_config(&d), "a", "one", false);
    holds(the_config(&d), "b", "two", false);
    holds(the_config(&d), "bin", "hi", true);
    holds(the_config(&d), "c", "", false);
    assert_null(api_config_get(the_config(&d), "nope"));
    decoded_done(&d);
    decode(&d, CONFIG_MAP(""));
    assert_int_equal(the_config(&d)->n_data, 0);
    assert_null(api_config_get(the_config(&d), "x"));
    decoded_done(&d);
}

static void config_maps_are_checked(void **state)
{
    (void)state;
    text_is_bad(
        CONFIG_MAP("data: {..x: a, b: 5, c: d, 'e/f': g}\nbinaryData: {c: aGk=, h: '%%'}\nimmutable: "
                   "1\nstringData: {}\n"),
        "data[b]: expected a string, got a number: put it in quotes",
        "data[..x]: the key \"..x\" must be 1 to 253 letters, digits, '-', '_' and '.', not \".\" and not "
        "beginning with \"..\"",
        "data[e/f]: the key \"e/f\" must be 1 to 253 letters, digits, '-', '_' and '.', not \".\" and not "
        "beginning with \"..\"",
        "binaryData[h]: expected base64, padded with '='; plain text goes into data",
        "immutable: expected true or false, got a number", "stringData: unknown field",
        "data[c]: the key is in binaryData, too");
    text_is_bad(CONFIG_MAP("data: [a]\nbinaryData: x\n"), "data: expected an object, got a list",
                "binaryData: expected an object, got a string");
}

static void string_data_is_laid_over_data(void **state)
{
    struct decoded d;

    (void)state;
    decode(&d, SECRET("data: {a: b25l, b: dHdv}\nstringData: {b: zwei, c: drei}\n"));
    assert_int_equal(the_config(&d)->n_data, 3);
    holds(the_config(&d), "a", "one", false);
    holds(the_config(&d), "b", "zwei", false);
    holds(the_config(&d), "c", "drei", false);
    assert_string_equal(the_config(&d)->type, "Opaque");
    decoded_done(&d);
}

static void base64_is_read_as_go_reads_it(void **state)
{
    static const struct {
        const char *text;
        const char *wanted; /* NULL: refused */
    } cases[] = { { "", "" },           { "YQ==", "a" },         { "YWI=", "ab" },
                  { "YWJj", "abc" },    { "YW\nJj\r\n", "abc" }, { "+/+/", "\xfb\xff\xbf" },
                  { "YR==", "a" },      { "YQ=", NULL },         { "YQ", NULL },
                  { "Y", NULL },        { "=", NULL },           { "Y===", NULL },
                  { "YQ==YQ==", NULL }, { "YQ=a", NULL },        { "Y Q=", NULL },
                  { "-_-_", NULL },     { "====", NULL },        { "YWJj=", NULL },
                  { "YWJj====", NULL } };
    unsigned char out[64];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n = 99;
        bool ok = api_base64(cases[i].text, strlen(cases[i].text), out, &n);

        if (ok != (cases[i].wanted != NULL))
            fail_msg("\"%s\"", cases[i].text);
        if (!ok)
            continue;
        assert_int_equal(n, strlen(cases[i].wanted));
        assert_memory_equal(out, cases[i].wanted, n);
    }
}

static void secret_types_need_their_keys(void **state)
{
    (void)state;
    text_is_bad(SECRET("type: kubernetes.io/tls\n"), "data[tls.crt]: required for type kubernetes.io/tls",
                "data[tls.key]: required for type kubernetes.io/tls");
    /* As in the documentation's example before somebody filled it in. */
    text_is_bad(SECRET("type: kubernetes.io/tls\ndata:\n  tls.crt: REPLACE_ME\n  tls.key: eA==\n"),
                "data[tls.crt]: expected base64, padded with '='; plain text goes into stringData");
    text_is_bad(SECRET("type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '['}\n"),
                "data[.dockerconfigjson]: must be a JSON object for type kubernetes.io/dockerconfigjson");
    text_is_bad(SECRET("type: kubernetes.io/dockercfg\n"),
                "data[.dockercfg]: required for type kubernetes.io/dockercfg");
    text_is_bad(SECRET("type: kubernetes.io/ssh-auth\nstringData: {ssh-privatekey: ''}\n"),
                "data[ssh-privatekey]: required for type kubernetes.io/ssh-auth");
    text_is_bad(SECRET("type: kubernetes.io/basic-auth\n"),
                "data[username]: required for type kubernetes.io/basic-auth",
                "data[password]: required for type kubernetes.io/basic-auth");
    text_is_bad(SECRET("type: kubernetes.io/service-account-token\n"),
                "metadata.annotations[kubernetes.io/service-account.name]: required for type "
                "kubernetes.io/service-account-token");
    text_is_bad(SECRET("stringData: {a: 5}\ndata: {b: 'x y', c: true}\n"),
                "data[c]: expected a string, got a boolean: put it in quotes",
                "stringData[a]: expected a string, got a number: put it in quotes",
                "data[b]: expected base64, padded with '='; plain text goes into stringData");
}

static void secrets_of_known_types_are_fine_with_their_keys(void **state)
{
    static const char *const good[] = {
        "type: kubernetes.io/tls\nstringData: {tls.crt: '', tls.key: ''}\n",
        "type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{\"auths\":{}}'}\n",
        "type: kubernetes.io/ssh-auth\nstringData: {ssh-privatekey: x}\n",
        "type: kubernetes.io/basic-auth\nstringData: {password: ''}\n",
        "type: my/type\n",
        "type: ''\n",
    };
    char text[400];
    struct decoded d;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(text, sizeof(text), SECRET("%s"), good[i]);
        decode(&d, text);
        the_config(&d);
        decoded_done(&d);
    }
}

static void values_have_a_total_limit(void **state)
{
    struct buf b = BUF_INIT(4 << 20);
    struct decoded d;

    (void)state;
    buf_adds(&b, CONFIG_MAP("data:\n  a: x\n  b: '"));
    for (int i = 0; i < 1048575; i++)
        buf_addc(&b, 'y');
    buf_adds(&b, "'\n");
    decode(&d, b.p);
    assert_int_equal(the_config(&d)->n_data, 2);
    decoded_done(&d);
    b.n -= 2;
    b.p[b.n] = '\0';
    buf_adds(&b, "y'\n");
    text_is_bad(b.p, "data: 1048577 bytes are too many, at most 1048576 (1 MiB) are allowed");
    buf_done(&b);
}

static void no_problem_text_shows_a_secrets_value(void **state)
{
    static const char *const texts[] = {
        SECRET("data: {a: hunter2!}\n"),
        SECRET("stringData: {a: hunter2!, a: hunter2!}\n"),
        SECRET("stringData: {a: hunter2!\n"),
        "{\"kind\": \"Secret\", \"data\": {\"a\": \"hunter2!\" \"hunter2!\"}}",
        SECRET("type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: 'hunter2!'}\n"),
        SECRET("stringData: hunter2!\n"),
        SECRET("stringData: {a: {hunter2: 1}}\n"),
    };
    struct decoded d;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        decode(&d, texts[i]);
        assert_true(d.problems.n > 0);
        for (size_t k = 0; k < d.problems.n; k++) {
            assert_null(strstr(d.problems.v[k].message, "hunter2"));
            assert_null(strstr(d.problems.v[k].field, "hunter2"));
        }
        decoded_done(&d);
    }
}

static void references_keep_an_object_alive(void **state)
{
    struct api_config *kept;
    struct decoded d;

    (void)state;
    decode(&d, SECRET("stringData: {a: b}\n"));
    kept = api_config_ref(d.objects.v[0].config);
    decoded_done(&d);
    holds(kept, "a", "b", false);
    api_config_unref(kept);
    api_config_unref(NULL);
    api_pod_unref(NULL);
    api_priority_class_unref(NULL);
}

static void sizes_are_no_values(void **state)
{
    (void)state;
    text_is_bad(
        SECRET("sizes: {password: 12}\n"),
        "sizes: not supported: a placeholder shown instead of the values, which are never shown; set data");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_sorted_by_key_and_found),
        cmocka_unit_test(config_maps_are_checked),
        cmocka_unit_test(string_data_is_laid_over_data),
        cmocka_unit_test(base64_is_read_as_go_reads_it),
        cmocka_unit_test(secret_types_need_their_keys),
        cmocka_unit_test(secrets_of_known_types_are_fine_with_their_keys),
        cmocka_unit_test(values_have_a_total_limit),
        cmocka_unit_test(no_problem_text_shows_a_secrets_value),
        cmocka_unit_test(references_keep_an_object_alive),
        cmocka_unit_test(sizes_are_no_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
