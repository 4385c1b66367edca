/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/cli. */
#ifndef AGENT_CLI_INTERNAL_H
#define AGENT_CLI_INTERNAL_H
#include "agent/cli/cli.h"
#include "agent/cli/command.h"
#include "base/buf.h"
#include "base/scope.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_NO_DAEMON, EXIT_DENIED, EXIT_NOT_FOUND }; /* cli_exits */

struct cli {
    FILE *out, *err;
    const char *socket, *request_timeout;
    int64_t patience_ms; /* time limit of the latter; 0: the default, negative: none */
    bool help;
    bool colours;   /* on `out` */
    bool terminal;  /* `out` is one */
    int64_t now_ns; /* now, for ages; fixed in tests, otherwise 0 */
    /* Deadline of a patient request, which then fails with ERR_DEADLINE (clock_mono_ms()); 0: none. */
    uint64_t until_ms;
    int write_errno; /* why standard output cannot be written; 0: it can */
};

int cli_run(struct cli *cli, int argc, char **argv);

/* ---- cli.c: output ---- */
int64_t cli_now(const struct cli *cli);
/* Prints "error: ..." on standard error; returns EXIT_ERROR. */
int cli_error(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Prints a line on standard error, replacing control characters because parts of it came from a container, an
 * image or a registry. */
void cli_complain(struct cli *cli, const char *what, const char *text);
int cli_unknown_command(struct cli *cli, const char *name); /* with a suggestion; EXIT_USAGE */
/* False: the output cannot be written any more (most often: its reader is gone): stop; cli_main() reports it
 * if necessary. */
bool cli_write(struct cli *cli, const char *data, size_t n);
bool cli_flush(struct cli *cli);
void cli_say(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- exits.c ---- */
/* Prints "error: ..." for a failed request, file or value; returns the matching exit code. */
int cli_failed(struct cli *cli, const struct err *e);
int cli_exit_of_http(int code);
/* Prints "error: ..." for a word or a value of a flag; EXIT_USAGE. */
int cli_wrong(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);
void cli_keep_first(int *code, int next); /* keeps the first failure of several actions */

/* ---- client.c ---- */
struct cli_response {
    int code;        /* HTTP */
    struct buf body; /* of everything except a successful stream */
};
#define CLI_BODY_MAX (256u << 20)
#define CLI_RESPONSE_INIT                                                                                    \
    {                                                                                                        \
        .body = BUF_INIT(CLI_BODY_MAX)                                                                       \
    }

enum { CLI_PATIENCE_NONE = -1, CLI_PATIENCE_S = 30, CLI_PATIENCE_MAX_S = 7 * 24 * 3600 };
int cli_take_patience(struct cli *cli); /* args.c: from request_timeout; EXIT_OK, or an error was printed */

/* False: stop reading. */
typedef bool (*cli_data_fn)(const char *data, size_t n, void *arg);

/* One request. `patient`: no time limit for the answer. `on_data` gets the body of a code 200 as it arrives;
 * NULL: it is kept. ERR_UNAVAILABLE: no daemon, or the connection was lost. */
enum err_code cli_request(struct cli *cli, const char *method, const char *url, bool patient,
                          cli_data_fn on_data, void *arg, struct cli_response *ret, struct err *e) MUST_CHECK;
/* Requests a WebSocket with one of these subprotocols. Returns a descriptor, and bytes received after the
 * handshake in *ret_rest; -1 with *e unset: refused, see *ret; -1 with *e: failed. */
int cli_upgrade(struct cli *cli, const char *url, const char *subprotocols, struct cli_response *ret,
                struct buf *ret_rest, struct err *e) MUST_CHECK;
/* GET of a JSON document; on failure prints the error and returns NULL. *ret_code: the exit code; may be
 * NULL. */
json_t *cli_get(struct cli *cli, const char *url, int *ret_code);
/* the same for any method */
json_t *cli_call(struct cli *cli, const char *method, const char *url, int *ret_code);
/* Prints "Error from server (NotFound): pods "x" not found"; returns the exit code. */
int cli_server_error(struct cli *cli, const struct cli_response *r);
void cli_add_escaped(struct buf *b, const char *text); /* percent-encoded for a URL */
void cli_add_pod_path(struct buf *b, const char *namespace_, const char *name);

/* ---- watch.c ---- */
/* Follows a watch until fn returns false. ERR_UNAVAILABLE: the connection was lost first. A code other than
 * 200 in *ret: it was refused. */
typedef bool (*cli_change_fn)(const char *type, json_t *object, void *arg);
enum err_code cli_follow(struct cli *cli, const char *url, cli_change_fn fn, void *arg,
                         struct cli_response *ret, struct err *e) MUST_CHECK;
/* the same; returns the exit code */
int cli_watch(struct cli *cli, const char *url, cli_change_fn fn, void *arg);
/* A watch of a pod that has just ended reports nothing: end it after this time (until_ms) and check. */
enum { CLI_LOOK_AGAIN_MS = 5000 };
bool cli_pod_is_there(struct cli *cli, const char *namespace_, const char *name); /* or if unknown */

/* ---- values.c: JSON members by path, times, sizes ---- */
json_t *cli_at(const json_t *object, const char *path);       /* "status.phase"; NULL if absent */
const char *cli_text(const json_t *object, const char *path); /* "" if absent or not a string */
int64_t cli_number(const json_t *object, const char *path);   /* 0 if absent */
bool cli_true(const json_t *object, const char *path);
void cli_add_clean(struct buf *b, const char *text); /* makes control characters visible */

#define CLI_AGE_SIZE 32
void cli_duration(int64_t ns, char ret[CLI_AGE_SIZE]); /* "5m10s", rounded like kubectl */
/* Time since an RFC 3339 time; "<unknown>" if invalid. */
void cli_age(const struct cli *cli, const char *when, char ret[CLI_AGE_SIZE]);
#define CLI_TIME_SIZE 64
void cli_time(const char *when, char ret[CLI_TIME_SIZE]); /* "Mon, 02 Jan 2006 15:04:05 -0700", local */
void cli_size(uint64_t bytes, char ret[CLI_AGE_SIZE]);    /* "1.4MB" */
/* Go's "1h30m", "10s", "1.5h"; ERR_INVALID. */
enum err_code cli_parse_duration(const char *text, int64_t *ret_ns, struct err *e) MUST_CHECK;

/* ---- jsonpath.c ---- */
/* ERR_INVALID: a syntax error in the template. */
enum err_code cli_jsonpath(const char *text, const json_t *value, struct buf *out, struct err *e) MUST_CHECK;
#define CLI_JSONPATH "jsonpath=" /* prefix of such a format */

/* ---- colour.c ---- */
enum cli_colour { COLOUR_NONE, COLOUR_GOOD, COLOUR_WAITING, COLOUR_BAD, COLOUR_TITLE };
bool cli_is_terminal(int fd, const char *term);                          /* a capable one */
bool cli_colours_wanted(int fd, const char *term, const char *no_color); /* according to the environment */
void cli_add_coloured(struct buf *b, enum cli_colour colour, const char *text, size_t n);
enum cli_colour cli_colour_of_status(const char *status); /* of a pod, a container or a manifest file */
enum cli_colour cli_colour_of_event(const char *type);
void cli_show_described(struct cli *cli,
                        const struct buf *text); /* likewise on standard output; with colours where wanted */

/* ---- table.c ---- */
#define CLI_COLUMNS_MAX 12
struct cli_cell {
    char *text; /* owned */
    enum cli_colour colour;
};
struct cli_table { /* rows are kept until printed; widths are kept longer (for a watch) */
    size_t n_columns;
    size_t widths[CLI_COLUMNS_MAX];
    struct cli_cell *cells; /* n_columns for each row */
    size_t n_cells;
    bool failed;
};
void cli_table_init(struct cli_table *t, const char *const *headers /* NULL-terminated */, bool show_headers);
void cli_table_cell(struct cli_table *t, const char *text); /* up to the first line break, then "..." */
void cli_table_coloured(struct cli_table *t, const char *text, enum cli_colour colour);
void cli_table_print(struct cli_table *t, struct cli *cli);
void cli_table_done(struct cli_table *t);
/* Aligns lines of cells terminated by tabs in columns, like Go's text/tabwriter. */
void cli_align(const char *text, size_t min_width, size_t padding, struct buf *out);

/* ---- pods.c: the columns of a pod ---- */
struct cli_pod_summary {
    char ready[32], status[256], restarts[64];
};
void cli_pod_summary(const struct cli *cli, const json_t *pod, struct cli_pod_summary *ret);
bool cli_is_sidecar(const json_t *container);
const json_t *cli_find_container(const json_t *pod, const char *name); /* may be NULL */
/* prints the error; EXIT_NOT_FOUND */
int cli_no_container(struct cli *cli, const char *name, const char *pod);
/* The pod's default container, or its first; prints its name if there are several. Borrowed. */
const char *cli_choose_container(struct cli *cli, const json_t *pod);

/* ---- manifests.c ---- */
void cli_warn_manifests(struct cli *cli); /* one line per problem on standard error; nothing if unknown */

/* ---- kinds.c ---- */
struct cli_kind {
    const char *const *names; /* "configmaps", "configmap", "cm", NULL */
    const char *base;         /* of its path */
    bool namespaced;
    bool bare_list; /* its list omits something */
};
extern const char *const cli_pod_kinds[], *const cli_node_kinds[];
const struct cli_kind *cli_kind_find(const char *word); /* "cm", "configmaps/web"; may be NULL */
bool cli_is_kind(const char *word,
                 const char *const *kinds); /* "pods" or "pods/web" among { "pods", NULL } */
/* The name in "pod/web" or "web" for a kind with these names; NULL for another kind. */
const char *cli_resource_name(const char *word, const char *const *kinds);
int cli_unknown_kind(
    struct cli *cli, const char *word,
    const char *more /* ", events": what else the command knows */); /* says so; EXIT_USAGE */
/* namespace_ NULL: all; name NULL: the list. */
void cli_add_kind_path(struct buf *url, const struct cli_kind *kind, const char *namespace_,
                       const char *name);
/* One object, or an array of all; NULL with *ret_code after printing the error. */
json_t *cli_get_one(struct cli *cli, const struct cli_kind *kind, const char *namespace_, const char *name,
                    int *ret_code);
json_t *cli_get_all(struct cli *cli, const struct cli_kind *kind, const char *namespace_, int *ret_code);

/* ---- get.c, get_objects.c, get_tables.c, get_sort.c ---- */
struct get {
    struct cli *cli;
    const struct cli_command *command;
    const char *namespace_, *format, *selector, *field_selector, *sort_by;
    bool all, watch, no_headers, show_labels;
    char **names;
    int n_names;
};

bool get_is_format(const struct get *g, const char *format);
bool get_is_table(const struct get *g); /* plain or wide */
int get_nothing_found(const struct get *g);
int get_print_objects(const struct get *g, const char *kind, const json_t *items, bool single);
int get_objects(struct get *g, const struct cli_kind *kind);
int get_events(struct get *g);
int get_sort(const struct get *g, json_t *items); /* get_sort.c: in place, if requested; the exit code */
int get_manifests(struct get *g);
int cli_by_namespace_and_name(const void *a, const void *b);
json_t *cli_sorted(const json_t *items, int (*order)(const void *a, const void *b)); /* a new array */

/* ---- exec_stream.c ---- */
struct exec_session {
    struct cli *cli;
    int input; /* to pass on; -1: none */
    /* A descriptor instead of standard output; -1: none; a socket is half-closed at its end. */
    int output;
    int terminal;     /* whose size is passed on; -1: none */
    bool detaches;    /* at ctrl-p, ctrl-q on the input */
    int fd;           /* exec_stream()'s own: speaks WebSocket */
    struct buf *rest; /* likewise: received already */
};
/* Opens the URL and passes data until the process ends; returns its exit code, or one of ours after printing
 * an error. */
int exec_stream(const struct exec_session *s, const char *url);
/* The exit code for the Status on the error channel. */
int exec_outcome(struct cli *cli, const char *text, size_t n);

/* ---- commands ---- */
extern const struct cli_command command_run, command_get, command_describe, command_logs, command_events,
    command_exec, command_explain, command_top, command_validate, command_config, command_image,
    command_version, command_attach, command_port_forward, command_cp, command_restart, command_delete,
    command_wait, command_help, command_completion, command_complete;

/* Prints a value as "json", "yaml" or "jsonpath=...". */
int cli_print_value(struct cli *cli, const json_t *value, const char *format);
/* EXIT_OK for NULL, "json" and "yaml"; otherwise EXIT_USAGE after printing an error. */
int cli_check_format(struct cli *cli, const char *format);
/* NULL after printing the error and a suggestion. */
json_t *cli_get_pod(struct cli *cli, const char *namespace_, const char *name, int *ret_code);
/* image_bring.c: import and pull; `quiet`: only the result. */
int cli_bring_image(struct cli *cli, const char *source, const char *name, bool quiet);
/* image_care.c: verify, prune, pin, unpin and export; false for other commands. */
bool cli_image_care(struct cli *cli, int argc, char **argv, bool all, int *ret);
/* image_spool.c: a new open file, with a path for the daemon; -1 after printing the error. One at a time. */
int cli_spool_open(struct cli *cli, const char **ret_path);
void cli_spool_close(int fd); /* removes it */
enum err_code cli_spool_fill(int fd, int from, struct err *e) MUST_CHECK;
enum err_code cli_spool_print(struct cli *cli, int fd, struct err *e) MUST_CHECK; /* to standard output */
/* For commands for one pod: "pod web", "pod/web", "web". False: return *ret. */
bool cli_parse_one_pod(struct cli *cli, const struct cli_command *command, void *options, int argc,
                       char **argv, const char **ret_name, int *ret);
int cli_no_pod(struct cli *cli, const char *word); /* for "svc/web": prints the error; EXIT_USAGE */
/* After a pod was not found: suggests a similar name, or the same name in another namespace. */
void cli_hint_pod(struct cli *cli, const char *namespace_, const char *name);
int cli_list_images(struct cli *cli, const char *format, bool no_headers, char **names /* all: 0 */,
                    int n_names);

/* ---- describe_*.c: into `out`, tabs as in cli_align() ---- */
void cli_describe_pod(const struct cli *cli, const json_t *pod, const json_t *events, struct buf *out);
void cli_describe_containers(const char *label, const json_t *pod, const json_t *containers,
                             const json_t *statuses, struct buf *out);
void cli_describe_volumes(const json_t *volumes, struct buf *out);
void cli_describe_resources(const json_t *resources, const char *indent, struct buf *out);
void cli_describe_node(const struct cli *cli, const json_t *node, const json_t *pods, struct buf *out);
void cli_describe_config_map(const struct cli *cli, const json_t *o, struct buf *out);
void cli_describe_secret(const struct cli *cli, const json_t *o, struct buf *out);
void cli_describe_class(const struct cli *cli, const json_t *o, struct buf *out);
void cli_describe_image(const struct cli *cli, const json_t *o, struct buf *out);
/* describe_parts.c */
const char **cli_sorted_keys(const json_t *object); /* NULL-terminated; free() it, the keys are borrowed */
void cli_describe_pairs(struct buf *out, const char *title, const json_t *object); /* "Labels" */
void cli_describe_annotations(struct buf *out, const json_t *annotations);
void cli_describe_events(const struct cli *cli, const json_t *events, struct buf *out);
void cli_describe_text(struct buf *out, const char *title, const char *text); /* unless it is "" */
#endif
