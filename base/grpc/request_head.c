/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which requests are malformed. nghttp2's own check is off for servers, because it refuses an :authority that
 * is not a host. grpc-go 1.56 and older (and so most device plugins and exporters) sends the path of the
 * socket there, "/var/lib/kubelet/device-plugins/kubelet.sock", and its own server accepts any value. The
 * other rules of RFC 9113, 8.2 and 8.3, are checked here.
 */
#include "base/grpc/internal.h"

#include "base/scope.h"

#include <string.h>

enum { METHOD = 1, SCHEME = 2, PATH = 4, AUTHORITY = 8, REQUIRED = METHOD | SCHEME | PATH };

static unsigned pseudo_of(const char *name)
{
    static const struct {
        const char *name;
        unsigned bit;
    } fields[] = {
        { ":method", METHOD }, { ":scheme", SCHEME }, { ":path", PATH }, { ":authority", AUTHORITY }
    };

    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (strcmp(name, fields[i].name) == 0)
            return fields[i].bit;
    return 0;
}

static bool is_of_connection(const char *name)
{
    static const char *const names[] = { "connection", "keep-alive", "proxy-connection", "transfer-encoding",
                                         "upgrade" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool pseudo_fits(struct grpc_stream *st, const char *name, const uint8_t *value, size_t value_n)
{
    unsigned bit = pseudo_of(name);

    if (bit == 0 || (st->pseudo & bit) != 0 || st->regular || st->head_done)
        return false;
    st->pseudo |= bit;
    return bit != PATH || (value_n > 0 && nghttp2_check_path(value, value_n) != 0);
}

bool grpc_request_field_fits(struct grpc_stream *st, const char *name, size_t name_n, const char *value,
                             size_t value_n)
{
    const uint8_t *n = (const uint8_t *)name, *v = (const uint8_t *)value;

    /* Neither has a NUL, so both are C strings from here on. */
    if (nghttp2_check_header_name(n, name_n) == 0 || nghttp2_check_header_value(v, value_n) == 0)
        return false;
    if (name[0] == ':')
        return pseudo_fits(st, name, v, value_n);
    st->regular = true;
    return !is_of_connection(name);
}

bool grpc_request_head_fits(const struct grpc_stream *st)
{
    if (st->head_done) /* trailers: they end the request */
        return st->peer_done;
    return (st->pseudo & REQUIRED) == REQUIRED;
}
