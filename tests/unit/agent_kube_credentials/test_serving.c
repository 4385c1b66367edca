/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate of the node's port follows its files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kube/credentials/pki.h"
#include "agent/kube/credentials/serving.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/op.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { DEADLINE_MS = 20000 };

#define CERTIFICATE "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
#define OTHER "-----BEGIN CERTIFICATE-----\nCCCC\n-----END CERTIFICATE-----\n"
#define KEY "-----BEGIN EC PRIVATE KEY-----\nBBBB\n-----END EC PRIVATE KEY-----\n"

struct port {
    uv_loop_t loop;
    char root[40], pki[64], ca[64];
    struct kube_serving *s;
    json_t *last;
    unsigned messages, troubles, recoveries;
    struct err trouble;
};

static void on_serving(const json_t *message, void *arg)
{
    struct port *p = arg;

    json_decref(p->last);
    p->last = json_deep_copy(message);
    p->messages++;
}

static void on_trouble(const struct err *why, void *arg)
{
    struct port *p = arg;

    p->recoveries += why == NULL;
    p->troubles += why != NULL;
    if (why != NULL)
        p->trouble = *why;
}

static int setup(void **state)
{
    struct port *p = calloc(1, sizeof(*p));

    strcpy(p->root, "/tmp/test-serving.XXXXXX");
    if (mkdtemp(p->root) == NULL)
        return -1;
    snprintf(p->pki, sizeof(p->pki), "%s/pki", p->root);
    snprintf(p->ca, sizeof(p->ca), "%s/ca.crt", p->root);
    uv_loop_init(&p->loop);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct port *p = *state;
    struct err e = { 0 };

    kube_serving_close(p->s);
    uv_run(&p->loop, UV_RUN_DEFAULT);
    json_decref(p->last);
    if (uv_loop_close(&p->loop) != 0 || op_count() != 0 || fs_remove_tree(AT_FDCWD, p->root, &e) != ERR_OK)
        return -1;
    free(p);
    return 0;
}

static void serve(struct port *p, const char *ca, bool rotate)
{
    const struct kube_serving_options o = { .loop = &p->loop,
                                            .cert_dir = p->pki,
                                            .client_ca_file = ca,
                                            .rotate = rotate,
                                            .on_serving = on_serving,
                                            .on_trouble = on_trouble,
                                            .arg = p };
    struct err e = { 0 };

    assert_int_equal(kube_serving_open(&p->s, &o, &e), ERR_OK);
}

static void on_tick(uv_timer_t *t)
{
    (void)t;
}

#define UNTIL(p, condition)                                                                                  \
    do {                                                                                                     \
        uint64_t end_ = clock_mono_ms() + DEADLINE_MS;                                                       \
        uv_timer_t tick_;                                                                                    \
        uv_timer_init(&(p)->loop, &tick_);                                                                   \
        uv_timer_start(&tick_, on_tick, 20, 20);                                                             \
        while (!(condition) && clock_mono_ms() < end_)                                                       \
            uv_run(&(p)->loop, UV_RUN_ONCE);                                                                 \
        uv_close((uv_handle_t *)&tick_, NULL);                                                               \
        uv_run(&(p)->loop, UV_RUN_NOWAIT);                                                                   \
        if (!(condition))                                                                                    \
            fail_msg("%s: not seen (trouble: %s)", #condition, (p)->trouble.text);                           \
    } while (0)

static void put_ca(struct port *p, const char *text)
{
    struct err e = { 0 };

    assert_int_equal(fs_replace_at(AT_FDCWD, p->ca, text, strlen(text), 0644, false, &e), ERR_OK);
}

static void without_a_pair_only_the_ca_is_told_and_a_pair_follows(void **state)
{
    struct port *p = *state;
    struct err e = { 0 };

    put_ca(p, OTHER);
    assert_int_equal(fs_mkdirs(p->pki, 0755, &e), ERR_OK);
    serve(p, p->ca, true);
    UNTIL(p, p->messages == 1);
    assert_string_equal(json_str(p->last, "clientCA"), OTHER);
    assert_null(json_str(p->last, "certificate"));
    assert_int_equal(pki_write(p->pki, "server", CERTIFICATE, KEY, &e), ERR_OK);
    UNTIL(p, json_str(p->last, "certificate") != NULL);
    assert_string_equal(json_str(p->last, "certificate"), CERTIFICATE KEY);
    assert_string_equal(json_str(p->last, "key"), CERTIFICATE KEY);
    assert_ptr_not_equal(kube_serving_message(p->s), NULL);
    put_ca(p, CERTIFICATE);
    UNTIL(p, str_eq(json_str(p->last, "clientCA"), CERTIFICATE));
    assert_int_equal(p->troubles, 0);
}

static void a_ca_that_is_missing_is_said_once_and_looked_for_again(void **state)
{
    struct port *p = *state;

    serve(p, p->ca, false);
    UNTIL(p, p->troubles == 1);
    assert_non_null(strstr(p->trouble.text, "client CA: open "));
    assert_int_equal(p->messages, 0);
    put_ca(p, OTHER);
    UNTIL(p, p->messages == 1 && p->recoveries == 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_a_pair_only_the_ca_is_told_and_a_pair_follows),
        TEST(a_ca_that_is_missing_is_said_once_and_looked_for_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
