/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of a client and a server on a socket may fail: calls end, connections close, nothing leaks.
 */
#include "pair.h"

#include "base/grpc/serving.h"

#include "../nomem.h"

/* libuv ends the process when its own tables cannot grow: it keeps its memory. */
static int keep_libuvs_memory(void **state)
{
    (void)state;
#if NOMEM_USABLE
    uv_replace_allocator(__libc_malloc, __libc_realloc, __libc_calloc, __libc_free);
#endif
    return 0;
}

static bool open_both(struct pair *p, struct err *e)
{
    struct grpc_server_options so = { .loop = &p->loop,
                                      .path = p->path,
                                      .mode = 0600,
                                      .methods = pair_methods,
                                      .n_methods = ARRAY_LEN(pair_methods),
                                      .arg = p };
    struct grpc_channel_options co = { .loop = &p->loop, .target = p->target, .once = true };

    if (grpc_server_open(&p->server, &so, e) != ERR_OK)
        return false;
    p->server->rest_ms = 1;
    return grpc_channel_open(&p->channel, &co, e) == ERR_OK;
}

static bool call_path(struct pair *p, const char *path, const struct grpc_bytes request)
{
    static const struct grpc_metadata m = { "x-test-bin", "\1\2\3", 3 };
    static struct asked a;

    ask_options(&a, p,
                (struct grpc_call_options){
                    .path = path, .request = request, .deadline_ms = 300, .metadata = &m, .n_metadata = 1 },
                strcmp(path, "/test.Pair/Count") == 0);
    await(p, &a);
    buf_done(&a.response);
    return a.result.code == ERR_OK;
}

static void calls_end_without_memory(void **state)
{
    static uint8_t large[200000];
    bool ok = false;
    struct pair p;

    (void)state;
    pair_make(&p);
    NOMEM_EACH(ok, {
        struct err e = { 0 };

        ok = open_both(&p, &e) &&
             call_path(&p, "/test.Pair/Echo", (struct grpc_bytes){ large, sizeof(large) }) &&
             call_path(&p, "/test.Pair/Count", bytes_of("5")) &&
             !call_path(&p, "/test.Pair/Fail", bytes_of("details"));
        grpc_channel_close(take_ptr(&p.channel));
        grpc_server_close(take_ptr(&p.server));
        uv_run(&p.loop, UV_RUN_DEFAULT);
    });
    pair_done(&p);
}

int main(void)
{
    const struct CMUnitTest memory[] = { cmocka_unit_test_setup(calls_end_without_memory,
                                                                keep_libuvs_memory) };

    return NOMEM_RUN(memory);
}
