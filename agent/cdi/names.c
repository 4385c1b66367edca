/* SPDX-License-Identifier: Apache-2.0 */
/* Names of vendors, classes and devices, and annotations with such names. */
#include "agent/cdi/internal.h"

#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_alphanumeric(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9');
}

static bool is_made_of(const char *s, size_t n, const char *others)
{
    for (size_t i = 0; i < n; i++)
        if (!is_alphanumeric(s[i]) && (s[i] == '\0' || strchr(others, s[i]) == NULL))
            return false;
    return n > 0 && is_alphanumeric(s[n - 1]);
}

const char *cdi_vendor_problem(const char *s, size_t n)
{
    return is_made_of(s, n, "_-.") && is_letter(s[0]) ? NULL
                                                      : "must consist of letters, digits, '_', '-' and '.', "
                                                        "begin with a letter and end with a letter or "
                                                        "digit";
}

const char *cdi_device_problem(const char *s, size_t n)
{
    return is_made_of(s, n, "_-.:") && is_alphanumeric(s[0])
               ? NULL
               : "must consist of letters, digits, '_', '-', '.' and ':', and begin and end with a letter or "
                 "digit";
}

static bool is_name(const char *s, size_t n)
{
    const char *slash = memchr(s, '/', n), *equals = memchr(s, '=', n);
    const char *end = s + n;

    return slash != NULL && equals != NULL && slash < equals &&
           cdi_vendor_problem(s, (size_t)(slash - s)) == NULL &&
           cdi_vendor_problem(slash + 1, (size_t)(equals - slash - 1)) == NULL &&
           cdi_device_problem(equals + 1, (size_t)(end - equals - 1)) == NULL;
}

bool cdi_is_name(const char *name)
{
    return is_name(name, strlen(name));
}

enum err_code cdi_annotation_names(const char *key, const char *value, struct strs *names, struct err *e)
{
    if (!str_starts(key, CDI_ANNOTATION))
        return ERR_OK;
    for (const char *p = value;; p++) {
        size_t n = strcspn(p, ",");
        str_auto name = strndup(p, n);

        if (name == NULL)
            return err_nomem(e);
        if (!is_name(name, n))
            return err_set(e, ERR_INVALID, CDI_BAD_ANNOTATION ": invalid CDI device name %s", QUOTE(name));
        if (names->n >= CDI_NAMES_MAX)
            return err_set(e, ERR_INVALID, CDI_BAD_ANNOTATION ": more than %d devices", CDI_NAMES_MAX);
        if (!strs_add_once(names, name))
            return err_nomem(e);
        p += n;
        if (*p == '\0')
            return ERR_OK;
    }
}
