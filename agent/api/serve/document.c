/* SPDX-License-Identifier: Apache-2.0 */
/* The documents by their paths, with the headers that kube-apiserver gives them. */
#include "agent/api/serve/internal.h"

#include "base/codec/json.h"

#include <sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGGREGATED_TYPE(version)                                                                             \
    "application/json;g=apidiscovery.k8s.io;v=" version ";as=APIGroupDiscoveryList"

#define OPENAPI_PROTO_TYPE "com.github.proto-openapi.spec.v2.v1.0+protobuf"

enum { OPENAPI_MAX = 8 * 1024 * 1024 }; /* bytes; far above what it is */
enum place {
    PLACE_NONE,
    PLACE_API,
    PLACE_APIS,
    PLACE_CORE,
    PLACE_GROUP,
    PLACE_RESOURCES,
    PLACE_VERSION,
    PLACE_OPENAPI_INDEX,
    PLACE_OPENAPI_V3,
    PLACE_OPENAPI_V2
};

static const struct api_group core_group = { "", "v1" };

void api_document_done(struct api_document *d)
{
    free(d->body);
    *d = (struct api_document){ 0 };
}

void api_document_header(struct api_document *d, const char *name, const char *fmt, ...)
{
    va_list ap;

    d->headers[d->n_headers].name = name;
    va_start(ap, fmt);
    vsnprintf(d->headers[d->n_headers].value, sizeof(d->headers[0].value), fmt, ap);
    va_end(ap);
    d->n_headers++;
}

void api_document_etag(const void *data, size_t size, char ret[API_ETAG_SIZE])
{
    uint8_t sum[SHA256_DIGEST_LENGTH];
    SHA2_CTX ctx;

    SHA256Init(&ctx);
    SHA256Update(&ctx, data, size);
    SHA256Final(sum, &ctx);
    for (size_t i = 0; i < (API_ETAG_SIZE - 1) / 2; i++)
        snprintf(ret + 2 * i, 3, "%02X", sum[i]);
}

bool api_etag_matches(const char *header, const char *etag)
{
    char quoted[API_ETAG_SIZE + 2];

    snprintf(quoted, sizeof(quoted), "\"%s\"", etag);
    return header != NULL && (strcmp(header, "*") == 0 || strstr(header, quoted) != NULL);
}

/* Takes `value`. */
static enum err_code set_json(struct api_document *d, json_t *value, struct err *e)
{
    d->body = value == NULL ? NULL : json_text(value);
    json_decref(value);
    if (d->body == NULL)
        return err_nomem(e);
    d->size = strlen(d->body);
    return ERR_OK;
}

static enum err_code plain(struct api_document *d, int code, json_t *value, struct err *e)
{
    d->code = code;
    api_document_header(d, "Cache-Control", "no-cache, private");
    api_document_header(d, "Content-Type", "application/json");
    return set_json(d, value, e);
}

static enum err_code aggregated(const struct api_document_request *ask, struct api_document *d, bool core,
                                bool beta, struct err *e)
{
    char etag[API_ETAG_SIZE];

    if (set_json(d, api_discovery_aggregated(core, beta), e) != ERR_OK)
        return e->code;
    api_document_etag(d->body, d->size, etag);
    d->code = api_etag_matches(ask->if_none_match, etag) ? 304 : 200;
    if (d->code == 304) {
        free(d->body);
        d->body = NULL;
        d->size = 0;
    } else {
        api_document_header(d, "Content-Type", "%s",
                            beta ? AGGREGATED_TYPE("v2beta1") : AGGREGATED_TYPE("v2"));
    }
    api_document_header(d, "Cache-Control", "public");
    api_document_header(d, "Etag", "\"%s\"", etag);
    api_document_header(d, "Vary", "Accept");
    return ERR_OK;
}

/* Whether the aggregated form comes first in what the client wants. */
static bool wants_aggregated(const char *accept, bool *ret_beta)
{
    struct api_clause clauses[API_CLAUSES_MAX];
    const size_t n = accept == NULL ? 0 : api_accept_parse(accept, clauses);

    for (size_t i = 0; i < n; i++) {
        const struct api_clause *c = &clauses[i];
        if (!api_clause_is(c, "application", "json"))
            continue;
        *ret_beta = api_clause_wants(c, "apidiscovery.k8s.io", "v2beta1", "APIGroupDiscoveryList");
        if (*ret_beta || api_clause_wants(c, "apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"))
            return true;
        if (c->as.n == 0)
            return false;
    }
    return false;
}

static enum err_code discovery(const struct api_document_request *ask, struct api_document *d, json_t *value,
                               struct err *e)
{
    struct api_accept form;
    json_t *status;

    if (api_accept_read(ask->accept, &form, &status))
        return plain(d, 200, value, e);
    json_decref(value);
    return plain(d, 406, status, e);
}

static const struct api_group *find_group(const char *name, size_t n)
{
    for (const struct api_group *g = api_groups; g->name != NULL; g++) {
        if (strlen(g->name) == n && strncmp(g->name, name, n) == 0)
            return g;
    }
    return NULL;
}

/* ---- OpenAPI ---- */

