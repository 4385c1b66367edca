/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are read, and what they say together. */
#include "tests/unit/agent_kube_config/helper.h"

#define ONE(name, token)                                                                                     \
    "clusters: [{name: " name ", cluster: {server: 'https://" name ".test'}}]\nusers: [{name: " name         \
    ", user: {token: " token "}}]\ncontexts: [{name: " name ", context: {cluster: " name ", user: " name     \
    "}}]\ncurrent-context: " name "\n"

static void the_first_file_with_a_name_has_it_whole(void **state)
{
    struct place *p = *state;

    put(p, "a", "users: [{name: b, user: {token: first}}]\ncurrent-context: ''\n");
    put(p, "b", ONE("b", "second"));
    put(p, "c", ONE("c", "third"));
    use_list(p, ":@nope:@a::@b:@c:@a:");
    gives(p, "{\"server\":\"https://b.test\",\"token\":\"first\"}");
    assert_int_equal(p->all.files.n, 3);
    assert_int_equal(p->all.missing.n, 1);
    assert_true(str_ends(p->choice.of[KUBE_USER].from, "/a"));
    assert_true(str_ends(p->choice.of[KUBE_CONTEXT].named, "/b"));
}

static void an_entry_is_not_completed_by_a_later_file(void **state)
{
    struct place *p = *state;

    put(p, "a", "clusters: [{name: b, cluster: {tls-server-name: x}}]\n");
    put(p, "b", ONE("b", "t"));
    use_list(p, "@a:@b");
    is_refused(p, "cluster \"b\" in @a has no server");
}

static void without_a_list_the_file_of_the_home_is_read(void **state)
{
    struct place *p = *state;

    put(p, ".kube/config", ONE("a", "t"));
    gives(p, "{\"server\":\"https://a.test\",\"token\":\"t\"}");
    use_list(p, "");
    gives(p, "{\"server\":\"https://a.test\",\"token\":\"t\"}");
    use_list(p, "@nope");
    is_refused(p, "there is no kubeconfig: these files do not exist: @nope");
}

static void a_file_by_flag_is_alone_and_has_to_exist(void **state)
{
    struct place *p = *state;
    str_auto a = str_printf("%s/a:b", p->dir); /* a colon is part of the name */
    str_auto b = str_printf("%s/b", p->dir);

    put(p, "a:b", ONE("a", "t"));
    use_list(p, "@nope");
    p->flags.kubeconfig = a;
    gives(p, "{\"server\":\"https://a.test\",\"token\":\"t\"}");
    p->flags.kubeconfig = b;
    is_refused(p, "stat @b: No such file or directory");
}

