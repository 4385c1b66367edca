/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/plugin/names.h"

#include "base/scope.h"

#include <stddef.h>
#include <string.h>

static const struct {
    int number;
    const char *text;
} versions[] = {
    { CNI_V(0, 1, 0), "0.1.0" },
    { CNI_V(0, 2, 0), "0.2.0" },
    { CNI_V(0, 3, 0), "0.3.0" },
    { CNI_V(0, 3, 1), "0.3.1" },
    { CNI_V(0, 4, 0), "0.4.0" },
    { CNI_V(1, 0, 0), "1.0.0" },
    { CNI_V(1, 1, 0), CNI_VERSION_HIGHEST },
};

/* isalnum() depends on the locale. */
static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool cni_name_ok(const char *name)
{
    size_t n = name != NULL ? strnlen(name, CNI_NAME_MAX + 1) : 0;

    if (n == 0 || n > CNI_NAME_MAX || !is_alnum(name[0]))
        return false;
    for (size_t i = 1; i < n; i++) {
        if (!is_alnum(name[i]) && name[i] != '_' && name[i] != '.' && name[i] != '-')
            return false;
    }
    return true;
}

bool cni_ifname_ok(const char *name)
{
    size_t n = name != NULL ? strnlen(name, 16) : 0;

    if (n == 0 || n > 15 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c <= ' ' || c == 0x7f || c == '/' || c == ':')
            return false;
    }
    return true;
}

bool cni_type_ok(const char *type)
{
    size_t n = type != NULL ? strnlen(type, CNI_NAME_MAX + 1) : 0;

    if (n == 0 || n > CNI_NAME_MAX || strcmp(type, ".") == 0 || strcmp(type, "..") == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)type[i];
        if (c < ' ' || c == 0x7f || c == '/')
            return false;
    }
    return true;
}

bool cni_arg_ok(const char *value)
{
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0'; c++) {
        if (*c <= ' ' || *c == 0x7f || *c == ';' || *c == '=')
            return false;
    }
    return true;
}

int cni_version_number(const char *version)
{
    if (version == NULL || version[0] == '\0')
        return CNI_V(0, 1, 0);
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        if (strcmp(version, versions[i].text) == 0)
            return versions[i].number;
    }
    return -1;
}

const char *cni_version_text(int number)
{
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        if (versions[i].number == number)
            return versions[i].text;
    }
    return versions[0].text;
}
