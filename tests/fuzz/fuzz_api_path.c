/* SPDX-License-Identifier: Apache-2.0 */
/* A request line of the local API: its path, and the query of a list, a watch and a selection. */
#include "agent/kube/apiserver/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct http_request *r, const struct api_target *target)
{
    json_t *object = json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:s}}", "metadata", "name", "a", "namespace", "b",
                               "labels", "app", "web", "status", "phase", "Running");
    struct api_selection selection;
    struct api_list_options list;
    struct api_watch_options watch;
    struct err e = { 0 };

    json_decref(api_list_options_read(r, &list));
    json_decref(api_watch_options_read(r, &watch));
    assert(watch.timeout_s <= API_WATCH_MAX_S);
    if (api_selection_read(&selection, r, target, &e) == ERR_OK) {
        assert(selection.n_fields <= API_FIELDS_MAX);
        (void)api_selection_has(&selection, object);
        api_selection_done(&selection);
    } else {
        assert(e.text[0] != '\0');
    }
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 64);
    struct api_target target;
    struct http_parser p;
    size_t n = 0;

    if (text == NULL)
        return 0;
    http_parser_init(&p);
    memcpy(text, "GET ", 4);
    for (n = 4; n - 4 < size && data[n - 4] != '\n' && data[n - 4] != '\r' && data[n - 4] != ' '; n++)
        text[n] = (char)data[n - 4];
    strcpy(text + n, " HTTP/1.1\r\nHost: x\r\n\r\n");
    http_parser_feed(&p, text, strlen(text));
    if (p.state == PARSE_DONE) {
        text[4 + strcspn(text + 4, "? ")] = '\0';
        if (api_target_parse(text + 4, &target))
            ask(&p.request, &target);
    }
    http_parser_done(&p);
    free(text);
    return 0;
}
