/* SPDX-License-Identifier: Apache-2.0 */
/* Files of kept objects, and batches of coracle-seal. */
#include "agent/kept/batch.h"
#include "agent/kept/kept_file.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_file(const char *data, size_t n)
{
    struct kept_content c;
    struct err e = { 0 };
    char head[KEPT_HEAD_SIZE], file[KEPT_FILE_SIZE];
    buf_auto again = BUF_INIT(KEPT_FILE_MAX);

    if (kept_file_read(data, n, &c, &e) != ERR_OK) {
        assert(e.code == ERR_DATA_LOSS && e.text[0] != '\0');
        return;
    }
    assert(kept_name_is_good(c.name));
    kept_file_head(c.name, c.sealed, head);
    assert(c.head.n == strlen(head) && memcmp(head, data, c.head.n) == 0);
    kept_file_name(c.name, file);
    assert(kept_file_is_name(file));
    assert(c.body.p + c.body.n == data + n);
    if (c.sealed)
        return;
    kept_file_add_plain(&again, c.name, c.body.p, c.body.n);
    assert(again.n == n && memcmp(again.p, data, n) == 0);
}

static void as_batch(const char *data, size_t n)
{
    struct batch_item item;
    struct str answer;
    struct err e = { 0 };
    size_t at = 0;

    while (batch_next(data, n, &at, &item, &e) == ERR_OK)
        assert(at <= n && item.head.p >= data && item.data.p + item.data.n == data + at);
    assert(e.code == (at == n ? ERR_NOT_FOUND : ERR_DATA_LOSS));
    at = 0;
    while (batch_answer_next(data, n, &at, &answer, &e) == ERR_OK)
        assert(at <= n && (answer.p == NULL || answer.p + answer.n == data + at));
    assert(e.code == (at == n ? ERR_NOT_FOUND : ERR_DATA_LOSS));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_file((const char *)data, size);
    as_batch((const char *)data, size);
    return 0;
}