static void a_file_that_cannot_be_used_fails_everything(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        { "hello", "it is a text, where a mapping is needed" },
        { "apiVersion: v2", "apiVersion: \"v2\" is not \"v1\"" },
        { "kind: Pod", "kind: \"Pod\" is not \"Config\"" },
        { "clusters: {}", "clusters: a mapping, where a list is needed" },
        { "clusters: [x]", "clusters[0]: a text, where a mapping is needed" },
        { "clusters: [{name: 1}]",
          "clusters[0]: name: a number, where a text is needed (numbers need quotes)" },
        { "users: [{name: a}, {name: a}]", "users[1]: duplicate name \"a\" in list" },
        { "users: [{name: a, user: {token: 12}}]", "users[0]: \"a\": user: token: a number, where a text is "
                                                   "needed (numbers and words like yes, on, y need "
                                                   "quotes)" },
        { "users: [{name: a, user: {exec: {args: [a, n]}}}]",
          "users[0]: \"a\": user: exec: args: [1]: true or false, where a text is needed (numbers and words "
          "like "
          "yes, on, y need quotes)" },
        { "users: [{name: a, user: {as-user-extra: {k: v}}}]",
          "users[0]: \"a\": user: as-user-extra: [k]: a text, where a list of texts is needed" },
        { "clusters: [{name: a, cluster: {insecure-skip-tls-verify: 'true'}}]",
          "clusters[0]: \"a\": cluster: insecure-skip-tls-verify: a text, where true or false is needed" },
        { "clusters: [{name: a, cluster: {certificate-authority-data: 'YQ'}}]",
          "clusters[0]: \"a\": cluster: certificate-authority-data: it is not base64" },
        { "clusters: [{name: a, cluster: {extensions: [{name: e}, {name: e}]}}]",
          "clusters[0]: \"a\": cluster: extensions: [1]: the name \"e\" is given twice" },
        { "a: [b",
          "document 1: line 2 column 1: did not find expected ',' or ']' (while parsing a flow sequence "
          "that began in line 1)" },
    };
    struct place *p = *state;

    put(p, "good", ONE("b", "t"));
    use_list(p, "@good:@bad");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        str_auto error = str_printf("error loading config file \"@bad\": %s", rows[i].error);
        put(p, "bad", rows[i].text);
        is_refused(p, error);
    }
    use_list(p, "@bad:@.");
    is_refused(
        p, "error loading config file \"@bad\": document 1: line 2 column 1: did not find expected ',' or "
           "']' (while parsing a flow sequence that began in line 1); error loading config file \"@.\": "
           "read @.: Is a directory");
}

static void what_a_kubeconfig_does_not_have_is_dropped(void **state)
{
    struct place *p = *state;

    put(p, "a",
        ONE("a", "first") "users: [{name: a, user: {Token: x, token: last, shade: dark}}]\nbogus: 1\n"
                          "---\nthis is: [not looked at\n");
    use_list(p, "@a");
    gives(p, "{\"server\":\"https://a.test\",\"token\":\"last\"}"); /* of a key given twice the last counts */
    put(p, "a", "clusters: null\nusers: [null, {name: a, user: null}]\ncurrent-context: null\n");
    is_refused(p, "current-context is not set in @a");
}

static void relative_paths_begin_at_their_file(void **state)
{
    struct place *p = *state;

    put(p, "one/k",
        "clusters: [{name: c, cluster: {server: h.test:6443, certificate-authority: ../pki/./ca}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n");
    put(p, "two/k", "users: [{name: u, user: {tokenFile: tok}}]\n");
    put(p, "two/tok", " filetoken \n");
    put(p, "pki/ca", CERTIFICATE);
    use_list(p, "@one/k:@two/k");
    gives(p, "{\"server\":\"http://h.test:6443\"}"); /* no scheme: http, and nothing secret goes there */
    put(p, "one/k",
        "clusters: [{name: c, cluster: {server: https://h.test, certificate-authority: ../pki/./ca}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n");
    gives(p, "{\"anew\":true,\"ca\":\"-----BEGIN CERTIFICATE-----\\nAAAA\\n-----END CERTIFICATE-----\\n\","
             "\"server\":\"https://h.test\",\"token\":\"filetoken\"}");
    assert_true(str_ends(p->message.paths.v[0], "/pki/ca"));
}

static void a_pipe_is_no_kubeconfig(void **state)
{
    struct place *p = *state;
    str_auto path = str_printf("%s/pipe", p->dir);

    assert_int_equal(mkfifo(path, 0600), 0);
    use_list(p, "@pipe");
    is_refused(p, "error loading config file \"@pipe\": read @pipe: it is not a regular file");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, place_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_first_file_with_a_name_has_it_whole),     TEST(an_entry_is_not_completed_by_a_later_file),
        TEST(without_a_list_the_file_of_the_home_is_read), TEST(a_file_by_flag_is_alone_and_has_to_exist),
        TEST(a_file_that_cannot_be_used_fails_everything), TEST(what_a_kubeconfig_does_not_have_is_dropped),
        TEST(relative_paths_begin_at_their_file),          TEST(a_pipe_is_no_kubeconfig),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
