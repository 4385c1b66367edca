/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a client that nghttp2 lets say anything: which ones a server's session takes. */
#include "../helper.h"

#include "base/grpc/session.h"
#include "base/scope.h"

#include <nghttp2/nghttp2.h>

struct wild { /* a client without rules, and what became of its request */
    nghttp2_session *client;
    struct grpc_session *server;
    uint32_t reset; /* RST_STREAM's code */
    bool was_reset, answered;
    unsigned begun, ended;
    char path[64];
    char metadata[64];
};

static void on_begin(struct grpc_stream *st, void *arg)
{
    struct wild *w = arg;
    size_t n;
    const struct grpc_metadata *m = grpc_stream_metadata(st, &n);

    w->begun++;
    snprintf(w->path, sizeof(w->path), "%s", grpc_stream_path(st));
    for (size_t i = 0; i < n; i++)
        if (strcmp(m[i].name, "x-a") == 0)
            snprintf(w->metadata, sizeof(w->metadata), "%s", m[i].value);
}

static void on_message(struct grpc_stream *st, struct grpc_bytes message, void *arg)
{
    static const struct grpc_status fine = { .code = ERR_OK };

    (void)message;
    (void)arg;
    grpc_stream_finish(st, &fine);
}

static void on_call_ended(struct grpc_stream *st, const struct grpc_status *status, bool unseen, void *arg)
{
    (void)st;
    (void)status;
    (void)unseen;
    ((struct wild *)arg)->ended++;
}

static const struct grpc_session_events events = { .begin = on_begin,
                                                   .message = on_message,
                                                   .ended = on_call_ended };

static int got_frame(nghttp2_session *http, const nghttp2_frame *frame, void *arg)
{
    struct wild *w = arg;

    (void)http;
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        w->was_reset = true;
        w->reset = frame->rst_stream.error_code;
    }
    w->answered = w->answered || frame->hd.type == NGHTTP2_HEADERS;
    return 0;
}

