/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: parsing never crashes and says why it refuses; a moment that is found matches. */
#include "agent/api/cron.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t from = INT64_C(1772323200); /* 1 March 2026 */
    struct api_cron c;
    struct err e = { 0 };
    char *text = malloc(size + 1);

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (api_cron_parse(text, &c, &e) == ERR_OK) {
        int64_t next = api_cron_next(&c, from, true);
        time_t at = (time_t)next;
        struct tm tm;

        assert(next == -1 || next > from);
        assert(next == -1 || (gmtime_r(&at, &tm) != NULL && api_cron_matches(&c, &tm) && tm.tm_sec == 0));
    } else {
        assert(e.code == ERR_INVALID && e.text[0] != '\0');
    }
    free(text);
    return 0;
}
