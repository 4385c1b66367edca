/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command - what a command is: one struct beside its function, in the command's own file; commands.c lists
 * them all.  From these come the dispatch, `coracle help`, `--help`, the manual page and the completion of
 * shells, so a command that is missing a part of it fails the tests.
 *
 *     static const struct cli_flag flags[] = {
 *         CLI_NAMESPACE(struct logs, namespace_, "the pod's namespace (default)"),
 *         { "follow", 'f', FLAG_SWITCH, offsetof(struct logs, follow), NULL, "go on with what is written" },
 *         CLI_FLAGS_END,
 *     };
 *
 *     const struct cli_command command_logs = {
 *         .name = "logs", .run = run, .flags = flags, .summary = "a container's log", ...
 *     };
 *
 * run() gives cli_parse() the struct that the offsets are of.
 */
#ifndef AGENT_CLI_COMMAND_H
#define AGENT_CLI_COMMAND_H
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct cli;

struct cli_flag {
    const char *name; /* without dashes; NULL ends a table */
    char letter;      /* 0: none */
    enum { FLAG_SWITCH, FLAG_TEXT } type;
    size_t at;         /* of a bool or a const char * in the command's own struct */
    const char *value; /* what stands for the value in the help */
    const char *help;
    const char *words; /* for completion, as one word of cli_command.words; NULL: none */
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
    { 0, "done" }, { 1, "it failed; one line on standard error says why" },                                  \
    {                                                                                                        \
        2, "wrong usage: a word, a flag or its value"                                                        \
    }
#define CLI_EXITS_DAEMON                                                                                     \
    { 3, "no daemon answers at the socket" }, { 4, "not permitted" },                                        \
    {                                                                                                        \
        5, "there is nothing of that name"                                                                   \
    }
extern const struct cli_exit cli_exits[];       /* all of them */
extern const struct cli_exit cli_exits_local[]; /* of a command that asks no daemon: the first three */

struct cli_command {
    const char *name;
    int (*run)(struct cli *cli, const struct cli_command *command, int argc, char **argv);
    const char *summary; /* a line in the list of commands */
    const char *usage;   /* "get pods|manifests [NAME...]", a form a line; flags are added */
    const char *about;   /* whole sentences, without line breaks */
    const struct cli_flag *flags;
    const struct cli_example *examples;
    const struct cli_exit *exits;
    const char *see_also; /* commands, separated by blanks */
    /*
     * What its words may be, for completion: "a|b" one of these; "@pod", "@container" (of the pod before it),
     * "@named" (of the kind before it),
     * "@object" ("pod/web"), "@namespace", "@image", "@command", "@file", "@nothing"; "..." as the last: the
     * one before it again.
     */
    const char *words;
    int rest_from; /* from this word on (1: the first) nothing is a flag of ours; 0: flags may stand anywhere
                    */
    bool hidden;   /* in no list */
};

/* ---- commands.c -------------------------------------------------------------------------------- */
extern const struct cli_command *const cli_commands[]; /* NULL-terminated, in the order of the help */
const struct cli_command *cli_command_find(const char *name);
const char *cli_command_near(const char *name); /* what was meant; NULL: nothing is near */
/* hints.c: what does here what a command of kubectl, podman or docker does; NULL: it is none that is known */
const char *cli_command_elsewhere(const char *name);

/* ---- args.c ------------------------------------------------------------------------------------ */
extern const struct cli_flag cli_common_flags[]; /* --socket and --help, say */
extern const struct cli_flag cli_early_flags[]; /* of most commands: they may stand before the command, too */
/* The first word is one of either: how many words it takes with its value, which is NULL where it is missing.
 * NULL: it is none. */
const struct cli_flag *cli_early_flag(int argc, char **argv, const char **ret_value, int *ret_words);
/* Takes common flags from before the command, and puts others behind it; EXIT_OK, or it was said. */
int cli_take_early(struct cli *cli, int *argc, char **argv);
/*
 * Takes the flags out of argv into `options` ("--" ends them; see rest_from) and leaves the words; *argc
 * counts them.  False: return `*ret` (help was shown, or a usage error).
 */
bool cli_parse(struct cli *cli, const struct cli_command *command, void *options, int *argc, char **argv,
               int *ret);

/* ---- help.c ------------------------------------------------------------------------------------ */
void help_overview(struct buf *out);
void help_command(const struct cli_command *command, struct buf *out);
/* "error: ...", how it is used, and where more stands; EXIT_USAGE. */
int cli_usage_error(struct cli *cli, const struct cli_command *command, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* ---- complete.c -------------------------------------------------------------------------------- */
#endif
