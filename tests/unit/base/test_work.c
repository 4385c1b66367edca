/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include "base/work.h"

#include <pthread.h>
#include <semaphore.h>

struct job {
    sem_t began, go;
    pthread_t thread;
    int runs;
};

static enum err_code fine(void *arg, struct err *e)
{
    struct job *j = arg;

    (void)e;
    j->thread = pthread_self();
    j->runs++;
    return ERR_OK;
}

static enum err_code bad(void *arg, struct err *e)
{
    (void)arg;
    return err_set(e, ERR_DATA_LOSS, "checksum differs");
}

static enum err_code bad_without_a_word(void *arg, struct err *e)
{
    (void)arg;
    (void)e;
    return ERR_UNKNOWN;
}

static enum err_code waits(void *arg, struct err *e)
{
    struct job *j = arg;

    (void)e;
    sem_post(&j->began);
    sem_wait(&j->go);
    j->runs++;
    return ERR_OK;
}

static void a_function_runs_on_another_thread(void **state)
{
    struct ended *d = *state;
    struct job j = { 0 };
    struct work w;

    work_start(&w, "hash", "layer x", fine, &j, d->loop, on_ended, d);
    assert_string_equal(w.op.subject, "layer x");
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_OK);
    assert_int_equal(j.runs, 1);
    assert_false(pthread_equal(j.thread, pthread_self()));
}

static void its_error_is_the_result(void **state)
{
    struct ended *d = *state;
    struct work w;

    work_start(&w, "hash", NULL, bad, NULL, d->loop, on_ended, d);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_DATA_LOSS);
    assert_string_equal(d->result.text, "checksum differs");

    work_start(&w, "hash", NULL, bad_without_a_word, NULL, d->loop, on_ended, d);
    run_until_ended(d, 2);
    assert_int_equal(d->result.code, ERR_INTERNAL);
    assert_string_equal(d->result.text, "hash: failed without an error message");
}

static void a_cancel_after_the_beginning_changes_only_the_result(void **state)
{
    struct ended *d = *state;
    struct job j = { 0 };
    struct work w;

    sem_init(&j.began, 0, 0);
    sem_init(&j.go, 0, 0);
    work_start(&w, "hash", NULL, waits, &j, d->loop, on_ended, d);
    sem_wait(&j.began);
    op_cancel(&w.op);
    uv_run(d->loop, UV_RUN_NOWAIT);
    assert_int_equal(d->calls, 0);
    sem_post(&j.go);
    run_until_ended(d, 1);
    assert_int_equal(j.runs, 1);
    assert_int_equal(d->result.code, ERR_CANCELLED);
    sem_destroy(&j.began);
    sem_destroy(&j.go);
}

static void a_cancel_before_the_beginning_keeps_it_from_running(void **state)
{
    enum { THREADS = 4 }; /* libuv's pool */
    struct ended *d = *state;
    struct job block[THREADS] = { 0 }, j = { 0 };
    struct work blocking[THREADS], w;
    int i;

    for (i = 0; i < THREADS; i++) {
        sem_init(&block[i].began, 0, 0);
        sem_init(&block[i].go, 0, 0);
        work_start(&blocking[i], "block", NULL, waits, &block[i], d->loop, on_ended, d);
    }
    for (i = 0; i < THREADS; i++)
        sem_wait(&block[i].began);
    work_start(&w, "hash", NULL, fine, &j, d->loop, on_ended, d);
    op_cancel(&w.op);
    assert_int_equal(d->calls, 0);
    run_until_ended(d, 1);
    assert_int_equal(d->result.code, ERR_CANCELLED);
    assert_int_equal(j.runs, 0);
    for (i = 0; i < THREADS; i++)
        sem_post(&block[i].go);
    run_until_ended(d, 1 + THREADS);
    for (i = 0; i < THREADS; i++) {
        sem_destroy(&block[i].began);
        sem_destroy(&block[i].go);
    }
}

#define loop_test(f) cmocka_unit_test_setup_teardown(f, loop_make, loop_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        loop_test(a_function_runs_on_another_thread),
        loop_test(its_error_is_the_result),
        loop_test(a_cancel_after_the_beginning_changes_only_the_result),
        loop_test(a_cancel_before_the_beginning_keeps_it_from_running),
    };

    setenv("UV_THREADPOOL_SIZE", "4", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
