/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_options - the command line of coracle-unpack, which only the daemon writes. */
#ifndef AGENT_UNPACK_UNPACK_OPTIONS_H
#define AGENT_UNPACK_UNPACK_OPTIONS_H
#include "agent/unpack/unpack.h"

/* 2^50 bytes: sums of limits stay far from overflowing. */
#define UNPACK_LIMIT_MAX (1ull << 50)

struct unpack_options {                                        /* NULL: not given */
    const char *source, *work, *layers, *parts, *blobs, *name; /* bring an image */
    const char *hash_name;                                     /* say how its record is called */
    const char *verify;                                        /* "all" or "some", as standard input says */
    const char *export_id, *out;                               /* put it together again */
    struct unpack_platform platform;
    uint64_t max_bytes, max_entries, reserve;
    uint64_t progress_fd; /* 0: none */
};

/* ERR_INVALID: which option is wrong, or lacking. */
enum err_code unpack_options_parse(int argc, char **argv, struct unpack_options *ret,
                                   struct err *e) MUST_CHECK;
#endif
