/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/base/helper.h"

#include "agent/image/registry_names.h"

static void parse(struct reg_names *r, const char *text)
{
    struct err e = { 0 };

    if (reg_names_parse(r, text, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

/* All names a reference may stand for, each with a blank after it. */
static void stands_for(const struct reg_names *r, const char *reference, const char *wanted)
{
    char got[4000] = "", name[IMG_NAME_MAX];

    for (size_t k = 0; reg_names_candidate(r, reference, k, name); k++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s ", name);
    assert_string_equal(got, wanted);
}

static void without_a_word_in_the_file_it_is_docker_hub(void **state)
{
    struct reg_names r = { 0 };

    (void)state;
    parse(&r, "");
    stands_for(&r, "web", "docker.io/library/web:latest ");
    stands_for(&r, "team/web:1", "docker.io/team/web:1 ");
    stands_for(&r, "q.io/web", "q.io/web:latest ");
    stands_for(&r, "Web", "");
    reg_names_done(&r);
}

static void registries_are_searched_in_their_order(void **state)
{
    struct reg_names r = { 0 };

    (void)state;
    parse(&r, "# where to look\nunqualified-search-registries = [\n  \"q.io\", # first\n  'r.io:5000/team', "
              "\"docker.io\",\n]\n"
              "short-name-mode = \"enforcing\"\n");
    stands_for(&r, "web:1", "q.io/web:1 r.io:5000/team/web:1 docker.io/library/web:1 ");
    stands_for(&r, "a/web", "q.io/a/web:latest r.io:5000/team/a/web:latest docker.io/a/web:latest ");
    stands_for(&r, "localhost/web", "localhost/web:latest ");
    stands_for(&r, "host:5000/web", "host:5000/web:latest ");
    parse(&r, "unqualified-search-registries = [\"late.io\"]"); /* a later file's list replaces it */
    stands_for(&r, "web", "late.io/web:latest ");
    parse(&r, "unqualified-search-registries = []");
    stands_for(&r, "web", "docker.io/library/web:latest ");
    parse(&r, "[registries.search]\nregistries = ['old.io']\n"); /* the first version of the format */
    stands_for(&r, "web", "old.io/web:latest ");
    reg_names_done(&r);
}

static void an_alias_decides_alone(void **state)
{
    static const char digest[] = "sha256:0123456789012345678901234567890123456789012345678901234567890123";
    struct reg_names r = { 0 };
    char reference[200], wanted[200];

    (void)state;
    parse(&r,
          "unqualified-search-registries = [\"q.io\"]\n[[registry]]\nlocation = \"q.io\"\ninsecure = true\n"
          "mirror = [{location = \"m.io\", insecure = true}]\n"
          "[aliases]\n  # a distribution's\n  \"web\" = "
          "\"r.io/team/web\"\nbare='r.io/bare'\n\"a/web\"=\"r.io/x\"#end\n");
    stands_for(&r, "web:2", "r.io/team/web:2 ");
    stands_for(&r, "bare", "r.io/bare:latest ");
    stands_for(&r, "a/web", "r.io/x:latest ");
    stands_for(&r, "other", "q.io/other:latest ");
    snprintf(reference, sizeof(reference), "web:1@%s", digest);
    snprintf(wanted, sizeof(wanted), "r.io/team/web:1@%s ", digest);
    stands_for(&r, reference, wanted);
    parse(&r, "[aliases]\nweb = \"\"\n\"bare\" = \"z.io/bare\"\n");
    stands_for(&r, "web", "q.io/web:latest ");
    stands_for(&r, "bare", "z.io/bare:latest ");
    reg_names_done(&r);
}

static void mirrors_and_other_prefixes_are_noticed(void **state)
{
    static const struct {
        const char *text;
        bool redirects;
    } cases[] = {
        { "unqualified-search-registries = [\"r.io\"]\n[aliases]\nmirror = \"r.io/mirror\"\n", false },
        { "[aliases]\n\"registry\" = \"docker.io/library/registry\"\n", false },
        { "[[registry]]\nlocation = \"r.io\"\ninsecure = true\n", false },
        { "[registries.search]\nregistries = [\"r.io\"]\n", false },
        { "[[registry]]\nprefix = \"r.io/team\"\nlocation = \"q.io\"\n", true },
        { "[[registry]]\nlocation = \"r.io\"\n[[registry.mirror]]\nlocation = \"q.io\"\n", true },
        { "[[registry]]\nlocation = \"r.io\"\nmirror = [{location = \"q.io\"}]\n", true },
        { "registry = [{location = \"r.io\", mirror = [{location = \"q.io\"}]}]\n", true },
        { "[[ \"registry\" ]]\n\"prefix\" = \"r.io/team\"\n", true },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct reg_names r = { 0 };

        parse(&r, cases[i].text);
        if (r.redirects != cases[i].redirects)
            fail_msg("%s", cases[i].text);
        reg_names_done(&r);
    }
}

static void what_cannot_be_read_names_its_line(void **state)
{
    static const char *const texts[] = { "a = 1\nb\n", "\n[aliases\n", "a = \"x\n", "\n\n= 3\n",
                                         "a = 1 2\n",  "a = [1, 2\n",  "a = ]" };
    static const char *const lines[] = {
        "line 2", "line 2", "line 1", "line 3", "line 1", "line 2", "line 1"
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct reg_names r = { 0 };
        struct err e = { 0 };

        if (reg_names_parse(&r, texts[i], &e) != ERR_INVALID || strstr(e.text, lines[i]) == NULL)
            fail_msg("%s: %s", texts[i], e.text);
        reg_names_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_word_in_the_file_it_is_docker_hub),
        cmocka_unit_test(registries_are_searched_in_their_order),
        cmocka_unit_test(an_alias_decides_alone),
        cmocka_unit_test(mirrors_and_other_prefixes_are_noticed),
        cmocka_unit_test(what_cannot_be_read_names_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
