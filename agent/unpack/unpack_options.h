/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_options - the command line of coracle-unpack, which is started by the daemon only. */
#ifndef AGENT_UNPACK_UNPACK_OPTIONS_H
#define AGENT_UNPACK_UNPACK_OPTIONS_H
#include "agent/unpack/unpack.h"

/* 2^50 bytes: sums of limits cannot overflow. */
#define UNPACK_LIMIT_MAX (1ull << 50)

struct unpack_options {                                        /* NULL: not given */
    const char *source, *work, *layers, *parts, *blobs, *name; /* unpack an image */
    const char *hash_name;                                     /* print the name of its record */
    const char *verify;                                        /* "all" or "some" */
    const char *export_id, *out;                               /* export an image */
    struct unpack_platform platform;
    uint64_t max_bytes, max_entries, reserve;
    uint64_t progress_fd; /* 0: none */
};

/* ERR_INVALID: an option is wrong or missing; the text names it. */
enum err_code unpack_options_parse(int argc, char **argv, struct unpack_options *ret,
                                   struct err *e) MUST_CHECK;
#endif
