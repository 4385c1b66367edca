/* SPDX-License-Identifier: Apache-2.0 */
/* internal - what the files of agent/config share: the rows of the tables, and where each setting stands. */
#ifndef AGENT_CONFIG_INTERNAL_H
#define AGENT_CONFIG_INTERNAL_H
#include "agent/config/config.h"
#include "base/scope.h"

#include <stddef.h>

enum config_doc { DOC_KUBELET, DOC_OWN, DOC_FLAG /* has no key */, N_DOCS };

enum config_type {
    T_BOOL,
    T_INT,   /* allowed: "min..max" */
    T_FLOAT, /* above 0, at most 1 */
    T_TEXT,
    T_WORD, /* allowed: "a|b" */
    T_PATH, /* absolute, at most 200 bytes, no "..", kept without a "/" at its end; may be empty */
    T_IP,
    T_DURATION, /* Go's, canonical: "1m30s" */
    T_QUANTITY,
    T_TEXTS, /* flag: comma-separated */
    T_INTS,
    T_TEXT_MAP, /* flag: key=value,... */
    T_BOOL_MAP,
    T_TEXTS_MAP,
    T_OBJECTS,
};

enum config_effect {
    WORKS,
    NONE,  /* there is nothing here that it could change */
    LATER, /* not acted on yet */
};

/* marks */
enum {
    ZERO = 1,   /* 0, "" and "0s" in a file mean the default, as where kubelet cannot tell them from an absent
                   key */
    LIVE = 2,   /* taken over by SIGHUP */
    ALWAYS = 4, /* a value that was given is worth its warning even where it is kubelet's default */
    BELOW = 8,  /* flag: key<value,... */
    COLON = 16, /* flag: key:value,... */
    SECRET = 32,   /* never shown */
    NEGATIVE = 64, /* a duration that may be negative */
};

struct config_row {
    const char *key;  /* "authentication.x509.clientCAFile"; NULL: only a flag */
    const char *flag; /* without dashes; NULL: none */
    enum config_type type;
    const char *otherwise; /* the default, as the flag would give it; NULL: not set */
    const char *allowed;
    unsigned marks;
    enum config_effect effect;
    size_t offset;    /* WORKS: in struct agent_config; 0: apply.c knows */
    const char *help; /* what it is, for the sample and --help */
    const char *why;  /* NONE, LATER: for the warning */
    enum err_code (*check)(const json_t *value, struct err *e); /* NULL: none besides the type's */
};

#define FIELD(field) offsetof(struct agent_config, field)

/* ---- keys_*.c, rows.c: row i of all; keys of one mapping stand side by side ---- */
struct config_rows {
    const struct config_row *v;
    size_t n;
};
extern const struct config_rows config_rows_server, config_rows_pods, config_rows_own, config_rows_flags;

size_t config_n_rows(void);
const struct config_row *config_row(size_t i, enum config_doc *ret_doc /* may be NULL */);
size_t config_find_key(enum config_doc doc, const char *key);         /* config_n_rows(): there is none */
size_t config_find_flag(const char *name, size_t length);             /* likewise */
bool config_is_mapping(enum config_doc doc, const char *prefix);      /* keys below it exist */
const char *config_nearest_key(enum config_doc doc, const char *key); /* NULL: none is near */
const char *config_nearest_flag(const char *name);
extern const char *const config_doc_api[N_DOCS], *const config_doc_kind[N_DOCS];

/* ---- the settings ---- */
struct config_setting {
    json_t *value; /* canonical; NULL: not given */
    char *from;    /* NULL: not given */
};

struct config_state {
    struct config_setting *set; /* one for each row */
    json_t **defaults;          /* likewise; NULL: not set */
    json_t *problems;           /* texts: of everything that is wrong in a file */
};

/* RFC 7386 for one setting: mappings are merged, null takes away, all else replaces. */
enum err_code config_set(struct config_state *s, size_t i, const json_t *value, const char *from,
                         struct err *e) MUST_CHECK;
void config_unset(struct config_state *s, size_t i);
const json_t *config_effective(const struct config_state *s, size_t i); /* given, else the default; or NULL */

/* ---- duration.c ---- */
#define DURATION_TEXT_SIZE 40
bool duration_parse(const char *text, int64_t *ret_ns); /* as Go's time.ParseDuration() */
void duration_format(int64_t ns, char ret[DURATION_TEXT_SIZE]);
int64_t duration_of(const json_t *value); /* of a canonical one; 0 if it is none */

/* ---- value.c: one value ---- */
/* *ret: a new reference, canonical. ERR_INVALID: "<what is wrong>", without the name of the setting. */
enum err_code config_check_value(const struct config_row *r, const json_t *value, json_t **ret,
                                 struct err *e) MUST_CHECK;
/* From a flag's text. */
enum err_code config_flag_value(const struct config_row *r, const char *text, json_t **ret,
                                struct err *e) MUST_CHECK;
bool config_is_zero(const json_t *value); /* false, 0, "", "0s", {}, []; NULL */
bool config_is_ip(const char *text);

/* ---- value_special.c: checks of single rows ---- */
enum err_code config_check_ips(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_ip_list(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_cidrs(const json_t *v, struct err *e) MUST_CHECK; /* one text, comma-separated */
enum err_code config_check_sysctls(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_image_patterns(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_thresholds(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_signal_quantities(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_signal_durations(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_reserved(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_qos_reserved(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_taints(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_reserved_memory(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_priorities(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_cpus(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_ids(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_labels(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_socket(const json_t *value, struct err *e) MUST_CHECK;
enum err_code config_check_allocatable(const json_t *value, struct err *e) MUST_CHECK;
/* --register-with-taints and --reserved-memory, whose texts have forms of their own. */
enum err_code config_flag_taints(const char *text, json_t **ret, struct err *e) MUST_CHECK;
enum err_code config_flag_reserved_memory(const char *text, json_t **ret, struct err *e) MUST_CHECK;

/* ---- feature_gates.c ---- */
/* Why a gate that is set so gives a warning; NULL: it is as asked for. */
const char *config_gate_problem(const char *name, bool on);

/* ---- where.c ---- */
/* {"authentication.x509": 12, ...}: the line of each key of document `number` (from 1); a new reference,
 * NULL: not known. */
json_t *config_lines(const char *text, size_t n, int number);

/* ---- decode.c, flags.c, check.c, apply.c ---- */
enum err_code config_read_file(struct config_state *s, const char *path, struct err *e) MUST_CHECK;
enum err_code config_read_dir(struct config_state *s, const char *path, struct err *e) MUST_CHECK;

struct config_flag { /* one that was given */
    size_t row;
    const char *value; /* borrowed from argv, or static */
};
struct config_flags {
    struct config_flag *v; /* in the order in which they were given */
    size_t n;
    bool help;
};
enum err_code config_flags_parse(struct config_flags *f, int argc, char **argv, struct err *e) MUST_CHECK;
const char *config_flags_last(const struct config_flags *f, const char *name); /* NULL: not given */
enum err_code config_flags_apply(struct config_state *s, const struct config_flags *f,
                                 struct err *e) MUST_CHECK;
void config_flags_done(struct config_flags *f);

enum err_code config_check(struct config_state *s, struct err *e) MUST_CHECK; /* rules between settings */
enum err_code config_apply(struct agent_config *c, struct err *e) MUST_CHECK; /* state into the fields */
void config_apply_resources(struct agent_config *c);                          /* resources.c */
void config_fields_done(struct agent_config *c);
#endif
