/* SPDX-License-Identifier: Apache-2.0 */
/* Environment files: the input is the name that is asked for, NUL, the file.  Each name that the file seems
 * to give is asked for, too. */
#include "agent/pod/env/env_file.h"
#include "tests/fuzz/text.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const char *text, size_t n, const char *name)
{
    struct arena a = { 0 };
    struct err e = { 0 };
    char *value = NULL;

    if (env_file_find(text, n, name, &a, &value, &e) != ERR_OK) {
        if (e.text[0] == '\0' || value != NULL)
            abort();
    } else if (value != NULL) { /* it stands in the file as it is, in quotes */
        size_t k = strlen(value);
        if (strchr(value, '\'') != NULL || memmem(text, n, value, k) == NULL || strchr(name, '=') != NULL)
            abort();
    }
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = text_of(data, size);
    const char *text, *end;

    if (copy == NULL)
        return 0;
    end = copy + size;
    text = copy + strlen(copy) < end ? copy + strlen(copy) + 1 : end;
    look_up(text, (size_t)(end - text), copy);
    if (end - text < 4096) {
        for (const char *p = text; p < end; p++) {
            const char *equals = memchr(p, '=', (size_t)(end - p));
            char *name = equals != NULL ? text_of(p, (size_t)(equals - p)) : NULL;
            if (name != NULL)
                look_up(text, (size_t)(end - text), name);
            free(name);
            p = memchr(p, '\n', (size_t)(end - p));
            if (p == NULL)
                break;
        }
    }
    free(copy);
    return 0;
}
