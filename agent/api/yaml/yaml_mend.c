/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_mend - repairs text that Kubernetes' YAML reader accepts and libyaml does not: \' in double quotes.
 * YAML has no such escape, but manifests use it, including examples in the Kubernetes documentation. */
#include "agent/api/yaml/internal.h"

#include <string.h>

/* The offset of the character `index`; libyaml counts characters after a byte order mark. */
static size_t offset_of(const char *text, size_t size, size_t index)
{
    size_t at = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    for (; at < size; at++)
        if (((unsigned char)text[at] & 0xc0) != 0x80 && index-- == 0)
            break;
    return at;
}

bool yaml_mend_quotes(char *text, size_t *size, size_t index)
{
    size_t from = offset_of(text, *size, index), to;

    if (from >= *size || text[from] != '"')
        return false;
    for (to = ++from; from < *size && text[from] != '"'; from++) {
        if (text[from] == '\\' && from + 1 < *size && text[from + 1] != '\'')
            text[to++] = text[from++];
        else if (text[from] == '\\')
            continue;
        text[to++] = text[from];
    }
    if (to == from)
        return false;
    memmove(text + to, text + from, *size - from);
    *size -= from - to;
    return true;
}
