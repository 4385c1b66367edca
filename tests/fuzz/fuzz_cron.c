/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules and the zones of their clocks: a line is a schedule, the next one a zone's rule. Parsing never
 * crashes and says why it refuses; a moment that is found matches, and there is none before it. */
#include "agent/api/cron.h"
#include "base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct api_cron *c, const struct zone *zone)
{
    const int64_t from = INT64_C(1774742400); /* 29 March 2026 */
    int64_t next = api_cron_next(c, zone, from), local;
    struct tm tm;

    assert(next == -1 || next > from);
    if (next == -1)
        return;
    local = next + zone_offset(zone, next);
    clock_utc(local, &tm);
    tm.tm_wday = (int)((local / 86400 + 4) % 7);
    assert(c->every_s > 0 || (api_cron_matches(c, &tm) && tm.tm_sec == 0));
    assert(api_cron_last(c, zone, from, next) == next && api_cron_last(c, zone, from, next - 1) == -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct api_cron c;
    struct err e = { 0 };
    struct zone *zone = NULL;
    char *text = malloc(size + 1), *rule;

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    rule = strchr(text, '\n');
    if (rule != NULL)
        *rule++ = '\0';
    if (rule != NULL && zone_parse_rule(&zone, rule, &e) != ERR_OK)
        assert(e.code == ERR_INVALID && e.text[0] != '\0');
    e = (struct err){ 0 };
    if (api_cron_parse(text, &c, &e) == ERR_OK)
        look(&c, zone);
    else
        assert(e.code == ERR_INVALID && e.text[0] != '\0');
    zone_free(zone);
    free(text);
    return 0;
}
