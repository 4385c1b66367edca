/* SPDX-License-Identifier: Apache-2.0 */
/* address - where a server listens: "unix:/path", "unix:///path", "10.0.0.1:80", "[::1]:80". */
#ifndef BASE_GRPC_ADDRESS_H
#define BASE_GRPC_ADDRESS_H
#include "base/error.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

struct grpc_address {
    union {
        struct sockaddr any;
        struct sockaddr_un un;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } to;
    socklen_t n;
};

enum err_code grpc_address_parse(const char *target, struct grpc_address *ret, struct err *e) MUST_CHECK;
enum err_code grpc_address_unix(const char *path, struct grpc_address *ret, struct err *e) MUST_CHECK;
#endif
