/* SPDX-License-Identifier: Apache-2.0 */
/* The text formats of names and small values, as in apimachinery pkg/util/validation. */
#include "agent/api/check.h"
#include "agent/api/quantity.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

static bool lower(char ch)
{
    return ch >= 'a' && ch <= 'z';
}

static bool api_names_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

static bool alnum(char ch)
{
    return lower(ch) || api_names_digit(ch) || (ch >= 'A' && ch <= 'Z');
}

/* [a-z0-9]([-a-z0-9]*[a-z0-9])?, optionally with '_' among the inner characters. */
static bool dns_label(const char *s, size_t n, bool underscore)
{
    for (size_t i = 0; i < n; i++) {
        bool edge = i == 0 || i + 1 == n;
        bool inner = s[i] == '-' || (underscore && s[i] == '_');
        if (!lower(s[i]) && !api_names_digit(s[i]) && !(inner && !edge) &&
            !(underscore && i == 0 && s[i] == '_'))
            return false;
    }
    return n > 0;
}

static bool subdomain(const char *s, bool underscore)
{
    if (strlen(s) > 253)
        return false;
    for (;;) {
        size_t n = strcspn(s, ".");
        if (!dns_label(s, n, underscore))
            return false;
        if (s[n] == '\0')
            return true;
        s += n + 1;
    }
}

/* ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9], at most 63. */
static bool qualified_part(const char *s)
{
    size_t n = strlen(s);

    if (n == 0 || n > 63 || !alnum(s[0]) || !alnum(s[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
            return false;
    }
    return true;
}

static bool qualified_name(const char *s)
{
    const char *slash = strchr(s, '/');
    char prefix[254];

    if (slash == NULL)
        return qualified_part(s);
    if ((size_t)(slash - s) >= sizeof(prefix) || strchr(slash + 1, '/') != NULL)
        return false;
    memcpy(prefix, s, (size_t)(slash - s));
    prefix[slash - s] = '\0';
    return subdomain(prefix, false) && qualified_part(slash + 1);
}

static bool data_key(const char *s)
{
    size_t n = strlen(s);

    if (n == 0 || n > 253 || strcmp(s, ".") == 0 || strncmp(s, "..", 2) == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
            return false;
    }
    return true;
}

static bool env_name(const char *s)
{
    for (size_t i = 0; s[i] != '\0'; i++) {
        if (s[i] < 0x20 || s[i] > 0x7e || s[i] == '=')
            return false;
    }
    return s[0] != '\0';
}

static bool port_name(const char *s)
{
    size_t n = strlen(s);
    bool letter = false;

    if (n == 0 || n > 15 || s[0] == '-' || s[n - 1] == '-' || strstr(s, "--") != NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        letter = letter || lower(s[i]);
        if (!lower(s[i]) && !api_names_digit(s[i]) && s[i] != '-')
            return false;
    }
    return letter;
}

static bool header_name(const char *s)
{
    for (size_t i = 0; s[i] != '\0'; i++) {
        if (!alnum(s[i]) && s[i] != '-')
            return false;
    }
    return s[0] != '\0';
}

static bool ip_address(const char *s)
{
    unsigned char scratch[16];

    return inet_pton(AF_INET, s, scratch) == 1 || inet_pton(AF_INET6, s, scratch) == 1;
}

/* A DNS name, also with '_' and a trailing dot, or the root ".". */
static bool search_domain(const char *s)
{
    char copy[256];
    size_t n = strlen(s);

    if (strcmp(s, ".") == 0)
        return true;
    if (n == 0 || n >= sizeof(copy))
        return false;
    memcpy(copy, s, n + 1);
    if (copy[n - 1] == '.')
        copy[n - 1] = '\0';
    return subdomain(copy, true);
}

/* Segments [a-z0-9]([-_a-z0-9]*[a-z0-9])? joined by '.' or '/'. */
static bool sysctl_name(const char *s)
{
    if (strlen(s) > 253)
        return false;
    for (;;) {
        size_t n = strcspn(s, "./");
        if (n == 0 || s[0] == '_' || !dns_label(s, n, true))
            return false;
        if (s[n] == '\0')
            return true;
        s += n + 1;
    }
}

static bool has_backstep(const char *s)
{
    for (;;) {
        size_t n = strcspn(s, "/");
        if (n == 2 && s[0] == '.' && s[1] == '.')
            return true;
        if (s[n] == '\0')
            return false;
        s += n + 1;
    }
}

/* The atomic writer's limits: at most 4096 bytes, elements of at most 255. */
static bool file_lengths(const char *s)
{
    if (strlen(s) > 4096)
        return false;
    for (;;) {
        size_t n = strcspn(s, "/");
        if (n > 255)
            return false;
        if (s[n] == '\0')
            return true;
        s += n + 1;
    }
}

static bool uid_text(const char *s)
{
    size_t n = strlen(s);

    if (n == 0 || n > 128 || s[0] == '-')
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!alnum(s[i]) && s[i] != '-')
            return false;
    }
    return true;
}

