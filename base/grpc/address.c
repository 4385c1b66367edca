/* SPDX-License-Identifier: Apache-2.0 */
#include "base/grpc/address.h"

#include "base/buf.h"
#include "base/parse.h"

#include <string.h>
#include <uv.h>

#define HOST_SIZE 64 /* an address of IPv6 with its zone */

enum err_code grpc_address_unix(const char *path, struct grpc_address *ret, struct err *e)
{
    *ret = (struct grpc_address){ .to.un.sun_family = AF_UNIX };
    if (path[0] != '/')
        return err_set(e, ERR_INVALID, "\"%s\" is not an absolute path", path);
    if (strlen(path) >= sizeof(ret->to.un.sun_path))
        return err_set(e, ERR_INVALID, "the socket's path is longer than %zu bytes",
                       sizeof(ret->to.un.sun_path) - 1);
    strcpy(ret->to.un.sun_path, path);
    ret->n = sizeof(ret->to.un);
    return ERR_OK;
}

enum err_code grpc_address_parse(const char *target, struct grpc_address *ret, struct err *e)
{
    const char *colon = strrchr(target, ':');
    char host[HOST_SIZE] = "";
    uint64_t port = 0;
    bool brackets = target[0] == '[' && colon != NULL && colon > target + 2 && colon[-1] == ']';
    size_t n;

    if (str_starts(target, "unix:///"))
        return grpc_address_unix(target + strlen("unix://"), ret, e);
    if (str_starts(target, "unix:"))
        return grpc_address_unix(target + strlen("unix:"), ret, e);
    *ret = (struct grpc_address){ .n = 0 };
    n = colon == NULL ? 0 : (size_t)(colon - target) - (brackets ? 2 : 0);
    if (n > 0 && n < sizeof(host) && parse_u64(colon + 1, 1, 65535, &port, "port", e) == ERR_OK)
        memcpy(host, target + (brackets ? 1 : 0), n);
    if (e->code != ERR_OK)
        return e->code;
    if (brackets && uv_ip6_addr(host, (int)port, &ret->to.in6) == 0)
        ret->n = sizeof(ret->to.in6);
    else if (!brackets && uv_ip4_addr(host, (int)port, &ret->to.in) == 0)
        ret->n = sizeof(ret->to.in);
    else
        return err_set(e, ERR_INVALID, "\"%s\" is neither \"unix:/path\" nor an address with a port", target);
    return ERR_OK;
}
