/* SPDX-License-Identifier: Apache-2.0 */
/* Files of cgroupfs: the kernel writes them, but as root one may mount anything in its place. */
#include "cgroups/internal.h"
#include "cgroups/partition.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_partition(const char *text, size_t size)
{
    char *ended = calloc(1, size + 1), why[CG_PARTITION_WHY];
    enum cg_partition state;

    if (ended == NULL)
        return;
    memcpy(ended, text, size);
    state = cg_partition_parse(ended, why);
    assert(memchr(why, '\0', sizeof(why)) != NULL && (state == CG_PARTITION_INVALID || why[0] == '\0'));
    free(ended);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy that ends where it ends: nothing may look for a NUL. */
    char *text = malloc(size != 0 ? size : 1);
    struct cg_sample s = { 0 };
    uint64_t value = 7, other = 7;

    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    cg_take_cpu_stat(text, size, &s);
    cg_take_memory_stat(text, size, &s);
    cg_take_memory_stat_v1(text, size, &s);
    cg_take_oom_kills(text, size, &s);
    cg_take_io_stat(text, size, &s);
    cg_take_blkio(text, size, &value, &other);
    for (size_t i = 0; i < ARRAY_LEN(s.psi); i++)
        cg_take_pressure(text, size, &s.psi[i]);
    assert(s.psi[0].some.avg10 <= 10099 && s.psi[0].full.avg300 <= 10099);
    value = 7;
    if (!cg_take_u64(text, size, &value))
        assert(value == 7);
    value = 7;
    if (!cg_take_limit(text, size, &value))
        assert(value == 7);
    assert(cg_count_lines(text, size) <= size);
    look_at_partition(text, size);
    free(text);
    return 0;
}
