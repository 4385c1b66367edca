/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print - the state of one call of the command line, and its output: text, errors, tables, colours, and JSON
 * values in readable form.
 *
 * Every client gets a `struct cli`. Output goes to `out`, errors and hints to `err`; control characters in
 * text from a container, an image or a registry are made visible. Functions that print an error return its
 * exit code. Synchronous and without locks: a command with threads must lock itself.
 */
#ifndef AGENT_CLI_PRINT_PRINT_H
#define AGENT_CLI_PRINT_PRINT_H
#include "agent/cli/template/template.h"
#include "base/buf.h"
#include "base/scope.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The exit codes; cli_exits has their meaning. */
enum { EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_NO_DAEMON, EXIT_DENIED, EXIT_NOT_FOUND };

struct cli {
    FILE *out, *err;
    const char *socket, *request_timeout;
    int64_t patience_ms; /* time limit of the latter; 0: the default, negative: none */
    bool help;
    bool colours;          /* on `out` */
    bool terminal;         /* `out` is one */
    bool ignore_not_found; /* cli_call(): an object that is not found is no error */
    int64_t now_ns;        /* now, for ages; fixed in tests, otherwise 0 */
    /* Deadline of a patient request, which then fails with ERR_DEADLINE (clock_mono_ms()); 0: none. */
    uint64_t until_ms;
    int write_errno; /* the errno of a failed write to standard output; 0: none */
};

/* ---- output.c ---- */
/* False: the output cannot be written any more (most often: its reader is gone): stop; cli_main() reports it
 * if necessary. */
bool cli_write(struct cli *cli, const char *data, size_t n);
bool cli_flush(struct cli *cli);
/* Prints one line: fmt ends with the only line break. Its arguments may come from outside. */
void cli_print(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);
void cli_note(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3); /* the same on standard error */
/* Prints a value as "json", "yaml", "jsonpath=..." or "go-template=..."; returns the exit code. */
int cli_print_value(struct cli *cli, const json_t *value, const char *format);
#define CLI_OUTPUT_MAX (1u << 30) /* of a table made by a template */
/* Prints a table by "custom-columns=..."; returns the exit code. */
int cli_print_columns(struct cli *cli, const json_t *items, const char *format, bool headers);
/* EXIT_OK for NULL, "json" and "yaml"; otherwise EXIT_USAGE after printing an error. */
int cli_check_format(struct cli *cli, const char *format);

/* ---- errors.c ---- */
/* Prints "error: ..." on standard error; returns EXIT_ERROR. */
int cli_error(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same for a word or the value of a flag; EXIT_USAGE. */
int cli_wrong(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same for a failed request, file or value; returns the matching exit code. */
int cli_failed(struct cli *cli, const struct err *e);
/* Prints a line on standard error, replacing control characters because parts of it came from a container, an
 * image or a registry. */
void cli_complain(struct cli *cli, const char *what, const char *text);
int cli_exit_of_http(int code);
void cli_keep_first(int *code, int next); /* keeps the first failure of several actions */

/* ---- values.c: JSON members by path, times, sizes ---- */
json_t *cli_at(const json_t *object, const char *path);       /* "status.phase"; NULL if absent */
const char *cli_text(const json_t *object, const char *path); /* "" if absent or not a string */
/* The first element of a list whose text at `path` is this one; NULL: none. */
const json_t *cli_find(const json_t *list, const char *path, const char *text);
int64_t cli_number(const json_t *object, const char *path); /* 0 if absent */
bool cli_true(const json_t *object, const char *path);
/* Every text that is not ours passes here: characters that a terminal acts on (base/utf8.h) become visible,
 * "^[" or "<U+202E>". Line breaks stay. */
void cli_add_clean(struct buf *b, const char *text);
bool cli_is_clean(const char *text); /* and of one line */

int64_t cli_now(const struct cli *cli);
#define CLI_AGE_SIZE 40
void cli_duration(int64_t ns, char ret[CLI_AGE_SIZE]); /* "5m10s", rounded like kubectl */
/* Time since an RFC 3339 time; "<unknown>" if invalid. */
void cli_age(const struct cli *cli, const char *when, char ret[CLI_AGE_SIZE]);
#define CLI_TIME_SIZE 64
void cli_time(const char *when, char ret[CLI_TIME_SIZE]); /* "Mon, 02 Jan 2006 15:04:05 -0700", local */
void cli_size(uint64_t bytes, char ret[CLI_AGE_SIZE]);    /* "1.4MB" */
/* Go's "1h30m", "10s", "1.5h"; ERR_INVALID. */
enum err_code cli_parse_duration(const char *text, int64_t *ret_ns, struct err *e) MUST_CHECK;

/* ---- order.c ---- */
json_t *cli_sorted(const json_t *items, int (*order)(const void *a, const void *b)); /* a new array */
int cli_by_namespace_and_name(const void *a, const void *b);

/* ---- colour.c ---- */
enum cli_colour { COLOUR_NONE, COLOUR_GOOD, COLOUR_WAITING, COLOUR_BAD, COLOUR_TITLE };
bool cli_is_terminal(int fd, const char *term);                          /* a capable one */
bool cli_colours_wanted(int fd, const char *term, const char *no_color); /* according to the environment */
void cli_add_coloured(struct buf *b, enum cli_colour colour, const char *text, size_t n);
enum cli_colour cli_colour_of_status(const char *status); /* of a pod, a container or a manifest file */
enum cli_colour cli_colour_of_event(const char *type);
/* A description on standard output, with colours where wanted. */
void cli_show_described(struct cli *cli, const struct buf *text);

/* ---- table.c ---- */
#define CLI_COLUMNS_MAX 32
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
#endif
