/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel is short of memory for a moment: connections wait, and nothing on them ends. */
#include "pair.h"

#include <errno.h>
#include <sys/syscall.h>

static int reads_to_fail, writes_to_fail, failed;

/* NOLINTBEGIN: glibc's names and parameters */
ssize_t recv(int fd, void *to, size_t n, int flags)
{
    if (reads_to_fail > 0) {
        reads_to_fail--;
        failed++;
        errno = ENOBUFS;
        return -1;
    }
    return syscall(SYS_recvfrom, fd, to, n, flags, NULL, NULL);
}

ssize_t send(int fd, const void *data, size_t n, int flags)
{
    if (writes_to_fail > 0) {
        writes_to_fail--;
        failed++;
        errno = writes_to_fail % 2 == 0 ? ENOBUFS : ENOMEM;
        return -1;
    }
    return syscall(SYS_sendto, fd, data, n, flags, NULL, 0);
}
/* NOLINTEND */

static int forget(void **state)
{
    (void)state;
    reads_to_fail = writes_to_fail = failed = 0;
    return 0;
}

static void reads_and_writes_that_lack_memory_are_repeated(void **state)
{
    struct asked stream = { 0 }, a = { 0 };
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    ask(&stream, &p, "/test.Pair/Open", "", 0, true);
    AWAIT(&p, p.stream != NULL);
    for (int i = 0; i < 4; i++) {
        reads_to_fail = i % 2 == 0 ? 3 : 0;
        writes_to_fail = i > 0 ? 3 : 0;
        ask(&a, &p, "/test.Pair/Echo", "hello", 10000, false);
        await(&p, &a);
        assert_string_equal(a.result.text, "");
        assert_string_equal(a.response.p, "hello");
        buf_done(&a.response);
    }
    assert_int_equal(failed, 3 + 3 + 6 + 3);
    assert_true(grpc_send(p.stream, bytes_of("one")));
    AWAIT(&p, stream.messages == 1);
    assert_false(stream.ended);
    grpc_end(p.stream, NULL);
    await(&p, &stream);
    buf_done(&stream.response);
    pair_done(&p);
}

static void a_connection_that_waits_for_memory_can_be_closed(void **state)
{
    struct asked a = { 0 };
    struct pair p;

    (void)state;
    pair_make(&p);
    pair_serve(&p, NULL);
    pair_connect(&p, NULL);
    ask(&a, &p, "/test.Pair/Hold", "", 0, false);
    AWAIT(&p, p.held != NULL);
    reads_to_fail = writes_to_fail = 1000;
    grpc_fail(p.held, &(struct err){ .code = ERR_INTERNAL, .text = "no" });
    AWAIT(&p, failed > 2);
    grpc_channel_close(take_ptr(&p.channel));
    grpc_server_close(take_ptr(&p.server));
    await(&p, &a);
    assert_int_not_equal(a.result.code, ERR_OK);
    buf_done(&a.response);
    pair_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reads_and_writes_that_lack_memory_are_repeated, forget),
        cmocka_unit_test_setup(a_connection_that_waits_for_memory_can_be_closed, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
