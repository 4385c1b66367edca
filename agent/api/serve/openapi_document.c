/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to requests for OpenAPI: the index, a group's document with its hash, version 2 in both forms. */
#include "agent/api/serve/internal.h"

#include "base/codec/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPENAPI_PROTO_TYPE "com.github.proto-openapi.spec.v2.v1.0+protobuf"

enum { OPENAPI_MAX = 8 * 1024 * 1024 }; /* bytes; far above the actual size */
static enum err_code openapi_v3_text(const struct api_group *group, struct api_document *d, struct err *e)
{
    return api_document_json(d, api_openapi_v3(group->name, group->version), e);
}

/* The paths of the index: "api/v1", "apis/apps/v1". */
static void index_path(const struct api_group *group, char ret[120])
{
    snprintf(ret, 120, "api%s%s/%s", group->name[0] == '\0' ? "" : "s/", group->name, group->version);
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

    if (add_to_index(&paths, &api_group_core, e) != ERR_OK) {
        json_decref(paths);
        return e->code;
    }
    for (const struct api_group *g = api_groups; g->name != NULL; g++) {
        if (add_to_index(&paths, g, e) != ERR_OK) {
            json_decref(paths);
            return e->code;
        }
    }
    d->code = 200;
    api_document_header(d, "Cache-Control", "no-cache, private");
    api_document_header(d, "Content-Type", "text/plain; charset=utf-8"); /* JSON, but so it is called there */
    return api_document_json(d, json_pack("{s:o}", "paths", paths), e);
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

enum err_code api_openapi_answer(const struct api_document_request *ask, enum api_openapi_what what,
                                 const struct api_group *group, struct api_document *d, struct err *e)
{
    const enum openapi_form form = openapi_form(ask->accept, what == API_OPENAPI_V2);

    if (form == OPENAPI_NONE) {
        d->code = 406;
        return ERR_OK;
    }
    if (what == API_OPENAPI_V2)
        return openapi_v2(ask, form, d, e);
    return what == API_OPENAPI_INDEX ? openapi_index(d, e) : openapi_v3(ask, group, d, e);
}