static enum err_code openapi_v3_text(const struct api_group *group, struct api_document *d, struct err *e)
{
    return set_json(d, api_openapi_v3(group->name, group->version), e);
}

/* The paths of the index: "api/v1", "apis/apps/v1". */
static void index_path(const struct api_group *group, char ret[120])
{
    snprintf(ret, 120, "api%s%s/%s", group->name[0] == '\0' ? "" : "s/", group->name, group->version);
}

static bool has_kinds(const struct api_group *group)
{
    return api_kind_first(group->name, group->version) != NULL;
}

static enum err_code add_to_index(json_t **paths, const struct api_group *group, struct err *e)
{
    struct api_document d = { 0 };
    char etag[API_ETAG_SIZE], path[120], url[240];

    if (openapi_v3_text(group, &d, e) != ERR_OK)
        return e->code;
    api_document_etag(d.body, d.size, etag);
    api_document_done(&d);
    index_path(group, path);
    snprintf(url, sizeof(url), "/openapi/v3/%s?hash=%s", path, etag);
    api_put(paths, path, json_pack("{s:s}", "serverRelativeURL", url));
    return ERR_OK;
}

static enum err_code openapi_index(struct api_document *d, struct err *e)
{
    json_t *paths = json_object();

    if (add_to_index(&paths, &core_group, e) != ERR_OK) {
        json_decref(paths);
        return e->code;
    }
    for (const struct api_group *g = api_groups; g->name != NULL; g++) {
        if (has_kinds(g) && add_to_index(&paths, g, e) != ERR_OK) {
            json_decref(paths);
            return e->code;
        }
    }
    d->code = 200;
    api_document_header(d, "Cache-Control", "no-cache, private");
    api_document_header(d, "Content-Type", "text/plain; charset=utf-8"); /* JSON, but so it is called there */
    return set_json(d, json_pack("{s:o}", "paths", paths), e);
}

/* The value of `hash` in the query; "": none. */
static void hash_of_query(const char *query, char ret[API_ETAG_SIZE])
{
    const char *at = query == NULL ? NULL : strstr(query, "hash=");

    snprintf(ret, API_ETAG_SIZE, "%.*s", at == NULL ? 0 : (int)strcspn(at + 5, "&"),
             at == NULL ? "" : at + 5);
}

static void empty_body(struct api_document *d)
{
    free(d->body);
    d->body = NULL;
    d->size = 0;
}

/* With its hash in the URL a document may be kept for ever; with another one the client is sent to the new
 * one. */
static enum err_code openapi_v3(const struct api_document_request *ask, const struct api_group *group,
                                struct api_document *d, struct err *e)
{
    char etag[API_ETAG_SIZE], hash[API_ETAG_SIZE], path[120];

    if (openapi_v3_text(group, d, e) != ERR_OK)
        return e->code;
    api_document_etag(d->body, d->size, etag);
    hash_of_query(ask->query, hash);
    d->code = 200;
    if (hash[0] != '\0' && strcmp(hash, etag) != 0) {
        index_path(group, path);
        api_document_header(d, "Location", "/openapi/v3/%s?hash=%s", path, etag);
        d->code = 301;
    } else if (api_etag_matches(ask->if_none_match, etag)) {
        d->code = 304;
    }
    if (d->code != 200)
        empty_body(d);
    api_document_header(d, "Cache-Control", "%s",
                        d->code == 200 && hash[0] != '\0' ? "public, immutable" : "no-cache, private");
    api_document_header(d, "Content-Type", "application/json");
    api_document_header(d, "Etag", "\"%s\"", etag);
    api_document_header(d, "Vary", "Accept");
    return ERR_OK;
}

enum openapi_form { OPENAPI_NONE, OPENAPI_JSON, OPENAPI_PROTO };

/* The two spellings of the type differ in one character: with an @ it is no token of RFC 7231. */
static enum openapi_form openapi_form(const char *accept, bool v2)
{
    struct api_clause clauses[API_CLAUSES_MAX];
    const size_t n = accept == NULL || accept[0] == '\0' ? 0 : api_accept_parse(accept, clauses);

    if (accept == NULL || accept[0] == '\0')
        return OPENAPI_JSON;
    for (size_t i = 0; i < n; i++) {
        if (api_clause_is(&clauses[i], "application", "json"))
            return OPENAPI_JSON;
        if (v2 &&
            (api_clause_is(&clauses[i], "application", "com.github.proto-openapi.spec.v2@v1.0+protobuf") ||
             api_clause_is(&clauses[i], "application", OPENAPI_PROTO_TYPE)))
            return OPENAPI_PROTO;
    }
    return OPENAPI_NONE;
}

static enum err_code openapi_v2(const struct api_document_request *ask, enum openapi_form form,
                                struct api_document *d, struct err *e)
{
    buf_auto text = BUF_INIT(OPENAPI_MAX);
    char etag[API_ETAG_SIZE];
    json_t *document = api_openapi_v2();

