/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/manifest/decode.h"

#include "base/buf.h"

#include <string.h>

bool api_file_is_ignored(const char *name)
{
    static const char *const endings[] = { "~", ".swp", ".swx", ".tmp", ".bak", ".orig", ".rej" };

    if (name[0] == '.' || name[0] == '#')
        return true;
    for (size_t i = 0; i < ARRAY_LEN(endings); i++)
        if (str_ends(name, endings[i]))
            return true;
    /* vim writes "4913" to test whether it may create files. */
    return strcmp(name, "4913") == 0 || strstr(name, ".dpkg-") != NULL || strstr(name, ".rpm") != NULL;
}
