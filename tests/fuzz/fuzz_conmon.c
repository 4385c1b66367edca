/* SPDX-License-Identifier: Apache-2.0 */
/* conmon's line on its sync pipe, with the runtime's words in it, and what a runtime says about
 * its version and its features. */
#include "agent/runtime/container_internal.h"

#include "tests/fuzz/text.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size), *exact = malloc(size > 0 ? size : 1);
    struct rt_features features = { 0 };
    struct err e = { 0 };
    pid_t pid = 0;
    size_t n = strlen(text);

    memcpy(exact, data, size);
    if (rt_conmon_parse_sync(exact, size, &pid, &e) == ERR_OK)
        assert(pid > 0 && e.code == ERR_OK);
    else
        assert(pid == 0 && e.text[0] != '\0');
    if (rt_features_parse_version(text, &features))
        rt_features_by_version(&features);
    e = (struct err){ 0 };
    features.recursive_read_only = false;
    if (rt_features_parse(text, &features, &e) != ERR_OK)
        assert(e.text[0] != '\0' && !features.recursive_read_only);
    rt_words_tidy(text);
    assert(strlen(text) <= n);
    free(text);
    free(exact);
    return 0;
}
