/* SPDX-License-Identifier: Apache-2.0 */
/* files - manifests that a command names: a file, a folder, or "-" for standard input. Errors are printed;
 * the functions return exit codes. Blocking. */
#ifndef AGENT_CLI_FILES_FILES_H
#define AGENT_CLI_FILES_FILES_H
#include "agent/api/manifest/decode.h"
#include "agent/cli/command/command.h"
#include "base/strs.h"

/* Which files of a folder count. */
enum cli_files_rule {
    CLI_FILES_ALL,      /* all that the manifest folder reads (api_file_is_ignored()) */
    CLI_FILES_MANIFESTS /* *.yaml, *.yml and *.json, as for kubectl -f */
};
/* Adds `path` to *ret; a folder: its files in the order of their names; `deep`: also those of folders in it.
 */
int cli_files_add(struct cli *cli, const char *path, enum cli_files_rule rule, bool deep, struct strs *ret);
/* A descriptor, or -1 after printing the error. */
int cli_files_open(struct cli *cli, const char *path);

/* One line per problem on standard error, in the form of compilers. */
void cli_files_print(struct cli *cli, const struct api_problems *p);

struct cli_file {
    const char *name; /* "stdin" for "-"; borrowed */
    char *text;       /* n bytes and a NUL */
    size_t n;
    struct api_objects objects;
};
/* Reads and decodes; problems are printed and are an error. */
int cli_files_read(struct cli *cli, const char *path, struct cli_file *ret);
void cli_file_done(struct cli_file *f); /* overwrites the text: there may be a Secret in it */
#endif
