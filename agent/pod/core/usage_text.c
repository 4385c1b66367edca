/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/core/usage_text.h"

void usage_label(struct buf *out, const char *key, const char *value, bool first)
{
    if (!first)
        buf_addc(out, ',');
    buf_adds(out, key);
    buf_adds(out, "=\"");
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            buf_addc(out, '\\');
        if (*c == '\n')
            buf_adds(out, "\\n");
        else
            buf_addc(out, *c);
    }
    buf_addc(out, '"');
}

/* By hand: a page has thousands of values for each hundred pods, and printf() would be a tenth of its time.
 * At least `decimals` + 1 digits, with a point before the last `decimals`. */
static void put_decimal(struct buf *out, uint64_t value, unsigned decimals)
{
    char text[24], *at = text + sizeof(text);
    unsigned digits = 0;

    do {
        if (digits == decimals && digits > 0)
            *--at = '.';
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (++digits <= decimals || value > 0);
    buf_add(out, at, (size_t)(text + sizeof(text) - at));
}

void usage_value(struct buf *out, uint64_t value, enum usage_unit unit)
{
    switch (unit) {
    case UNIT_LIMIT:
        put_decimal(out, value == UINT64_MAX ? 0 : value, 0);
        return;
    case UNIT_ONE:
        put_decimal(out, value, 0);
        return;
    case UNIT_NS:
        put_decimal(out, value, 9);
        return;
    case UNIT_US:
        put_decimal(out, value, 6);
        return;
    }
}
