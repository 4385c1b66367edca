/* SPDX-License-Identifier: Apache-2.0 */
/* index_set - indexes of an Indexed Job, and their text: "1,3-5,7". Pure; any thread. */
#ifndef AGENT_API_INDEX_SET_H
#define AGENT_API_INDEX_SET_H
#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define API_INDEXES_MAX 256 /* of a Job: a quarter of the pods that a node has in its table */

struct api_index_set {
    uint64_t bits[API_INDEXES_MAX / 64];
};

static inline void api_index_set_add(struct api_index_set *s, unsigned i)
{
    if (i < API_INDEXES_MAX)
        s->bits[i / 64] |= UINT64_C(1) << i % 64;
}
static inline bool api_index_set_has(const struct api_index_set *s, unsigned i)
{
    return i < API_INDEXES_MAX && s->bits[i / 64] >> i % 64 & 1;
}
unsigned api_index_set_count(const struct api_index_set *s);
/* How many both have. */
unsigned api_index_set_common(const struct api_index_set *a, const struct api_index_set *b);
/* Ascending numbers below `limit` and ranges of them; "": none. ERR_INVALID: anything else, in the words of
 * an apiserver. */
enum err_code api_index_set_parse(const char *text, int32_t limit, struct api_index_set *ret,
                                  struct err *e) MUST_CHECK;
/* As Kubernetes writes it: "0", "0,1", "0-2,4". */
void api_index_set_format(const struct api_index_set *s, struct buf *out);
#endif
