/* SPDX-License-Identifier: Apache-2.0 */
/* helper - what the tests of deviceplugin/ share: ids and holdings written as text. */
#ifndef TESTS_UNIT_DEVICEPLUGIN_HELPER_H
#define TESTS_UNIT_DEVICEPLUGIN_HELPER_H
#include "tests/unit/base/helper.h"

#include "base/buf.h"
#include "base/scope.h"
#include "deviceplugin/device_id.h"
#include "deviceplugin/holdings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEV "example.com/dev"

/* Devices written as "dev-0 dev-1@0 dev-2@0,1": ids with their NUMA nodes. */
struct help_devices {
    char text[4096];
    struct dp_held v[64];
    int64_t numa[64][4];
    size_t n;
};

static inline void help_parse(struct help_devices *d, const char *text)
{
    char *save = NULL;

    d->n = 0;
    snprintf(d->text, sizeof(d->text), "%s", text);
    for (char *id = strtok_r(d->text, " ", &save); id != NULL; id = strtok_r(NULL, " ", &save)) {
        char *at = strchr(id, '@');
        size_t n = 0;

        if (at != NULL)
            for (*at++ = '\0'; *at != '\0'; at += *at == ',')
                d->numa[d->n][n++] = strtoll(at, &at, 10);
        d->v[d->n] = (struct dp_held){ id, d->numa[d->n], n };
        d->n++;
    }
}

static inline const char *help_text(const struct dp_held *v, size_t n)
{
    static char text[4096];
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i > 0 ? " " : "", v[i].id);
        for (size_t k = 0; k < v[i].n_numa; k++)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%c%lld", k > 0 ? ',' : '@',
                                   (long long)v[i].numa[k]);
    }
    return text;
}

static inline enum err_code help_put(struct dp_holdings *h, const char *pod, const char *container,
                                     const char *resource, const char *devices, struct err *e)
{
    struct help_devices d;

    help_parse(&d, devices);
    return dp_holdings_put(h,
                           &(struct dp_holding){ .pod_uid = pod,
                                                 .container = container,
                                                 .resource = resource,
                                                 .devices = d.v,
                                                 .n_devices = d.n,
                                                 .answer = (const uint8_t *)"answer",
                                                 .n_answer = 6 },
                           e);
}

static inline void help_holds(struct dp_holdings *h, const char *pod, const char *container,
                              const char *devices)
{
    struct err e = { 0 };

    if (help_put(h, pod, container, DEV, devices, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static inline struct dp_holdings *help_new(void)
{
    struct dp_holdings *h = NULL;
    struct err e = { 0 };

    assert_int_equal(dp_holdings_new(&h, &e), ERR_OK);
    return h;
}
#endif
