/* SPDX-License-Identifier: Apache-2.0 */
/* text - bytes of an input as a string of their own, to be freed; NULL without memory. */
#ifndef TESTS_FUZZ_TEXT_H
#define TESTS_FUZZ_TEXT_H
#include <stdlib.h>
#include <string.h>

/* Not strndup(): strict checks of strings refuse it what does not end with a NUL. */
static inline char *text_of(const void *p, size_t n)
{
    char *text = malloc(n + 1);

    if (text != NULL) {
        if (n > 0)
            memcpy(text, p, n);
        text[n] = '\0';
    }
    return text;
}
#endif
