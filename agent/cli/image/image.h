/* SPDX-License-Identifier: Apache-2.0 */
/* image - the command that manages the stored images: list, import, pull, verify, prune, pin, export, remove.
 */
#ifndef AGENT_CLI_IMAGE_IMAGE_H
#define AGENT_CLI_IMAGE_IMAGE_H
#include "agent/cli/command/command.h"

extern const struct cli_command command_image;
#endif
