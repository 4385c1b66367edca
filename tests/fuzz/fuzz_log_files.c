/* SPDX-License-Identifier: Apache-2.0 */
/* Names in a log folder: which are rotated files, and that the next one sorts behind. */
#include "agent/status/log_files.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[LOG_NAME_SIZE], next[LOG_NAME_SIZE];
    int64_t wall_ns = 0;

    if (size >= sizeof(name))
        return 0;
    memcpy(name, data, size);
    name[size] = '\0';
    memcpy(&wall_ns, data, size < sizeof(wall_ns) ? size : sizeof(wall_ns));
    log_file_rotated_name("0.log", wall_ns, name, next);
    assert(log_file_is_rotated(next, "0.log") && strlen(next) < 64);
    if (!log_file_is_rotated(name, "0.log"))
        return 0;
    assert(strncmp(name, "0.log.", 6) == 0);
    /* The last count of a second is followed by the first: a million rotations within one. */
    assert(strcmp(next, name) > 0 || strstr(name, ".999999") != NULL);
    return 0;
}
