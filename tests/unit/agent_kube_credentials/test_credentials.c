/* SPDX-License-Identifier: Apache-2.0 */
/* From a kubeconfig file to messages: files that change, plugins, TLS bootstrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kube/config/message.h"
#include "agent/kube/credentials/credentials.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/process/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEADLINE_MS = 20000 };

#define CERTIFICATE "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
#define KEY "-----BEGIN EC PRIVATE KEY-----\nBBBB\n-----END EC PRIVATE KEY-----\n"
#define HEAD                                                                                                 \
    "apiVersion: v1\nkind: Config\nclusters:\n- {name: c, cluster: {server: 'https://h.test:6443/'}}\n"      \
    "contexts:\n- {name: x, context: {cluster: c, user: u}}\ncurrent-context: x\nusers:\n- name: u\n  "      \
    "user: "

struct node {
    uv_loop_t loop;
    char root[64], kubeconfig[96], bootstrap[96], pki[96];
    struct kube_credentials *c;
    json_t *last; /* the latest message */
    unsigned messages, troubles, recoveries, written;
    struct err trouble, write;
};

static void put(struct node *n, const char *name, const char *text, mode_t mode)
{
    struct err e = { 0 };
    str_auto path = str_printf("%s/%s", n->root, name);

    assert_int_equal(fs_replace_at(AT_FDCWD, path, text, strlen(text), mode, false, &e), ERR_OK);
}

