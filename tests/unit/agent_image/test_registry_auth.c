/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "agent/image/registry_auth.h"
#include "base/buf.h"
#include "base/codec/json.h"

#include "tests/unit/base/nomem.h"

static const unsigned char proof_key[SIPHASH_KEY_SIZE] = "a key of a test";

/* The credentials that are tried for a repository, as "key=auth key=auth | key=auth": each file after a bar.
 */
static char *tries(const char *secrets, const char *node, const char *repository)
{
    struct buf out = BUF_INIT(10000);
    struct reg_tries t;
    struct err e = { 0 };

    if (reg_tries_plan(&t, secrets, node, NULL, repository, proof_key, &e) != ERR_OK)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < t.n; i++) {
        json_auto_t *file = t.v[i] == NULL ? json_object() : json_loads(t.v[i], 0, NULL);
        const char *key;
        json_t *value;

        assert_non_null(file);
        if (i > 0)
            buf_adds(&out, " |");
        json_object_foreach (json_object_get(file, "credHelpers"), key, value)
            buf_addf(&out, " %s->%s", key, json_string_value(value));
        json_object_foreach (json_object_get(file, "auths"), key, value)
            buf_addf(&out, " %s=%s", key, json_str(value, "auth"));
    }
    reg_tries_done(&t);
    return buf_detach(&out);
}

#define TRIES(secrets, node, repository, wanted)                                                             \
    do {                                                                                                     \
        char *got_ = tries(secrets, node, repository);                                                       \
        assert_string_equal(got_, wanted);                                                                   \
        free(got_);                                                                                          \
    } while (0)

static void what_providers_answered_is_tried_last(void **state)
{
    static const char secrets[] = "{\"auths\":{\"r.io\":{\"auth\":\"a\"}}}",
                      node[] = "{\"auths\":{\"r.io\":{\"auth\":\"b\"}}}",
                      provided[] = "[{\"auths\":{\"r.io\":{\"username\":\"u\",\"password\":\"p\"}}},"
                                   "{\"auths\":{\"r.io/team\":{\"auth\":\"c\"},\"s.io\":{\"auth\":\"d\"}}}]";
    struct reg_tries t;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(reg_tries_plan(&t, secrets, node, provided, "r.io/team/x", proof_key, &e), ERR_OK);
    assert_int_equal(t.n_secrets, 1);
    assert_int_equal(t.n_node, 2);
    assert_int_equal(t.n_own, 4);
    assert_non_null(strstr(t.v[0], "\"r.io/team/x\":{\"auth\":\"a\"}"));
    assert_non_null(strstr(t.v[1], "\"r.io/team/x\":{\"auth\":\"b\"}"));
    assert_non_null(strstr(t.v[2], "\"r.io/team/x\":{\"auth\":\"c\"}")); /* the longest of all providers */
    assert_non_null(strstr(t.v[3], "\"r.io/team/x\":{\"auth\":\"dTpw\"}"));
    reg_tries_done(&t);
}

static void nothing_is_told_when_there_is_nothing(void **state)
{
    (void)state;
    TRIES(NULL, NULL, "r.io/x", "");
    TRIES("[]", "{}", "r.io/x", "");
    TRIES("[{\"auths\":{}}]", "{\"auths\":null}", "r.io/x", "");
    TRIES("{\"auths\":{\"r.io\":{}}}", NULL, "r.io/x", ""); /* podman logout leaves such */
}

static void all_that_match_are_tried_the_longest_path_first_the_nodes_last(void **state)
{
    (void)state;
    TRIES("[{\"auths\":{\"r.io\":{\"auth\":\"a\"}}},{\"auths\":{\"https://r.io/v1/\":{\"auth\":\"b\"},\"r.io/"
          "team\":{\"auth\":\"c\"}}}]",
          "{\"auths\":{\"r.io\":{\"auth\":\"d\"}}}", "r.io/team/x",
          " r.io/team=c r.io=a r.io/team/x=c | r.io/team=c r.io=a r.io/team/x=a | r.io/team=c r.io=a "
          "r.io/team/x=b |"
          " r.io/team=c r.io=a r.io/team/x=d");
    /* The same credentials twice are one try. */
    TRIES("[{\"auths\":{\"r.io\":{\"auth\":\"a\"}}},{\"auths\":{\"r.io\":{\"auth\":\"a\"}}}]", NULL, "r.io/x",
          " r.io=a r.io/x=a");
}

