/* SPDX-License-Identifier: Apache-2.0 */
/* JSON patch: {"live", "patch"}.  The live object never changes; a failure has a Status; an empty patch is a
 * copy. */
#include "tests/fuzz/patch_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct patch_input in;
    json_t *ret = NULL, *status = NULL;
    struct err e = { 0 };
    enum err_code code;

    if (!patch_input_read(&in, data, size))
        return 0;
    code = api_patch_json(in.live, in.patch, &ret, &status, &e);
    patch_input_check(&in, code, ret, status);
    if (json_is_array(in.patch) && json_array_size(in.patch) == 0 && ret != NULL)
        assert(json_equal(ret, in.live));
    patch_input_done(&in, ret, status);
    return 0;
}
