/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint of devices: it is damaged, or its data have a text with a good checksum, which becomes
 * holdings; what those write is read as the same again. */
#include "deviceplugin/checkpoint/checkpoint_data.h"

#include "base/buf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dp_holdings *read_holdings(const char *text, size_t n, struct strs *names)
{
    struct strs ignored = { 0 };
    struct dp_holdings *h = NULL;
    struct err e = { 0 };

    assert(dp_holdings_new(&h, &e) == ERR_OK);
    assert(dp_checkpoint_read(text, n, h, names, &ignored, &e) == ERR_OK);
    strs_done(&ignored);
    return h;
}

/* One pod a device, whatever the file says. */
static void check(const struct dp_holdings *h)
{
    for (const struct dp_holding *x = dp_holdings_next(h, NULL); x != NULL; x = dp_holdings_next(h, x)) {
        assert(dp_holdings_find(h, x->pod_uid, x->container, x->resource) == x);
        for (size_t i = 0; i < x->n_devices; i++)
            assert(strcmp(dp_holdings_owner(h, x->resource, x->devices[i].id), x->pod_uid) == 0);
    }
}

static char *write_holdings(const struct dp_holdings *h, const struct strs *names, size_t *ret_n)
{
    struct dp_registered *registered = calloc(names->n + 1, sizeof(*registered));
    struct err e = { 0 };
    char *text = NULL;

    assert(registered != NULL);
    for (size_t i = 0; i < names->n; i++)
        registered[i].resource = names->v[i];
    assert(dp_checkpoint_write(h, registered, names->n, &text, ret_n, &e) == ERR_OK);
    free(registered);
    return text;
}

static void read_and_write(const char *text, size_t n)
{
    struct strs names = { 0 }, names_again = { 0 };
    struct dp_holdings *h = read_holdings(text, n, &names), *again;
    char *first, *second;
    size_t n_first = 0, n_second = 0;

    check(h);
    first = write_holdings(h, &names, &n_first);
    again = read_holdings(first, n_first, &names_again);
    second = write_holdings(again, &names_again, &n_second);
    assert(n_first == n_second && memcmp(first, second, n_first) == 0);
    free(first);
    free(second);
    dp_holdings_free(h);
    dp_holdings_free(again);
    strs_done(&names);
    strs_done(&names_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    buf_auto text = BUF_INIT(DP_CHECKPOINT_MAX);
    struct dp_ck_data d;
    struct err e = { 0 };
    uint64_t sum;

    if (dp_ck_parse((const char *)data, size, &d, &sum, &e) == ERR_OK) {
        dp_ck_text(&d, &text); /* with the checksum that random bytes do not hit */
        assert(!text.failed);
        read_and_write(text.p, text.n);
    } else {
        assert(e.code == ERR_DATA_LOSS && e.text[0] != '\0');
    }
    dp_ck_done(&d);
    return 0;
}
