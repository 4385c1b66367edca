/* SPDX-License-Identifier: Apache-2.0 */
/* Files of time zones: parsing never crashes, and every offset is one of a day. */
#include "base/zone.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zone *zone = NULL;
    struct err e = { 0 };

    if (zone_parse(&zone, data, size, &e) != ERR_OK) {
        assert(zone == NULL && e.code == ERR_INVALID);
        return 0;
    }
    for (int64_t at = INT64_MIN / 2; at < INT64_MAX / 2; at += INT64_MAX / 8)
        assert(zone_offset(zone, at) <= 26 * 3600 && zone_offset(zone, at) >= -26 * 3600);
    for (int64_t at = -INT64_C(2000000000); at < INT64_C(8000000000); at += 40000000)
        assert(zone_offset(zone, at) <= 26 * 3600 && zone_offset(zone, at) >= -26 * 3600);
    zone_free(zone);
    return 0;
}
