/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec/percent.h"

#include <string.h>

void percent_add(struct buf *b, const char *text)
{
    static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (; *text != '\0'; text++)
        if (strchr(unreserved, *text) != NULL)
            buf_addc(b, *text);
        else
            buf_addf(b, "%%%02X", (unsigned char)*text);
}
