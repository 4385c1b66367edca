/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of objects: their names and aliases, and their paths on the socket. */
#include "agent/cli/client/client.h"
#include "base/codec/percent.h"
#include "base/scope.h"

#include <string.h>

const char *const cli_pod_kinds[] = { "pods", "pod", "po", NULL };
const char *const cli_node_kinds[] = { "nodes", "node", "no", NULL };

/* Of the socket, and of no API. */
static const struct api_kind_row images = { .id = API_KINDS,
                                            .group = "",
                                            .version = "",
                                            .api_version = "",
                                            .kind = "Image",
                                            .plural = "images",
                                            .singular = "image" };

/* Kinds with special answers. */
static const struct api_kind_row *const first[] = {
    &api_kinds[API_KIND_POD],    &api_kinds[API_KIND_NODE],           &api_kinds[API_KIND_CONFIG_MAP],
    &api_kinds[API_KIND_SECRET], &api_kinds[API_KIND_PRIORITY_CLASS], &images,
};

bool cli_is_kind(const char *word, const char *const *kinds)
{
    size_t n = strcspn(word, "/");

    for (; *kinds != NULL; kinds++)
        if (strlen(*kinds) == n && strncmp(word, *kinds, n) == 0)
            return true;
    return false;
}

/* `word` has n bytes; what follows a point in it is the group, or version and group. */
static bool is_kind(const struct api_kind_row *k, const char *word, size_t n)
{
    const char *point = memchr(word, '.', n);
    const size_t of_name = point != NULL ? (size_t)(point - word) : n;
    char whole[128];

    if (!api_kind_is_word(k, word, of_name))
        return false;
    if (point == NULL)
        return true;
    snprintf(whole, sizeof(whole), "%.*s", (int)(n - of_name - 1), point + 1);
    if (str_starts(whole, k->version) && whole[strlen(k->version)] == '.')
        return strcmp(whole + strlen(k->version) + 1, k->group) == 0;
    return strcmp(whole, k->group) == 0;
}

const struct api_kind_row *cli_kind_find(const char *word)
{
    const size_t n = strcspn(word, "/");

    for (size_t i = 0; i < ARRAY_LEN(first); i++)
        if (is_kind(first[i], word, n))
            return first[i];
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++)
        if (api_kind_is_generic(k->id) && is_kind(k, word, n))
            return k;
    return NULL;
}

const char *cli_resource_name(const char *word, const char *const *kinds)
{
    const char *slash = strchr(word, '/');

    if (slash == NULL)
        return word;
    return cli_is_kind(word, kinds) ? slash + 1 : NULL;
}

int cli_unknown_kind(struct cli *cli, const char *word, const char *more)
{
    buf_auto all = BUF_INIT(1024);

    for (size_t i = 0; i < ARRAY_LEN(first); i++)
        buf_addf(&all, "%s%s", i > 0 ? ", " : "", first[i]->plural);
    for (const struct api_kind_row *k = api_kinds; k->kind != NULL; k++)
        if (api_kind_is_generic(k->id) && !api_kind_is_only_shown(k->id))
            buf_addf(&all, ", %s", k->plural);
    return cli_wrong(cli, "the server doesn't have a resource type \"%.*s\": there are %s%s",
                     (int)strcspn(word, "/"), word, all.p, more);
}

/* ---- from the socket ---- */

void cli_add_kind_path(struct buf *url, const struct api_kind_row *kind, const char *namespace_,
                       const char *name)
{
    if (kind != &images)
        buf_addf(url, "/%s/%s", kind->group[0] != '\0' ? "apis" : "api", kind->api_version);
    if (kind->namespaced && namespace_ != NULL) {
        buf_adds(url, "/namespaces/");
        percent_add(url, namespace_);
    }
    buf_addf(url, "/%s", kind->plural);
    if (name != NULL) {
        buf_adds(url, kind == &images ? "?name=" : "/");
        percent_add(url, name);
    }
}

json_t *cli_get_one(struct cli *cli, const struct api_kind_row *kind, const char *namespace_,
                    const char *name, int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_t *found;

    if (kind->id == API_KIND_POD)
        return cli_get_pod(cli, namespace_, name, ret_code);
    cli_add_kind_path(&url, kind, namespace_, name);
    found = cli_get(cli, url.p, ret_code);
    if (kind == &images && found != NULL) {
        json_t *image = json_incref(json_array_get(cli_at(found, "items"), 0));

        json_decref(found);
        found = image;
    }
    return found;
}

json_t *cli_get_all(struct cli *cli, const struct api_kind_row *kind, const char *namespace_,
                    const struct cli_selectors *selectors, int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_auto_t *list = NULL;

    cli_add_kind_path(&url, kind, namespace_, NULL);
    if (selectors != NULL && selectors->labels != NULL) {
        buf_adds(&url, "?labelSelector=");
        percent_add(&url, selectors->labels);
    }
    if (selectors != NULL && selectors->fields != NULL) {
        buf_adds(&url, selectors->labels != NULL ? "&fieldSelector=" : "?fieldSelector=");
        percent_add(&url, selectors->fields);
    }
    list = cli_get(cli, url.p, ret_code);
    return json_incref(cli_at(list, "items"));
}