static void open_wild(struct wild *w)
{
    struct grpc_session_options o = {
        .server = true, .message_max = 1000, .queue_max = 1000, .max_streams = 10, .on = &events, .arg = w
    };
    nghttp2_session_callbacks *c;
    struct err e = { 0 };

    *w = (struct wild){ .begun = 0 };
    assert_int_equal(grpc_session_new(&w->server, &o, &e), ERR_OK);
    assert_int_equal(nghttp2_session_callbacks_new(&c), 0);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, got_frame);
    assert_int_equal(nghttp2_session_client_new(&w->client, c, w), 0);
    nghttp2_session_callbacks_del(c);
    assert_int_equal(nghttp2_submit_settings(w->client, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

static void close_wild(struct wild *w)
{
    assert_int_equal(grpc_session_streams(w->server), 0);
    nghttp2_session_del(w->client);
    grpc_session_free(w->server);
}

static void talk(struct wild *w)
{
    struct err e = { 0 };
    const uint8_t *p;
    bool moved = true;
    ssize_t n;

    while (moved) {
        moved = false;
        for (; (n = nghttp2_session_mem_send(w->client, &p)) > 0; moved = true)
            assert_int_equal(grpc_session_feed(w->server, p, (size_t)n, 1, &e), ERR_OK);
        for (; (n = grpc_session_output(w->server, &p)) > 0; moved = true)
            assert_int_equal(nghttp2_session_mem_recv(w->client, p, (size_t)n), n);
    }
}

struct field {
    const char *name, *value;
    size_t name_n, value_n; /* 0: strlen() */
};

static size_t as_nv(nghttp2_nv *nv, const struct field *f)
{
    size_t n = 0;

    for (; f[n].name != NULL; n++)
        nv[n] = (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)f[n].name,
                              .value = (uint8_t *)(uintptr_t)f[n].value,
                              .namelen = f[n].name_n > 0 ? f[n].name_n : strlen(f[n].name),
                              .valuelen = f[n].value_n > 0 ? f[n].value_n : strlen(f[n].value) };
    return n;
}

static ssize_t read_message(nghttp2_session *http, int32_t id, uint8_t *out, size_t room, uint32_t *flags,
                            nghttp2_data_source *source, void *arg)
{
    (void)http;
    (void)id;
    (void)arg;
    assert_true(room >= 5);
    memset(out, 0, 5); /* an empty message */
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    (void)source;
    return 5;
}

static void ask(struct wild *w, const struct field *fields)
{
    nghttp2_data_provider body = { .read_callback = read_message };
    nghttp2_nv nv[20];
    size_t n = as_nv(nv, fields);

    assert_true(nghttp2_submit_request(w->client, NULL, nv, n, &body, NULL) > 0);
    talk(w);
}

#define ORDINARY                                                                                             \
    { ":method", "POST" }, { ":scheme", "http" },                                                            \
    {                                                                                                        \
        ":path", "/a/b"                                                                                      \
    }
#define GRPC                                                                                                 \
    { "content-type", "application/grpc" },                                                                  \
    {                                                                                                        \
        "te", "trailers"                                                                                     \
    }

static void any_authority_is_taken(void **state)
{
    static const char *const authorities[] = {
        "localhost",
        "/var/lib/kubelet/device-plugins/kubelet.sock",
        "%2Fvar%2Flib%2Fkubelet%2Fdevice-plugins%2Fkubelet.sock",
        "unix:///var/lib/kubelet/pod-resources/kubelet.sock",
        "a b",
        "[",
        "",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(authorities); i++) {
        const struct field fields[] = {
            ORDINARY, { ":authority", authorities[i] }, GRPC, { "x-a", "b" }, { NULL }
        };
        struct wild w;
        open_wild(&w);
        ask(&w, fields);
        assert_true(w.answered);
        assert_int_equal(w.begun, 1);
        assert_string_equal(w.path, "/a/b");
        assert_string_equal(w.metadata, "b");
        close_wild(&w);
    }
}

static void none_is_needed(void **state)
{
    static const struct field fields[] = { ORDINARY, GRPC, { NULL } };
    struct wild w;

    (void)state;
    open_wild(&w);
    ask(&w, fields);
    assert_true(w.answered);
    close_wild(&w);
}

static void malformed_requests_are_reset(void **state)
{
    static const struct field requests[][9] = {
        { { ":method", "POST" }, { ":path", "/a/b" }, GRPC, { NULL } },
        { { ":method", "POST" }, { ":scheme", "http" }, GRPC, { NULL } },
        { { ":scheme", "http" }, { ":path", "/a/b" }, GRPC, { NULL } },
        { { ":method", "POST" }, { ":scheme", "http" }, { ":path", "" }, GRPC, { NULL } },
        { { ":method", "POST" }, { ":scheme", "http" }, { ":path", "/a b" }, GRPC, { NULL } },
        { { ":method", "POST" }, { ":scheme", "http" }, { ":path", "/a/b\0c", 0, 6 }, GRPC, { NULL } },
        { ORDINARY, { ":path", "/c/d" }, GRPC, { NULL } },
        { ORDINARY, { ":status", "200" }, GRPC, { NULL } },
        { ORDINARY, { ":odd", "x" }, GRPC, { NULL } },
        { ORDINARY, GRPC, { ":authority", "localhost" }, { NULL } },
        { ORDINARY, { ":authority", "local\nhost" }, GRPC, { NULL } },
        { ORDINARY, { ":authority", "a" }, { ":authority", "a" }, GRPC, { NULL } },
        { ORDINARY, GRPC, { "x a", "b" }, { NULL } },
        { ORDINARY, GRPC, { "x-a", "b\0c", 0, 3 }, { NULL } },
        { ORDINARY, GRPC, { "x-a\0b", "c", 5 }, { NULL } },
        { ORDINARY, GRPC, { "x-a", "b\r\nc" }, { NULL } },
        { ORDINARY, GRPC, { "connection", "close" }, { NULL } },
        { ORDINARY, GRPC, { "transfer-encoding", "chunked" }, { NULL } },
    };
    static const struct field good[] = { ORDINARY, GRPC, { NULL } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct wild w;
        open_wild(&w);
        ask(&w, requests[i]);
        if (!w.was_reset || w.reset != NGHTTP2_PROTOCOL_ERROR || w.answered || w.begun != 0)
            fail_msg("request %zu: reset %d with %u, answered %d, begun %u", i, w.was_reset, w.reset,
                     w.answered, w.begun);
        ask(&w, good); /* the connection goes on */
        assert_true(w.answered);
        close_wild(&w);
    }
}

static const struct field trailer[] = { { "x-t", "1" }, { NULL } };
static const struct field pseudo_trailer[] = { { ":path", "/c/d" }, { NULL } };

/* Headers, then a block of trailers before any message. */
static void ask_with_trailer(struct wild *w, const struct field *fields, uint8_t flags)
{
    static const struct field first[] = { ORDINARY, GRPC, { NULL } };
    nghttp2_nv nv[8];
    int32_t id;

    id = nghttp2_submit_headers(w->client, NGHTTP2_FLAG_NONE, -1, NULL, nv, as_nv(nv, first), NULL);
    assert_true(id > 0);
    talk(w);
    assert_int_equal(w->begun, 1);
    assert_int_equal(nghttp2_submit_headers(w->client, flags, id, NULL, nv, as_nv(nv, fields), NULL), 0);
    talk(w);
}

static void trailers_end_a_request(void **state)
{
    struct wild w;

    (void)state;
    open_wild(&w);
    ask_with_trailer(&w, trailer, NGHTTP2_FLAG_NONE);
    assert_true(w.was_reset);
    assert_int_equal(w.reset, NGHTTP2_PROTOCOL_ERROR);
    assert_int_equal(w.ended, 1);
    close_wild(&w);
    open_wild(&w);
    ask_with_trailer(&w, pseudo_trailer, NGHTTP2_FLAG_END_STREAM);
    assert_true(w.was_reset);
    assert_int_equal(w.ended, 1);
    assert_string_equal(w.path, "/a/b");
    close_wild(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_authority_is_taken),
        cmocka_unit_test(none_is_needed),
        cmocka_unit_test(malformed_requests_are_reset),
        cmocka_unit_test(trailers_end_a_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
