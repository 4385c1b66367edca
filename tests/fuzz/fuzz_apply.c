/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-side apply: {"live", "patch"}, of the kind that the patch names.  The live object never changes; an
 * apply that succeeds does so again and then changes nothing; an update to a live object keeps readable
 * managers.
 */
#include "agent/api/patch/apply/apply.h"
#include "tests/fuzz/patch_input.h"

#include "base/codec/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void apply_again(const struct api_patch_kind *kind, const struct api_manager *by, const json_t *object,
                        const json_t *config)
{
    json_t *ret = NULL, *status = NULL;
    struct err e = { 0 };

    if (api_apply(kind, by, true, object, config, &ret, &status, &e) == ERR_OK)
        assert(json_equal(json_object_get(ret, "spec"), json_object_get(object, "spec")));
    json_decref(ret);
    json_decref(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct api_manager by = { "m", NULL, "2030-01-01T00:00:00Z" };
    const struct api_patch_kind *kind;
    struct patch_input in;
    json_t *ret = NULL, *status = NULL, *object;
    struct err e = { 0 };
    enum err_code code;

    if (!patch_input_read(&in, data, size))
        return 0;
    kind = api_patch_kind_find(json_str(in.patch, "apiVersion"), json_str(in.patch, "kind"));
    if (kind == NULL)
        kind = api_patch_kind_find("v1", "Pod");
    code = api_apply(kind, &by, json_flag(in.all, "force"), in.live, in.patch, &ret, &status, &e);
    patch_input_check(&in, code, ret, status);
    if (ret != NULL)
        apply_again(kind, &by, ret, in.patch);
    object = json_deep_copy(in.live);
    assert(api_update_managed(kind, &by, ret != NULL ? ret : in.live, object, &e) == ERR_OK ||
           e.code == ERR_EXHAUSTED);
    json_decref(object);
    patch_input_done(&in, ret, status);
    return 0;
}
