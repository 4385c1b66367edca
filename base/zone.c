/* SPDX-License-Identifier: Apache-2.0 */
#include "base/zone.h"

#include "base/zone_rule.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TYPES_MAX 256          /* an index has one byte */
#define CHANGES_MAX 8192       /* the tz database needs 250 */
#define OFFSET_MAX (26 * 3600) /* RFC 9636: more than 25 hours is no offset */
#define HEADER_SIZE 44

struct zone {
    size_t n_changes;
    int64_t *at;      /* ascending */
    uint8_t *type_of; /* from at[i] on */
    int32_t offsets[TYPES_MAX];
    size_t n_types;
    bool has_rule; /* after the last change */
    struct zone_rule rule;
};

struct header {
    uint8_t version;
    uint32_t n_ut, n_std, n_leap, n_time, n_type, n_char;
};

static uint64_t big_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static bool read_header(const uint8_t *p, size_t n, struct header *ret)
{
    if (n < HEADER_SIZE || memcmp(p, "TZif", 4) != 0)
        return false;
    *ret = (struct header){ .version = p[4],
                            .n_ut = (uint32_t)big_endian(p + 20, 4),
                            .n_std = (uint32_t)big_endian(p + 24, 4),
                            .n_leap = (uint32_t)big_endian(p + 28, 4),
                            .n_time = (uint32_t)big_endian(p + 32, 4),
                            .n_type = (uint32_t)big_endian(p + 36, 4),
                            .n_char = (uint32_t)big_endian(p + 40, 4) };
    return ret->n_time <= CHANGES_MAX && ret->n_type >= 1 && ret->n_type <= TYPES_MAX &&
           ret->n_char <= ZONE_FILE_MAX && ret->n_leap <= ZONE_FILE_MAX && ret->n_ut <= TYPES_MAX &&
           ret->n_std <= TYPES_MAX;
}

/* The size of the block behind a header, with times of `width` bytes. */
static size_t block_size(const struct header *h, size_t width)
{
    return h->n_time * (width + 1) + h->n_type * 6 + h->n_char + h->n_leap * (width + 4) + h->n_std + h->n_ut;
}

static bool read_block(struct zone *z, const struct header *h, const uint8_t *p, size_t width)
{
    const uint8_t *index = p + h->n_time * width, *types = index + h->n_time;

    z->n_types = h->n_type;
    for (size_t i = 0; i < h->n_type; i++) {
        z->offsets[i] = (int32_t)big_endian(types + i * 6, 4);
        if (z->offsets[i] > OFFSET_MAX || z->offsets[i] < -OFFSET_MAX)
            return false;
    }
    z->n_changes = h->n_time;
    z->at = calloc(h->n_time + 1, sizeof(*z->at));
    z->type_of = calloc(h->n_time + 1, 1);
    if (z->at == NULL || z->type_of == NULL)
        return true; /* the caller notices */
    for (size_t i = 0; i < h->n_time; i++) {
        z->at[i] = width == 8 ? (int64_t)big_endian(p + i * 8, 8) : (int32_t)big_endian(p + i * 4, 4);
        z->type_of[i] = index[i];
        if (index[i] >= h->n_type || (i > 0 && z->at[i] <= z->at[i - 1]))
            return false;
    }
    return true;
}

/* "\n<rule>\n" at the end of the file. */
static bool read_footer(struct zone *z, const uint8_t *p, size_t n)
{
    char text[ZONE_RULE_TEXT_MAX];
    const uint8_t *end = n > 1 && p[0] == '\n' ? memchr(p + 1, '\n', n - 1) : NULL;
    size_t length = end != NULL ? (size_t)(end - p - 1) : 0;

    if (end == NULL || length >= sizeof(text))
        return false;
    memcpy(text, p + 1, length);
    text[length] = '\0';
    z->has_rule = length > 0;
    return length == 0 || (strlen(text) == length && zone_rule_parse(text, &z->rule));
}

static bool read_file(struct zone *z, const uint8_t *p, size_t n)
{
    struct header h;
    size_t size;

    if (n > ZONE_FILE_MAX || !read_header(p, n, &h))
        return false;
    size = HEADER_SIZE + block_size(&h, 4);
    if (size > n)
        return false;
    if (h.version < '2')
        return read_block(z, &h, p + HEADER_SIZE, 4);
    p += size;
    n -= size;
    if (!read_header(p, n, &h) || block_size(&h, 8) > n - HEADER_SIZE)
        return false;
    size = HEADER_SIZE + block_size(&h, 8);
    return read_block(z, &h, p + HEADER_SIZE, 8) && read_footer(z, p + size, n - size);
}

enum err_code zone_parse(struct zone **ret, const void *data, size_t n, struct err *e)
{
    struct zone *z = calloc(1, sizeof(*z));
    bool good = z != NULL && read_file(z, data, n);

    if (z == NULL || (good && (z->at == NULL || z->type_of == NULL))) {
        zone_free(z);
        return err_nomem(e);
    }
    if (!good) {
        zone_free(z);
        return err_set(e, ERR_INVALID, "it is not a time zone file, or it is damaged");
    }
    *ret = z;
    return ERR_OK;
}

enum err_code zone_parse_rule(struct zone **ret, const char *text, struct err *e)
{
    struct zone *z = calloc(1, sizeof(*z));

    if (z == NULL)
        return err_nomem(e);
    z->has_rule = true;
    if (!zone_rule_parse(text, &z->rule)) {
        zone_free(z);
        return err_set(e, ERR_INVALID, "\"%.60s\" is not a time zone rule", text);
    }
    *ret = z;
    return ERR_OK;
}

int32_t zone_offset(const struct zone *z, int64_t at)
{
    size_t low = 0, high;

    if (z == NULL)
        return 0;
    high = z->n_changes;
    while (low < high) { /* the first change after `at` */
        size_t middle = low + (high - low) / 2;

        if (z->at[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == z->n_changes && z->has_rule)
        return zone_rule_offset(&z->rule, at);
    return low > 0 ? z->offsets[z->type_of[low - 1]] : z->offsets[0];
}

void zone_free(struct zone *z)
{
    if (z == NULL)
        return;
    free(z->at);
    free(z->type_of);
    free(z);
}

bool zone_name_is_valid(const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n > 100 || name[0] == '/' || name[n - 1] == '/' || strcmp(name, "Local") == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || name[i - 1] == '/';
        bool letter = (name[i] >= 'A' && name[i] <= 'Z') || (name[i] >= 'a' && name[i] <= 'z');

        if (!letter && (first || strchr("0123456789+-_/", name[i]) == NULL))
            return false;
    }
    return true;
}

static bool is_utc(const char *name)
{
    return strcmp(name, "UTC") == 0 || strcmp(name, "Etc/UTC") == 0 || strcmp(name, "GMT") == 0;
}

bool zone_is_known(const char *name)
{
    char path[sizeof(ZONE_FOLDER) + 102], magic[4];
    bool known = false;
    int fd;

    if (!zone_name_is_valid(name))
        return false;
    if (is_utc(name) || access(ZONE_FOLDER, F_OK) != 0)
        return true;
    snprintf(path, sizeof(path), "%s/%s", ZONE_FOLDER, name);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        known = read(fd, magic, sizeof(magic)) == sizeof(magic) && memcmp(magic, "TZif", 4) == 0;
        close(fd);
    }
    return known;
}
