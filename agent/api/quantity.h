/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantity - Kubernetes resource quantities ("500m", "1.5Gi", "12e6"): grammar, rounding, canonical text.
 * Rules: apimachinery pkg/api/resource (quantity.go, suffix.go).
 *
 * Kept as an exact number of nano units. Anything finer is rounded away from zero; values with a binary
 * suffix are capped at 2^63-1 as in Kubernetes; we reject decimal values beyond 10^29.
 */
#ifndef AGENT_API_QUANTITY_H
#define AGENT_API_QUANTITY_H
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum quantity_format { QUANTITY_DECIMAL_SI, QUANTITY_BINARY_SI, QUANTITY_DECIMAL_EXPONENT };

struct quantity {
    __int128 nano;
    enum quantity_format format; /* the input format; determines the canonical text */
};

#define QUANTITY_TEXT_SIZE 64

/* ERR_INVALID contains the text and the allowed form. */
enum err_code quantity_parse(const char *text, struct quantity *ret, struct err *e) MUST_CHECK;
void quantity_format(const struct quantity *q, char ret[QUANTITY_TEXT_SIZE]); /* canonical */
/* As an API server shows it, which has read the text before: without a suffix it is decimal there, so what
 * kubelet sends as "100000000" (bytes in binary units) is shown as "100M". */
void quantity_format_stored(const struct quantity *q, char ret[QUANTITY_TEXT_SIZE]);
int64_t quantity_value(const struct quantity *q); /* whole units, rounded up, saturating */
int64_t quantity_milli(const struct quantity *q); /* thousandths, rounded up, saturating */
int quantity_cmp(const struct quantity *a, const struct quantity *b);
struct quantity quantity_add(const struct quantity *a,
                             const struct quantity *b); /* saturating; a's format, or b's if a is 0 */
struct quantity quantity_from_int(int64_t units, enum quantity_format format);
static inline bool quantity_is_zero(const struct quantity *q)
{
    return q->nano == 0;
}
#endif
