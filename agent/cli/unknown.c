/* SPDX-License-Identifier: Apache-2.0 */
/* Suggests the command that was probably meant by an unknown word. */
#include "agent/cli/internal.h"

#include "base/near.h"

#include <string.h>

/* The equivalent of a command of kubectl, podman or docker, or NULL. */
static const char *unknown_elsewhere(const char *name)
{
    static const char *const known[][2] = {
        { "api-resources", "coracle kubectl api-resources, or coracle explain KIND" },
        { "auth", "coracle kubectl auth" },
        { "autoscale", "coracle scale" },
        { "build", "podman build, and coracle image import" },
        { "cordon", "coracle kubectl cordon" },
        { "create", "coracle apply -f FILE" },
        { "diff", "coracle kubectl diff -f FILE, or coracle apply -f FILE --dry-run=client" },
        { "drain", "coracle kubectl drain, or coracle delete pods --all" },
        { "expose", "hostPort of the containers: coracle explain pod.spec.containers.ports" },
        { "history", "coracle image history" },
        { "images", "coracle image ls" },
        { "import", "coracle image import" },
        { "inspect", "coracle get pod NAME -o yaml" },
        { "kill", "coracle delete pod NAME" },
        { "load", "coracle image import" },
        { "login", "coracle image login REGISTRY" },
        { "logout", "coracle image logout REGISTRY" },
        { "ls", "coracle get pods" },
        { "patch", "coracle edit, or coracle kubectl patch" },
        { "port", "coracle describe pod NAME" },
        { "ps", "coracle get pods" },
        { "pull", "coracle image pull" },
        { "replace", "coracle apply -f FILE" },
        { "rm", "coracle delete pod NAME" },
        { "rmi", "coracle image rm" },
        { "save", "coracle image export" },
        { "start", "coracle apply -f FILE" },
        { "stats", "coracle top pods" },
        { "status", "coracle explain node" },
        { "stop", "coracle delete pod NAME" },
        { "tag", "coracle image tag" },
        { "taint", "coracle kubectl taint, or registerWithTaints (coracle config)" },
        { "uncordon", "coracle kubectl uncordon" },
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
