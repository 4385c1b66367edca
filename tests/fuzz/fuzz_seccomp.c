/* SPDX-License-Identifier: Apache-2.0 */
/* A seccomp profile that an administrator or a package put there: what comes out is OCI's form, or there is a
 * reason. */
#include "agent/runtime/spec/internal.h"
#include "base/codec/json.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rt_seccomp_host hosts[] = {
        { .machine = "x86_64", .kernel_major = 6, .kernel_minor = 1, .caps = 0xa80425fb },
        { .machine = "aarch64", .kernel_major = 4, .kernel_minor = 4, .caps = UINT64_MAX },
        { .machine = "pdp11", .kernel_major = 5, .kernel_minor = 8 },
    };
    json_t *profile = NULL;
    struct err e = { 0 };

    if (json_parse((const char *)data, size, 1 << 20, &profile, "profile", &e) != ERR_OK)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        json_t *out = NULL, *again = NULL;

        e = (struct err){ 0 };
        if (rt_seccomp_convert(profile, &hosts[i], &out, &e) != ERR_OK) {
            assert(out == NULL && e.text[0] != '\0');
            continue;
        }
        assert(json_str(out, "defaultAction") != NULL);
        assert(rt_seccomp_convert(out, &hosts[i], &again, &e) == ERR_OK); /* plain OCI is taken, too */
        assert(rt_seccomp_keep_projects(&out, &hosts[i], &e) == ERR_OK || e.code == ERR_INVALID);
        json_decref(out);
        json_decref(again);
    }
    json_decref(profile);
    return 0;
}
