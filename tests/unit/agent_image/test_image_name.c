/* SPDX-License-Identifier: Apache-2.0 */
/* The order cmocka wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/image/image.h"
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHA "sha256:" HEX64

static void expect(const char *reference, const char *wanted)
{
    char got[IMG_NAME_MAX] = "";
    struct err e = { 0 };

    if (img_normalise(reference, got, &e) != ERR_OK)
        fail_msg("%s: %s", reference, e.text);
    assert_string_equal(got, wanted);
}

static void refuse(const char *reference, const char *why)
{
    char got[IMG_NAME_MAX] = "untouched";
    struct err e = { 0 };

    if (img_normalise(reference, got, &e) == ERR_OK)
        fail_msg("%s became %s", reference, got);
    assert_int_equal(e.code, ERR_INVALID);
    assert_non_null(strstr(e.text, why));
    assert_string_equal(got, "untouched");
}

static void names_on_docker_hub_are_completed(void **state)
{
    (void)state;
    expect("busybox", "docker.io/library/busybox:latest");
    expect("busybox:1.36", "docker.io/library/busybox:1.36");
    expect("grafana/grafana", "docker.io/grafana/grafana:latest");
    expect("docker.io/busybox", "docker.io/library/busybox:latest");
    expect("index.docker.io/library/busybox:1", "docker.io/library/busybox:1");
    expect("a/b/c", "docker.io/a/b/c:latest");
    expect("deadbeef", "docker.io/library/deadbeef:latest");
}

static void other_registries_stay_what_they_are(void **state)
{
    (void)state;
    expect("localhost/busybox:1", "localhost/busybox:1");
    expect("localhost:5000/busybox", "localhost:5000/busybox:latest");
    expect("host:5000/a/b@" SHA, "host:5000/a/b@" SHA);
    expect("registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.9");
    expect("[2001:db8::1]:443/x", "[2001:db8::1]:443/x:latest");
    expect("UPPER/case", "UPPER/case:latest");
    expect("quay.io/a.b_c__d-e---f/x", "quay.io/a.b_c__d-e---f/x:latest");
}

static void a_digest_needs_no_tag_and_keeps_one(void **state)
{
    (void)state;
    expect("busybox@" SHA, "docker.io/library/busybox@" SHA);
    expect("busybox:1@" SHA, "docker.io/library/busybox:1@" SHA);
    expect("x@sha512:" HEX64 HEX64, "docker.io/library/x@sha512:" HEX64 HEX64);
}

static void what_does_not_parse_says_so_in_kubelets_words(void **state)
{
    static const char *const broken[] = { "",          ":",        "a:",          "/a",     "a/",
                                          "a//b",      "-a",       "a-",          "a..b",   "a___b",
                                          "a._b",      "a b",      "a\nb",        "a/../b", "a:b:c",
                                          "a:.x",      "a:-x",     "http://a",    "a@",     "a@b",
                                          "h\xc3\xa9", "host:x/a", "[::1/a",      "[]/a",   "ho_st.x/a",
                                          "-h.x/a",    "h.-x/a",   "a@sha256:xyz" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++)
        refuse(broken[i], "invalid reference format");
    refuse("UPPER", "couldn't parse image name \"UPPER\": invalid reference format: repository name "
                    "(library/UPPER) must be lowercase");
    refuse("quay.io/Upper/x:1", "repository name (Upper/x) must be lowercase");
    refuse(HEX64, "cannot specify 64-byte hexadecimal strings");
    refuse("a@sha256:0123", "invalid checksum digest length");
    refuse("a@md5:0123456789abcdef0123456789abcdef", "unsupported digest algorithm");
}

static void long_names_end_at_their_limits(void **state)
{
    char text[1200] = "", wanted[IMG_NAME_MAX];

    (void)state;
    memset(text, 'a', 237); /* docker.io/library/ has 18 */
    snprintf(wanted, sizeof(wanted), "docker.io/library/%.300s:latest", text);
    expect(text, wanted);
    memset(text, 'a', 238);
    refuse(text, "must not be more than 255 characters");
    memcpy(text, "x:", 2);
    memset(text + 2, 't', 128);
    text[130] = '\0';
    snprintf(wanted, sizeof(wanted), "docker.io/library/%.300s", text);
    expect(text, wanted);
    memset(text + 2, 't', 129);
    text[131] = '\0';
    refuse(text, "invalid reference format");
    memset(text, 'a', 1000);
    refuse(text, "invalid reference format");
    snprintf(text, sizeof(text), "%0237d:%0128d@sha512:" HEX64 HEX64, 1, 2);
    refuse(text, "too long"); /* 521 bytes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_on_docker_hub_are_completed),
        cmocka_unit_test(other_registries_stay_what_they_are),
        cmocka_unit_test(a_digest_needs_no_tag_and_keeps_one),
        cmocka_unit_test(what_does_not_parse_says_so_in_kubelets_words),
        cmocka_unit_test(long_names_end_at_their_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
