/* SPDX-License-Identifier: Apache-2.0 */
/* What the journal gets of a log line beside its text. */
#include "helper.h"

#include "base/internal.h"
#include "base/log.h"

static char datagram[4096];

static const char *format(const struct log_field *fields, size_t n, const struct log_context *context,
                          size_t size)
{
    size_t used =
        log_journal_format(LOG_LVL_WARN, "container ended pod=a/web", fields, n, context, datagram, size);

    datagram[used] = '\0';
    return datagram;
}

static void the_lines_own_fields_become_the_journals(void **state)
{
    const struct log_field fields[] = { F_STR("pod", "a/web"), F_STR("podUID", "u-1"),
                                        F_STR("containerName", "main"), F_STR("containerID", "c1"),
                                        F_U64("exitCode", 3) };
    const struct log_context none = { 0 };

    (void)state;
    assert_string_equal(
        format(fields, 5, &none, sizeof(datagram)),
        "PRIORITY=4\nSYSLOG_IDENTIFIER=coracle\nCORACLE_POD=a/web\nCORACLE_POD_UID=u-1\n"
        "CORACLE_CONTAINER=main\nCORACLE_CONTAINER_ID=c1\nMESSAGE=container ended pod=a/web\n");
}

static void what_the_line_does_not_say_comes_from_what_it_is_about(void **state)
{
    const struct log_context about = { .pod = "a/web", .pod_uid = "u-1", .operation = "crun start" };
    const struct log_field same[] = { F_STR("pod", "a/web") }, other[] = { F_STR("pod", "a/db") };

    (void)state;
    assert_string_equal(format(NULL, 0, &about, sizeof(datagram)),
                        "PRIORITY=4\nSYSLOG_IDENTIFIER=coracle\nCORACLE_POD=a/web\nCORACLE_POD_UID=u-1\n"
                        "CORACLE_OPERATION=crun start\nMESSAGE=container ended pod=a/web\n");
    assert_non_null(strstr(format(same, 1, &about, sizeof(datagram)), "CORACLE_POD_UID=u-1\n"));
    /* Another pod's line: the uid would be the wrong one. */
    assert_null(strstr(format(other, 1, &about, sizeof(datagram)), "CORACLE_POD_UID"));
    assert_non_null(strstr(datagram, "CORACLE_POD=a/db\n"));
}

static void a_value_cannot_smuggle_in_a_field(void **state)
{
    const struct log_field fields[] = { F_STR("pod", "a\nPRIORITY=0\n"), F_STR("containerName", ""),
                                        F_STR("containerID", NULL) };
    const struct log_context none = { 0 };

    (void)state;
    assert_string_equal(format(fields, 3, &none, sizeof(datagram)),
                        "PRIORITY=4\nSYSLOG_IDENTIFIER=coracle\nMESSAGE=container ended pod=a/web\n");
}

static void what_does_not_fit_is_left_out_whole(void **state)
{
    const struct log_field fields[] = { F_STR("pod", "a-rather-long-namespace/with-a-rather-long-name") };
    const struct log_context none = { 0 };

    (void)state;
    assert_string_equal(format(fields, 1, &none, 80),
                        "PRIORITY=4\nSYSLOG_IDENTIFIER=coracle\nMESSAGE=container ended pod=a/web\n");
}

static void a_context_is_put_back(void **state)
{
    const struct log_context a = { .pod = "a/1" }, b = { .operation = "cni add" };
    struct log_context before;

    (void)state;
    log_context_set(&a);
    before = log_context_set(&b);
    assert_string_equal(before.pod, "a/1");
    before = log_context_set(&before);
    assert_string_equal(before.operation, "cni add");
    assert_null(before.pod);
    log_context_set(&(struct log_context){ 0 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lines_own_fields_become_the_journals),
        cmocka_unit_test(what_the_line_does_not_say_comes_from_what_it_is_about),
        cmocka_unit_test(a_value_cannot_smuggle_in_a_field),
        cmocka_unit_test(what_does_not_fit_is_left_out_whole),
        cmocka_unit_test(a_context_is_put_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
