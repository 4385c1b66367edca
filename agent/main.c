/* SPDX-License-Identifier: Apache-2.0 */
/* coracle - `coracle run` is the agent; all other commands are clients of its socket. */
#include "agent/cli/cli.h"
#include "agent/daemon.h"

#include <string.h>

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "run") == 0)
        return daemon_main(argc - 1, argv + 1);
    return cli_main(argc, argv);
}
