/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by agent/config: the rows of the tables, and the values of the settings. */
#ifndef AGENT_CONFIG_INTERNAL_H
#define AGENT_CONFIG_INTERNAL_H
#include "agent/config/config.h"
#include "base/scope.h"

#include <stddef.h>

enum config_doc { DOC_KUBELET, DOC_OWN, DOC_FLAG /* a flag without a key */, N_DOCS };

enum config_type {
    T_BOOL,
    T_INT,   /* allowed: "min..max" */
    T_FLOAT, /* above 0, at most 1 */
    T_TEXT,
    T_WORD, /* allowed: "a|b" */
    T_PATH, /* absolute, at most 200 bytes, no "..", kept without a trailing "/"; may be empty */
    T_IP,
    T_DURATION, /* Go's, canonical: "1m30s" */
    T_QUANTITY,
    T_TEXTS, /* flag: comma-separated */
    T_INTS,
    T_TEXT_MAP, /* flag: key=value,... */
    T_BOOL_MAP,
    T_TEXTS_MAP,
    T_COUNT_MAP, /* name to whole number, canonical: a JSON integer; flag: name=number,... */
    T_OBJECTS,
};

enum config_effect {
    WORKS,
    NONE,  /* the feature does not exist in this agent */
    LATER, /* not supported yet */
};

/* marks */
enum {
    /* 0, "" and "0s" in a file mean the default, as where kubelet cannot distinguish them from an absent
     * key. */
    ZERO = 1,
    LIVE = 2,      /* reloaded by SIGHUP */
    ALWAYS = 4,    /* warn about a given value even if it is kubelet's default */
    BELOW = 8,     /* flag: key<value,... */
    COLON = 16,    /* flag: key:value,... */
    SECRET = 32,   /* never shown */
    NEGATIVE = 64, /* the duration may be negative */
    JOINED = 128,  /* acts only on a node that joins a cluster (`kubeconfig`) */
};

struct config_row {
    const char *key;  /* "authentication.x509.clientCAFile"; NULL: only a flag */
    const char *flag; /* without dashes; NULL: none */
    enum config_type type;
    const char *otherwise; /* the default, in the flag's format; NULL: not set */
    const char *allowed;
    unsigned marks;
    enum config_effect effect;
    size_t offset;    /* WORKS: in struct agent_config; 0: apply.c sets it */
    const char *help; /* the meaning, for the sample and --help */
    const char *why;  /* NONE, LATER: for the warning */
    /* in addition to the type's checks; may be NULL */
    enum err_code (*check)(const json_t *value, struct err *e);
};

#define FIELD(field) offsetof(struct agent_config, field)

/* ---- keys_*.c, rows.c: row i of all; keys of one mapping are adjacent ---- */
struct config_rows {
    const struct config_row *v;
    size_t n;
};
extern const struct config_rows config_rows_server, config_rows_pods, config_rows_own, config_rows_flags;

size_t config_n_rows(void);
const struct config_row *config_row(size_t i, enum config_doc *ret_doc /* may be NULL */);
size_t config_find_key(enum config_doc doc, const char *key);         /* config_n_rows(): not found */
size_t config_find_flag(const char *name, size_t length);             /* likewise */
bool config_is_mapping(enum config_doc doc, const char *prefix);      /* whether there are keys below it */
const char *config_nearest_key(enum config_doc doc, const char *key); /* may be NULL */
const char *config_nearest_flag(const char *name);
extern const char *const config_doc_api[N_DOCS], *const config_doc_kind[N_DOCS];

/* ---- the settings ---- */
struct config_setting {
    json_t *value; /* canonical; NULL: not given */
    char *from;    /* NULL: not given */
};

struct config_state {
    struct config_setting *set; /* one per row */
    json_t **defaults;          /* likewise; NULL: not set */
    json_t *problems;           /* texts: everything wrong in a file */
};

/* Sets one setting by RFC 7386: mappings are merged, null removes, all else replaces. */
enum err_code config_set(struct config_state *s, size_t i, const json_t *value, const char *from,
                         struct err *e) MUST_CHECK;
