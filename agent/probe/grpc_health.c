/* SPDX-License-Identifier: Apache-2.0 */
/* HealthCheckRequest { string service = 1; } and HealthCheckResponse { ServingStatus status = 1; }. */
#include "agent/probe/grpc_health.h"

#include <string.h>

static void add_varint(struct buf *b, uint64_t v)
{
    while (v >= 0x80) {
        buf_addc(b, (char)(v | 0x80));
        v >>= 7;
    }
    buf_addc(b, (char)v);
}

enum err_code grpc_health_request(const char *service, struct buf *out, struct err *e)
{
    size_t n = strlen(service);

    if (n > 0) {
        buf_addc(out, 0x0a); /* field 1, length-delimited */
        add_varint(out, n);
        buf_add(out, service, n);
    }
    return buf_check(out, e);
}

static bool take_varint(const unsigned char **p, const unsigned char *end, uint64_t *ret)
{
    uint64_t v = 0;

    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        unsigned char c = *(*p)++;
        v |= (uint64_t)(c & 0x7f) << shift;
        if ((c & 0x80) == 0) {
            *ret = v;
            return true;
        }
    }
    return false;
}

bool grpc_health_response(const unsigned char *data, size_t n, uint64_t *ret_status)
{
    const unsigned char *p = data, *end = data + n;
    uint64_t status = 0, tag, v;

    while (p < end) {
        if (!take_varint(&p, end, &tag) || tag >> 3 == 0)
            return false;
        switch (tag & 7) {
        case 0:
            if (!take_varint(&p, end, &v))
                return false;
            if (tag >> 3 == 1)
                status = v;
            break;
        case 1:
            if (end - p < 8)
                return false;
            p += 8;
            break;
        case 2:
            if (!take_varint(&p, end, &v) || v > (uint64_t)(end - p))
                return false;
            p += v;
            break;
        case 5:
            if (end - p < 4)
                return false;
            p += 4;
            break;
        default:
            return false;
        }
    }
    *ret_status = status;
    return true;
}
