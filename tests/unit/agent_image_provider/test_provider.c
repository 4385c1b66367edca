/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "agent/image/provider/image_glob.h"
#include "agent/image/provider/internal.h"
#include "base/buf.h"
#include "base/codec/json.h"

#include <string.h>

#define V1 PROVIDER_GROUP "v1"

/* ---- matching ---- */

static void globs_match_as_kubelets(void **state)
{
    static const struct {
        const char *glob, *repository;
        bool is;
    } rows[] = {
        { "r.io", "r.io/team/x", true },
        { "r.io", "s.io/team/x", false },
        { "*.r.io", "a.r.io/x", true },
        { "*.r.io", "r.io/x", false },
        { "*.io", "a.r.io/x", false }, /* a star is one part */
        { "*.*.io", "a.r.io/x", true },
        { "a*.r.io", "ab.r.io/x", true },
        { "*.dkr.ecr.*.amazonaws.com", "1.dkr.ecr.eu.amazonaws.com/x", true },
        { "r.io:5000", "r.io:5000/x", true },
        { "r.io", "r.io:5000/x", false },
        { "r.io:5000", "r.io/x", false },
        { "r.io/team", "r.io/team/x", true },
        { "r.io/te", "r.io/team/x", true }, /* a prefix of the text */
        { "r.io/other", "r.io/team/x", false },
        { "*.io/team", "r.io/team/x", true },
        { "[::1]:5000", "[::1]:5000/x", true },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (image_glob_matches(rows[i].glob, rows[i].repository) != rows[i].is)
            fail_msg("%s for %s", rows[i].glob, rows[i].repository);
}

/* ---- the configuration ---- */

#define HEAD "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n"
#define NAMED "{name: p, apiVersion: " V1 ", "
#define LEAST NAMED "matchImages: [r.io], defaultCacheDuration: 1h"

static enum err_code read_config(struct provider_set *s, const char *text, struct err *e)
{
    static const char *const environment[] = { "PATH=/bin", "NOTIFY_SOCKET=/x", "A=ours", NULL };

    return provider_config_read(s, text, strlen(text), "/opt/p", environment, e);
}

static void a_configuration_is_read(void **state)
{
    static const char text[] = HEAD "providers:\n"
                                    "- {name: z, apiVersion: " V1 "beta1, matchImages: [z.io], "
                                    "defaultCacheDuration: 0s}\n"
                                    "- " LEAST ", args: [get, x], env: [{name: A, value: b}]}\n";
    struct provider_set s = { 0 };
    struct err e = { 0 };

    (void)state;
    if (read_config(&s, text, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.v[0].name, "p"); /* sorted */
    assert_string_equal(s.v[0].version, V1);
    assert_string_equal(s.v[1].version, V1 "beta1");
    assert_int_equal(s.v[0].argv.n, 3);
    assert_string_equal(s.v[0].argv.v[0], "/opt/p/p");
    assert_string_equal(s.v[0].argv.v[2], "x");
    assert_int_equal(s.v[0].env.n, 2); /* without systemd's */
    assert_string_equal(s.v[0].env.v[1], "A=b");
    assert_true(s.v[0].default_ns == INT64_C(3600) * 1000000000);
    assert_true(provider_is_for(&s.v[0], "r.io/x"));
    assert_false(provider_is_for(&s.v[0], "z.io/x"));
    provider_config_done(&s);
}

static void a_wrong_configuration_names_the_field(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        { "a", "kind: must be CredentialProviderConfig" },
        { "", "there are 0 documents instead of one" },
        { "apiVersion: v1\nkind: CredentialProviderConfig\n",
          "apiVersion: must be kubelet.config.k8s.io/v1, v1beta1 or v1alpha1 of that group" },
        { HEAD, "providers: needs at least one entry" },
        { HEAD "x: 1", "x: unknown field; known are apiVersion, kind, providers" },
        { HEAD "providers: [1]", "providers[0]: must be a map" },
        { HEAD "providers: [" LEAST ", tokenAttributes: {}}]",
          "providers[0]: tokenAttributes: is not supported: providers get no token of a pod's service "
          "account" },
        { HEAD "providers: [" LEAST ", x: 1}]", "providers[0]: x: unknown field; known are name, "
                                                "matchImages, defaultCacheDuration, apiVersion, args, "
                                                "env" },
        { HEAD "providers: [{name: a/b, apiVersion: " V1 "}]",
          "providers[0]: name: must be the name of a program, without \"/\" and spaces" },
        { HEAD "providers: [{name: p}]", "providers[0]: apiVersion: is required" },
        { HEAD "providers: [{name: p, apiVersion: v1}]",
          "providers[0]: apiVersion: must be " V1 ", v1beta1 or v1alpha1 of that group" },
        { HEAD "providers: [" NAMED "matchImages: []}]",
          "providers[0]: matchImages: needs at least one entry" },
        { HEAD "providers: [" NAMED "matchImages: ['https://r.io']}]",
          "providers[0]: matchImages[0]: must be a host as \"*.example.com\", which may be followed by a "
          "port "
          "and a path, without a scheme" },
        { HEAD "providers: [" NAMED "matchImages: [r.io]}]",
          "providers[0]: defaultCacheDuration: is required" },
        { HEAD "providers: [" NAMED "matchImages: [r.io], defaultCacheDuration: -1s}]",
          "providers[0]: defaultCacheDuration: must be a duration such as \"12h\", at least 0s" },
        { HEAD "providers: [" LEAST ", args: [1]}]", "providers[0]: args[0]: must be a text" },
        { HEAD "providers: [" LEAST ", env: [{value: a}]}]",
          "providers[0]: env[0]: name and value must be strings, and name must not contain \"=\"" },
        { HEAD "providers: [" LEAST "}, " LEAST "}]", "providers[1].name: \"p\" is given twice" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct provider_set s = { 0 };
        struct err e = { 0 };

        assert_int_equal(read_config(&s, rows[i].text, &e), ERR_INVALID);
        assert_string_equal(e.text, rows[i].error);
        assert_null(s.v);
    }
}

static void the_program_must_be_there(void **state)
{
    struct provider_set *s = NULL;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(provider_set_open(&s, "/nonexistent/x.yaml", "/opt/p", NULL, &e), ERR_NOT_FOUND);
    assert_non_null(strstr(e.text, "/nonexistent/x.yaml"));
    assert_null(s);
}

/* ---- answers ---- */

#define ANSWER(more) "{\"apiVersion\":\"" V1 "\",\"kind\":\"CredentialProviderResponse\"," more "}"

static void an_answer_is_read(void **state)
{
    static const char text[] =
        ANSWER("\"cacheKeyType\":\"Registry\",\"cacheDuration\":\"5m\",\"auth\":{\"*.r.io\":"
               "{\"username\":\"u\",\"password\":\"p\"}}");
    static const char least[] = ANSWER("\"cacheKeyType\":\"Global\"");
    struct provider_answer a = { 0 };
    struct err e = { 0 };

    (void)state;
    if (provider_answer_read(&a, text, strlen(text), V1, &e) != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(a.scope, PROVIDER_REGISTRY);
    assert_true(a.has_duration && a.duration_ns == INT64_C(300) * 1000000000);
    assert_string_equal(json_str(json_object_get(a.auths, "*.r.io"), "password"), "p");
    provider_answer_done(&a);
    assert_int_equal(provider_answer_read(&a, least, strlen(least), V1, &e), ERR_OK);
    assert_false(a.has_duration);
    assert_int_equal(json_object_size(a.auths), 0);
    provider_answer_done(&a);
}

static void a_wrong_answer_is_refused(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        { "", "its answer is not a CredentialProviderResponse" },
        { "secret", "its answer is not a CredentialProviderResponse" },
        { "{}", "its answer has the kind \"\", where a CredentialProviderResponse is needed" },
        { "{\"kind\":\"CredentialProviderResponse\",\"apiVersion\":\"v2\"}",
          "its answer has the apiVersion \"v2\", where " V1 " is configured" },
        { ANSWER("\"cacheKeyType\":\"Pod\""),
          "cacheKeyType of its answer is \"Pod\", where Image, Registry or Global is needed" },
        { ANSWER("\"cacheKeyType\":\"Image\",\"cacheDuration\":5"),
          "cacheDuration of its answer is not a duration as \"5m\", but \"\"" },
        { ANSWER("\"cacheKeyType\":\"Image\",\"auth\":[]"), "auth of its answer is not a map" },
        { ANSWER("\"cacheKeyType\":\"Image\",\"auth\":{\"r.io\":{\"password\":5}}"),
          "auth of its answer needs texts as username and password of \"r.io\"" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct provider_answer a = { 0 };
        struct err e = { 0 };

        assert_int_equal(provider_answer_read(&a, rows[i].text, strlen(rows[i].text), V1, &e), ERR_INVALID);
        assert_string_equal(e.text, rows[i].error);
        assert_null(a.auths);
    }
}

static void an_answer_is_bounded(void **state)
{
    buf_auto text = BUF_INIT(PROVIDER_ANSWER_MAX + 10);
    struct provider_answer a = { 0 };
    struct err e = { 0 };

    (void)state;
    buf_adds(&text, "{\"apiVersion\":\"" V1 "\",\"kind\":\"CredentialProviderResponse\","
                    "\"cacheKeyType\":\"Image\",\"auth\":{");
    for (int i = 0; i <= PROVIDER_AUTHS_MAX; i++)
        buf_addf(&text, "%s\"r%d.io\":{}", i > 0 ? "," : "", i);
    buf_adds(&text, "}}");
    assert_int_equal(provider_answer_read(&a, text.p, text.n, V1, &e), ERR_INVALID);
    assert_string_equal(e.text, "auth of its answer has more than 100 entries");
}

/* ---- the cache ---- */

#define HOUR_NS (INT64_C(3600) * 1000000000)

static void put(struct provider_cache *c, const char *repository, enum provider_scope scope,
                const char *value, size_t bytes, int64_t for_ns)
{
    json_t *auths = json_pack("{s:s}", "v", value);

    provider_cache_put(c, "p", repository, scope, auths, bytes, for_ns);
    provider_wipe(auths);
}

static void is_kept(struct provider_cache *c, const char *repository, const char *value)
{
    json_t *auths = provider_cache_find(c, "p", repository);

    if (value == NULL)
        assert_null(auths);
    else
        assert_string_equal(json_str(auths, "v"), value);
    provider_wipe(auths);
}

static void answers_are_kept_for_an_image_a_registry_or_all(void **state)
{
    struct provider_cache c = { 0 };

    (void)state;
    put(&c, "r.io/a", PROVIDER_IMAGE, "image", 1, HOUR_NS);
    is_kept(&c, "r.io/a", "image");
    is_kept(&c, "r.io/b", NULL);
    put(&c, "r.io/a", PROVIDER_REGISTRY, "registry", 1, HOUR_NS);
    is_kept(&c, "r.io/a", "image");
    is_kept(&c, "r.io/b", "registry");
    is_kept(&c, "s.io/b", NULL);
    put(&c, "r.io/a", PROVIDER_GLOBAL, "all", 1, HOUR_NS);
    is_kept(&c, "s.io/b", "all");
    assert_null(provider_cache_find(&c, "other", "s.io/b"));
    provider_cache_done(&c);
    assert_int_equal(c.bytes, 0);
}

static void what_is_too_old_or_too_much_is_dropped(void **state)
{
    struct provider_cache c = { 0 };
    char name[40];

    (void)state;
    put(&c, "r.io/a", PROVIDER_IMAGE, "old", 1, -1);
    is_kept(&c, "r.io/a", NULL);
    assert_int_equal(c.bytes, 0);
    for (int i = 0; i <= PROVIDER_CACHE_MAX; i++) {
        snprintf(name, sizeof(name), "r.io/%d", i);
        put(&c, name, PROVIDER_IMAGE, "x", 1, HOUR_NS);
    }
    assert_int_equal(HASH_COUNT(c.kept), PROVIDER_CACHE_MAX);
    is_kept(&c, "r.io/0", NULL);
    is_kept(&c, "r.io/1", "x");
    put(&c, "r.io/big", PROVIDER_IMAGE, "x", PROVIDER_CACHE_BYTES - 1, HOUR_NS);
    assert_int_equal(HASH_COUNT(c.kept), 2);
    is_kept(&c, name, "x"); /* the newest one */
    provider_cache_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs_match_as_kubelets),
        cmocka_unit_test(a_configuration_is_read),
        cmocka_unit_test(a_wrong_configuration_names_the_field),
        cmocka_unit_test(the_program_must_be_there),
        cmocka_unit_test(an_answer_is_read),
        cmocka_unit_test(a_wrong_answer_is_refused),
        cmocka_unit_test(an_answer_is_bounded),
        cmocka_unit_test(answers_are_kept_for_an_image_a_registry_or_all),
        cmocka_unit_test(what_is_too_old_or_too_much_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
