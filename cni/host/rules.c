/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/host/rules.h"

#include "base/scope.h"

#include <string.h>

bool cni_rules_is_built_in(const char *chain)
{
    static const char *const names[] = { "PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(chain, names[i]) == 0)
            return true;
    return false;
}

bool cni_rules_word(const char **at, char *ret, size_t max)
{
    const char *p = *at;
    bool quoted = false;
    size_t n = 0;

    while (*p == ' ')
        p++;
    if (*p == '\0' || *p == '\n')
        return false;
    for (; *p != '\0' && *p != '\n' && (quoted || *p != ' '); p++) {
        if (*p == '"') {
            quoted = !quoted;
            continue;
        }
        if (quoted && *p == '\\' && p[1] != '\0' && p[1] != '\n')
            p++;
        if (n + 1 < max)
            ret[n++] = *p;
    }
    ret[n] = '\0';
    *at = p;
    return true;
}

void cni_rules_each(const char *save, bool (*fn)(const char *table, const char *line, void *arg), void *arg)
{
    char table[CNI_RULES_WORD] = "";

    for (const char *line = save; *line != '\0';) {
        const char *end = strchrnul(line, '\n');

        if (line[0] == '*') {
            const char *name = line + 1;

            if (!cni_rules_word(&name, table, sizeof(table)))
                table[0] = '\0';
        } else if (!fn(table, line, arg)) {
            return;
        }
        line = *end == '\n' ? end + 1 : end;
    }
}
