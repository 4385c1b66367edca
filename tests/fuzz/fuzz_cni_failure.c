/* SPDX-License-Identifier: Apache-2.0 */
/* What a CNI plugin said when it failed, "standard output", "%%", "standard error": one printable line and a
 * code. */
#include "cni/plugin/plugin.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str parts[2] = { { "", 0 }, { "", 0 } };
    struct err e = { 0 };
    char *out, *err_out;
    int code = -1;

    scratch_parts(data, size, parts, 2);
    out = text_of(parts[0].p, parts[0].n);
    err_out = text_of(parts[1].p, parts[1].n);
    assert(cni_plugin_error(out, strlen(out), err_out, 1 << 8, &code, &e) != ERR_OK);
    assert(e.code != ERR_OK && e.text[0] != '\0' && strchr(e.text, '\n') == NULL);
    free(out);
    free(err_out);
    return 0;
}
