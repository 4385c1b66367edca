/* SPDX-License-Identifier: Apache-2.0 */
/* Which file holds an object, and what may become of it. */
#include "live_folder.h"

static void the_first_file_that_names_an_object_stays_and_the_other_takes_its_place(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("p", "x:1"));
    write_file(f, "b.yaml", POD("p", "x:2") CONFIG("only-b", "v"));
    start(f);
    to_see(f, "first set\n");
    assert_seen(f,
                "added Pod default/p x:1\nfile a.yaml ok 1\n"
                "file b.yaml bad 0 [b.yaml:3:12: metadata.name: Pod default/p is already defined in a.yaml; "
                "the first one is used]\n"
                "first set\n");
    delete (f, "a.yaml");
    to_see(f, "file b.yaml ok 2\n");
    quiet(f);
    assert_seen(f, "added ConfigMap default/only-b\nupdated Pod default/p x:2\nfile b.yaml ok 2\n");
}

static void two_documents_of_a_file_that_name_one_object_are_a_problem(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("p", "x:1") "---\n" POD("p", "x:2"));
    start(f);
    to_see(f, "first set\n");
    assert_seen(f,
                "file a.yaml bad 0 [a.yaml:8:12: metadata.name: Pod default/p is already defined in a.yaml, "
                "line 3; the first one is used]\nfirst set\n");
}

static void a_document_that_moves_to_another_file_is_not_removed_in_between(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("p", "x:1") CONFIG("c", "v"));
    write_file(f, "b.yaml", POD("q", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    write_file(f, "a.yaml", POD("p", "x:1")); /* the ConfigMap leaves a and comes to b */
    write_file(f, "b.yaml", POD("q", "x:1") CONFIG("c", "v"));
    to_see(f, "file b.yaml ok 2\n");
    quiet(f);
    assert_null(strstr(f->seen.p, "ConfigMap"));
    buf_reset(&f->seen);

    write_file(f, "a.yaml", POD("p", "x:1") CONFIG("c", "v")); /* and back, in the other order */
    write_file(f, "b.yaml", POD("q", "x:1"));
    to_see(f, "file a.yaml ok 2\n");
    quiet(f);
    assert_null(strstr(f->seen.p, "added"));
    assert_null(strstr(f->seen.p, "removed"));
}

static void an_immutable_object_stays_as_it_was(void **state)
{
    static const char map[] = "apiVersion: v1\nkind: ConfigMap\nimmutable: %s\n"
                              "metadata: {name: m, labels: {v: \"%d\"}}\ndata: {k: %s}\n";
    struct fixture *f = *state;
    char text[400];

    snprintf(text, sizeof(text), map, "true", 1, "old");
    write_file(f, "m.yaml", text);
    start(f);
    to_see(f, "first set");
    snprintf(text, sizeof(text), map, "true", 1, "new");
    write_file(f, "m.yaml", text);
    to_see(f,
           "file m.yaml stale 1 [m.yaml:4:12: data: ConfigMap default/m is immutable and stays as it was; to "
           "change it, remove it first or give the new one another name]");
    snprintf(text, sizeof(text), map, "false", 1, "old");
    write_file(f, "m.yaml", text);
    to_see(f, "file m.yaml stale 1 [m.yaml:4:12: immutable: ");
    assert_memory_equal(src_store_config(f->store, API_CONFIG_MAP, "default", "m")->data[0].data, "old", 3);
    snprintf(text, sizeof(text), map, "true", 2, "old"); /* what describes it may change */
    write_file(f, "m.yaml", text);
    to_see(f, "updated ConfigMap default/m");
    delete (f, "m.yaml");
    to_see(f, "removed ConfigMap default/m");
    snprintf(text, sizeof(text), map, "true", 1, "new");
    write_file(f, "m.yaml", text);
    to_see(f, "added ConfigMap default/m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_first_file_that_names_an_object_stays_and_the_other_takes_its_place),
        T(two_documents_of_a_file_that_name_one_object_are_a_problem),
        T(a_document_that_moves_to_another_file_is_not_removed_in_between),
        T(an_immutable_object_stays_as_it_was),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
