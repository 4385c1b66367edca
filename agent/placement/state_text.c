/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/placement/state_text.h"

#include "agent/placement/cpu_state.h"
#include "base/codec/json.h"
#include "base/scope.h"

#define FNV_BASIS 2166136261u
#define FNV_PRIME 16777619u

static uint32_t add_to_sum(uint32_t sum, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ (unsigned char)text[i]) * FNV_PRIME;
    return sum;
}

uint32_t pl_sum(const char *text, size_t n)
{
    return add_to_sum(FNV_BASIS, text, n);
}

const char *pl_member_text(const json_t *object, const char *key, size_t max, struct err *e)
{
    const char *text = json_str(object, key);

    if (text == NULL || strlen(text) > max) {
        err_set(e, ERR_DATA_LOSS, "%s is not a string of at most %zu bytes", key, max);
        return NULL;
    }
    return text;
}

/* The checksum with `version` after the name of the type. */
static uint32_t sum_with(const struct buf *hashed, const char *version)
{
    size_t name = strcspn(hashed->p, ")");
    uint32_t sum = add_to_sum(FNV_BASIS, hashed->p, name);

    return add_to_sum(add_to_sum(sum, version, strlen(version)), hashed->p + name, hashed->n - name);
}

enum err_code pl_check_sum(const json_t *file, const struct buf *hashed, const char *version, struct err *e)
{
    const json_t *has = json_object_get(file, "checksum");
    json_int_t sum = json_int(file, "checksum", -1);

    if (buf_check(hashed, e) != ERR_OK)
        return e->code;
    if (has == NULL || json_is_null(has) || sum == 0)
        return ERR_OK;
    if (sum != (json_int_t)pl_sum(hashed->p, hashed->n) && sum != (json_int_t)sum_with(hashed, version))
        return err_set(e, ERR_DATA_LOSS, "the checksum is %lld, but that of the content is %lu",
                       (long long)sum, (unsigned long)pl_sum(hashed->p, hashed->n));
    return ERR_OK;
}

enum err_code pl_add_map(struct buf *b, const json_t *object,
                         void (*add)(struct buf *b, const char *key, const json_t *value), struct err *e)
{
    mem_auto const char **keys = object != NULL ? json_sorted_keys(object) : NULL;

    if (object != NULL && keys == NULL)
        return err_nomem(e);
    buf_adds(b, "map[");
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++) {
        buf_adds(b, i > 0 ? " " : "");
        add(b, keys[i], json_object_get(object, keys[i]));
    }
    buf_addc(b, ']');
    return ERR_OK;
}

bool pl_name_is_ok(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && n <= PL_NAME_MAX;
}
