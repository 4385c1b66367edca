/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/cli/image. */
#ifndef AGENT_CLI_IMAGE_INTERNAL_H
#define AGENT_CLI_IMAGE_INTERNAL_H
#include "agent/cli/client/client.h"
#include "agent/cli/command/command.h"
#include "agent/cli/image/image.h"
#include "agent/cli/print/print.h"

/* image_bring.c: import and pull; `quiet`: only the result. */
int cli_bring_image(struct cli *cli, const char *source, const char *name, bool quiet);
/* image_care.c: verify, prune, pin, unpin and export; false for other commands. */
bool cli_image_care(struct cli *cli, int argc, char **argv, bool all, int *ret);
/* image_spool.c: a new open file, with a path for the daemon; -1 after printing the error. One at a time. */
int cli_spool_open(struct cli *cli, const char **ret_path);
void cli_spool_close(int fd); /* removes it */
enum err_code cli_spool_fill(int fd, int from, struct err *e) MUST_CHECK;
enum err_code cli_spool_print(struct cli *cli, int fd, struct err *e) MUST_CHECK; /* to standard output */
#endif
