/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/version.h"

#include "base/scope.h"
#include "tests/unit/base/helper.h"

static void the_highest_of_1_x_is_taken(void **state)
{
    static const char *const all[] = { "1.0.0", "v1.3.1", "1.2", "2.0.0", "0.3.0", "x" };
    char text[CSI_VERSION_SIZE];
    struct csi_version v;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(csi_version_highest(all, ARRAY_LEN(all), &v, &e), ERR_OK);
    csi_version_print(&v, text);
    assert_string_equal(text, "1.3.1");
}

static void others_are_refused_in_kubelets_words(void **state)
{
    static const struct {
        const char *versions[3], *why;
    } rows[] = {
        { { NULL }, "driver reporting empty array for supported versions" },
        { { "2.0.0" }, "could not find a highest supported version from versions ([2.0.0]) reported: <nil>" },
        { { "" },
          "could not find a highest supported version from versions ([]) reported: could not parse \"\" as "
          "version" },
        { { "0.3.0", "0.2.0" }, "highest supported version reported is 0.3.0, must be v1.x" },
        { { "99999999.0" }, "could not parse \"99999999.0\" as version" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct csi_version v;
        struct err e = { 0 };
        size_t n = 0;

        while (rows[i].versions[n] != NULL)
            n++;
        assert_int_equal(csi_version_highest(rows[i].versions, n, &v, &e), ERR_INVALID);
        if (strstr(e.text, rows[i].why) == NULL)
            fail_msg("%s, wanted %s", e.text, rows[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_of_1_x_is_taken),
        cmocka_unit_test(others_are_refused_in_kubelets_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
