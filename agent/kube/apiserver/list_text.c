/* SPDX-License-Identifier: Apache-2.0 */
/* list_text - a long list becomes text in several turns of the loop, so that others are answered between. */
#include "agent/kube/apiserver/internal.h"

#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHORT_MAX = 64, /* objects of a list that is made at once */
    SLICE = 8,      /* objects between two reads of the clock */
    MARK_DIGITS = 32,
};

struct list_text {
    struct caller *caller;
    struct background_client turn;
    struct api_request request;
    struct api_form_options form;
    json_t *list;
    size_t next;
    struct buf text; /* the head and the first objects */
    char *tail;      /* the text after the last one */
};

static void list_text_gone(struct caller *c)
{
    struct list_text *l = c->job;

    background_withdraw(&l->request.api->turns, &l->turn);
    json_decref(l->list);
    buf_done(&l->text);
    str_wipe(l->tail);
    free(l);
}

static const struct caller_source list_text_source = { .gone = list_text_gone };

/* The next objects in the requested form; NULL: *ret_status, or out of memory. */
static json_t *list_text_slice(struct list_text *l, json_t **ret_status)
{
    const json_t *all = json_object_get(l->list, "items");
    json_auto_t *slice = json_copy(l->list);
    json_t *items = json_array();

    for (size_t i = 0; i < SLICE && l->next < json_array_size(all); i++)
        if (json_array_append(items, json_array_get(all, l->next++)) != 0) {
            json_decref(items);
            return NULL;
        }
    if (json_object_set_new(slice, "items", items) != 0)
        return NULL;
    return api_form_of(l->request.target.kind, slice, &l->form, ret_status);
}

/* The text around the objects; `shown`: a slice. False: out of memory. */
static bool list_text_head(struct list_text *l, const json_t *shown, const char *member)
{
    json_auto_t *head = json_copy((json_t *)(uintptr_t)shown);
    char mark[MARK_DIGITS + 1];
    str_auto text = NULL;
    str_auto quoted = NULL;
    const char *at;

    id_random_hex(mark, MARK_DIGITS);
    if (json_object_set_new(head, member, json_string(mark)) != 0 || (text = json_text(head)) == NULL ||
        (quoted = str_printf("\"%s\"", mark)) == NULL || (at = strstr(text, quoted)) == NULL)
        return false;
    buf_add(&l->text, text, (size_t)(at - text));
    buf_addc(&l->text, '[');
    l->tail = str_printf("]%s\n", at + strlen(quoted));
    return l->tail != NULL;
}

/* NULL: it is added; otherwise the Status to answer with. */
static json_t *list_text_add(struct list_text *l)
{
    json_t *status = NULL, *one;
    json_auto_t *shown = list_text_slice(l, &status);
    const char *member = json_object_get(shown, "rows") != NULL ? "rows" : "items";
    bool first = l->tail == NULL;
    size_t i;

    if (shown == NULL || (first && !list_text_head(l, shown, member)))
        return status != NULL ? status : api_status(500, "InternalError", NULL, "out of memory");
    json_array_foreach (json_object_get(shown, member), i, one) {
        if (!first)
            buf_addc(&l->text, ',');
        json_add_text(&l->text, one, false, 0);
        first = false;
    }
    return NULL;
}

static void list_text_end(struct list_text *l, json_t *status)
{
    struct caller *c = l->caller;
    struct buf text = l->text;

    buf_adds(&text, l->tail != NULL ? l->tail : "");
    l->text = (struct buf)BUF_INIT(0);
    c->source = NULL;
    list_text_gone(c);
    if (status == NULL)
        api_answer_text(c, 200, "application/json", &text);
    else
        api_answer_status(c, status);
    buf_wipe(&text);
}

static void list_text_on_turn(struct background_client *t)
{
    struct list_text *l = (struct list_text *)((char *)t - offsetof(struct list_text, turn));
    const uint64_t began = uv_hrtime();
    const size_t n = json_array_size(json_object_get(l->list, "items"));
    json_t *status = NULL;

    while (status == NULL && l->next < n && uv_hrtime() - began < BACKGROUND_PIECE_NS)
        status = list_text_add(l);
    if (status != NULL || l->next == n)
        list_text_end(l, status);
    else
        background_ask(&l->request.api->turns, &l->turn);
}

void api_answer_list(const struct api_request *r, json_t *list)
{
    struct caller *c = r->caller;
    struct list_text *l;

    if (list == NULL || r->accept.yaml || r->accept.pretty ||
        json_array_size(json_object_get(list, "items")) <= SHORT_MAX || (l = calloc(1, sizeof(*l))) == NULL) {
        api_answer_value(r, 200, list);
        return;
    }
    *l = (struct list_text){ .caller = c,
                             .turn = { .run = list_text_on_turn },
                             .request = *r,
                             .form = { .form = r->accept.form,
                                       .beta = r->accept.beta,
                                       .include = r->include,
                                       .now_ns = clock_wall_ns() },
                             .list = list,
                             .text = BUF_SECRET(SIZE_MAX - 1) };
    c->state = CALLER_SERVED;
    c->source = &list_text_source;
    c->job = l;
    background_ask(&r->api->turns, &l->turn);
}
