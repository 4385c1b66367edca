/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client/internal.h"

#include <stdlib.h>
#include <string.h>

static char *known_key(const char *namespace_, const char *name)
{
    return str_printf("%s/%s", namespace_, name);
}

struct known_object *known_find(struct known *k, const char *namespace_, const char *name)
{
    char *key = known_key(namespace_, name);
    struct known_object *o = NULL;

    if (key != NULL)
        HASH_FIND_STR(k->objects, key, o);
    free(key);
    return o;
}

struct known_object *known_add(struct known *k, const char *namespace_, const char *name, const char *uid)
{
    size_t n = strlen(namespace_) + 1 + strlen(name) + 1;
    struct known_object *o = calloc(1, sizeof(*o) + n);

    if (o == NULL || (o->uid = strdup(uid)) == NULL) {
        free(o);
        return NULL;
    }
    snprintf(o->key, n, "%s/%s", namespace_, name);
    o->namespace_n = strlen(namespace_);
    HASH_ADD_STR(k->objects, key, o);
    if (o->hh.tbl == NULL) {
        free(o->uid);
        free(o);
        return NULL;
    }
    o->seen = k->set;
    return o;
}

bool known_rename(struct known_object *o, const char *uid)
{
    char *copy = strdup(uid);

    if (copy == NULL)
        return false;
    free(o->uid);
    o->uid = copy;
    return true;
}

void known_remove(struct known *k, struct known_object *o)
{
    HASH_DEL(k->objects, o);
    free(o->uid);
    free(o);
}

size_t known_count(const struct known *k)
{
    return HASH_COUNT(k->objects);
}

size_t known_count_set(const struct known *k)
{
    size_t n = 0;

    for (const struct known_object *o = k->objects; o != NULL; o = o->hh.next)
        n += o->seen == k->set;
    return n;
}

struct known_object *known_missing(struct known *k)
{
    for (struct known_object *o = k->objects; o != NULL; o = o->hh.next)
        if (o->seen != k->set)
            return o;
    return NULL;
}

void known_done(struct known *k)
{
    struct known_object *o, *next;

    HASH_ITER (hh, k->objects, o, next)
        known_remove(k, o);
}
