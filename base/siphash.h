/* SPDX-License-Identifier: Apache-2.0 */
/*
 * siphash - SipHash-2-4 (Aumasson, Bernstein 2012): a keyed hash of 64 bits.  Who does not have the key
 * learns nothing of the text from it, and cannot try guesses.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY_SIZE 16

uint64_t siphash(const unsigned char key[SIPHASH_KEY_SIZE], const void *data, size_t size);

/*
 * To tell contents apart while this process lives, by a key of its own: who writes the contents cannot make
 * two of one hash.  `before`: the hash of the parts before this one, 0 for the first.  Any thread.
 */
uint64_t siphash_part(uint64_t before, const void *data, size_t size);

/*
 * The key that `path` holds; where none is, or a damaged one, a new one, which is put there (on a tmpfs: a
 * key goes with its boot).  *e: it could not be put there, or what is there could not be read and stays; the
 * key is good all the same, for this process.
 */
void siphash_key(const char *path, unsigned char ret[SIPHASH_KEY_SIZE], struct err *e);
#endif
