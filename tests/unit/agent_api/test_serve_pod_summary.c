/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/serve/serve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2026-01-02T03:04:05Z */
static const int64_t now_ns = 1767323045LL * 1000000000;

static void assert_summary(const char *spec, const char *status, const char *ready, const char *word,
                           const char *restarts)
{
    struct api_pod_summary s;
    char text[4000];
    json_error_t why;
    json_t *pod;

    snprintf(text, sizeof(text), "{'metadata': {'name': 'p'}, 'spec': {%s}, 'status': {%s}}", spec, status);
    for (char *p = text; *p != '\0'; p++)
        *p = *p == '\'' ? '"' : *p;
    pod = json_loads(text, 0, &why);
    if (pod == NULL)
        fail_msg("%s: %s", why.text, text);
    api_pod_summary(pod, now_ns, &s);
    assert_string_equal(s.ready, ready);
    assert_string_equal(s.status, word);
    assert_string_equal(s.restarts, restarts);
    json_decref(pod);
}

#define ONE "'containers': [{'name': 'a'}]"
#define TWO "'containers': [{'name': 'a'}, {'name': 'b'}]"
#define RUNNING(name) "{'name': '" name "', 'ready': true, 'restartCount': 0, 'state': {'running': {}}}"
#define WAITING(name, reason)                                                                                \
    "{'name': '" name "', 'restartCount': 0, 'state': {'waiting': {'reason': '" reason "'}}}"
#define ENDED(name, rest) "{'name': '" name "', 'restartCount': 0, 'state': {'terminated': {" rest "}}}"

static void plain_pods(void **state)
{
    (void)state;
    assert_summary(ONE, "'phase': 'Pending'", "0/1", "Pending", "0");
    assert_summary(ONE, "'phase': 'Running', 'containerStatuses': [" RUNNING("a") "]", "1/1", "Running", "0");
    assert_summary(ONE, "'phase': 'Pending', 'containerStatuses': [" WAITING("a", "ContainerCreating") "]",
                   "0/1", "ContainerCreating", "0");
    assert_summary(
        ONE,
        "'phase': 'Succeeded', 'containerStatuses': [" ENDED("a", "'exitCode': 0, 'reason': 'Completed'") "]",
        "0/1", "Completed", "0");
    assert_summary(ONE, "'phase': 'Failed', 'containerStatuses': [" ENDED("a", "'exitCode': 3") "]", "0/1",
                   "ExitCode:3", "0");
    assert_summary(ONE,
                   "'phase': 'Failed', 'containerStatuses': [" ENDED("a", "'exitCode': 137, 'signal': 9") "]",
                   "0/1", "Signal:9", "0");
    assert_summary(ONE, "'phase': 'Failed', 'reason': 'Evicted'", "0/1", "Evicted", "0");
    assert_summary(ONE,
                   "'phase': 'Failed', 'containerStatuses': [" ENDED(
                       "a", "'exitCode': 137, 'reason': 'ContainerStatusUnknown'") "]",
                   "0/1", "ContainerStatusUnknown", "0");
}

static void of_several_containers_the_first_that_is_not_well_gives_the_word(void **state)
{
    (void)state;
    assert_summary(
        TWO,
        "'phase': 'Running', 'containerStatuses': [" WAITING("a", "CrashLoopBackOff") ", " RUNNING("b") "]",
        "1/2", "CrashLoopBackOff", "0");
    assert_summary(TWO,
                   "'phase': 'Running', 'containerStatuses': [" ENDED(
                       "a", "'exitCode': 0, 'reason': 'Completed'") ", " RUNNING("b") "]",
                   "1/2", "NotReady", "0");
    assert_summary(
        TWO,
        "'phase': 'Running', 'conditions': [{'type': 'Ready', 'status': 'True'}], 'containerStatuses': "
        "[" ENDED("a", "'exitCode': 0, 'reason': 'Completed'") ", " RUNNING("b") "]",
        "1/2", "Running", "0");
}

static void restarts_are_summed_and_the_last_one_is_dated(void **state)
{
    (void)state;
    assert_summary(TWO,
                   "'phase': 'Running', 'containerStatuses': ["
                   "{'name': 'a', 'ready': true, 'restartCount': 2, 'state': {'running': {}}, 'lastState': "
                   "{'terminated': "
                   "{'finishedAt': '2026-01-02T03:02:05Z'}}},"
                   "{'name': 'b', 'ready': true, 'restartCount': 1, 'state': {'running': {}}, 'lastState': "
                   "{'terminated': "
                   "{'finishedAt': '2026-01-02T02:02:05Z'}}}]",
                   "2/2", "Running", "3 (2m ago)");
}

