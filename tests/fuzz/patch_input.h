/* SPDX-License-Identifier: Apache-2.0 */
/* patch_input - what the fuzz targets of patches share: one JSON object with the live object and the patch.
 */
#ifndef TESTS_FUZZ_PATCH_INPUT_H
#define TESTS_FUZZ_PATCH_INPUT_H
#include "agent/api/patch/patch.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

struct patch_input {
    json_t *all, *live, *patch; /* live and patch are borrowed from `all` */
    json_t *before;             /* a copy of live */
};

static inline bool patch_input_read(struct patch_input *in, const uint8_t *data, size_t size)
{
    *in = (struct patch_input){ .all = json_loadb((const char *)data, size, 0, NULL) };
    in->live = json_object_get(in->all, "live");
    in->patch = json_object_get(in->all, "patch");
    if (!json_is_object(in->live) || in->patch == NULL) {
        json_decref(in->all);
        return false;
    }
    in->before = json_deep_copy(in->live);
    return true;
}

static inline void patch_input_check(const struct patch_input *in, enum err_code code, const json_t *ret,
                                     const json_t *status)
{
    assert(json_equal(in->before, in->live));
    assert(code == ERR_OK || code == ERR_INVALID);
    assert((ret != NULL) == (code == ERR_OK) && (status != NULL) == (code == ERR_INVALID));
}

static inline void patch_input_done(struct patch_input *in, json_t *ret, json_t *status)
{
    json_decref(in->all);
    json_decref(in->before);
    json_decref(ret);
    json_decref(status);
}
#endif
