/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by the files of base/. */
#ifndef BASE_INTERNAL_H
#define BASE_INTERNAL_H
#include "base/log.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- log_journal.c ---- */
/* Formats the datagram and returns its size; fields that do not fit are left out. */
size_t log_journal_format(enum log_level level, const char *text, const struct log_field *fields, size_t n,
                          const struct log_context *context, char *out, size_t size);
bool log_journal_send(const char *datagram, size_t n); /* false: the journal does not accept it */

/* ---- log_recent.c ---- */
void log_recent_add(enum log_level level, int64_t at_ns, const char *text);
#endif
