/* SPDX-License-Identifier: Apache-2.0 */
/* Strategic merge patch: {"live", "patch"}, of a Pod and of a Deployment.  The live object never changes; a
 * failure has a Status. */
#include "tests/fuzz/patch_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const kinds[][2] = { { "v1", "Pod" }, { "apps/v1", "Deployment" } };
    struct patch_input in;
    json_t *ret = NULL, *status = NULL;

    if (!patch_input_read(&in, data, size))
        return 0;
    for (size_t i = 0; i < 2; i++) {
        struct err e = { 0 };
        enum err_code code = api_patch_strategic(api_patch_kind_find(kinds[i][0], kinds[i][1]), in.live,
                                                 in.patch, &ret, &status, &e);

        patch_input_check(&in, code, ret, status);
        json_decref(ret);
        json_decref(status);
        ret = status = NULL;
    }
    patch_input_done(&in, NULL, NULL);
    return 0;
}
