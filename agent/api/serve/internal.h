/* SPDX-License-Identifier: Apache-2.0 */
/* internal - shared by the files of this room. */
#ifndef AGENT_API_SERVE_INTERNAL_H
#define AGENT_API_SERVE_INTERNAL_H
#include "agent/api/serve/serve.h"
#include "base/array.h"
#include "base/buf.h"

struct api_group {
    const char *name, *version;
};
/* The groups of /apis, in order; terminated by a NULL name. One may have no kinds of its own. */
extern const struct api_group api_groups[];

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

/* ---- put.c ---- */
/* Takes `value`. If it is NULL (out of memory), or adding fails, the whole is freed and becomes NULL, and
 * what is added later is freed. */
void api_put(json_t **object, const char *name, json_t *value);
void api_append(json_t **list, json_t *value);
#endif
