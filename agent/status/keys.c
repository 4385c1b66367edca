/* SPDX-License-Identifier: Apache-2.0 */
/* keys - the sorted names of objects, for answers in pieces while pods are added and removed. */
#include "agent/status/internal.h"

#include <string.h>

static int by_namespace_and_name(const void *a, const void *b)
{
    const struct object_key *x = a, *y = b;
    int order = strcmp(x->namespace_, y->namespace_);

    return order != 0 ? order : strcmp(x->name, y->name);
}

/* Before the object is made: whoever asks for one pod of a thousand must not wait for the others. */
static bool may_be_selected(const struct selection *only, enum status_kind kind, const char *namespace_,
                            const char *name)
{
    if (only == NULL)
        return true;
    if (only->namespace_ != NULL && strcmp(only->namespace_, namespace_) != 0)
        return false;
    for (size_t i = 0; kind == KIND_POD && i < only->n_fields; i++)
        if (strcmp(only->fields[i].path, "metadata.name") == 0 &&
            (strcmp(only->fields[i].value, name) == 0) == only->fields[i].differs)
            return false;
    return true;
}

enum err_code keys_read(struct object_keys *ret, struct status_server *s, enum status_kind kind,
                        const struct selection *only, struct err *e)
{
    struct object_keys k = { .kind = kind };
    json_auto_t *names = s->provider.keys(s->provider.arg, kind, e);
    size_t bytes = 0, i;
    json_t *one;
    char *at;

    if (!json_is_array(names))
        return e->code == ERR_OK ? err_nomem(e) : e->code;
    json_array_foreach (names, i, one)
        bytes += json_string_length(one) + 1;
    k.keys = calloc(json_array_size(names) + 1, sizeof(*k.keys));
    k.text = at = malloc(bytes + 1);
    if (k.keys == NULL || k.text == NULL) {
        keys_done(&k);
        return err_nomem(e);
    }
    json_array_foreach (names, i, one) {
        char *slash;

        strcpy(at, json_string_value(one));
        slash = strchr(at, '/');
        if (slash == NULL)
            continue;
        *slash = '\0';
        if (may_be_selected(only, kind, at, slash + 1)) {
            k.keys[k.n++] = (struct object_key){ at, slash + 1 };
            at = slash + 1 + strlen(slash + 1) + 1;
        }
    }
    if (kind != KIND_EVENT && kind != KIND_DEVICE &&
        kind != KIND_DEVICE_HELD) /* these kinds have their own order */
        qsort(k.keys, k.n, sizeof(*k.keys), by_namespace_and_name);
    *ret = k;
    return ERR_OK;
}

void keys_done(struct object_keys *k)
{
    free(k->keys);
    free(k->text);
    *k = (struct object_keys){ 0 };
}

bool keys_to_come(const struct object_keys *k, const char *namespace_, const char *name)
{
    const struct object_key key = { namespace_, name };

    if (k->kind == KIND_EVENT) {
        for (size_t i = k->next; i < k->n; i++)
            if (by_namespace_and_name(&key, &k->keys[i]) == 0)
                return true;
        return false;
    }
    return k->next < k->n &&
           bsearch(&key, k->keys + k->next, k->n - k->next, sizeof(key), by_namespace_and_name) != NULL;
}

json_t *keys_next(struct object_keys *k, struct status_server *s, struct err *e)
{
    const struct object_key *key = &k->keys[k->next++];

    return s->provider.listed(s->provider.arg, k->kind, key->namespace_, key->name, e);
}
