/* SPDX-License-Identifier: Apache-2.0 */
/* A request for a document or in a form: the first line is the path, the second the Accept header, the third
 * the query, the fourth If-None-Match. */
#include "agent/api/serve/serve.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_document(const char *const lines[4])
{
    const struct api_document_request ask = { .path = lines[0],
                                              .accept = lines[1],
                                              .query = lines[2],
                                              .if_none_match = lines[3],
                                              .server = "127.0.0.1:6443" };
    struct api_document d;
    struct err e = { 0 };

    if (strncmp(ask.path, "/openapi/v3", 11) == 0 && strlen(ask.path) <= 12)
        return; /* the index is all documents: too slow here */
    assert(api_serve_document(&ask, &d, &e) == ERR_OK);
    assert(d.code == 200 || d.code == 301 || d.code == 304 || d.code == 404 || d.code == 406);
    assert(d.code == 404 || api_is_document(ask.path));
    assert(d.n_headers <= API_HEADERS_MAX);
    api_document_done(&d);
}

static void ask_form(const char *const lines[4])
{
    json_t *object = json_pack("{s:{s:s}}", "metadata", "name", "a"), *status = NULL, *shown;
    struct api_form_options options = { 0 };
    struct api_target t;
    struct api_accept a;

    if (api_target_parse(lines[0], &t)) {
        assert(t.kind != NULL && (t.sub == NULL || t.name[0] != '\0'));
        if (api_accept_read(lines[1], &a, &status) && api_include_read(lines[2], &options.include, &status)) {
            options.form = a.form;
            shown = api_form_of(t.kind, object, &options, &status);
            assert((shown != NULL) != (status != NULL));
            json_decref(shown);
        } else {
            assert(status != NULL);
        }
        json_decref(status);
    }
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest = text;
    const char *lines[4] = { "", "", "", "" };

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < 4 && rest != NULL; i++)
        lines[i] = strsep(&rest, "\n");
    ask_document(lines);
    ask_form(lines);
    free(text);
    return 0;
}