/* "Memory", "HugePages", "HugePages-2Mi" */
static bool medium(const char *s)
{
    static const char huge[] = "HugePages-";
    struct quantity size;
    struct err e = { 0 };

    if (s[0] == '\0' || strcmp(s, "Memory") == 0 || strcmp(s, "HugePages") == 0)
        return true;
    return strncmp(s, huge, sizeof(huge) - 1) == 0 &&
           quantity_parse(s + sizeof(huge) - 1, &size, &e) == ERR_OK && size.nano > 0;
}

/* "25%"; more than 100 is allowed, as in Kubernetes. */
static bool percentage(const char *s, size_t n)
{
    return n >= 2 && n <= 10 && s[n - 1] == '%' && strspn(s, "0123456789") == n - 1;
}

const char *api_format_rule(enum api_format format, const char *s)
{
    size_t n = strlen(s);

    switch (format) {
    case API_FMT_NONE:
        return NULL;
    case API_FMT_LABEL:
        if (n <= 63 && dns_label(s, n, false))
            return NULL;
        return "must be 1 to 63 characters of a-z, 0-9 and '-', beginning and ending with a letter or digit";
    case API_FMT_SUBDOMAIN:
        if (subdomain(s, false))
            return NULL;
        return "must be a DNS name: at most 253 characters of a-z, 0-9, '-' and '.', each part beginning and "
               "ending with a letter or digit";
    case API_FMT_LABEL_KEY:
        if (qualified_name(s))
            return NULL;
        return "must be a name of 1 to 63 characters (letters, digits, '-', '_', '.', beginning and ending "
               "with "
               "a letter or digit), optionally behind a DNS name and '/'";
    case API_FMT_LABEL_VALUE:
        if (n == 0 || qualified_part(s))
            return NULL;
        return "must be empty or 1 to 63 letters, digits, '-', '_' and '.', beginning and ending with a "
               "letter "
               "or digit";
    case API_FMT_DATA_KEY:
        if (data_key(s))
            return NULL;
        return "must be 1 to 253 letters, digits, '-', '_' and '.', not \".\" and not beginning with \"..\"";
    case API_FMT_ENV_NAME:
        if (env_name(s))
            return NULL;
        return "must be printable ASCII characters without '='";
    case API_FMT_PORT_NAME:
        if (port_name(s))
            return NULL;
        return "must be 1 to 15 characters of a-z, 0-9 and '-', with a letter, without \"--\", not beginning "
               "or "
               "ending with '-'";
    case API_FMT_HEADER_NAME:
        if (header_name(s))
            return NULL;
        return "must be an HTTP header name: letters, digits and '-'";
    case API_FMT_IP:
        if (ip_address(s))
            return NULL;
        return "must be an IP address (10.9.8.7 or 2001:db8::ffff)";
    case API_FMT_SEARCH_DOMAIN:
        if (search_domain(s))
            return NULL;
        return "must be a DNS name (a-z, 0-9, '-', '_' and '.'), or \".\"";
    case API_FMT_SYSCTL:
        if (sysctl_name(s))
            return NULL;
        return "must be at most 253 characters: parts of a-z, 0-9, '-' and '_' joined by '.' or '/'";
    case API_FMT_DESCENDING:
        if (s[0] == '/')
            return "must be a relative path";
        return has_backstep(s) ? "must not contain \"..\"" : NULL;
    case API_FMT_FILE_PATH:
        if (s[0] == '/')
            return "must be a relative path";
        if (has_backstep(s))
            return "must not contain \"..\"";
        if (strncmp(s, "..", 2) == 0)
            return "must not begin with \"..\"";
        return file_lengths(s) ? NULL : "must be at most 4096 bytes, with names of at most 255 bytes";
    case API_FMT_NO_BACKSTEPS:
        return has_backstep(s) ? "must not contain \"..\"" : NULL;
    case API_FMT_UID:
        if (uid_text(s))
            return NULL;
        return "must be 1 to 128 letters, digits and '-', not beginning with '-'";
    case API_FMT_IMAGE:
        if (n == 0 || (!isspace((unsigned char)s[0]) && !isspace((unsigned char)s[n - 1])))
            return NULL;
        return "must not begin or end with white space";
    case API_FMT_MEDIUM:
        return medium(s) ? NULL : "is not a medium, allowed are \"\", Memory, HugePages and HugePages-<size>";
    case API_FMT_PERCENT:
        return percentage(s, n) ? NULL : "must be a number, or a percentage such as \"25%\"";
    }
    return NULL;
}