static char *get(const struct node *n, const char *name)
{
    str_auto path = str_printf("%s/%s", n->root, name);
    struct err e = { 0 };
    char *text = NULL;

    if (fs_read_at(AT_FDCWD, path, 65536, &text, NULL, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return text;
}

static void put_user(struct node *n, const char *user)
{
    str_auto text = str_printf("%s%s\n", HEAD, user);

    put(n, "kubeconfig", text, 0600);
}

static void on_credentials(const json_t *message, void *arg)
{
    struct node *n = arg;

    json_decref(n->last);
    n->last = json_deep_copy(message);
    n->messages++;
}

static void on_trouble(const struct err *why, void *arg)
{
    struct node *n = arg;

    if (why == NULL)
        n->recoveries++;
    else
        n->trouble = *why;
    n->troubles += why != NULL;
}

static void on_written(const struct err *result, void *arg)
{
    struct node *n = arg;

    n->write = *result;
    n->written++;
}

static void open_with(struct node *n, bool bootstrap, bool rotate)
{
    static const char *const environment[] = { "PATH=/usr/bin:/bin", "NOTIFY_SOCKET=/n", "FROM=caller",
                                               NULL };
    const struct kube_credentials_options o = {
        .loop = &n->loop,
        .kubeconfig = n->kubeconfig,
        .bootstrap = bootstrap ? n->bootstrap : NULL,
        .cert_dir = n->pki,
        .rotate = rotate,
        .environment = environment,
        .cgroup_fd = -1,
        .on_credentials = on_credentials,
        .on_trouble = on_trouble,
        .arg = n,
    };
    struct err e = { 0 };

    assert_int_equal(kube_credentials_open(&n->c, &o, &e), ERR_OK);
}

static int setup(void **state)
{
    struct node *n = calloc(1, sizeof(*n));

    strcpy(n->root, "/tmp/test-credentials.XXXXXX");
    if (mkdtemp(n->root) == NULL)
        return -1;
    snprintf(n->kubeconfig, sizeof(n->kubeconfig), "%s/kubeconfig", n->root);
    snprintf(n->bootstrap, sizeof(n->bootstrap), "%s/bootstrap", n->root);
    snprintf(n->pki, sizeof(n->pki), "%s/pki", n->root);
    uv_loop_init(&n->loop);
    *state = n;
    return 0;
}

static int teardown(void **state)
{
    struct node *n = *state;
    struct err e = { 0 };

    kube_credentials_close(n->c);
    uv_run(&n->loop, UV_RUN_DEFAULT);
    proc_forget(&n->loop);
    uv_run(&n->loop, UV_RUN_DEFAULT);
    json_decref(n->last);
    if (uv_loop_close(&n->loop) != 0 || op_count() != 0 || fs_remove_tree(AT_FDCWD, n->root, &e) != ERR_OK)
        return -1;
    free(n);
    return 0;
}

static void on_tick(uv_timer_t *t)
{
    (void)t;
}

/* Runs the loop until the condition holds. */
#define UNTIL(n, condition)                                                                                  \
    do {                                                                                                     \
        uint64_t end_ = clock_mono_ms() + DEADLINE_MS;                                                       \
        uv_timer_t tick_;                                                                                    \
        uv_timer_init(&(n)->loop, &tick_);                                                                   \
        uv_timer_start(&tick_, on_tick, 20, 20);                                                             \
        while (!(condition) && clock_mono_ms() < end_)                                                       \
            uv_run(&(n)->loop, UV_RUN_ONCE);                                                                 \
        uv_close((uv_handle_t *)&tick_, NULL);                                                               \
        uv_run(&(n)->loop, UV_RUN_NOWAIT);                                                                   \
        if (!(condition))                                                                                    \
            fail_msg("%s: not seen (trouble: %s)", #condition, (n)->trouble.text);                           \
    } while (0)

#define HAS(n, member, text) str_eq(json_str((n)->last, member), text)

/* ---- files ---- */

static void a_token_in_the_file_is_sent_and_followed(void **state)
{
    struct node *n = *state;

    put_user(n, "{token: one}");
    open_with(n, false, false);
    UNTIL(n, n->messages == 1);
    assert_true(HAS(n, "server", "https://h.test:6443") && HAS(n, "token", "one"));
    assert_ptr_not_equal(kube_credentials_message(n->c), NULL);
    put_user(n, "{token: two}");
    UNTIL(n, HAS(n, "token", "two"));
    assert_int_equal(n->troubles, 0);
}

static void a_token_file_is_read_again_as_soon_as_it_changes(void **state)
{
    struct node *n = *state;

    put(n, "token", " one\n", 0600);
    put_user(n, "{tokenFile: token}");
    open_with(n, false, false);
    UNTIL(n, n->messages == 1);
    assert_true(HAS(n, "token", "one") && json_flag(n->last, "anew"));
    put(n, "token", "two\n", 0600);
    UNTIL(n, HAS(n, "token", "two"));
}

/* As the kubelet of a mounted Secret does it. */
static void a_token_behind_a_symlink_is_followed(void **state)
{
    struct node *n = *state;
    str_auto link = str_printf("%s/token", n->root);
    str_auto next = str_printf("%s/next", n->root);
    struct err e = { 0 };
    str_auto a = str_printf("%s/a", n->root);
    str_auto b = str_printf("%s/b", n->root);

    assert_int_equal(fs_mkdirs(a, 0700, &e), ERR_OK);
    assert_int_equal(fs_mkdirs(b, 0700, &e), ERR_OK);
    put(n, "a/token", "one", 0600);
    put(n, "b/token", "two", 0600);
    assert_int_equal(symlink("a/token", link), 0);
    put_user(n, "{tokenFile: token}");
    open_with(n, false, false);
    UNTIL(n, HAS(n, "token", "one"));
    put(n, "a/token", "one more", 0600); /* behind the link */
    UNTIL(n, HAS(n, "token", "one more"));
    assert_int_equal(symlink("b/token", next), 0);
    assert_int_equal(rename(next, link), 0);
    UNTIL(n, HAS(n, "token", "two"));
}

static void what_cannot_be_used_is_said_once_and_the_message_of_before_stays(void **state)
{
    struct node *n = *state;

    open_with(n, false, false);
    UNTIL(n, n->troubles == 1);
    assert_non_null(strstr(n->trouble.text, "/kubeconfig: No such file or directory"));
    assert_null(kube_credentials_message(n->c));
    put_user(n, "{token: one}");
    UNTIL(n, n->messages == 1 && n->recoveries == 1);
    put_user(n, "{token: one, username: u}");
    UNTIL(n, n->troubles == 2);
    assert_non_null(strstr(n->trouble.text, "more than one authentication method found for u"));
    assert_string_equal(json_str(kube_credentials_message(n->c), "token"), "one");
    put_user(n, "{token: one}");
    UNTIL(n, n->recoveries == 2);
    assert_int_equal(n->messages, 1); /* nothing new */
}

/* ---- plugins ---- */

#define PLUGIN                                                                                               \
    "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never, "       \
    "env: [{name: MORE, value: x}]}}"

static void put_plugin(struct node *n, const char *status)
{
    str_auto text = str_printf("#!/bin/sh\necho \"run $FROM $MORE $NOTIFY_SOCKET\" >>'%s/ran'\n"
                               "[ -e '%s/fail' ] && { echo no luck >&2; exit 3; }\n"
                               "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
                               "\"ExecCredential\",\"status\":{%s}}'\n",
                               n->root, n->root, status);

    put(n, "plugin", text, 0755);
}

static unsigned runs(struct node *n)
{
    str_auto text = get(n, "ran");
    unsigned lines = 0;

    for (const char *p = text; *p != '\0'; p++)
        lines += *p == '\n';
    return lines;
}

static void a_plugin_runs_once_and_again_when_its_token_is_refused(void **state)
{
    struct node *n = *state;
    str_auto ran = NULL;

    put_plugin(n, "\"token\":\"one\"");
    put_user(n, PLUGIN);
    open_with(n, false, false);
    UNTIL(n, HAS(n, "token", "one"));
    assert_true(json_flag(n->last, "anew"));
    ran = get(n, "ran");
    assert_string_equal(ran, "run caller x \n"); /* and nothing of systemd's */
    put_user(n, PLUGIN " # changed");
    put_plugin(n, "\"token\":\"two\"");
    kube_credentials_anew(n->c, "unauthorized");
    UNTIL(n, HAS(n, "token", "two"));
    assert_int_equal(runs(n), 2);
}

static void an_answer_that_expires_is_asked_for_again_before(void **state)
{
    struct node *n = *state;
    char until[CLOCK_RFC3339_SIZE];
    str_auto status = NULL;

    clock_format_s(clock_wall_ns() + INT64_C(4000000000), until);
    status = str_printf("\"token\":\"one\",\"expirationTimestamp\":\"%s\"", until);
    put_plugin(n, status);
    put_user(n, PLUGIN);
    open_with(n, false, false);
    UNTIL(n, HAS(n, "token", "one"));
    assert_string_equal(json_str(n->last, "expires"), until);
    put_plugin(n, "\"token\":\"two\"");
    UNTIL(n, HAS(n, "token", "two"));
    assert_null(json_str(n->last, "expires"));
}

static void a_plugin_that_fails_is_tried_again_and_its_last_words_are_said(void **state)
{
    struct node *n = *state;
    str_auto fail = str_printf("%s/fail", n->root);

    put(n, "fail", "", 0600);
    put_plugin(n, "\"token\":\"one\"");
    put_user(n, PLUGIN);
    open_with(n, false, false);
    UNTIL(n, n->troubles == 1);
    assert_non_null(strstr(n->trouble.text, "/plugin failed with exit code 3: no luck"));
    assert_int_equal(unlink(fail), 0);
    UNTIL(n, HAS(n, "token", "one"));
    assert_int_equal(n->recoveries, 1);
}

static void closing_ends_a_plugin_that_runs(void **state)
{
    struct node *n = *state;
    str_auto started = str_printf("%s/started", n->root);
    str_auto plugin = str_printf("#!/bin/sh\n: >'%s'\nexec sleep 60\n", started);
    uint64_t begin;

    put(n, "plugin", plugin, 0755);
    put_user(n, PLUGIN);
    open_with(n, false, false);
    UNTIL(n, access(started, F_OK) == 0);
    begin = clock_mono_ms();
    kube_credentials_close(n->c);
    n->c = NULL;
    uv_run(&n->loop, UV_RUN_DEFAULT);
    assert_true(clock_mono_ms() - begin < 10000);
    assert_int_equal(n->messages, 0);
}

/* ---- TLS bootstrap ---- */

static void put_bootstrap(struct node *n)
{
    str_auto text = str_printf("%s{token: boot}\n", HEAD);

    put(n, "bootstrap", text, 0600);
}

static void issue(struct node *n, const char *usage, const char *certificate, const char *key)
{
    unsigned before = n->written;
    json_auto_t *m = json_pack("{s:s, s:s*, s:s*}", "usage", usage, "certificate", certificate, "key", key);

    kube_credentials_issued(n->c, m, on_written, n);
    UNTIL(n, n->written == before + 1);
}

static void a_node_without_a_kubeconfig_bootstraps_and_goes_on_with_its_certificate(void **state)
{
    struct node *n = *state;
    str_auto text = NULL;
    struct stat st;

    put_bootstrap(n);
    open_with(n, true, false);
    UNTIL(n, n->messages == 1);
    assert_true(json_flag(n->last, "bootstrap") && HAS(n, "token", "boot"));
    assert_int_equal(access(n->kubeconfig, F_OK), -1); /* only with the certificate, without rotation */
    issue(n, "client", NULL, KEY);
    assert_int_equal(n->write.code, ERR_OK);
    UNTIL(n, HAS(n, "waitingKey", KEY)); /* whoever begins again goes on with this request */
    issue(n, "client", CERTIFICATE, KEY);
    assert_int_equal(n->write.code, ERR_OK);
    UNTIL(n, HAS(n, "certificate", CERTIFICATE KEY));
    assert_false(json_flag(n->last, "bootstrap"));
    assert_null(json_str(n->last, "token"));
    assert_int_equal(stat(n->kubeconfig, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    text = get(n, "kubeconfig");
    assert_non_null(strstr(text, "current-context: default-context\n"));
}

static void with_rotation_the_kubeconfig_is_written_at_once(void **state)
{
    struct node *n = *state;
    str_auto text = NULL;

    put_bootstrap(n);
    open_with(n, true, true);
    UNTIL(n, n->messages == 1);
    assert_true(json_flag(n->last, "bootstrap"));
    text = get(n, "kubeconfig");
    assert_non_null(strstr(text, "kubelet-client-current.pem"));
}

static void an_expired_certificate_leads_back_to_the_bootstrap_file(void **state)
{
    struct node *n = *state;

    put_bootstrap(n);
    put(n, "c.pem", CERTIFICATE KEY, 0600);
    put_user(n, "{client-certificate: c.pem, client-key: c.pem}");
    open_with(n, true, false);
    UNTIL(n, n->messages == 1);
    assert_false(json_flag(n->last, "bootstrap"));
    kube_credentials_anew(n->c, "expired");
    UNTIL(n, json_flag(n->last, "bootstrap"));
    issue(n, "client", CERTIFICATE, KEY);
    UNTIL(n, !json_flag(n->last, "bootstrap"));
}

static void neither_file_is_an_error_that_names_both(void **state)
{
    struct node *n = *state;

    open_with(n, true, false);
    UNTIL(n, n->troubles == 1);
    assert_non_null(strstr(n->trouble.text, "unable to load bootstrap kubeconfig: stat "));
    assert_non_null(strstr(n->trouble.text, "/kubeconfig: No such file or directory)"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_token_in_the_file_is_sent_and_followed),
        TEST(a_token_file_is_read_again_as_soon_as_it_changes),
        TEST(a_token_behind_a_symlink_is_followed),
        TEST(what_cannot_be_used_is_said_once_and_the_message_of_before_stays),
        TEST(a_plugin_runs_once_and_again_when_its_token_is_refused),
        TEST(an_answer_that_expires_is_asked_for_again_before),
        TEST(a_plugin_that_fails_is_tried_again_and_its_last_words_are_said),
        TEST(closing_ends_a_plugin_that_runs),
        TEST(a_node_without_a_kubeconfig_bootstraps_and_goes_on_with_its_certificate),
        TEST(with_rotation_the_kubeconfig_is_written_at_once),
        TEST(an_expired_certificate_leads_back_to_the_bootstrap_file),
        TEST(neither_file_is_an_error_that_names_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
