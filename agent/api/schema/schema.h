/* SPDX-License-Identifier: Apache-2.0 */
/* schema - the tables of all fields, and the walk of an object along them: it checks names, types, ranges and
 * formats, adds the fixed defaults to the JSON, and copies fields with a slot to the structs. */
#ifndef AGENT_API_SCHEMA_SCHEMA_H
#define AGENT_API_SCHEMA_SCHEMA_H
#include "agent/api/check.h"
#include "agent/api/types.h"
#include "base/buf.h"

#include <jansson.h>

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

enum api_row_flags {
    API_REQUIRED = 1 << 0,    /* must be given, and not empty */
    API_POINTER = 1 << 1,     /* object: the slot is a pointer to a new struct; otherwise the struct itself */
    API_ONE = 1 << 2,         /* object: the slot is a list (v, n) and gets one element */
    API_IN_PARENT = 1 << 3,   /* the slot is in the containing struct */
    API_KEEP_EMPTY = 1 << 4,  /* string: "" is a value (an API pointer), different from absent */
    API_EMPTY_TEXT = 1 << 5,  /* string: the slot holds "" instead of NULL when absent */
    API_OCTAL = 1 << 6,       /* number: a file mode, messages show it octal */
    API_AS_TEXT = 1 << 7,     /* number: the slot is a char * */
    API_BOOL_SLOT = 1 << 8,   /* enum: the slot is a bool */
    API_DROP = 1 << 9,        /* omitted from the object's JSON */
    API_IN_CLUSTER = 1 << 11, /* acted on where there is an apiserver: `support` does not apply there */
    API_NOT_STATIC = 1 << 18, /* `support` applies to static pods of a node that has joined a cluster */
    API_ZERO_ABSENT = 1 << 10, /* 0 or false means absent (not a pointer in the API's Go type) */
    /* How patches treat the value (agent/api/patch): */
    API_SET = 1 << 12,           /* list of scalars: each is owned and merged separately in an apply */
    API_MERGED = 1 << 13,        /* list of scalars: a strategic merge patch adds to it */
    API_ATOMIC = 1 << 14,        /* map: one value in an apply */
    API_ELSEWHERE = 1 << 16,     /* object: a separate call walks its members (a pod's template) */
    API_KEPT_EXPANDED = 1 << 17, /* with API_DROP: stays in objects that the agent made */
    API_RETAIN_KEYS = 1 << 15,   /* a strategic merge patch obeys $retainKeys in it, or in its elements */
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
    int64_t min, max;      /* number: the range, if not both 0 */
    int32_t absent;        /* number: the slot's value if not given and without default */
    const char *otherwise; /* default, as text; "{}" for an object */
    enum api_support support;
    const char *harmless; /* a value (JSON text) to which `support` does not apply */
    const char *why;      /* with ACCEPTED, IGNORED and REFUSED */
    const char
        *merge_key; /* list of objects: a strategic merge patch merges it by this member; NULL: replaces it */
    const char
        *list_keys; /* the members that identify an element in an apply, "a,b"; NULL: merge_key; "": none */
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
    bool atomic;              /* one value in an apply */
};

#define AT(type, field) (offsetof(struct type, field) + 1)
#define HERE 1 /* AT() of an object whose fields are in the containing struct */

/* A line of a table: the field's name and type, then what else the row has. */
#define ROW(name_, type_, ...)                                                                               \
    {                                                                                                        \
        .name = (name_), .type = (type_), __VA_ARGS__                                                        \
    }
#define SCHEMA(name_, rows_, ...)                                                                            \
    {                                                                                                        \
        .name = (name_), .rows = (rows_), __VA_ARGS__                                                        \
    }
#define SLOT(type, field) .slot = AT(type, field)
#define SLOTS(type, field) SLOT(type, field), .count = AT(type, n_##field) /* of a list */
#define TAG(at, value) .tag = (at), .tag_value = (value)
#define RANGE(from, to) .min = (from), .max = (to)
#define ACTED(note) .support = API_ACTED, .why = (note) /* and a note about it */
#define ACCEPTED(reason) .support = API_ACCEPTED, .why = (reason)
#define IGNORED(reason) .support = API_IGNORED, .why = (reason)
#define REFUSED(reason) .support = API_REFUSED, .why = (reason)

/* Checks `object` against the table, fills in defaults, copies to `out` (NULL: check only). */
void api_walk(struct api_check *c, const struct api_schema *schema, json_t *object, void *out);

/* The row of a field, also among those of `base`; NULL: unknown. */
const struct api_row *api_row_find(const struct api_schema *schema, const char *name);
/* Absent for Go's decoder and encoder: null, and empty values of plain fields. */
bool api_row_is_absent(const struct api_row *row, const json_t *v);
/* The field that a mistyped name was probably meant to be; NULL: none is near. */
const char *api_row_similar(const struct api_schema *schema, const char *name);

/* ---- schema_text.c: for people ---- */
/* The support of a field inside an object: its own row cannot promise more than `holder`, the object's. */
enum api_support api_support_below(const struct api_row *row, enum api_support holder);
const char *api_support_name(enum api_support support); /* "acted on" */
/* " in a cluster", " without a cluster": where a field is refused; "": everywhere. */
const char *api_support_where(const struct api_row *row);
void api_add_type(struct buf *b, const struct api_row *row); /* "list of Container, required" */
void api_add_allowed(struct buf *b,
                     const struct api_row *row); /* "Always, Never", "1 to 65535"; or nothing */

extern const struct api_schema api_schema_pod, api_schema_config_map, api_schema_secret,
    api_schema_priority_class, api_schema_runtime_class, api_schema_list, api_schema_object_meta,
    api_schema_cluster_meta; /* schema_object.c */
extern const struct api_schema api_schema_deployment, api_schema_replica_set, api_schema_stateful_set,
    api_schema_daemon_set, api_schema_pod_template; /* schema_workload.c */
extern const struct api_schema api_schema_job, api_schema_job_spec, api_schema_job_template,
    api_schema_cron_job; /* schema_job.c */
extern const struct api_schema api_schema_claim, api_schema_claim_spec,
    api_schema_claim_template; /* schema_claim.c */
extern const struct api_schema api_schema_shown, api_schema_shown_cluster, api_schema_service_account,
    api_schema_endpoints, api_schema_role, api_schema_role_binding, api_schema_cluster_role,
    api_schema_cluster_role_binding, api_schema_storage_class, api_schema_csi_driver,
    api_schema_controller_revision;                 /* schema_shown.c */
extern const struct api_schema api_schema_pod_spec; /* schema_pod.c */
extern const struct api_schema api_schema_container, api_schema_ephemeral_container,
    api_schema_resources; /* schema_container.c */
extern const struct api_schema api_schema_field_ref, api_schema_resource_field_ref;
extern const struct api_schema api_schema_probe, api_schema_lifecycle; /* schema_probe.c */
extern const struct api_schema api_schema_volume;                      /* schema_volume.c */
extern const struct api_schema api_schema_nfs, api_schema_iscsi, api_schema_fc, api_schema_flex,
    api_schema_persistent_volume;                                            /* schema_storage.c */
extern const struct api_schema api_schema_security, api_schema_pod_security; /* schema_security.c */
extern const struct api_schema api_schema_affinity, api_schema_toleration, api_schema_topology_spread,
    api_schema_scheduling_gate, api_schema_scheduling_group, api_schema_label_selector,
    api_schema_node_selector, api_schema_node_term; /* schema_scheduling.c */
extern const struct api_value api_values_pull_policy[], api_values_restart_policy[], api_values_host_path[],
    api_values_access_modes[];
#endif
