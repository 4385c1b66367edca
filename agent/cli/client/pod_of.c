/* SPDX-License-Identifier: Apache-2.0 */
/* The pod that a command means by "deployment/web": one of that workload's, as kubectl chooses. */
#include "agent/cli/client/client.h"

#include <string.h>

static bool has_pods(const struct api_kind_row *kind)
{
    return kind != NULL && (kind->id == API_KIND_DEPLOYMENT || kind->id == API_KIND_REPLICA_SET ||
                            kind->id == API_KIND_STATEFUL_SET || kind->id == API_KIND_DAEMON_SET);
}

static bool is_owned(const json_t *object, const char *uid)
{
    return cli_find(cli_at(object, "metadata.ownerReferences"), "uid", uid) != NULL;
}

/* By the workload, or by one of its ReplicaSets. */
static bool is_pod_of(const json_t *pod, const char *uid, const json_t *sets)
{
    const json_t *set;
    size_t i;

    if (is_owned(pod, uid))
        return true;
    json_array_foreach (sets, i, set)
        if (is_owned(set, uid) && is_owned(pod, cli_text(set, "metadata.uid")))
            return true;
    return false;
}

static bool runs(const json_t *pod)
{
    const json_t *ready = cli_find(cli_at(pod, "status.conditions"), "type", "Ready");

    return strcmp(cli_text(ready, "status"), "True") == 0;
}

/* A ready one before others. NULL: it has none. Malloc'ed. */
static char *choose(struct cli *cli, const json_t *pods, const json_t *sets, const char *uid)
{
    const json_t *pod, *best = NULL;
    size_t i, n = 0;

    json_array_foreach (pods, i, pod) {
        if (!is_pod_of(pod, uid, sets))
            continue;
        n++;
        if (best == NULL || (!runs(best) && runs(pod)))
            best = pod;
    }
    if (n > 1)
        cli_note(cli, "Found %zu pods, using pod/%s\n", n, cli_text(best, "metadata.name"));
    return best != NULL ? strdup(cli_text(best, "metadata.name")) : NULL;
}

const char *cli_pod_of(struct cli *cli, const char *word, const char *namespace_, char **ret_made,
                       int *ret_code)
{
    const char *name = cli_resource_name(word, cli_pod_kinds), *slash = strchr(word, '/');
    const struct api_kind_row *kind = slash != NULL ? cli_kind_find(word) : NULL;
    json_auto_t *object = NULL, *pods = NULL, *sets = NULL;

    *ret_code = EXIT_OK;
    if (name != NULL)
        return name;
    if (!has_pods(kind)) {
        *ret_code = cli_no_pod(cli, word);
        return NULL;
    }
    object = cli_get_one(cli, kind, namespace_, slash + 1, ret_code);
    if (object != NULL)
        pods = cli_get_all(cli, cli_kind_find("pods"), namespace_, NULL, ret_code);
    if (pods != NULL && kind->id == API_KIND_DEPLOYMENT)
        sets = cli_get_all(cli, &api_kinds[API_KIND_REPLICA_SET], namespace_, NULL, ret_code);
    if (*ret_code != EXIT_OK || pods == NULL)
        return NULL;
    *ret_made = choose(cli, pods, sets, cli_text(object, "metadata.uid"));
    if (*ret_made == NULL)
        *ret_code = cli_error(cli, "%s has no pods; see coracle describe %s", word, word);
    return *ret_made;
}
