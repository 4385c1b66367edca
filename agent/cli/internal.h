/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal - declarations shared by agent/cli: the table of commands, the texts derived from it, and the
 * commands outside the subfolders.
 */
#ifndef AGENT_CLI_INTERNAL_H
#define AGENT_CLI_INTERNAL_H
#include "agent/cli/cli.h"
#include "agent/cli/client/client.h"
#include "agent/cli/command/command.h"
#include "agent/cli/print/print.h"

/* ---- cli.c ---- */
int cli_run(struct cli *cli, int argc, char **argv); /* one call, with main()'s arguments; the exit code */

/* ---- commands.c ---- */
extern const struct cli_command *const cli_commands[]; /* NULL-terminated, in the order of the help */
const struct cli_command *cli_command_find(const char *name);

/* ---- help.c ---- */
void help_overview(struct buf *out);

/* ---- unknown.c ---- */
int cli_unknown_command(struct cli *cli, const char *name); /* with a suggestion; EXIT_USAGE */

/* ---- wait_goal.c ---- */
struct wait_goal { /* the argument of `wait --for` */
    enum { WAIT_CONDITION, WAIT_JSONPATH, WAIT_CREATE, WAIT_DELETE, WAIT_RESTART } kind;
    const json_t *ending; /* WAIT_RESTART: the runs that end, [{"name", "containerID"}]; borrowed */
    const char *text;     /* the whole; borrowed */
    char subject[256];    /* the condition's name, or the path */
    char value[256];      /* its status; "": any value of the path */
};
/* ERR_INVALID: the text describes the expected form. */
enum err_code wait_goal_parse(struct wait_goal *g, const char *text, struct err *e) MUST_CHECK;
bool wait_goal_is_met(const struct wait_goal *g, const json_t *pod); /* never for WAIT_DELETE */
/* The pod has ended, so it will not meet it any more. */
bool wait_goal_is_lost(const struct wait_goal *g, const json_t *pod);
/* Prints that error; returns its exit code. */
int wait_goal_print_lost(struct cli *cli, const struct wait_goal *g, const char *name, const json_t *pod);

/* ---- wait.c ---- */
/* "30s"; negative: a week. EXIT_OK, or an error was printed. */
int wait_take_timeout(struct cli *cli, const char *text, uint64_t *ret_until_ms);
/* Waits until the pod meets the goal or it is lost, but not longer than until_ms (clock_mono_ms()); prints
 * errors, returns the exit code. A pod with another uid does not count as this pod; "": the first one. */
int wait_for_pod(struct cli *cli, const struct wait_goal *g, const char *namespace_, const char *name,
                 const char *uid, uint64_t until_ms);

/* ---- homes.c: the files that objects come from ---- */
struct api_object;
/* In the daemon's /manifests; NULL: none. Borrowed. */
const json_t *home_of(const json_t *manifests, const struct api_object *o);
bool home_is_within(const json_t *home, const struct api_object *v, size_t n); /* it holds only these */
/* "ConfigMap default/a, Pod default/b" */
void home_add_others(const json_t *home, const struct api_object *but, struct buf *out);
#define HOME_KIND_SIZE 64
void home_kind(const struct api_object *o, char ret[HOME_KIND_SIZE]); /* "pod" */

/* ---- a file each ---- */
extern const struct cli_command command_apply, command_run, command_validate, command_config,
    command_kubeconfig, command_print_kubeconfig, command_kubectl, command_version, command_restart,
    command_wait, command_help, command_completion, command_complete;
#endif
