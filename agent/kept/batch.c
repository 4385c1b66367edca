/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kept/batch.h"

#include <stdint.h>
#include <string.h>

static void size_add(struct buf *b, size_t n)
{
    uint32_t size = (uint32_t)n;

    buf_add(b, &size, sizeof(size));
}

static bool size_take(const char *text, size_t n, size_t *at, size_t *ret)
{
    uint32_t size;

    if (n - *at < sizeof(size))
        return false;
    memcpy(&size, text + *at, sizeof(size));
    *at += sizeof(size);
    *ret = size;
    return true;
}

static bool bytes_take(const char *text, size_t n, size_t *at, size_t size, struct str *ret)
{
    if (n - *at < size)
        return false;
    *ret = (struct str){ text + *at, size };
    *at += size;
    return true;
}

void batch_add(struct buf *b, char what, struct str head, struct str data)
{
    buf_addc(b, what);
    size_add(b, head.n);
    size_add(b, data.n);
    buf_add(b, head.p, head.n);
    buf_add(b, data.p, data.n);
}

enum err_code batch_next(const char *text, size_t n, size_t *at, struct batch_item *ret, struct err *e)
{
    struct batch_item item = { 0 };
    size_t head, data, next = *at;

    if (next >= n)
        return err_set(e, ERR_NOT_FOUND, "the batch is complete");
    item.what = text[next++];
    if ((item.what != BATCH_SEAL && item.what != BATCH_OPEN) || !size_take(text, n, &next, &head) ||
        !size_take(text, n, &next, &data) || !bytes_take(text, n, &next, head, &item.head) ||
        !bytes_take(text, n, &next, data, &item.data))
        return err_set(e, ERR_DATA_LOSS, "the batch is truncated");
    *at = next;
    *ret = item;
    return ERR_OK;
}

void batch_answer_add(struct buf *b, struct str data)
{
    buf_addc(b, data.p != NULL ? '+' : '-');
    size_add(b, data.p != NULL ? data.n : 0);
    if (data.p != NULL)
        buf_add(b, data.p, data.n);
}

enum err_code batch_answer_next(const char *text, size_t n, size_t *at, struct str *ret, struct err *e)
{
    size_t size, next = *at;
    struct str data;
    char mark;

    if (next >= n)
        return err_set(e, ERR_NOT_FOUND, "the answer is complete");
    mark = text[next++];
    if ((mark != '+' && mark != '-') || !size_take(text, n, &next, &size) ||
        !bytes_take(text, n, &next, size, &data) || (mark == '-' && size > 0))
        return err_set(e, ERR_DATA_LOSS, "the answer is truncated");
    *at = next;
    *ret = mark == '+' ? data : (struct str){ NULL, 0 };
    return ERR_OK;
}