    if (document == NULL)
        return err_nomem(e);
    if (form == OPENAPI_PROTO)
        api_openapi_v2_proto(document, &text);
    else
        json_add_text(&text, document, false, 0);
    json_decref(document);
    if (buf_check(&text, e) != ERR_OK)
        return e->code;
    api_document_etag(text.p, text.n, etag);
    d->code = api_etag_matches(ask->if_none_match, etag) ? 304 : 200;
    if (d->code == 200) {
        d->size = text.n;
        d->body = buf_detach(&text);
        if (d->body == NULL)
            return err_nomem(e);
    }
    api_document_header(d, "Cache-Control", "no-cache, private");
    api_document_header(d, "Content-Type", "application/%s",
                        form == OPENAPI_PROTO ? OPENAPI_PROTO_TYPE : "json");
    api_document_header(d, "Etag", "\"%s\"", etag);
    api_document_header(d, "Vary", "Accept");
    return ERR_OK;
}

static enum err_code openapi(const struct api_document_request *ask, enum place place,
                             const struct api_group *group, struct api_document *d, struct err *e)
{
    const enum openapi_form form = openapi_form(ask->accept, place == PLACE_OPENAPI_V2);

    if (form == OPENAPI_NONE) {
        d->code = 406;
        return ERR_OK;
    }
    if (place == PLACE_OPENAPI_V2)
        return openapi_v2(ask, form, d, e);
    return place == PLACE_OPENAPI_INDEX ? openapi_index(d, e) : openapi_v3(ask, group, d, e);
}

/* ---- paths ---- */

/* "apps" or "apps/v1", below /apis/. NULL: no such group; *ret_version NULL: of the group alone. */
static const struct api_group *parse_group(const char *rest, const char **ret_version)
{
    const size_t n = strcspn(rest, "/");
    const struct api_group *g = find_group(rest, n);

    *ret_version = rest[n] == '/' && rest[n + 1] != '\0' ? rest + n + 1 : NULL;
    return g == NULL || (*ret_version != NULL && strcmp(*ret_version, g->version) != 0) ? NULL : g;
}

static enum place place_of(const char *path, const struct api_group **ret_group)
{
    char clean[120];
    const char *version;
    size_t n = strlen(path);

    *ret_group = NULL;
    if (n >= sizeof(clean))
        return PLACE_NONE;
    memcpy(clean, path, n + 1);
    if (n > 1 && clean[n - 1] == '/')
        clean[n - 1] = '\0';
    if (strcmp(clean, "/api") == 0)
        return PLACE_API;
    if (strcmp(clean, "/apis") == 0)
        return PLACE_APIS;
    if (strcmp(clean, "/api/v1") == 0)
        return PLACE_CORE;
    if (strcmp(clean, "/version") == 0)
        return PLACE_VERSION;
    if (strcmp(clean, "/openapi/v2") == 0)
        return PLACE_OPENAPI_V2;
    if (strcmp(clean, "/openapi/v3") == 0)
        return PLACE_OPENAPI_INDEX;
    *ret_group = &core_group;
    if (strcmp(clean, "/openapi/v3/api/v1") == 0)
        return PLACE_OPENAPI_V3;
    if (strncmp(clean, "/openapi/v3/apis/", 17) == 0) {
        *ret_group = parse_group(clean + 17, &version);
        return *ret_group == NULL || version == NULL || !has_kinds(*ret_group) ? PLACE_NONE
                                                                               : PLACE_OPENAPI_V3;
    }
    if (strncmp(clean, "/apis/", 6) != 0)
        return PLACE_NONE;
    *ret_group = parse_group(clean + 6, &version);
    return *ret_group == NULL ? PLACE_NONE : version == NULL ? PLACE_GROUP : PLACE_RESOURCES;
}

bool api_is_document(const char *path)
{
    const struct api_group *group;

    return place_of(path, &group) != PLACE_NONE;
}

enum err_code api_serve_document(const struct api_document_request *ask, struct api_document *ret,
                                 struct err *e)
{
    const struct api_group *group;
    const enum place place = place_of(ask->path, &group);
    bool beta;

    *ret = (struct api_document){ 0 };
    switch (place) {
    case PLACE_API:
        return wants_aggregated(ask->accept, &beta)
                   ? aggregated(ask, ret, true, beta, e)
                   : discovery(ask, ret, api_discovery_versions(ask->server), e);
    case PLACE_APIS:
        return wants_aggregated(ask->accept, &beta) ? aggregated(ask, ret, false, beta, e)
                                                    : discovery(ask, ret, api_discovery_groups(), e);
    case PLACE_CORE:
        return discovery(ask, ret, api_discovery_resources("", "v1"), e);
    case PLACE_GROUP:
        return discovery(ask, ret, api_discovery_group(group), e);
    case PLACE_RESOURCES:
        return discovery(ask, ret, api_discovery_resources(group->name, group->version), e);
    case PLACE_VERSION:
        return plain(ret, 200, api_discovery_version(), e);
    case PLACE_OPENAPI_INDEX:
    case PLACE_OPENAPI_V3:
    case PLACE_OPENAPI_V2:
        return openapi(ask, place, group, ret, e);
    case PLACE_NONE:
        break;
    }
    return plain(ret, 404,
                 api_status_failure(404, "NotFound", "the server could not find the requested resource"), e);
}
