/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of the bytes that a container leaves behind as its termination message. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "tests/unit/agent_pod/world.h"
#include "tests/unit/base/failing.h"

static struct ctr *ended(struct world *w, const char *name, const char *more, const void *bytes, size_t n)
{
    str_auto spec = str_printf("containers: [{name: a, image: x%s}]", more);
    struct pod *p = world_pod(w, name, spec);
    str_auto dir = str_printf("%s/pods/%s", w->dir, p->uid);
    str_auto path = str_printf("%s/words", dir);
    str_auto log = str_printf("%s/default_%s_%s/a", w->dir, name, p->uid);
    str_auto log_file = str_printf("%s/0.log", log);
    static const char line[] = "2026-01-02T03:04:05.123456789Z stdout F logged\n";
    struct err e = { 0 };

    w->node.o.pod_logs_dir = w->dir;
    assert_int_equal(fs_mkdirs(dir, 0700, &e), ERR_OK);
    assert_int_equal(fs_mkdirs(log, 0700, &e), ERR_OK);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, bytes, n, 0600, false, &e), ERR_OK);
    assert_int_equal(fs_replace_at(AT_FDCWD, log_file, line, strlen(line), 0600, false, &e), ERR_OK);
    snprintf(p->ctrs[0]->cur.message_file, sizeof(p->ctrs[0]->cur.message_file), "words");
    return p->ctrs[0];
}

static void says(const struct ctr *c, int exit_code, const char *wanted)
{
    str_auto text = NULL;
    struct err e = { 0 };

    assert_int_equal(ctr_message(c, exit_code, &text, &e), ERR_OK);
    if (wanted == NULL)
        assert_null(text);
    else
        assert_string_equal(text, wanted);
}

static void a_nul_does_not_end_it(void **state)
{
    says(ended(*state, "p", "", "one\0two\n\0", 9), 0, "one\xef\xbf\xbdtwo\n\xef\xbf\xbd");
}

static void only_an_empty_file_gives_way_to_the_log(void **state)
{
    static const char fallback[] = ", terminationMessagePolicy: FallbackToLogsOnError";

    says(ended(*state, "nul", fallback, "\0", 1), 1, "\xef\xbf\xbd");
    says(ended(*state, "empty", fallback, "", 0), 1, "logged\n");
    says(ended(*state, "well", fallback, "", 0), 0, NULL);
    says(ended(*state, "file", "", "", 0), 1, NULL);
}

static void a_shortage_is_no_lack_of_a_message(void **state)
{
    static const char fallback[] = ", terminationMessagePolicy: FallbackToLogsOnError";
    struct ctr *c = ended(*state, "p", fallback, "words", 5);
    str_auto text = NULL;
    struct err e = { 0 };

    failing_arm("openat", c->pod->uid, EMFILE, 1);
    assert_int_not_equal(ctr_message(c, 1, &text, &e), ERR_OK);
    assert_true(err_is_shortage(&e));
    says(c, 1, "words");
    c = ended(*state, "q", fallback, "", 0);
    failing_arm("openat", "0.log", ENFILE, 1);
    e = (struct err){ 0 };
    assert_int_not_equal(ctr_message(c, 1, &text, &e), ERR_OK);
    says(c, 1, "logged\n");
    failing_arm("openat", "0.log", EIO, 1); /* a disk that cannot be read holds up no end */
    says(c, 1, NULL);
}

static void the_last_4096_bytes_count(void **state)
{
    char bytes[5000], wanted[3 * 4096 + 1];
    struct ctr *c;

    memset(bytes, 'a', sizeof(bytes));
    memset(bytes + 1000, 'b', 4000);
    snprintf(wanted, sizeof(wanted), "%.96s%.4000s", bytes, bytes + 1000);
    says(ended(*state, "p", "", bytes, sizeof(bytes)), 0, wanted);
    memset(bytes, '\0', sizeof(bytes));
    for (size_t i = 0; i < 4096; i++)
        memcpy(wanted + 3 * i, "\xef\xbf\xbd", 4);
    c = ended(*state, "nuls", "", bytes, sizeof(bytes));
    says(c, 0, wanted);
    c->pod->n_ctrs = 12; /* which share 12 KiB of what was written */
    wanted[3 * 1024] = '\0';
    says(c, 0, wanted);
    c->pod->n_ctrs = 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_nul_does_not_end_it),
        WORLD_TEST(only_an_empty_file_gives_way_to_the_log),
        WORLD_TEST(a_shortage_is_no_lack_of_a_message),
        WORLD_TEST(the_last_4096_bytes_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