#define INIT "'initContainers': [{'name': 'i1'}, {'name': 'i2'}], " ONE

static void init_containers_hold_the_pod_up(void **state)
{
    (void)state;
    assert_summary(
        INIT,
        "'phase': 'Pending', 'initContainerStatuses': [" WAITING("i1", "PodInitializing") ", " WAITING(
            "i2", "PodInitializing") "], 'containerStatuses': [" WAITING("a", "PodInitializing") "]",
        "0/1", "Init:0/2", "0");
    assert_summary(INIT,
                   "'phase': 'Pending', 'initContainerStatuses': [" ENDED(
                       "i1", "'exitCode': 0, 'reason': 'Completed'") ", "
                                                                     "{'name': 'i2', 'state': {'running': "
                                                                     "{}}}], 'containerStatuses': [" WAITING(
                                                                         "a", "PodInitializing") "]",
                   "0/1", "Init:1/2", "0");
    assert_summary(INIT,
                   "'phase': 'Pending', 'initContainerStatuses': [{'name': 'i1', 'restartCount': 4, 'state': "
                   "{'waiting': "
                   "{'reason': 'CrashLoopBackOff'}}, 'lastState': {'terminated': {'finishedAt': "
                   "'2026-01-02T03:03:35Z'}}}]",
                   "0/1", "Init:CrashLoopBackOff", "4 (30s ago)");
    assert_summary(
        INIT,
        "'phase': 'Failed', 'initContainerStatuses': [" ENDED("i1", "'exitCode': 1, 'reason': 'Error'") "]",
        "0/1", "Init:Error", "0");
    assert_summary(INIT, "'phase': 'Failed', 'initContainerStatuses': [" ENDED("i1", "'exitCode': 1") "]",
                   "0/1", "Init:ExitCode:1", "0");
    assert_summary(INIT,
                   "'phase': 'Pending', 'initContainerStatuses': [" ENDED("i1", "'exitCode': 0") ", " ENDED(
                       "i2", "'exitCode': 0") "], 'containerStatuses': [" WAITING("a", "PodInitializing") "]",
                   "0/1", "PodInitializing", "0");
}

static void sidecars_count_as_containers(void **state)
{
    const char *spec = "'initContainers': [{'name': 's', 'restartPolicy': 'Always'}], " ONE;

    (void)state;
    assert_summary(
        spec,
        "'phase': 'Running', 'initContainerStatuses': [{'name': 's', 'started': true, 'ready': true, "
        "'restartCount': 1, 'state': {'running': {}}}], 'containerStatuses': [" RUNNING("a") "]",
        "2/2", "Running", "1");
    assert_summary(
        spec,
        "'phase': 'Pending', 'initContainerStatuses': [{'name': 's', 'started': false, 'ready': false, "
        "'restartCount': 0, 'state': {'running': {}}}]",
        "0/2", "Init:0/1", "0");
}

static void pods_that_are_deleted_are_terminating_until_they_ended(void **state)
{
    struct api_pod_summary s;
    json_t *pod = json_pack("{s:{s:s}, s:{s:s}}", "metadata", "deletionTimestamp", "2026-01-02T03:04:05Z",
                            "status", "phase", "Running");

    (void)state;
    api_pod_summary(pod, now_ns, &s);
    assert_string_equal(s.status, "Terminating");
    json_object_set_new(json_object_get(pod, "status"), "phase", json_string("Succeeded"));
    api_pod_summary(pod, now_ns, &s);
    assert_string_equal(s.status, "Succeeded");
    json_decref(pod);
}

static void an_empty_pod_has_a_row_too(void **state)
{
    struct api_pod_summary s;

    (void)state;
    api_pod_summary(NULL, now_ns, &s);
    assert_string_equal(s.ready, "0/0");
    assert_string_equal(s.status, "");
    assert_string_equal(s.restarts, "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_pods),
        cmocka_unit_test(of_several_containers_the_first_that_is_not_well_gives_the_word),
        cmocka_unit_test(restarts_are_summed_and_the_last_one_is_dated),
        cmocka_unit_test(init_containers_hold_the_pod_up),
        cmocka_unit_test(sidecars_count_as_containers),
        cmocka_unit_test(pods_that_are_deleted_are_terminating_until_they_ended),
        cmocka_unit_test(an_empty_pod_has_a_row_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
