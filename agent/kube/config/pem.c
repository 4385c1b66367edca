/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/config/pem.h"

#include "base/buf.h"

#include <string.h>

/* The label of the block that begins at *at or after it, up to "-----"; *at moves behind its end line. 0:
 * there is no further one. */
static size_t next_block(const char **at, const char **ret_label)
{
    static const char begin[] = "-----BEGIN ", end[] = "-----END ", dashes[] = "-----";

    for (const char *p = strstr(*at, begin); p != NULL; p = strstr(p + 1, begin)) {
        const char *label = p + sizeof(begin) - 1, *close = strstr(label, dashes), *last;
        size_t n = close != NULL ? (size_t)(close - label) : 0;

        if (n == 0 || n > 60 || memchr(label, '\n', n) != NULL)
            continue;
        for (last = strstr(close, end); last != NULL; last = strstr(last + 1, end)) {
            const char *again = last + sizeof(end) - 1;
            if (strncmp(again, label, n) == 0 && strncmp(again + n, dashes, sizeof(dashes) - 1) == 0) {
                *ret_label = label;
                *at = again + n;
                return n;
            }
        }
    }
    return 0;
}

bool pem_has_certificate(const char *text)
{
    const char *label;
    size_t n;

    while ((n = next_block(&text, &label)) > 0)
        if (n == strlen("CERTIFICATE") && strncmp(label, "CERTIFICATE", n) == 0)
            return true;
    return false;
}

bool pem_has_key(const char *text)
{
    static const char key[] = "PRIVATE KEY";
    const char *label;
    size_t n;

    while ((n = next_block(&text, &label)) > 0)
        if (n >= sizeof(key) - 1 && strncmp(label + n - (sizeof(key) - 1), key, sizeof(key) - 1) == 0)
            return true;
    return false;
}
