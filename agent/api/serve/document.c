/* SPDX-License-Identifier: Apache-2.0 */
/* The documents by their paths, with the same headers as from kube-apiserver. */
#include "agent/api/serve/internal.h"

#include "base/codec/json.h"

#include <sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGGREGATED_TYPE(version)                                                                             \
    "application/json;g=apidiscovery.k8s.io;v=" version ";as=APIGroupDiscoveryList"

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
enum err_code api_document_json(struct api_document *d, json_t *value, struct err *e)
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
    return api_document_json(d, value, e);
}

static enum err_code aggregated(const struct api_document_request *ask, struct api_document *d, bool core,
                                bool beta, struct err *e)
{
    char etag[API_ETAG_SIZE];

    if (api_document_json(d, api_discovery_aggregated(core, beta), e) != ERR_OK)
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

/* Whether the client prefers the aggregated form. */
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
    *ret_group = &api_group_core;
    if (strcmp(clean, "/openapi/v3/api/v1") == 0)
        return PLACE_OPENAPI_V3;
    if (strncmp(clean, "/openapi/v3/apis/", 17) == 0) {
        *ret_group = parse_group(clean + 17, &version);
        return *ret_group == NULL || version == NULL ? PLACE_NONE : PLACE_OPENAPI_V3;
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
        return api_openapi_answer(ask, API_OPENAPI_INDEX, NULL, ret, e);
    case PLACE_OPENAPI_V3:
        return api_openapi_answer(ask, API_OPENAPI_V3, group, ret, e);
    case PLACE_OPENAPI_V2:
        return api_openapi_answer(ask, API_OPENAPI_V2, NULL, ret, e);
    case PLACE_NONE:
        break;
    }
    return plain(ret, 404,
                 api_status(404, "NotFound", NULL, "the server could not find the requested resource"), e);
}
