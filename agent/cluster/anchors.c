/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cluster/anchors.h"

#include "base/codec/base64.h"
#include "base/siphash.h"

#include <stdlib.h>
#include <string.h>

#define LINE 64 /* characters of base64, RFC 7468 */

static const char begin[] = "-----BEGIN ", end[] = "-----END ", dashes[] = "-----";

void anchors_init(struct anchors *a, const char *uid)
{
    static const unsigned char of_halves[2][SIPHASH_KEY_SIZE] = { "anchors, first", "anchors, second" };
    uint64_t half;

    *a = (struct anchors){ 0 };
    for (size_t i = 0; i < 2; i++) {
        half = siphash(of_halves[i], uid, strlen(uid));
        memcpy(a->key + i * sizeof(half), &half, sizeof(half));
    }
}

void anchors_done(struct anchors *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->v[i].der);
    free(a->v);
    *a = (struct anchors){ 0 };
}

/* Takes ownership of `der`. */
static void anchors_put(struct anchors *a, unsigned char *der, size_t n)
{
    struct anchor *grown = a->v;
    size_t cap = a->cap == 0 ? 16 : a->cap * 2;

    if (a->n == a->cap) {
        grown = realloc(a->v, cap * sizeof(*grown));
        if (grown == NULL) {
            err_nomem(&a->e);
            free(der);
            return;
        }
        a->v = grown;
        a->cap = cap;
    }
    a->v[a->n++] = (struct anchor){ .der = der, .n = n, .order = siphash(a->key, der, n) };
    a->bytes += n;
    if (a->bytes > ANCHORS_BYTES_MAX)
        err_set(&a->e, ERR_EXHAUSTED, "the certificates of the ClusterTrustBundles have more than %zu bytes",
                ANCHORS_BYTES_MAX);
}

/* Adds a body, which consists of base64 and blanks. A body with headers (RFC 1421) is skipped: the apiserver
 * refuses it in a bundle. */
static void body_add(struct anchors *a, const char *body, size_t n)
{
    char *text = malloc(n + 1);
    unsigned char *der = malloc(BASE64_DECODED_MAX(n));
    size_t k = 0, n_der = 0;

    if (text == NULL || der == NULL) {
        err_nomem(&a->e);
        free(text);
        free(der);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (strchr(" \t\r\n", body[i]) == NULL)
            text[k++] = body[i];
    if (k > 0 && base64_decode(text, k, der, &n_der) && n_der > 0)
        anchors_put(a, der, n_der);
    else
        free(der);
    free(text);
}

/* The end line of the block that has this label and begins before `at`; NULL: there is none. */
static const char *block_end(const char *at, const char *label, size_t n)
{
    for (at = strstr(at, end); at != NULL; at = strstr(at + 1, end))
        if (strncmp(at + sizeof(end) - 1, label, n) == 0 &&
            strncmp(at + sizeof(end) - 1 + n, dashes, sizeof(dashes) - 1) == 0)
            return at;
    return NULL;
}

void anchors_add(struct anchors *a, const char *pem)
{
    while (a->e.code == ERR_OK && (pem = strstr(pem, begin)) != NULL) {
        const char *label = pem + sizeof(begin) - 1, *line = label + strcspn(label, "\r\n"), *close = NULL;
        size_t n = (size_t)(line - label);

        pem = label;
        if (n < sizeof(dashes) - 1 || strncmp(line - (sizeof(dashes) - 1), dashes, sizeof(dashes) - 1) != 0)
            continue;
        n -= sizeof(dashes) - 1;
        if (n > 60)
            continue;
        close = block_end(line, label, n);
        if (close == NULL)
            continue;
        body_add(a, line, (size_t)(close - line));
        pem = close;
    }
}

static int anchor_order(const void *left, const void *right)
{
    const struct anchor *x = left, *y = right;
    int order;

    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    order = memcmp(x->der, y->der, x->n < y->n ? x->n : y->n);
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

static void anchor_write(const struct anchor *v, struct buf *ret)
{
    buf_auto text = BUF_INIT(2 * ANCHORS_BYTES_MAX);

    base64_add(&text, v->der, v->n);
    buf_adds(ret, "-----BEGIN CERTIFICATE-----\n");
    for (size_t i = 0; i < text.n; i += LINE) {
        buf_add(ret, text.p + i, text.n - i < LINE ? text.n - i : LINE);
        buf_addc(ret, '\n');
    }
    buf_adds(ret, "-----END CERTIFICATE-----\n");
    ret->failed = ret->failed || text.failed;
}

enum err_code anchors_write(struct anchors *a, struct buf *ret, struct err *e)
{
    if (a->e.code != ERR_OK) {
        *e = a->e;
        return e->code;
    }
    if (a->n > 1)
        qsort(a->v, a->n, sizeof(*a->v), anchor_order);
    for (size_t i = 0; i < a->n; i++)
        if (i == 0 || anchor_order(&a->v[i - 1], &a->v[i]) != 0)
            anchor_write(&a->v[i], ret);
    return buf_check(ret, e);
}
