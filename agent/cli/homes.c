/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the manifest folder that contains an object, as reported by the daemon. */
#include "agent/cli/internal.h"

#include "agent/api/manifest/decode.h"

#include <string.h>

struct key {
    const char *kind, *namespace_, *name;
};

static struct key key_of(const struct api_object *o)
{
    const struct api_meta *meta = api_object_meta(o);

    return (struct key){ api_kind_name(o->kind), meta->namespace != NULL ? meta->namespace : "", meta->name };
}

static bool is_it(const json_t *held, const struct key *k)
{
    return strcmp(cli_text(held, "kind"), k->kind) == 0 &&
           strcmp(cli_text(held, "namespace"), k->namespace_) == 0 &&
           strcmp(cli_text(held, "name"), k->name) == 0;
}

const json_t *home_of(const json_t *manifests, const struct api_object *o)
{
    const struct key k = key_of(o);
    const json_t *file, *held;
    size_t i, n;

    json_array_foreach (cli_at(manifests, "items"), i, file) {
        json_array_foreach (cli_at(file, "holds"), n, held)
            if (is_it(held, &k))
                return file;
    }
    return NULL;
}

bool home_is_within(const json_t *home, const struct api_object *v, size_t n)
{
    const json_t *held;
    size_t i, k;

    json_array_foreach (cli_at(home, "holds"), i, held) {
        bool found = false;

        for (k = 0; k < n && !found; k++) {
            const struct key key = key_of(&v[k]);

            found = is_it(held, &key);
        }
        if (!found)
            return false;
    }
    return true;
}

void home_add_others(const json_t *home, const struct api_object *but, struct buf *out)
{
    const struct key k = key_of(but);
    const json_t *held;
    size_t i, n = 0;

    json_array_foreach (cli_at(home, "holds"), i, held) {
        const char *its = cli_text(held, "namespace");

        if (!is_it(held, &k))
            buf_addf(out, "%s%s %s%s%s", n++ == 0 ? "" : ", ", cli_text(held, "kind"), its,
                     its[0] != '\0' ? "/" : "", cli_text(held, "name"));
    }
}

void home_kind(const struct api_object *o, char ret[HOME_KIND_SIZE])
{
    snprintf(ret, HOME_KIND_SIZE, "%s", api_kind_name(o->kind));
    for (char *p = ret; *p != '\0'; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p | 0x20) : *p;
}
