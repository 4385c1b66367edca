/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/cli/show. */
#ifndef AGENT_CLI_SHOW_INTERNAL_H
#define AGENT_CLI_SHOW_INTERNAL_H
#include "agent/cli/client/client.h"
#include "agent/cli/command/command.h"
#include "agent/cli/print/print.h"
#include "agent/cli/show/show.h"

/* ---- explain_fields.c ---- */
bool cli_explain_is_path(const char *word);                /* "pod.spec.containers", "pods" */
int cli_explain_fields(struct cli *cli, const char *path); /* for such a word; the exit code */

/* ---- manifests.c ---- */
/* One line per problem on standard error, in the form of compilers. */
void cli_show_problems(struct cli *cli, const json_t *manifests);
/* The same for the daemon's manifests, or one line if many files are bad; nothing if they are unknown. */
void cli_warn_manifests(struct cli *cli);

/* ---- get.c, get_devices.c, get_evictions.c, get_objects.c, get_tables.c, get_sort.c ---- */
struct get {
    struct cli *cli;
    const struct cli_command *command;
    const char *namespace_, *format, *selector, *field_selector, *sort_by;
    bool all, watch, no_headers, show_labels, ignore_not_found;
    struct cli_list label_columns, files;
    bool deep;        /* -R: also the folders in a folder of `files` */
    const char *kind; /* "deployment.apps": of the table; kind_text */
    char kind_text[CLI_FULL_NAME_SIZE];
    bool many;         /* of several kinds: names are "pod/web" */
    bool shown;        /* a table was printed */
    json_t *all_items; /* owned; not NULL: objects are collected here */
    char **names;
    int n_names;
};

bool get_is_format(const struct get *g, const char *format);
bool get_is_table(const struct get *g); /* plain or wide */
int get_nothing_found(const struct get *g);
int get_print_objects(const struct get *g, const char *kind, const json_t *items, bool single);
int get_check_names(const struct get *g); /* names and selectors exclude each other; the exit code */
int get_pods(struct get *g);
int get_objects(struct get *g, const struct api_kind_row *kind);
int get_events(struct get *g);
int get_sort(const struct get *g, json_t *items); /* get_sort.c: in place, if requested; the exit code */
int get_manifests(struct get *g);
int get_evictions(struct get *g);
int get_devices(struct get *g);                 /* the names are resources */
json_t *cli_read_held_devices(struct cli *cli); /* NULL after printing an error */

/* ---- get_labels.c ---- */
enum { GET_LABELS_MAX = 16 };
int get_check_labels(const struct get *g); /* the exit code */
/* With the columns of labels after these. */
void get_table_init(const struct get *g, struct cli_table *t, const char *const *headers);
void get_name_cell(const struct get *g, struct cli_table *t, const json_t *o);
/* get_storage.c */
void get_claim_row(const struct get *g, struct cli_table *t, const json_t *o);
void get_volume_row(const struct get *g, struct cli_table *t, const json_t *o);
void get_label_cells(const struct get *g, struct cli_table *t, const json_t *o);
void get_table_print(struct get *g, struct cli_table *t);

/* ---- describe_*.c: into `out`, tabs as in cli_align() ---- */
void cli_describe_pod(const struct cli *cli, const json_t *pod, const json_t *events, struct buf *out);
void cli_describe_containers(const char *label, const json_t *pod, const json_t *containers,
                             const json_t *statuses, struct buf *out);
void cli_describe_volumes(const json_t *volumes, struct buf *out);
void cli_describe_resources(const json_t *resources, const char *indent, struct buf *out);
void cli_describe_node(const struct cli *cli, const json_t *node, const json_t *pods, const json_t *devices,
                       const json_t *placement, struct buf *out);
void cli_describe_devices(const json_t *devices, struct buf *out); /* those in use */
/* NUMA nodes and the containers that use them; nothing for an empty list. */
void cli_describe_placement(const json_t *nodes, struct buf *out);
json_t *cli_read_placement(struct cli *cli); /* NULL after printing an error */
void cli_describe_config_map(const struct cli *cli, const json_t *o, struct buf *out);
void cli_describe_secret(const struct cli *cli, const json_t *o, struct buf *out);
void cli_describe_class(const struct cli *cli, const json_t *o, struct buf *out);
void cli_describe_image(const struct cli *cli, const json_t *o, struct buf *out);
/* describe_parts.c */
void cli_describe_pairs(struct buf *out, const char *title, const json_t *object); /* "Labels" */
void cli_describe_annotations(struct buf *out, const json_t *annotations);
/* The message of an event, with the agent's own detail (a hook's exit code and output) after kubelet's words,
 * without the white space at its end. malloc'ed; NULL: no memory. */
char *cli_event_text(const json_t *event);
void cli_describe_events(const struct cli *cli, const json_t *events, struct buf *out);
void cli_describe_text(struct buf *out, const char *title, const char *text); /* unless it is "" */
#endif
