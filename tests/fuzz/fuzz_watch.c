/* SPDX-License-Identifier: Apache-2.0 */
/* The apiserver's bytes: a watch stream, in one piece and byte by byte; a list; a Status object. */
#include "agent/kube/client/internal.h"
#include "agent/kube/client/reflector.h"
#include "tests/fuzz/text.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OBJECTS_MAX 8

/* ---- a client whose request the target ends ---- */

static uv_loop_t loop;
static struct kube_request *request;
static bool (*request_on_line)(json_t *line, void *owner);

static void fuzz_finish(int http, json_t *answer, const struct err *e)
{
    struct kube_request *r = request;

    request = NULL;
    if (r == NULL) {
        json_decref(answer);
        return;
    }
    r->http = http;
    r->answer = answer;
    op_finish(&r->op, e);
}

static void fuzz_on_abort(struct op *op)
{
    (void)op;
    fuzz_finish(0, NULL, NULL);
}

static void fuzz_on_done(struct op *op, const struct err *result)
{
    struct kube_request *r = (struct kube_request *)((char *)op - offsetof(struct kube_request, op));
    json_t *answer = r->answer;

    r->user_done(op, result);
    json_decref(answer);
}

void kube_request_start(struct kube_request *r, struct kube_client *c, const struct kube_request_spec *spec,
                        op_done_fn done, void *owner)
{
    (void)c;
    *r = (struct kube_request){ .user_done = done };
    op_init(&r->op, &loop, "fuzz", 0, fuzz_on_abort, fuzz_on_done, owner);
    request = r;
    request_on_line = spec->on_line;
}

void kube_request_cancel(struct kube_request *r)
{
    op_cancel(&r->op);
}

/* ---- the reflector ---- */

struct told {
    size_t known, puts, gones;
};

static void on_put(json_t *object, void *arg)
{
    struct told *t = arg;

    assert(json_is_object(object));
    t->puts++;
}

static void on_gone(const char *namespace_, const char *name, const char *uid, void *arg)
{
    struct told *t = arg;

    assert(namespace_ != NULL && *name != '\0' && uid != NULL);
    t->gones++;
    assert(t->gones <= t->puts); /* nothing goes that had not come */
}

static void on_synced(void *arg)
{
    (void)arg;
}

static struct kube_reflector *fuzz_open(struct told *t)
{
    const struct kube_reflector_options o = { .loop = &loop,
                                              .path = "/api/v1/pods",
                                              .subject = "pods",
                                              .objects_max = OBJECTS_MAX,
                                              .on_put = on_put,
                                              .on_gone = on_gone,
                                              .on_synced = on_synced,
                                              .arg = t };
    struct kube_reflector *r = NULL;
    struct err e = { 0 };

    uv_loop_init(&loop);
    return kube_reflector_open(&r, &o, &e) == ERR_OK ? r : NULL;
}

static void fuzz_close(struct kube_reflector *r)
{
    for (int i = 0; i < 4; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    kube_reflector_close(r);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert(uv_loop_close(&loop) == 0 && op_count() == 0);
}

static bool fuzz_on_line(json_t *line, void *arg)
{
    (void)arg;
    return request_on_line(line, request->op.owner);
}

static struct told stream(const uint8_t *data, size_t size, size_t piece)
{
    struct told t = { 0 };
    struct kube_reflector *r = fuzz_open(&t);
    struct kube_lines lines;
    struct err e = { 0 };
    bool ended = false;

    if (r == NULL)
        return t;
    kube_lines_init(&lines, 1 << 16);
    for (size_t at = 0; at < size && !ended && e.code == ERR_OK; at += piece)
        ERR_IGNORE(kube_lines_feed(&lines, (const char *)data + at, size - at < piece ? size - at : piece,
                                   fuzz_on_line, NULL, &ended, &e));
    kube_lines_done(&lines);
    fuzz_finish(200, NULL, e.code != ERR_OK ? &e : NULL);
    fuzz_close(r);
    return t;
}

static void list(const uint8_t *data, size_t size)
{
    struct told t = { 0 };
    struct err invalid = { .code = ERR_INVALID, .text = "no WatchList" }, e = { 0 };
    struct kube_reflector *r = fuzz_open(&t);
    char *text = text_of(data, size);
    json_t *answer = NULL;

    if (r != NULL && text != NULL && kube_parse(text, size, &answer, &e) == ERR_OK) {
        kube_status_err(answer, 0, &e);
        assert(e.code != ERR_OK && e.text[0] != '\0');
        fuzz_finish(422, NULL, &invalid);
        for (int i = 0; i < 4; i++)
            uv_run(&loop, UV_RUN_NOWAIT);
        fuzz_finish(200, answer, NULL);
    }
    free(text);
    if (r != NULL)
        fuzz_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct told whole = stream(data, size, size), pieces = stream(data, size, 1);

    assert(whole.puts == pieces.puts && whole.gones == pieces.gones);
    list(data, size);
    return 0;
}
