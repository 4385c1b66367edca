/* SPDX-License-Identifier: Apache-2.0 */
/* Merge patch: {"live", "patch"}.  The live object never changes; a second time changes nothing more. */
#include "tests/fuzz/patch_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct patch_input in;
    json_t *ret = NULL, *status = NULL, *again = NULL;
    struct err e = { 0 };
    enum err_code code;

    if (!patch_input_read(&in, data, size))
        return 0;
    code = api_patch_merge(in.live, in.patch, &ret, &status, &e);
    patch_input_check(&in, code, ret, status);
    if (ret != NULL && api_patch_merge(ret, in.patch, &again, &status, &e) == ERR_OK)
        assert(json_equal(ret, again));
    json_decref(again);
    patch_input_done(&in, ret, status);
    return 0;
}
