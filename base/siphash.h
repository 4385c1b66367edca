/* SPDX-License-Identifier: Apache-2.0 */
/* siphash - SipHash-2-4 (Aumasson, Bernstein 2012): a keyed 64-bit hash. Without the key, the hash reveals
 * nothing about the text and does not help to check guesses. */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY_SIZE 16

uint64_t siphash(const unsigned char key[SIPHASH_KEY_SIZE], const void *data, size_t size);

/* Compares contents during the life of this process, with a per-process key, so that the author of the
 * contents cannot construct collisions. `before` is the hash of the preceding parts, 0 for the first. Any
 * thread. */
uint64_t siphash_part(uint64_t before, const void *data, size_t size);

/* Reads the key from `path`; if it is missing or damaged, creates a new one there (on a tmpfs the key lasts
 * until the reboot). If that fails, or the file cannot be read and is left alone, *e is set and the key is
 * still good for this process. */
void siphash_key(const char *path, unsigned char ret[SIPHASH_KEY_SIZE], struct err *e);
#endif
