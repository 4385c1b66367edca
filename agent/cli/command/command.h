/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command - the description of a command: a struct next to its function, in the command's own file;
 * agent/cli/commands.c lists them all. Dispatch, `coracle help`, `--help`, the manual page and shell
 * completion are made from it, and tests fail if a part is missing.
 *
 *     static const struct cli_flag flags[] = {
 *         CLI_NAMESPACE(struct logs, namespace_, "the pod's namespace (default)"),
 *         { "follow", 'f', FLAG_SWITCH, offsetof(struct logs, follow), NULL, "follow the log" },
 *         CLI_FLAGS_END,
 *     };
 *
 *     const struct cli_command command_logs = {
 *         .name = "logs", .run = run, .flags = flags, .summary = "a container's log", ...
 *     };
 *
 * run() passes the struct with these offsets to cli_parse().
 */
#ifndef AGENT_CLI_COMMAND_COMMAND_H
#define AGENT_CLI_COMMAND_COMMAND_H
#include "agent/cli/print/print.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define CLI_LIST_MAX 64
struct cli_list {                /* the values of a flag that may be given several times */
    const char *v[CLI_LIST_MAX]; /* borrowed from argv */
    size_t n;
};

struct cli_flag {
    const char *name; /* without dashes; NULL ends a table */
    char letter;      /* 0: none */
    enum { FLAG_SWITCH, FLAG_TEXT, FLAG_LIST } type;
    size_t at;         /* offset of a bool, a const char * or a struct cli_list in the command's own struct */
    const char *value; /* placeholder for the value in the help */
    const char *help;
    /* For completion, like one word of cli_command.words; may be NULL. */
    const char *words;
};
#define CLI_FLAGS_END                                                                                        \
    {                                                                                                        \
        NULL, 0, FLAG_SWITCH, 0, NULL, NULL, NULL                                                            \
    }
#define CLI_NAMESPACE(type, member, help)                                                                    \
    {                                                                                                        \
        "namespace", 'n', FLAG_TEXT, offsetof(type, member), "NS", help, "@namespace"                        \
    }
#define CLI_OUTPUT(type, member, words, help)                                                                \
    {                                                                                                        \
        "output", 'o', FLAG_TEXT, offsetof(type, member), "FORMAT", help, words                              \
    }

struct cli_example {
    const char *what, *line; /* "the last 20 lines", "coracle logs --tail 20 web"; NULL ends a list */
};

struct cli_exit {
    int code;
    const char *when; /* NULL ends a list */
};
#define CLI_EXITS                                                                                            \
    { 0, "done" }, { 1, "an error, described on standard error" },                                           \
    {                                                                                                        \
        2, "a usage error: an invalid word, flag or value"                                                   \
    }
#define CLI_EXITS_DAEMON                                                                                     \
    { 3, "no daemon answers at the socket" }, { 4, "not permitted" },                                        \
    {                                                                                                        \
        5, "not found"                                                                                       \
    }

struct cli_command {
    const char *name;
    int (*run)(struct cli *cli, const struct cli_command *command, int argc, char **argv);
    const char *summary; /* a line in the list of commands */
    const char *usage;   /* "get pods|manifests [NAME...]", one form per line; flags are added */
    const char *about;   /* complete sentences, without line breaks */
    const struct cli_flag *flags;
    const struct cli_example *examples;
    const struct cli_exit *exits;
    const char *see_also; /* commands, separated by blanks */
    /* The words it accepts, for completion: "a|b" one of these; "@pod", "@container" (of the pod before it),
     * "@named" (of the kind before it), "@object" ("pod/web"), "@namespace", "@image", "@command", "@file",
     * "@nothing"; "..." at the end: the previous one again. */
    const char *words;
    /* From this word on (1: the first) there are no flags of ours; 0: flags may be anywhere. */
    int rest_from;
    bool hidden; /* not listed */
};

/* ---- args.c ---- */
#define CLI_SOCKET "/run/coracle/coracle.sock" /* unless overridden by --socket or CORACLE_SOCKET */
enum { CLI_PATIENCE_NONE = -1, CLI_PATIENCE_S = 30, CLI_PATIENCE_MAX_S = 7 * 24 * 3600 };
extern const struct cli_flag cli_common_flags[]; /* --socket, --help etc. */
extern const struct cli_flag cli_early_flags[];  /* of most commands: may also precede the command */
/* For a first word that is one of these flags: the number of words including its value, which is NULL if
 * missing. Otherwise returns NULL. */
const struct cli_flag *cli_early_flag(int argc, char **argv, const char **ret_value, int *ret_words);
/* Handles common flags before the command, and moves others behind it; EXIT_OK, or an error was printed. */
int cli_take_early(struct cli *cli, int *argc, char **argv);
/* Moves the flags from argv to `options` ("--" ends them; see rest_from) and leaves the words; *argc counts
 * them. False: return `*ret` (help was shown, or a usage error). */
bool cli_parse(struct cli *cli, const struct cli_command *command, void *options, int *argc, char **argv,
               int *ret);

int cli_take_patience(struct cli *cli); /* from request_timeout; EXIT_OK, or an error was printed */

/* ---- usage.c ---- */
extern const struct cli_exit cli_exits[];       /* all exit codes */
extern const struct cli_exit cli_exits_local[]; /* for commands without daemon: the first three */
void cli_add_exits(struct buf *out, const struct cli_exit *exits);
void help_command(const struct cli_command *command, struct buf *out);
/* "error: ...", the usage, and where to find more; EXIT_USAGE. */
int cli_usage_error(struct cli *cli, const struct cli_command *command, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
#endif
