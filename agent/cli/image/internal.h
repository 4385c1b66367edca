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
/* POST /images/<verb>?name=<name><more>: the answer, or NULL after printing the error. */
json_t *cli_image_ask(struct cli *cli, const char *verb, const char *name, const char *more, int *ret_code);
/* image_names.c */
int cli_image_tag(struct cli *cli, const char *reference, int n, char **names);
int cli_image_history(struct cli *cli, const char *reference, const char *format, bool no_headers);
/* image_login.c: `word` is the registry. */
struct cli_image_login {
    const char *username, *authfile; /* NULL: asked for; the daemon's */
    bool password_stdin, insecure;
};
int cli_image_login(struct cli *cli, const struct cli_image_login *o, const char *word);
int cli_image_logout(struct cli *cli, const struct cli_image_login *o, const char *word);
/* image_spool.c: a new open file, with a path for the daemon; -1 after printing the error. One at a time. */
int cli_spool_open(struct cli *cli, const char **ret_path);
void cli_spool_close(int fd); /* removes it */
enum err_code cli_spool_fill(int fd, int from, struct err *e) MUST_CHECK;
enum err_code cli_spool_print(struct cli *cli, int fd, struct err *e) MUST_CHECK; /* to standard output */
#endif
