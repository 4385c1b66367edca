/* SPDX-License-Identifier: Apache-2.0 */
/* A container's log: its lines, the reader in pieces of any size, and the tail that is read backwards. */
#include "agent/status/cri_log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_in_pieces(const char *text, size_t size, size_t piece, struct buf *out)
{
    struct cri_log_reader r;

    cri_log_reader_init(&r);
    r.timestamps = size % 2 == 0;
    for (size_t at = 0; at < size; at += piece)
        assert(cri_log_reader_feed(&r, text + at, size - at < piece ? size - at : piece, out));
    cri_log_reader_finish(&r, out);
    cri_log_reader_done(&r);
}

static void check_tail(const char *text, size_t size)
{
    int fd = memfd_create("log", MFD_CLOEXEC);
    uint64_t before = UINT64_MAX;
    struct err e = { 0 };

    assert(fd >= 0 && write(fd, text, size) == (ssize_t)size);
    for (uint64_t lines = 0; lines < 5; lines++) {
        uint64_t at;

        assert(cri_log_tail_offset(fd, lines, &at, &e) == ERR_OK);
        assert(at <= size && at <= before && (at == 0 || text[at - 1] == '\n'));
        before = at;
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = BUF_INIT(SIZE_MAX - 1), pieces = BUF_INIT(SIZE_MAX - 1);
    const char *text = (const char *)data;
    struct cri_log_line line;

    if (cri_log_parse((struct str){ text, size }, &line))
        assert(line.text.p + line.text.n == text + size && line.timestamp.p == text);
    read_in_pieces(text, size, size == 0 ? 1 : size, &whole);
    read_in_pieces(text, size, 7, &pieces);
    assert(whole.n == pieces.n && memcmp(whole.p, pieces.p, whole.n) == 0);
    check_tail(text, size);
    buf_done(&whole);
    buf_done(&pieces);
    return 0;
}
