/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe/text.h"

#include "base/utf8.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

void probe_add_quoted(struct buf *b, const char *text, size_t n)
{
    buf_addc(b, '"');
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)text[i];
        size_t len = utf8_char(text + i, n - i);

        if (c == '"' || c == '\\')
            buf_addf(b, "\\%c", c);
        else if (c == '\n')
            buf_adds(b, "\\n");
        else if (c == '\t')
            buf_adds(b, "\\t");
        else if (c == '\r')
            buf_adds(b, "\\r");
        else if (c == '\a' || c == '\b' || c == '\f' || c == '\v')
            buf_addf(b, "\\%c", c == '\a' ? 'a' : c == '\b' ? 'b' : c == '\f' ? 'f' : 'v');
        else if (len == 0 || c < ' ' || c == 0x7f)
            buf_addf(b, "\\x%02x", c);
        else
            buf_add(b, text + i, len);
        i += len > 0 ? len : 1;
    }
    buf_addc(b, '"');
}

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
    if (!isupper((unsigned char)ret[1])) /* leaves "RPC struct is bad" as it is */
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
