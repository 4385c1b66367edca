/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal - declarations shared by agent/api: the check context (current path and problems), the text
 * formats of names, the schema tables and their walker, and the validation passes.
 *
 * A manifest becomes an object in four steps. defaults.c fills in defaults that depend on other fields; the
 * walker (schema.c) checks names, types, ranges and formats against the tables, adds the fixed defaults to
 * the JSON and copies fields with a slot to the structs; defaults.c completes resources; validate_*.c checks
 * rules across fields. Every step continues after a problem, so that all problems are reported together;
 * structs may therefore hold NULL for invalid fields.
 */
#ifndef AGENT_API_INTERNAL_H
#define AGENT_API_INTERNAL_H
#include "agent/api/decode.h"
#include "agent/api/types.h"
#include "base/buf.h"

#include <jansson.h>

#define API_PATH_MAX 1024     /* a longer field path is truncated: 64 levels of ordinary names fit */
#define API_LIST_MAX 2000     /* elements of one list: some checks compare all pairs */
#define API_RESOURCES_MAX 100 /* per container */

/* ---- check context (check.c) ---- */
struct api_check {
    struct api_problems *problems;
    struct arena *arena;     /* of the object being built */
    const char *file;        /* NULL: show only paths */
    int document;            /* 1.., with file */
    size_t faults;           /* problems reported through this context */
    bool no_memory;          /* an allocation failed: the object is incomplete */
    char path[API_PATH_MAX]; /* "spec.containers[0].ports[1]" */
    size_t path_n;
    char **ignored; /* malloc'ed; from api_ignore() */
    size_t n_ignored;
};

/* Descends one level; pass the result to api_leave() when done. */
size_t api_enter(struct api_check *c, const char *name);
size_t api_enter_index(struct api_check *c, size_t index);
size_t api_enter_key(struct api_check *c, const char *key); /* "limits[memory]" */
void api_leave(struct api_check *c, size_t mark);

