/* SPDX-License-Identifier: Apache-2.0 */
/* Suggests the command that was probably meant by an unknown word. */
#include "agent/cli/internal.h"

#include "base/near.h"

#include <string.h>

/* The equivalent of a command of kubectl, podman or docker, or NULL. */
static const char *unknown_elsewhere(const char *name)
{
    static const char *const known[][2] = {
        { "apply", "a file in the manifest folder (coracle config: staticPodPath)" },
        { "build", "podman build, and coracle image import" },
        { "create", "a file in the manifest folder (coracle config: staticPodPath)" },
        { "edit", "an edit of its file in the manifest folder" },
        { "images", "coracle image ls" },
        { "import", "coracle image import" },
        { "inspect", "coracle get pod NAME -o yaml" },
        { "kill", "coracle delete pod NAME --file" },
        { "load", "coracle image import" },
        { "ls", "coracle get pods" },
        { "port", "coracle describe pod NAME" },
        { "ps", "coracle get pods" },
        { "pull", "coracle image pull" },
        { "rm", "coracle delete pod NAME --file" },
        { "rmi", "coracle image rm" },
        { "rollout", "coracle restart pod NAME" },
        { "save", "coracle image export" },
        { "start", "a file in the manifest folder (coracle config: staticPodPath)" },
        { "stats", "coracle top pods" },
        { "status", "coracle explain node" },
        { "stop", "coracle delete pod NAME --file" },
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(name, known[i][0]) == 0)
            return known[i][1];
    return NULL;
}

static const char *unknown_near(const char *name)
{
    struct near near = { .name = name };

    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (!cli_commands[i]->hidden)
            near_try(&near, cli_commands[i]->name);
    return near.found;
}

int cli_unknown_command(struct cli *cli, const char *name)
{
    const char *near = unknown_near(name), *here = unknown_elsewhere(name);

    if (name[0] == '-')
        cli_note(cli, "error: %s is before the command: flags of a command must follow it\n", name);
    else if (here != NULL)
        cli_note(cli, "error: unknown command \"%s\": use \"%s\"\n", name, here);
    else if (near != NULL)
        cli_note(cli, "error: unknown command \"%s\": did you mean \"%s\"?\n", name, near);
    else
        cli_note(cli, "error: unknown command \"%s\"\n", name);
    fputs("\"coracle help\" lists the commands.\n", cli->err);
    return EXIT_USAGE;
}
