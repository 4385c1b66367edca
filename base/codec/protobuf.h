/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf - protobuf messages from outside: checked against their definition, then unpacked into an arena.
 *
 * protobuf-c does not check UTF-8, truncates strings at a NUL, and allocates as much as the bytes demand: two
 * bytes for an empty element become a hundred. So the check comes first and needs no memory. It accepts
 * well-formed fields of the right type, UTF-8 without NUL in strings, at most PROTOBUF_FIELDS_MAX fields, as
 * many elements of a repeated field as `limits` allow, and each message field once (protobuf would merge two,
 * but no encoder writes them). Unknown fields are skipped. Pure; any thread.
 */
#ifndef BASE_CODEC_PROTOBUF_H
#define BASE_CODEC_PROTOBUF_H
#include "base/arena.h"
#include "base/error.h"

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

/* Of a whole message, with those of nested messages: 65536 devices with eight fields each. */
#define PROTOBUF_FIELDS_MAX (512 * 1024)
#define PROTOBUF_MEMORY_MAX (64 * 1024 * 1024) /* of an unpacked message */

struct protobuf_limit {
    const ProtobufCMessageDescriptor *message;
    uint32_t field; /* its number */
    size_t most;    /* elements of the repeated field in one message */
};

/*
 * *ret is the message, of its descriptor's type, in `memory`. The caller calls arena_done(), also after an
 * error. ERR_INVALID, ERR_EXHAUSTED: "v1beta1.ListAndWatchResponse: devices[3].ID: string field contains
 * invalid UTF-8".
 */
enum err_code protobuf_unpack(const ProtobufCMessageDescriptor *d, const struct protobuf_limit *limits,
                              size_t n_limits, const uint8_t *p, size_t n, struct arena *memory,
                              ProtobufCMessage **ret, struct err *e) MUST_CHECK;

/* The bytes of the first element of a message field, in a packed message that was checked; NULL: there is
 * none. */
const uint8_t *protobuf_first(const uint8_t *p, size_t n, uint32_t field, size_t *ret_n);

/* The bytes of a message, malloc'ed. */
enum err_code protobuf_pack(const ProtobufCMessage *m, uint8_t **ret, size_t *ret_n,
                            struct err *e) MUST_CHECK;
#endif
