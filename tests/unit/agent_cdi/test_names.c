/* SPDX-License-Identifier: Apache-2.0 */
/* Names of devices, and pod annotations with some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/cdi/cdi.h"

#include <string.h>

static void a_name_has_vendor_class_and_device(void **state)
{
    static const struct {
        const char *name;
        bool valid;
    } rows[] = {
        { "example.com/dev=a", true },
        { "a/b=c", true },
        { "nvidia.com/gpu=0", true },
        { "nvidia.com/gpu=GPU-8f:0", true },
        { "nvidia.com/mig.device_1=0:1", true },
        { "", false },
        { "a/b", false },
        { "a=b", false },
        { "/b=c", false },
        { "a/=c", false },
        { "a/b=", false },
        { "1a/b=c", false },
        { "a/1b=c", false },
        { "a-/b=c", false },
        { "a/b-=c", false },
        { "a/b=-c", false },
        { "a/b=c-", false },
        { "a/b=c=d", false },
        { "a/b/c=d", false },
        { "a=b/c", false },
        { "a/b=c d", false },
        { "a/b=\xc3\xa4", false },
        { " a/b=c", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (cdi_is_name(rows[i].name) != rows[i].valid)
            fail_msg("%s", rows[i].name);
}

static void annotations_have_lists_of_names(void **state)
{
    struct strs names = { 0 };
    struct err e = { 0 };

    (void)state;
    assert_int_equal(cdi_annotation_names("cdi.k8s.io/x", "a/b=c,a/b=d", &names, &e), ERR_OK);
    assert_int_equal(cdi_annotation_names("cdi.k8s.io/y", "a/b=d,a/b=e", &names, &e), ERR_OK);
    assert_int_equal(cdi_annotation_names("example.com/z", "anything", &names, &e), ERR_OK);
    assert_int_equal(names.n, 3);
    assert_string_equal(names.v[2], "a/b=e");
    assert_int_equal(cdi_annotation_names("cdi.k8s.io/z", "a/b=c, a/b=d", &names, &e), ERR_INVALID);
    assert_string_equal(e.text, "failed to parse CDI device annotations: invalid CDI device name \" a/b=d\"");
    assert_int_equal(cdi_annotation_names("cdi.k8s.io/z", "", &names, &e), ERR_INVALID);
    assert_int_equal(cdi_annotation_names("cdi.k8s.io/z", "a/b=c,", &names, &e), ERR_INVALID);
    strs_done(&names);
}

static void a_container_asks_for_so_many_devices_at_most(void **state)
{
    struct strs names = { 0 };
    struct err e = { 0 };
    buf_auto value = BUF_INIT(1 << 16);

    (void)state;
    for (int i = 0; i <= CDI_NAMES_MAX; i++)
        buf_addf(&value, "%sa/b=%d", i > 0 ? "," : "", i);
    assert_int_equal(cdi_annotation_names("cdi.k8s.io/x", value.p, &names, &e), ERR_INVALID);
    assert_string_equal(e.text, "failed to parse CDI device annotations: more than 1024 devices");
    assert_int_equal(names.n, CDI_NAMES_MAX);
    strs_done(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_vendor_class_and_device),
        cmocka_unit_test(annotations_have_lists_of_names),
        cmocka_unit_test(a_container_asks_for_so_many_devices_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
