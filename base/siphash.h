/*
 * siphash - SipHash-2-4 (Aumasson, Bernstein 2012): a keyed hash of 64 bits.  Who does not have the key
 * learns nothing of the text from it, and cannot try guesses.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H
#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY_SIZE 16

uint64_t siphash(const unsigned char key[SIPHASH_KEY_SIZE], const void *data, size_t size);
#endif
