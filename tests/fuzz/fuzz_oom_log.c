/* SPDX-License-Identifier: Apache-2.0 */
/* Records of /dev/kmsg about kills: names of processes and cgroups in them are a container's choice.  Records
 * are apart by a line "%%". */
#include "cgroups/oom_log.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t size)
{
    assert(strnlen(text, size) < size);
    for (; *text != '\0'; text++)
        assert(*text >= ' ' && *text <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data, *end = p + size;
    struct cg_oom_text t = { 0 };

    while (p < end) {
        const char *stop = memmem(p, (size_t)(end - p), "%%\n", 3);
        size_t n = (size_t)((stop != NULL ? stop : end) - p);
        struct cg_oom_kill k = { 0 };
        char *record = malloc(n != 0 ? n : 1); /* ends where it ends */

        if (record == NULL)
            return 0;
        memcpy(record, p, n);
        if (cg_oom_text_feed(&t, record, n, &k)) {
            assert(k.pid > 0);
            check_text(k.name, sizeof(k.name));
            check_text(k.cgroup, sizeof(k.cgroup));
            check_text(k.limited, sizeof(k.limited));
            assert(n > 0 && record[0] >= '0' && record[0] <= '9');
        }
        check_text(t.cgroup, sizeof(t.cgroup));
        free(record);
        if (stop == NULL)
            break;
        p = stop + 3;
    }
    return 0;
}