/* Reports a problem at the current path, at a field below it, or at an element of a list below it. */
void api_fault(struct api_check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void api_fault_at(struct api_check *c, const char *child, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Notes a field that is accepted but has no effect. */
void api_ignore(struct api_check *c, const char *why);
void api_check_done(struct api_check *c);

/* Allocates from the arena; failure is noted in the context. */
void *api_alloc(struct api_check *c, size_t n);
char *api_strdup(struct api_check *c, const char *s);

/* `text` in double quotes, with control bytes replaced, truncated when long: for messages. */
struct api_quoted {
    char s[100];
};
struct api_quoted api_quote(const char *text);
#define QUOTE(text) (api_quote(text).s)

/* ---- formats of names (names.c) ---- */
enum api_format {
    API_FMT_NONE,
    API_FMT_LABEL,     /* DNS-1123 label */
    API_FMT_SUBDOMAIN, /* DNS-1123 subdomain */
    API_FMT_LABEL_KEY, /* qualified name */
    API_FMT_LABEL_VALUE,
    API_FMT_DATA_KEY, /* key of a ConfigMap or Secret */
    API_FMT_ENV_NAME,
    API_FMT_PORT_NAME,
    API_FMT_HEADER_NAME,
    API_FMT_IP,
    API_FMT_SEARCH_DOMAIN,
    API_FMT_SYSCTL,
    API_FMT_DESCENDING,   /* relative path without ".." */
    API_FMT_FILE_PATH,    /* the same, and not starting with ".." */
    API_FMT_NO_BACKSTEPS, /* any path without ".." */
    API_FMT_UID,
    API_FMT_IMAGE,  /* no surrounding blanks */
    API_FMT_MEDIUM, /* of an emptyDir */
};

/* NULL if valid, otherwise the rule: "must be ...". */
const char *api_format_rule(enum api_format format, const char *s);

/* ---- schema tables (schema.c, schema_*.c) ---- */
enum api_type {
    API_STRING,
    API_ENUM, /* a string of `values`, kept as the value's number */
    API_INT32,
    API_INT64,
    API_BOOL,
    API_QUANTITY,
    API_OBJECT,
    API_LIST,    /* of objects */
    API_STRINGS, /* list of strings */
    API_INT32S,  /* list of int32 */
    API_INT64S,  /* list of int64 */
    API_STRING_MAP,
    API_BYTES_MAP, /* values are base64 */
    API_RESOURCES, /* resource list */
    API_INT_OR_STRING,
    API_ANY,
};

enum api_support {
    API_WITH_PARENT, /* like the containing object; a field with a slot is acted on */
    API_ACTED,
    API_ACCEPTED, /* no meaning for a node, or for this node */
    API_IGNORED,  /* accepted, listed in api_pod.ignored */
    API_REFUSED,
};

enum api_row_flags {
    API_REQUIRED = 1 << 0,   /* must be given, and not empty */
    API_POINTER = 1 << 1,    /* object: the slot is a pointer to a new struct; otherwise the struct itself */
    API_ONE = 1 << 2,        /* object: the slot is a list (v, n) and gets one element */
    API_IN_PARENT = 1 << 3,  /* the slot is in the containing struct */
    API_KEEP_EMPTY = 1 << 4, /* string: "" is a value (an API pointer), different from absent */
    API_EMPTY_TEXT = 1 << 5, /* string: the slot holds "" instead of NULL when absent */
    API_OCTAL = 1 << 6,      /* number: a file mode, messages show it octal */
    API_RANGE = 1 << 7,      /* number: min..max */
    API_AS_TEXT = 1 << 8,    /* number: the slot is a char * */
    API_BOOL_SLOT = 1 << 9,  /* enum: the slot is a bool */
    API_DROP = 1 << 10,      /* omitted from the object's JSON */
    API_ZERO_ABSENT = 1 << 11, /* 0 or false means absent (not a pointer in the API's Go type) */
};

struct api_value {
    const char *text;
    int number;
};

struct api_schema;

struct api_row {
    const char *name;
    enum api_type type;
    size_t slot;  /* AT(): the value's destination; 0: none */
    size_t has;   /* AT() of a bool that is set if the field is given (strings: and not empty) */
    size_t count; /* AT() of the size_t that counts a list */
    size_t tag;   /* AT() of an enum set to tag_value if the field is given */
    int tag_value;
    unsigned flags;
    const struct api_schema *nested;
    const struct api_value *values; /* terminated by a NULL text; also for API_STRING */
    enum api_format format;
    int64_t min, max;
    int32_t absent;        /* number: the slot's value if not given and without default */
    const char *otherwise; /* default, as text; "{}" for an object */
    enum api_support support;
    const char *harmless; /* a value (JSON text) to which `support` does not apply */
    const char *why;      /* with ACCEPTED, IGNORED and REFUSED */
};

struct api_schema {
    const char *name; /* the API's type name: "Container" */
    const struct api_row *rows;
    const struct api_schema *base; /* more rows, searched after these */
    size_t size;                   /* of the struct, if one is allocated */
    size_t init;                   /* AT() of an enum set to init_value in each struct */
    int init_value;
    size_t init_true; /* AT() of a bool set to true in each struct */
    /* The rows from one_of_first to one_of_last exclude each other: */
    const char *one_of;       /* the problem if two are given; NULL: no such rule */
    const char *one_of_none;  /* the problem if none is given; NULL: none is allowed */
    const char *one_of_first; /* the first of these rows; NULL: all */
    const char *one_of_last;  /* the last; NULL: to the end */
};

#define AT(type, field) (offsetof(struct type, field) + 1)
#define HERE 1 /* AT() of an object whose fields are in the containing struct */

/* Checks `object` against the table, fills in defaults, copies to `out` (NULL: check only). */
void api_walk(struct api_check *c, const struct api_schema *schema, json_t *object, void *out);

extern const struct api_schema api_schema_pod, api_schema_config_map, api_schema_secret,
    api_schema_priority_class, api_schema_list;                           /* schema_object.c */
extern const struct api_schema api_schema_pod_spec, api_schema_local_ref; /* schema_pod.c */
extern const struct api_schema api_schema_container, api_schema_ephemeral_container,
    api_schema_resources; /* schema_container.c */
extern const struct api_schema api_schema_field_ref, api_schema_resource_field_ref;
extern const struct api_schema api_schema_probe, api_schema_lifecycle; /* schema_probe.c */
extern const struct api_schema api_schema_volume;                      /* schema_volume.c */
extern const struct api_schema api_schema_gce_disk, api_schema_aws_disk, api_schema_git_repo, api_schema_nfs,
    api_schema_iscsi, api_schema_glusterfs, api_schema_claim_volume, api_schema_rbd, api_schema_flex,
    api_schema_cinder, api_schema_cephfs, api_schema_flocker, api_schema_fc, api_schema_azure_file,
    api_schema_vsphere, api_schema_quobyte, api_schema_azure_disk, api_schema_photon, api_schema_portworx,
    api_schema_scale_io, api_schema_storage_os, api_schema_csi, api_schema_ephemeral; /* schema_foreign.c */
extern const struct api_schema api_schema_security, api_schema_pod_security;          /* schema_security.c */
extern const struct api_schema api_schema_affinity, api_schema_toleration, api_schema_topology_spread,
    api_schema_label_selector, api_schema_scheduling_gate,
    api_schema_scheduling_group; /* schema_scheduling.c */
extern const struct api_value api_values_pull_policy[], api_values_restart_policy[];

/* ---- defaults that depend on other fields (defaults.c) ---- */
void api_defaults_before(struct api_check *c, json_t *pod);                        /* before the walk */
void api_defaults_after(struct api_check *c, json_t *object, struct api_pod *pod); /* after it */
enum api_pull_policy api_pull_policy_default(const char *image);

/* ---- resources (resources.c) ---- */
struct api_resource_rule {
    const char *name; /* ends in '-': prefix; "": anything with a '/' */
    enum api_support support;
    const char *why;
};
extern const struct api_resource_rule api_resource_rules[]; /* terminated by a NULL name */
void api_validate_resources(struct api_check *c, const struct api_resources *r, bool pod_level);
void api_validate_pod_resources(struct api_check *c, const struct api_pod_spec *spec);
void api_validate_overhead(struct api_check *c, const struct api_resource_list *l);
/* Effective requests of all containers for a resource, without pod level and overhead. */
bool api_sum_requests(const struct api_pod_spec *spec, const char *name, struct quantity *ret);
enum api_qos api_compute_qos(const struct api_pod_spec *spec);

/* ---- validation (validate_*.c): cross-field rules ---- */
void api_validate_meta(struct api_check *c, const struct api_meta *meta);
void api_validate_kvs(struct api_check *c, const char *field, const struct api_kvs *m, enum api_format value);
void api_validate_pod(struct api_check *c, const struct api_pod *pod, const json_t *object);
void api_validate_containers(struct api_check *c, const struct api_pod_spec *spec, const json_t *json);
void api_validate_volumes(struct api_check *c, const struct api_pod_spec *spec);
void api_validate_probes(struct api_check *c, const struct api_container *container, const json_t *object,
                         bool init, int64_t grace_seconds);
void api_validate_env(struct api_check *c, const struct api_pod_spec *spec,
                      const struct api_container *container);
void api_validate_field_ref(struct api_check *c, const struct api_field_ref *ref, bool volume);
void api_validate_resource_field_ref(struct api_check *c, const struct api_resource_field_ref *ref,
                                     bool volume);
void api_validate_pod_security(struct api_check *c, const struct api_pod_spec *spec, const json_t *security);
void api_validate_security(struct api_check *c, const struct api_container *container, const json_t *security,
                           const struct api_pod_spec *spec);
void api_validate_apparmor_name(struct api_check *c, const char *name); /* not empty */
#define API_APPARMOR_OF                                                                                      \
    "container.apparmor.security.beta.kubernetes.io/" /* followed by a container's name                      \
                                                       */
void api_validate_annotations(struct api_check *c, const struct api_pod *pod);
void api_validate_scheduling(struct api_check *c, const json_t *spec);

/* ---- ConfigMap, Secret (config.c) ---- */
/* Checks and fills `config`, whose arena and kind are set. */
void api_build_config(struct api_check *c, struct api_config *config, json_t *object);
/* Go's standard base64: line ends are ignored, padding is required. False: invalid. */
bool api_base64(const char *text, size_t n, unsigned char *out, size_t *ret_n);
void api_kvs_sort(struct api_kvs *m);
#endif
