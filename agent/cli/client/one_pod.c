/* SPDX-License-Identifier: Apache-2.0 */
/* The pod, and the container, that a command is about. */
#include "agent/cli/client/client.h"

#include <string.h>

/* ---- the pod ---- */

bool cli_parse_one_pod(struct cli *cli, const struct cli_command *command, void *options, int argc,
                       char **argv, const char **ret_name, int *ret)
{
    if (!cli_parse(cli, command, options, &argc, argv, ret))
        return false;
    *ret_name = NULL;
    if (argc == 2 && strchr(argv[0], '/') == NULL && cli_is_kind(argv[0], cli_pod_kinds))
        *ret_name = argv[1];
    else if (argc == 1 && strchr(argv[0], '/') != NULL &&
             (*ret_name = cli_resource_name(argv[0], cli_pod_kinds)) == NULL)
        *ret = cli_no_pod(cli, argv[0]);
    else if (argc == 1 && strchr(argv[0], '/') == NULL && !cli_is_kind(argv[0], cli_pod_kinds))
        *ret_name = argv[0]; /* a pod with the name "pod": "pod pod" */
    else if (argc == 2 && !cli_is_kind(argv[0], cli_pod_kinds) && cli_kind_find(argv[0]) != NULL)
        *ret = cli_wrong(cli, "\"%s\" is not a pod: coracle %s only accepts a pod, as pod NAME", argv[0],
                         command->name);
    else if (*ret_name == NULL)
        *ret = cli_usage_error(cli, command, "you must specify one pod");
    return *ret_name != NULL;
}

int cli_no_pod(struct cli *cli, const char *word)
{
    return cli_wrong(cli, "%s: a pod is expected, as NAME or pod/NAME", word);
}

json_t *cli_get_pod(struct cli *cli, const char *namespace_, const char *name, int *ret_code)
{
    buf_auto url = BUF_INIT(64 * 1024);
    json_t *pod;

    cli_add_pod_path(&url, namespace_, name);
    pod = cli_get(cli, url.p, ret_code);
    if (*ret_code == EXIT_NOT_FOUND)
        cli_hint_pod(cli, namespace_, name);
    return pod;
}

/* ---- its container ---- */

const json_t *cli_find_container(const json_t *pod, const char *name)
{
    static const char *const lists[] = { "spec.containers", "spec.initContainers",
                                         "spec.ephemeralContainers" };
    const json_t *found = NULL;

    for (size_t i = 0; i < ARRAY_LEN(lists) && found == NULL; i++)
        found = cli_find(cli_at(pod, lists[i]), "name", name);
    return found;
}

int cli_no_container(struct cli *cli, const char *name, const char *pod)
{
    cli_error(cli, "container %s is not valid for pod %s", name, pod);
    return EXIT_NOT_FOUND;
}

const char *cli_choose_container(struct cli *cli, const json_t *pod)
{
    const json_t *containers = cli_at(pod, "spec.containers"), *init = cli_at(pod, "spec.initContainers"),
                 *ephemeral = cli_at(pod, "spec.ephemeralContainers"), *c;
    const char *named = json_string_value(
        json_object_get(cli_at(pod, "metadata.annotations"), "kubectl.kubernetes.io/default-container"));
    buf_auto all = BUF_INIT(64 * 1024);
    size_t i;

    if (named != NULL && cli_find_container(pod, named) != NULL)
        return named;
    if (json_array_size(containers) + json_array_size(init) + json_array_size(ephemeral) > 1) {
        json_array_foreach (containers, i, c)
            buf_addf(&all, "%s%s", i > 0 ? ", " : "", cli_text(c, "name"));
        json_array_foreach (init, i, c)
            buf_addf(&all, ", %s (init)", cli_text(c, "name"));
        json_array_foreach (ephemeral, i, c)
            buf_addf(&all, ", %s (ephem)", cli_text(c, "name"));
        cli_note(cli, "Defaulted container \"%s\" out of: %s\n",
                 cli_text(json_array_get(containers, 0), "name"), all.p);
    }
    return cli_text(json_array_get(containers, 0), "name");
}
