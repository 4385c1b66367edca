/* SPDX-License-Identifier: Apache-2.0 */
/* internal - shared by the files of this room. */
#ifndef AGENT_API_SERVE_INTERNAL_H
#define AGENT_API_SERVE_INTERNAL_H
#include "agent/api/serve/serve.h"
#include "agent/api/status.h"
#include "base/array.h"
#include "base/buf.h"

struct api_group {
    const char *name, *version;
};
/* The groups of /apis, in order; terminated by a NULL name. */
extern const struct api_group api_groups[], api_group_core;

/* ---- discovery.c: plain and aggregated; NULL: out of memory ---- */
json_t *api_discovery_versions(const char *server);                      /* /api */
json_t *api_discovery_groups(void);                                      /* /apis */
json_t *api_discovery_group(const struct api_group *group);              /* /apis/apps */
json_t *api_discovery_resources(const char *group, const char *version); /* /api/v1, /apis/apps/v1 */
json_t *api_discovery_aggregated(bool core, bool beta);                  /* /api, /apis */
json_t *api_discovery_version(void);                                     /* /version */

/* ---- document.c ---- */
#define API_ETAG_SIZE 65
void api_document_header(struct api_document *d, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
void api_document_etag(const void *data, size_t size, char ret[API_ETAG_SIZE]); /* SHA-256, hexadecimal */
bool api_etag_matches(const char *header, const char *etag);                    /* of If-None-Match */

/* Takes `value` and makes it the body. */
enum err_code api_document_json(struct api_document *d, json_t *value, struct err *e) MUST_CHECK;

/* ---- openapi_document.c ---- */
enum api_openapi_what { API_OPENAPI_INDEX, API_OPENAPI_V3, API_OPENAPI_V2 };
/* `group`: of version 3. */
enum err_code api_openapi_answer(const struct api_document_request *ask, enum api_openapi_what what,
                                 const struct api_group *group, struct api_document *d,
                                 struct err *e) MUST_CHECK;

/* ---- openapi.c; NULL: out of memory ---- */
json_t *api_openapi_v3(const char *group, const char *version);
json_t *api_openapi_v2(void);

/* ---- openapi_schema.c ---- */
struct api_openapi {
    json_t *schemas; /* by their full names; NULL: out of memory */
    bool v2;
};
/* Adds the type, and those that it refers to. `schema` NULL: only what each object has; `kind`: it is this
 * one. */
void api_openapi_define(struct api_openapi *doc, const struct api_schema *schema, const char *name,
                        const struct api_kind_row *kind);
void api_openapi_define_scalars(struct api_openapi *doc);

/* ---- openapi_proto.c ---- */
/* Version 2 as kubectl up to 1.26 reads it: in protobuf (gnostic's OpenAPIv2.proto). */
void api_openapi_v2_proto(const json_t *document, struct buf *out);

/* ---- accept.c ---- */
enum { API_CLAUSES_MAX = 32 }; /* of one header; more are ignored. kubectl sends four */
struct api_clause { /* "type/subtype;q=0.5;as=Table;g=meta.k8s.io;v=v1"; borrowed from the header */
    struct str type, subtype, as, group, version, stream;
    double q;
    bool pretty;
};
/* In the order of preference. */
size_t api_accept_parse(const char *header, struct api_clause ret[API_CLAUSES_MAX]);
bool api_clause_is(const struct api_clause *c, const char *type, const char *subtype); /* or a wildcard */
bool api_clause_wants(const struct api_clause *c, const char *group, const char *version, const char *as);
json_t *api_not_acceptable(void); /* the Status; NULL: out of memory */

/* ---- columns_*.c ---- */
struct api_column {
    const char *name;
    const char *type;  /* "string", "integer", "boolean" */
    int priority;      /* 1: only with -o wide */
    const char *about; /* the description */
};
struct api_columns {
    const char *group, *kind;
    const struct api_column *columns; /* terminated by a NULL name */
    /* Appends a cell for each column; an empty array became NULL: out of memory. */
    void (*cells)(json_t **cells, const json_t *object, int64_t now_ns);
};
extern const struct api_columns api_columns_core[], api_columns_node[], api_columns_work[],
    api_columns_shown[]; /* terminated by a NULL kind */

/* What many columns have in common. */
#define API_COLUMN_NAME                                                                                      \
    {                                                                                                        \
        "Name", "string", 0,                                                                                 \
            "Its name, unique among the objects of its kind (in its namespace, if it has one)."              \
    }
#define API_COLUMN_AGE                                                                                       \
    {                                                                                                        \
        "Age", "string", 0, "The time since the object was created."                                         \
    }

/* ---- cells.c: values as kubectl shows them; members are named by paths ("spec.nodeName") ---- */
const char *api_text_at(const json_t *object, const char *path); /* "" if absent or not a string */
int64_t api_number_at(const json_t *object, const char *path);   /* 0 if absent */
const json_t *api_find(const json_t *list, const char *key,
                       const char *text); /* the element with it; or NULL */
bool api_condition_is(const json_t *object, const char *type, const char *status); /* of status.conditions */

void api_cell(json_t **cells, const char *text);
void api_cell_or(json_t **cells, const char *text, const char *otherwise); /* instead of "" */
void api_cell_number(json_t **cells, int64_t n);
void api_cell_age(json_t **cells, const json_t *object, int64_t now_ns); /* of metadata.creationTimestamp */
void api_cell_since(json_t **cells, const char *when, int64_t now_ns);   /* "<unknown>" */
void api_cell_list(json_t **cells, const json_t *list,
                   const char *key);                            /* "a,b": each element, or its `key` */
void api_cell_pairs(json_t **cells, const json_t *map);         /* "a=1,b=2" or "<none>" */
void api_cell_selector(json_t **cells, const json_t *selector); /* a LabelSelector; or "<none>" */

/* ---- put.c ---- */
/* Takes `value`. If it is NULL (out of memory), or adding fails, the whole is freed and becomes NULL, and
 * later values are freed. */
void api_put(json_t **object, const char *name, json_t *value);
void api_append(json_t **list, json_t *value);
#endif
