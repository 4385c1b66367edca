/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image.h"

#include <ctype.h>
#include <string.h>

/*
 * The grammar of github.com/distribution/reference, as used by Docker, containerd and kubelet, with the same
 * error texts:
 *
 *     name[:tag][@digest]      name = [domain "/"] path *("/" path)
 *     domain                   letters, digits, "-" between dots, or [IPv6]; ":port"
 *     path                     a-z 0-9, joined by ".", "_", "__" or any number of "-"
 *     tag                      a word character, then up to 127 of those, "." and "-"
 */
enum { REPOSITORY_MAX = 255, TAG_MAX = 128, SHOWN = 300 };

static enum err_code image_name_bad(const char *reference, const char *why, struct err *e)
{
    return err_set(e, ERR_INVALID, "couldn't parse image name \"%.*s\": %s", SHOWN, reference, why);
}

/* The repository without its domain, like containerd's messages. */
static enum err_code bad_case(const char *reference, const char *name, size_t n, bool official, struct err *e)
{
    return err_set(
        e, ERR_INVALID,
        "couldn't parse image name \"%.*s\": invalid reference format: repository name (%s%.*s) must "
        "be lowercase",
        SHOWN, reference, official ? "library/" : "", (int)(n < SHOWN ? n : SHOWN), name);
}

static bool is_lower_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool image_name_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_hex_id(struct str s)
{
    size_t i = 0;

    while (i < s.n && (isdigit((unsigned char)s.p[i]) || (s.p[i] >= 'a' && s.p[i] <= 'f')))
        i++;
    return s.n == 64 && i == 64;
}

/* One element between slashes. */
static bool is_path_element(struct str s)
{
    size_t i = 0;

    for (;;) {
        size_t start = i;

        while (i < s.n && is_lower_digit(s.p[i]))
            i++;
        if (i == start)
            return false;
        if (i == s.n)
            return true;
        if (s.p[i] == '-') {
            while (i < s.n && s.p[i] == '-')
                i++;
        } else if (s.p[i] == '_') {
            i += i + 1 < s.n && s.p[i + 1] == '_' ? 2 : 1;
        } else if (s.p[i] == '.') {
            i++;
        } else {
            return false;
        }
    }
}

static bool is_host_element(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)p[i]) && !(p[i] == '-' && i > 0 && i + 1 < n))
            return false;
    return n > 0;
}

static bool is_domain(struct str s)
{
    const char *host = s.p, *end = s.p + s.n, *colon;

    if (s.n > 0 && host[0] == '[') {
        const char *close = memchr(host, ']', s.n);

        if (close == NULL || close == host + 1)
            return false;
        for (const char *c = host + 1; c < close; c++)
            if (!isxdigit((unsigned char)*c) && *c != ':')
                return false;
        colon = close + 1;
        if (colon < end && *colon != ':')
            return false;
    } else {
        colon = memchr(host, ':', s.n);
        if (colon == NULL)
            colon = end;
        for (const char *at = host;;) {
            const char *dot = memchr(at, '.', (size_t)(colon - at));

            if (!is_host_element(at, (size_t)((dot != NULL ? dot : colon) - at)))
                return false;
            if (dot == NULL)
                break;
            at = dot + 1;
        }
    }
    if (colon == end)
        return true;
    for (const char *c = colon + 1; c < end; c++)
        if (!isdigit((unsigned char)*c))
            return false;
    return colon + 1 < end;
}

/* The part before the first slash is a host if it has the form of one; otherwise the whole name is a path on
 * Docker Hub. */
static struct str split_domain(struct str *name)
{
    const char *slash = memchr(name->p, '/', name->n);
    struct str first = { name->p, slash == NULL ? 0 : (size_t)(slash - name->p) };
    bool is_host = first.n == 9 && memcmp(first.p, "localhost", 9) == 0;

    for (size_t i = 0; i < first.n; i++)
        is_host = is_host || first.p[i] == '.' || first.p[i] == ':' || isupper((unsigned char)first.p[i]);
    if (!is_host)
        return (struct str){ "docker.io", 9 };
    name->n -= first.n + 1;
    name->p += first.n + 1;
    if (first.n == 15 && memcmp(first.p, "index.docker.io", 15) == 0)
        return (struct str){ "docker.io", 9 };
    return first;
}