static void host_port_and_path_must_match(void **state)
{
    static const struct {
        const char *key, *repository;
        bool matches;
    } cases[] = {
        { "r.io", "r.io/a/b", true },
        { "r.io:5000", "r.io/a", false },
        { "r.io", "r.io:5000/a", false },
        { "http://r.io:5000/v2/", "r.io:5000/a", true },
        { "r.io/a", "r.io/ab", true }, /* kubelet compares the beginning of the path */
        { "r.io/a", "r.io/b", false },
        { "*.r.io", "eu.r.io/a", true },
        { "*.r.io", "r.io/a", false },
        { "*.r.io", "a.eu.r.io/a", false },
        { "e?.r.io", "eu.r.io/a", true },
        { "e*.r.io/team", "eu.r.io/team/x", true },
        { "[::1]:5000", "[::1]:5000/a", true },
        { "[::1]", "[::1]:5000/a", false },
        { "index.docker.io", "docker.io/library/x", true },
        { "https://index.docker.io/v1/", "docker.io/me/x", true },
        { "docker.io", "docker.io/me/x", true },
        { "index.docker.io", "r.io/docker.io/x", false },
        { "", "r.io/x", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *secrets = str_printf("{\"auths\":{\"%s\":{\"auth\":\"a\"}}}", cases[i].key);
        char *got = tries(secrets, NULL, cases[i].repository),
             *own = str_printf(" %s=a", cases[i].repository);

        if ((strstr(got, own) != NULL) != cases[i].matches)
            fail_msg("%s for %s:%s", cases[i].key, cases[i].repository, got);
        free(own);
        free(got);
        free(secrets);
    }
}

static void a_user_and_a_password_become_what_skopeo_reads(void **state)
{
    (void)state;
    TRIES("{\"auths\":{\"r.io\":{\"username\":\"user\",\"password\":\"geheim\"}}}", NULL, "r.io/x",
          " r.io=dXNlcjpnZWhlaW0= r.io/x=dXNlcjpnZWhlaW0=");
    TRIES("{\"auths\":{\"r.io\":{\"username\":\"u\",\"password\":\"p\",\"auth\":\"eDp5\"}}}", NULL, "r.io/x",
          " r.io=eDp5 r.io/x=eDp5");
    TRIES("{\"auths\":{\"r.io\":{\"username\":\"u\"}}}", NULL, "r.io/x", " r.io=dTo= r.io/x=dTo=");
}

static void what_is_for_other_registries_is_there_for_mirrors(void **state)
{
    (void)state;
    TRIES("{\"auths\":{\"r.io\":{\"auth\":\"a\"}}}", "{\"auths\":{\"mirror:5000\":{\"auth\":\"m\"}}}",
          "r.io/x", " r.io=a mirror:5000=m r.io/x=a");
    TRIES(NULL, "{\"auths\":{\"mirror:5000\":{\"auth\":\"m\"}}}", "r.io/x", " mirror:5000=m");
}

static void the_nodes_helpers_come_before_its_passwords(void **state)
{
    (void)state;
    TRIES("{\"auths\":{\"r.io\":{\"auth\":\"a\"}}}",
          "{\"credHelpers\":{\"r.io\":\"ecr-login\"},\"auths\":{\"r.io\":{\"auth\":\"n\"},\"q.io\":{\"auth\":"
          "\"q\"}}}",
          "r.io/x", " r.io=a q.io=q r.io/x=a | r.io->ecr-login q.io=q | r.io=a q.io=q r.io/x=n");
    TRIES(NULL, "{\"credsStore\":\"pass\"}", "r.io/x", " r.io->pass");
    TRIES(NULL, "{\"credHelpers\":{\"r.io\":\"../../bin/sh\"}}", "r.io/x", ""); /* a name, not a path */
    TRIES("{\"credHelpers\":{\"r.io\":\"x\"}}", NULL, "r.io/x", ""); /* a pod starts no programs here */
}

static void what_is_not_json_is_named(void **state)
{
    struct reg_tries t;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(reg_tries_plan(&t, "[{]", NULL, NULL, "r.io/x", proof_key, &e), ERR_INVALID);
    assert_true(str_starts(e.text, "image pull secrets: "));
    e = (struct err){ 0 };
    assert_int_equal(reg_tries_plan(&t, NULL, "auths", NULL, "r.io/x", proof_key, &e), ERR_INVALID);
    assert_true(str_starts(e.text, "the node's registry credentials: "));
    assert_int_equal(t.n, 0);
}

#define SECRET(name, auth) "{\"namespace\":\"team\",\"name\":\"" name "\",\"uid\":\"\",\"config\":" auth "}"
#define AUTH(pair) "{\"auths\":{\"r.io\":{\"auth\":\"" pair "\"}}}"

/* Of the k-th try: "namespace/name hash", or "-". */
static void whose(const char *secrets, const char *node, size_t k, char ret[100])
{
    struct reg_tries t;
    struct err e = { 0 };

    assert_int_equal(reg_tries_plan(&t, secrets, node, NULL, "r.io/x", proof_key, &e), ERR_OK);
    assert_true(k < t.n);
    assert_int_equal(t.with_secrets, secrets != NULL);
    snprintf(ret, 100, "-");
    if (t.whose[k] != NULL)
        snprintf(ret, 100, "%s/%s %s", json_str(t.whose[k], "namespace"), json_str(t.whose[k], "name"),
                 json_str(t.whose[k], "hash"));
    reg_tries_done(&t);
}

static void a_try_tells_whose_credentials_it_is_and_not_what_they_are(void **state)
{
    static const char two[] = "[" SECRET("a", AUTH("QQ==")) "," SECRET("b", AUTH("Qg==")) "]";
    char a[100], b[100], again[100], other[100];

    (void)state;
    whose(two, AUTH("Qw=="), 0, a);
    whose(two, AUTH("Qw=="), 1, b);
    assert_true(str_starts(a, "team/a "));
    assert_int_equal(strlen(a), strlen("team/a ") + 16);
    assert_true(str_starts(b, "team/b "));
    assert_string_not_equal(a + 7, b + 7);
    whose(two, AUTH("Qw=="), 2, other); /* the node's */
    assert_string_equal(other, "-");
    whose(AUTH("QQ=="), NULL, 0, other);
    assert_string_equal(other, "-");
    whose("[" SECRET("c", AUTH("QQ==")) "]", NULL, 0, again);
    assert_string_equal(again + 7, a + 7); /* the same credentials, elsewhere */
    whose("[" SECRET("c", "{\"auths\":{\"r.io\":{\"username\":\"A\",\"password\":\"\"}}}") "]", NULL, 0,
          other);
    assert_string_not_equal(other + 7, a + 7); /* "A:", not "A" */
}

/* A try that a secret gave would be everybody's without its name. */
static void without_memory_no_try_loses_whose_it_is(void **state)
{
    static const char two[] = "[" SECRET("a", AUTH("QQ==")) "," SECRET(
        "b", "{\"auths\":{\"r.io\":{\"username\":\"A\",\"password\":\"b\"}}}") "]";
    bool ok = false;

    (void)state;
    NOMEM_EACH(ok, {
        struct reg_tries t;
        struct err e = { 0 };

        ok = reg_tries_plan(&t, two, NULL, NULL, "r.io/x", proof_key, &e) == ERR_OK;
        if (ok && (t.n != 2 || t.whose[0] == NULL || t.whose[1] == NULL))
            abort();
        reg_tries_done(&t);
    });
}

/* Each try holds all entries, so that three Secrets make three times the large one. */
static void what_is_too_much_to_try_is_refused_and_the_largest_secret_named(void **state)
{
    struct buf text = BUF_INIT(REG_AUTH_MAX);
    struct reg_tries t;
    struct err e = { 0 };

    (void)state;
    buf_adds(&text, "[" SECRET("a", AUTH("QQ==")) ",{\"namespace\":\"team\",\"name\":\"big\",\"uid\":\"\","
                                                  "\"config\":{\"auths\":{\"q.io\":{\"auth\":\"");
    for (size_t i = 0; i < 3u << 20; i++)
        buf_addc(&text, 'Q');
    buf_adds(&text, "\"}}}}," SECRET("b", AUTH("Qg==")));
    const size_t two = text.n;
    buf_adds(&text, "," SECRET("c", AUTH("Qw==")) "]");
    assert_false(text.failed);
    assert_int_equal(reg_tries_plan(&t, text.p, NULL, NULL, "r.io/x", proof_key, &e), ERR_INVALID);
    assert_string_equal(e.text, "registry credentials: all that would be tried has more than 8 MiB together; "
                                "Secret \"team/big\" has 3072 KiB");
    assert_int_equal(t.n, 0);
    e = (struct err){ 0 };
    text.p[two] = ']';
    text.p[two + 1] = '\0';
    assert_int_equal(reg_tries_plan(&t, text.p, NULL, NULL, "r.io/x", proof_key, &e), ERR_OK);
    assert_int_equal(t.n, 2);
    reg_tries_done(&t);
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_providers_answered_is_tried_last),
        cmocka_unit_test(nothing_is_told_when_there_is_nothing),
        cmocka_unit_test(all_that_match_are_tried_the_longest_path_first_the_nodes_last),
        cmocka_unit_test(host_port_and_path_must_match),
        cmocka_unit_test(a_user_and_a_password_become_what_skopeo_reads),
        cmocka_unit_test(what_is_for_other_registries_is_there_for_mirrors),
        cmocka_unit_test(the_nodes_helpers_come_before_its_passwords),
        cmocka_unit_test(what_is_not_json_is_named),
        cmocka_unit_test(a_try_tells_whose_credentials_it_is_and_not_what_they_are),
        cmocka_unit_test(what_is_too_much_to_try_is_refused_and_the_largest_secret_named),
    };
    const struct CMUnitTest nomem[] = { cmocka_unit_test(without_memory_no_try_loses_whose_it_is) };

    return cmocka_run_group_tests(tests, NULL, NULL) + NOMEM_RUN(nomem);
}
