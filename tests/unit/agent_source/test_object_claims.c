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
                "the first one is used (also holds back ConfigMap default/only-b of this file)]\n"
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
                "file a.yaml bad 0 [a.yaml:8:12: metadata.name: Pod default/p is already defined in line 3 "
                "of this file (also holds back Pod default/p of this file)]\nfirst set\n");
}

static void count_bad(const struct src_file *file, void *arg)
{
    *(size_t *)arg += !file->ok;
}

/* sed -i and others: a complete file of another name, which replaces the old one. */
static void a_file_that_replaces_the_one_with_its_objects_is_not_reported_before(void **state)
{
    uint64_t until = clock_mono_ms() + DEADLINE_MS;
    struct fixture *f = *state;
    size_t bad = 0;

    write_file(f, "a.yaml", POD("p", "x:1"));
    start(f);
    to_see(f, "first set\n");
    buf_reset(&f->seen);
    write_file(f, "sedXY12", POD("p", "x:2"));
    while (bad == 0) { /* it was read */
        if (clock_mono_ms() > until)
            fail_msg("the second file is not read");
        turn(f, 100);
        src_folder_each(f->folder, count_bad, &bad);
    }
    move(f, "sedXY12", "a.yaml");
    to_see(f, "file a.yaml ok 1\n");
    quiet(f);
    assert_seen(f, "updated Pod default/p x:2\nfile a.yaml ok 1\n");

    write_file(f, "copy.yaml", POD("p", "x:2"));
    to_see(f, "file copy.yaml bad 0 [copy.yaml:3:12: metadata.name: Pod default/p is already defined in "
              "a.yaml; the "
              "first one is used]\n");
}

static void a_bad_document_says_what_it_holds_back(void **state)
{
    struct fixture *f = *state;

    write_file(f, "a.yaml", POD("p", "''") CONFIG("c", "v") CONFIG("d", "v") CONFIG("e", "v"));
    start(f);
    to_see(f, "file a.yaml bad 0 [a.yaml:4:31: spec.containers[0].image: required (also holds back ConfigMap "
              "default/c and "
              "2 more objects of this file)]\n");
    write_file(f, "a.yaml", POD("p", "''") CONFIG("C", "v") CONFIG("d", "v"));
    to_see(f, "image: required (also holds back ConfigMap default/d of this file)] [a.yaml:8:12: "
              "metadata.name: \"C\" must");
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
    assert_memory_equal(
        src_store_config(f->store, API_FROM_FOLDER, API_CONFIG_MAP, "default", "m")->data[0].data, "old", 3);
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
        T(a_file_that_replaces_the_one_with_its_objects_is_not_reported_before),
        T(a_bad_document_says_what_it_holds_back),
        T(a_document_that_moves_to_another_file_is_not_removed_in_between),
        T(an_immutable_object_stays_as_it_was),
    };

    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
