/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal - declarations shared by the commands of this room: the objects of a command, and a change of one
 * object. Errors are printed; the functions return exit codes. Blocking.
 */
#ifndef AGENT_CLI_CHANGE_INTERNAL_H
#define AGENT_CLI_CHANGE_INTERNAL_H
#include "agent/cli/change/change.h"
#include "agent/cli/client/client.h"

/* ---- what.c: flags that the commands share, first in the struct of each ---- */
struct what {
    const char *namespace_, *selector, *dry_run;
    struct cli_list files;
    bool all, deep, everywhere;
};
#define WHAT_NAMESPACE(type) CLI_NAMESPACE(type, what.namespace_, "the objects' namespace (default)")
#define WHAT_FLAGS(type)                                                                                     \
    WHAT_NAMESPACE(type), { "filename", 'f',                                                                 \
                            FLAG_LIST,  offsetof(type, what.files),                                          \
                            "FILE",     "the objects of a file, a folder, or -",                             \
                            "@file" },                                                                       \
        { "recursive", 'R', FLAG_SWITCH, offsetof(type, what.deep), NULL, "-f: also read subfolders" },      \
        { "selector", 'l',                                                                                   \
          FLAG_TEXT,  offsetof(type, what.selector),                                                         \
          "SELECTOR", "all objects with these labels: app=web,tier!=db" },                                   \
    {                                                                                                        \
        "all", 0, FLAG_SWITCH, offsetof(type, what.all), NULL, "all objects of the kind in the namespace"    \
    }
#define WHAT_EVERYWHERE(type)                                                                                \
    {                                                                                                        \
        "all-namespaces", 'A', FLAG_SWITCH, offsetof(type, what.everywhere), NULL,                           \
            "with --all or -l: in all namespaces"                                                            \
    }
#define WHAT_DRY_RUN(type)                                                                                   \
    {                                                                                                        \
        "dry-run", 0, FLAG_TEXT, offsetof(type, what.dry_run), "HOW",                                        \
            "client or server: change nothing, show the result", "client|server|none"                        \
    }

struct what_alone { /* of a command that has no other flags */
    struct what what;
};

/* The objects of the flags and words; `fields` may be NULL. Nothing is selected: n is 0. */
int what_targets(struct cli *cli, const struct cli_command *command, const struct what *w, const char *fields,
                 int argc, char **argv, struct cli_targets *ret);
/* Of --dry-run: false for none and without it; otherwise *ret_note is " (dry run)" or " (server dry run)". */
int what_dry(struct cli *cli, const struct what *w, bool *ret_dry, const char **ret_note);

/* ---- change.c ---- */
#define CHANGE_MARK_SIZE 64
/* The object as it is now: a new reference, to be ended by change_wipe(). */
json_t *change_look(struct cli *cli, const struct cli_target *t, char ret_mark[CHANGE_MARK_SIZE],
                    int *ret_code);
void change_wipe(json_t *object); /* it may be a Secret; NULL is fine */

struct change {
    const struct cli_target *target;
    bool dry;
    bool whole; /* make() makes the object, not a merge patch (RFC 7386) */
    /* Makes the patch or the new object: a new reference. EXIT_OK with *ret NULL: there is nothing to change.
     * Called again if the object was changed meanwhile. */
    int (*make)(struct cli *cli, const struct change *c, const json_t *live, json_t **ret);
    void *arg;
};
/* *ret_same: nothing changed; *ret_file: "pod-default-web.yaml"; both may be NULL. */
int change_object(struct cli *cli, const struct change *c, bool *ret_same, char ret_file[256]);

/* Removes it. The answer is the object as it ends, or as it was; NULL after an error. */
json_t *change_remove(struct cli *cli, const struct cli_target *t, bool dry,
                      int64_t grace_s /* -1: its own */, char ret_file[256] /* "": it has none */,
                      int *ret_code);

/* ---- delete_wait.c ---- */
/* Until the object with this uid is gone. `until_ms` 0: no limit. */
int delete_await(struct cli *cli, const struct cli_target *t, const char *uid, uint64_t until_ms);

/* ---- delete_file.c ---- */
int delete_pod_file(struct cli *cli, const char *namespace_, const char *name, bool wait);

/* ---- rollout_status.c ---- */
enum rollout_state { ROLLOUT_GOES_ON, ROLLOUT_DONE, ROLLOUT_FAILED };
/* The line that `kubectl rollout status` prints for the object, without the newline. */
enum rollout_state rollout_state_of(enum api_kind kind, const json_t *object, struct buf *text);

/* ---- rollout_history.c ---- */
/* Lists the revisions of a workload, or shows the one of this number. */
int rollout_history(struct cli *cli, const struct cli_target *t, int64_t number /* 0: all */);
/* Makes the template of a revision that of the workload again. */
int rollout_undo(struct cli *cli, const struct cli_target *t, int64_t to /* 0: the one before */, bool dry,
                 const char *note);

/* ---- edit_file.c: the text that the user edits ---- */
#define EDIT_COMMENT "# coracle:" /* begins the lines that are ours */
struct edit_file {
    char dir[64], path[96]; /* made, 0700 and 0600 */
};
int edit_file_make(struct cli *cli, struct edit_file *f, const char *text);
int edit_file_run(struct cli *cli, const struct edit_file *f); /* the editor */
/* Malloc'ed, without our lines at its beginning; NULL after printing an error. */
char *edit_file_read(struct cli *cli, const struct edit_file *f, size_t *ret_n);
void edit_file_remove(const struct edit_file *f);
#endif
