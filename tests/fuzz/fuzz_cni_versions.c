/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin's answer to VERSION. */
#include "base/codec/json.h"
#include "cni/plugin/names.h"
#include "cni/plugin/versions.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int versions[CNI_VERSIONS_MAX];
    struct err e = { 0 };
    json_t *v = NULL;
    size_t n = 0;

    if (json_parse((const char *)data, size, 1 << 20, &v, "VERSION", &e) != ERR_OK)
        return 0;
    if (cni_versions_parse(v, versions, &n, &e) == ERR_OK) {
        assert(n <= CNI_VERSIONS_MAX);
        for (size_t i = 0; i < n; i++)
            assert(cni_version_number(cni_version_text(versions[i])) == versions[i]);
    } else {
        assert(e.text[0] != '\0');
    }
    json_decref(v);
    return 0;
}
