/* SPDX-License-Identifier: Apache-2.0 */
/* serve_helper - for the tests of agent/api/serve: documents as JSON, and the recorded answers. */
#ifndef TESTS_UNIT_AGENT_API_SERVE_HELPER_H
#define TESTS_UNIT_AGENT_API_SERVE_HELPER_H
#include "helper.h"

#include "agent/api/serve/serve.h"
#include "base/buf.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define JSON_AUTO __attribute__((cleanup(free_json))) json_t
static inline void free_json(json_t **v)
{
    json_decref(*v);
}

static inline const char *header_of(const struct api_document *d, const char *name)
{
    for (size_t i = 0; i < d->n_headers; i++) {
        if (strcmp(d->headers[i].name, name) == 0)
            return d->headers[i].value;
    }
    return NULL;
}

static inline json_t *parsed(const struct api_document *d)
{
    json_t *v = json_loadb(d->body, d->size, 0, NULL);

    assert_non_null(v);
    return v;
}

static inline const char *text_at(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text == NULL ? "" : text;
}

/* Calls `replay` for each recorded case of a folder whose name begins with the prefix. The recordings are not
 * part of the repository: CORACLE_GOLDEN names their folder, or they are beside the checkout. */
static inline void each_case(const char *folder, const char *prefix, void (*replay)(const json_t *recorded))
{
    const char *tops[] = { getenv("CORACLE_GOLDEN"), "../shared/golden" };
    char path[1024];
    struct dirent **names;
    int n = -1, done = 0;

    for (size_t i = 0; i < 2 && n < 0; i++) {
        snprintf(path, sizeof(path), "%s/apply/%s", tops[i] == NULL ? "" : tops[i], folder);
        n = scandir(path, &names, NULL, alphasort);
    }
    if (n < 0) {
        print_message("no recordings: CORACLE_GOLDEN names no folder with apply/%s\n", folder);
        skip();
    }
    for (int i = 0; i < n; i++) {
        char file[2048];
        json_t *recorded = NULL;
        snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
        if (strncmp(names[i]->d_name, prefix, strlen(prefix)) == 0 && str_ends(names[i]->d_name, ".json")) {
            recorded = json_load_file(file, 0, NULL);
            assert_non_null(recorded);
            replay(recorded);
            json_decref(recorded);
            done++;
        }
        free(names[i]);
    }
    free(names);
    print_message("%d recorded cases of %s/%s*\n", done, folder, prefix);
}
#endif
