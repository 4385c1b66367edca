/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/resource_name.h"
#include "base/buf.h"

#include <stddef.h>
#include <string.h>

#define DOMAIN_MAX                                                                                           \
    (253 - 9) /* the limit of a DNS name, less "requests.", which resource quotas put in front of the name   \
               */
#define NAME_MAX_BYTES 63 /* limit of the part behind the slash */

static bool lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool alnum(char c)
{
    return lower(c) || (c >= 'A' && c <= 'Z');
}

/* Labels of small letters, digits and inner hyphens, with single dots between them. */
static bool is_domain(const char *p, size_t n)
{
    if (n == 0 || n > DOMAIN_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool edge = i == 0 || i + 1 == n || p[i - 1] == '.' || p[i + 1] == '.';

        if (!lower(p[i]) && (edge || (p[i] != '-' && p[i] != '.')))
            return false;
    }
    return true;
}

static bool is_name(const char *p)
{
    size_t n = strlen(p);

    if (n == 0 || n > NAME_MAX_BYTES || !alnum(p[0]) || !alnum(p[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!alnum(p[i]) && p[i] != '-' && p[i] != '_' && p[i] != '.')
            return false;
    return true;
}

bool dp_resource_name_ok(const char *name)
{
    const char *slash = strchr(name, '/');

    if (slash == NULL || strstr(name, "kubernetes.io/") != NULL || str_starts(name, "requests."))
        return false;
    return is_domain(name, (size_t)(slash - name)) && is_name(slash + 1);
}
