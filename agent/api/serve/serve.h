/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve - documents that describe the API (kinds, discovery, OpenAPI), and alternative representations of
 * objects (Table, metadata only). Pure functions from JSON to JSON: no files, no loop, any thread. Results
 * belong to the caller; nothing is cached. The formats are those of kube-apiserver 1.36.
 */
#ifndef AGENT_API_SERVE_SERVE_H
#define AGENT_API_SERVE_SERVE_H
#include "agent/api/schema/kinds.h"
#include "base/error.h"
#include "base/scope.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- kinds.c ---- */

enum api_verb {
    API_VERB_CREATE = 1 << 0,
    API_VERB_DELETE = 1 << 1,
    API_VERB_DELETECOLLECTION = 1 << 2,
    API_VERB_GET = 1 << 3,
    API_VERB_LIST = 1 << 4,
    API_VERB_PATCH = 1 << 5,
    API_VERB_UPDATE = 1 << 6,
    API_VERB_WATCH = 1 << 7,
};
#define API_VERBS_READ (API_VERB_GET | API_VERB_LIST | API_VERB_WATCH)
#define API_VERBS_EDIT (API_VERB_GET | API_VERB_PATCH | API_VERB_UPDATE) /* of a subresource */
#define API_VERBS_ALL                                                                                        \
    (API_VERBS_READ | API_VERB_CREATE | API_VERB_DELETE | API_VERB_DELETECOLLECTION | API_VERB_PATCH |       \
     API_VERB_UPDATE)

struct api_subresource {
    const char *name;            /* "log" */
    const char *kind;            /* of what is sent or answered: "Pod", "Scale" */
    const char *group, *version; /* of that kind; NULL: those of the resource */
    unsigned verbs;
};

/* What the server does with a kind. */
struct api_service {
    unsigned verbs;                             /* enum api_verb */
    const struct api_subresource *subresources; /* by name, terminated by a NULL name; NULL: none */
};

const struct api_service *api_service_of(const struct api_kind_row *kind);
const struct api_subresource *api_subresource_find(const struct api_kind_row *kind, const char *name);

/* ---- target.c ---- */

/* What the path of a request names. */
struct api_target {
    const struct api_kind_row *kind;
    const struct api_subresource *sub; /* NULL: the object itself, or a collection */
    char namespace[64];                /* "": none is given (all, or the kind has none) */
    char name[254];                    /* "": the collection */
};

/*
 * "/api/v1/namespaces/a/pods/b/log", "/apis/apps/v1/deployments": %XX is decoded, a slash at the end is
 * ignored. False: the path names no resource that is served here (404). Without a query.
 */
bool api_target_parse(const char *path, struct api_target *ret);

/* ---- document.c: the documents below /api, /apis, /openapi and /version ---- */

#define API_HEADERS_MAX 6
struct api_header {
    const char *name; /* constant */
    char value[160];
};

struct api_document {
    int code;   /* 200, 301, 304, 404, 406 */
    char *body; /* malloc'ed; NULL: none */
    size_t size;
    struct api_header
        headers[API_HEADERS_MAX]; /* Content-Type and the like; an ETag only with 200, 301 and 304 */
    size_t n_headers;
};

struct api_document_request {
    const char *path;          /* without the query */
    const char *query;         /* NULL or "": none; only `hash` of /openapi/v3 is read */
    const char *accept;        /* the header; NULL or "": none */
    const char *if_none_match; /* the header; NULL: none */
    const char *server;        /* "127.0.0.1:6443": the address named by /api */
};

/* Whether the path is one of a document (and not of an object): those of api_serve_document(). */
bool api_is_document(const char *path);

/*
 * The answer to GET; the caller owns it, api_document_done(). 404 and 406 are answers, too. ERR_EXHAUSTED:
 * out of memory. Discovery is up to 20 KiB.
 */
enum err_code api_serve_document(const struct api_document_request *ask, struct api_document *ret,
                                 struct err *e) MUST_CHECK;
void api_document_done(struct api_document *d); /* frees; d is empty again */

/* ---- accept.c: the Accept header of a request for an object ---- */

enum api_form { API_FORM_OBJECT, API_FORM_TABLE, API_FORM_METADATA, API_FORM_METADATA_LIST };

struct api_accept {
    bool yaml;   /* otherwise JSON; protobuf and CBOR are not spoken */
    bool pretty; /* indented */
    enum api_form form;
    bool beta; /* the form in meta.k8s.io/v1beta1 instead of v1 */
};

/*
 * The best form that the header accepts: by q, then by specificity. NULL and "" mean JSON.
 * False: *ret_status is the Status to return (406), NULL if out of memory.
 */
bool api_accept_read(const char *header, struct api_accept *ret, json_t **ret_status) MUST_CHECK;

/* ---- table.c: the forms of objects ---- */

enum api_include { API_INCLUDE_METADATA, API_INCLUDE_OBJECT, API_INCLUDE_NONE };

/* The query's includeObject (decoded; NULL or "": the metadata). False: *ret_status lists the allowed values
 * (400), NULL if out of memory. */
bool api_include_read(const char *text, enum api_include *ret, json_t **ret_status) MUST_CHECK;

/*
 * An object, or a list of objects (with `items`), in the requested form; for API_FORM_OBJECT the value
 * itself, with one more reference. `kind` is the kind of the objects. The columns of a Table are those of
 * kubectl; ages are relative to `now_ns` (clock_wall_ns()). NULL: *ret_status is the Status (406: a list was
 * requested for a single object, or vice versa), or NULL as well if out of memory.
 */
struct api_form_options {
    enum api_form form;
    bool beta;
    enum api_include include;
    bool no_columns; /* of a Table: the later events of a watch have only rows */
    int64_t now_ns;
};
json_t *api_form_of(const struct api_kind_row *kind, const json_t *value,
                    const struct api_form_options *options, json_t **ret_status) MUST_CHECK;

/* READY, STATUS and RESTARTS of a pod. */
struct api_pod_summary {
    char ready[32], status[256], restarts[64];
};
void api_pod_summary(const json_t *pod, int64_t now_ns, struct api_pod_summary *ret);
bool api_is_sidecar(const json_t *container); /* an init container that keeps running */

/* ---- metrics.c ---- */

/*
 * metrics.k8s.io from the node's summary (/stats/summary): a list, or the one that the target names.
 * `labels`: of the Pods or Nodes, by "namespace/name" ("/name" of a Node); NULL: none. Pods with a container
 * that is not measured yet are left out. NULL: *ret_status is the Status (404), NULL if memory is out.
 */
json_t *api_metrics_of(const struct api_target *target, const json_t *summary, const json_t *labels,
                       json_t **ret_status) MUST_CHECK;

/* ---- review.c ---- */

struct api_reviewed_user {
    const char *name;
    const char *const *groups; /* terminated by NULL */
};
/* The answer to a SelfSubjectReview, SelfSubjectAccessReview or SelfSubjectRulesReview of a user that may do
 * everything. `now`: RFC 3339. NULL: out of memory. */
json_t *api_review_of(const struct api_kind_row *kind, const json_t *body,
                      const struct api_reviewed_user *user, const char *now) MUST_CHECK;
#endif