static bool is_repository(struct str s)
{
    for (;;) {
        const char *slash = memchr(s.p, '/', s.n);
        struct str element = { s.p, slash == NULL ? s.n : (size_t)(slash - s.p) };

        if (!is_path_element(element))
            return false;
        if (slash == NULL)
            return true;
        s.n -= element.n + 1;
        s.p = slash + 1;
    }
}

static enum err_code check_digest(const char *reference, const char *digest, struct err *e)
{
    static const struct {
        const char *prefix;
        size_t digits;
    } known[] = { { "sha256:", 64 }, { "sha384:", 96 }, { "sha512:", 128 } };

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (!str_starts(digest, known[i].prefix))
            continue;
        digest += strlen(known[i].prefix);
        if (strspn(digest, "0123456789abcdef") != strlen(digest))
            return image_name_bad(reference, "invalid reference format", e);
        return strlen(digest) == known[i].digits
                   ? ERR_OK
                   : image_name_bad(reference, "invalid checksum digest length", e);
    }
    return image_name_bad(
        reference, strchr(digest, ':') != NULL ? "unsupported digest algorithm" : "invalid reference format",
        e);
}

static bool is_tag(struct str s)
{
    if (s.n == 0 || s.n > TAG_MAX || !image_name_is_word(s.p[0]))
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (!image_name_is_word(s.p[i]) && s.p[i] != '.' && s.p[i] != '-')
            return false;
    return true;
}

/* Official Docker images are written without "library/". */
static bool is_official(struct str domain, struct str name)
{
    return domain.n == 9 && memcmp(domain.p, "docker.io", 9) == 0 && memchr(name.p, '/', name.n) == NULL;
}

enum err_code img_normalise(const char *reference, char ret[IMG_NAME_MAX], struct err *e)
{
    const char *at = strchr(reference, '@'), *colon;
    struct str name = { reference, at == NULL ? strlen(reference) : (size_t)(at - reference) }, tag = { 0 },
               domain;
    buf_auto out = BUF_INIT(IMG_NAME_MAX - 1);

    if (name.n == 0 || name.n > REPOSITORY_MAX + 1 + TAG_MAX)
        return image_name_bad(reference, "invalid reference format", e);
    if (at == NULL && is_hex_id(name))
        return image_name_bad(reference,
                              "invalid repository name: cannot specify 64-byte hexadecimal strings", e);
    if (at != NULL && check_digest(reference, at + 1, e) != ERR_OK)
        return e->code;

    /* The last colon begins a tag unless a slash follows, which makes it a port. */
    colon = memrchr(name.p, ':', name.n);
    if (colon != NULL && memchr(colon, '/', (size_t)(name.p + name.n - colon)) == NULL) {
        tag = (struct str){ colon + 1, name.n - (size_t)(colon + 1 - name.p) };
        name.n = (size_t)(colon - name.p);
        if (!is_tag(tag))
            return image_name_bad(reference, "invalid reference format", e);
    }

    domain = split_domain(&name);
    if (!is_domain(domain))
        return image_name_bad(reference, "invalid reference format", e);
    if (!is_repository(name)) {
        for (size_t i = 0; i < name.n; i++)
            if (isupper((unsigned char)name.p[i]))
                return bad_case(reference, name.p, strcspn(name.p, ":@"), is_official(domain, name), e);
        return image_name_bad(reference, "invalid reference format", e);
    }

    buf_add(&out, domain.p, domain.n);
    buf_addc(&out, '/');
    if (is_official(domain, name))
        buf_adds(&out, "library/");
    buf_add(&out, name.p, name.n);
    if (out.n > REPOSITORY_MAX)
        return image_name_bad(reference, "repository name must not be more than 255 characters", e);
    if (tag.n > 0)
        buf_addf(&out, ":%.*s", (int)tag.n, tag.p);
    else if (at == NULL)
        buf_adds(&out, ":latest");
    if (at != NULL)
        buf_adds(&out, at);
    if (buf_check(&out, e) !=
        ERR_OK) /* 255 + 1 + 128 + 1 + 135 + NUL would be 521: a long tag with a SHA-512 */
        return image_name_bad(reference, "the name is too long", e);
    memcpy(ret, out.p, out.n + 1);
    return ERR_OK;
}
