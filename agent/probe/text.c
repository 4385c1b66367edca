/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/text.h"

#include "base/utf8.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

void probe_add_utf8(struct buf *b, const char *text, size_t n, size_t max)
{
    for (size_t i = 0, used = 0; i < n;) {
        size_t len = text[i] == '\0' ? 0 : utf8_char(text + i, n - i), out = len > 0 ? len : 3;

        if (used + out > max)
            return;
        buf_add(b, len > 0 ? text + i : "\xef\xbf\xbd", out);
        used += out;
        i += len > 0 ? len : 1;
    }
}

void probe_add_address(struct buf *b, const char *host, unsigned port)
{
    buf_addf(b, strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host, port);
}

void probe_errno(int sys, char ret[PROBE_ERRNO_SIZE])
{
    const char *text = strerrordesc_np(sys);

    snprintf(ret, PROBE_ERRNO_SIZE, "%s", text != NULL ? text : "unknown error");
    if (!isupper((unsigned char)ret[1])) /* does not change "RPC struct is bad" */
        ret[0] = (char)tolower((unsigned char)ret[0]);
}

bool probe_host_is_address(const char *host)
{
    unsigned char bytes[16];
    char plain[64];
    size_t n = strcspn(host, "%");

    if (n >= sizeof(plain))
        return false;
    memcpy(plain, host, n);
    plain[n] = '\0';
    return (host[n] == '\0' && inet_pton(AF_INET, plain, bytes) == 1) ||
           inet_pton(AF_INET6, plain, bytes) == 1;
}