void config_unset(struct config_state *s, size_t i);
/* given, or the default; may be NULL */
const json_t *config_effective(const struct config_state *s, size_t i);
/* The reason why row i has no effect with these settings; NULL: it has an effect. */
const char *config_why_idle(const struct config_state *s, size_t i);
#define CONFIG_ONLY_JOINED "it applies only to a node that joins a cluster (--kubeconfig)"

/* ---- value.c: one value ---- */
/* *ret: a new reference, canonical. ERR_INVALID: the problem, without the name of the setting. */
enum err_code config_check_value(const struct config_row *r, const json_t *value, json_t **ret,
                                 struct err *e) MUST_CHECK;
/* *ret: v, which may be NULL (out of memory); taken. */
enum err_code config_value_take(json_t *v, json_t **ret, struct err *e) MUST_CHECK;
bool config_is_zero(const json_t *value); /* false, 0, "", "0s", {}, []; NULL */
/* Whether the value is a zero value of a row with ZERO. A text like "0" (the list of one processor) is a real
 * value. */
bool config_means_default(const struct config_row *r, const json_t *value);
bool config_is_ip(const char *text);
int64_t config_duration_ns(const json_t *value); /* of a canonical duration; otherwise 0 */

/* ---- flag_value.c ---- */
/* As config_check_value(), from a flag's text. */
enum err_code config_flag_value(const struct config_row *r, const char *text, json_t **ret,
                                struct err *e) MUST_CHECK;

/* ---- value_special.c: checks of single rows ---- */
enum err_code config_check_ips(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_ip_list(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_cidrs(const json_t *v, struct err *e) MUST_CHECK; /* one text, comma-separated */
enum err_code config_check_sysctls(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_image_patterns(const json_t *value, struct err *e) MUST_CHECK;
/* ---- eviction.c ---- */
enum err_code config_check_thresholds(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_signal_quantities(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_signal_durations(const json_t *value, struct err *e) MUST_CHECK;
/* All settings of eviction as numbers. ERR_INVALID: a soft threshold has no grace period. */
enum err_code config_parse_eviction(const struct config_state *s, struct ev_settings *ret,
                                    struct err *e) MUST_CHECK;
/* ---- value_special.c again ---- */
enum err_code config_check_reserved(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_qos_reserved(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_taints(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_reserved_memory(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_priorities(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_cpus(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_ids(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_labels(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_loopback(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_socket(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_handlers(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_allocatable(const json_t *value, struct err *e) MUST_CHECK;
/* ---- value_devices.c: checks of rows about devices ---- */
/* Names of extended resources, and their numbers. *ret: a new reference, the numbers as integers. */
enum err_code config_check_counts(const json_t *value, json_t **ret, struct err *e) MUST_CHECK;
enum err_code config_check_dirs(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_topology_options(const json_t *value, struct err *e) MUST_CHECK;

/* ---- feature_gates.c ---- */
/* The reason of the warning about this setting of a gate, or NULL. */
const char *config_gate_problem(const char *name, bool on);

/* ---- where.c ---- */
/* {"authentication.x509": 12, ...}: the line of each key of document `number` (from 1); a new reference, NULL
 * if unknown. */
json_t *config_lines(const char *text, size_t n, int number);

/* ---- decode.c, flags.c, check.c, apply.c ---- */
enum err_code config_read_file(struct config_state *s, const char *path, struct err *e) MUST_CHECK;
enum err_code config_read_dir(struct config_state *s, const char *path, struct err *e) MUST_CHECK;

struct config_flag { /* one given flag */
    size_t row;
    const char *value; /* borrowed from argv, or static */
};
struct config_flags {
    struct config_flag *v; /* in the given order */
    size_t n;
    bool help;
};
enum err_code config_flags_parse(struct config_flags *f, int argc, char **argv, struct err *e) MUST_CHECK;
const char *config_flags_last(const struct config_flags *f, const char *name); /* may be NULL */
enum err_code config_flags_apply(struct config_state *s, const struct config_flags *f,
                                 struct err *e) MUST_CHECK;
void config_flags_done(struct config_flags *f);

enum err_code config_check(struct config_state *s, struct err *e) MUST_CHECK; /* rules across settings */
enum err_code config_apply(struct agent_config *c, struct err *e) MUST_CHECK; /* state to the fields */
void config_apply_resources(struct agent_config *c);                          /* resources.c */
void config_fields_done(struct agent_config *c);
#endif
