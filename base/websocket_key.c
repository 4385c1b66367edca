/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake's keys: SHA-1 (FIPS 180-4) and base64.  SHA-1 protects nothing here; the protocol asks for
 * it. */
#include "base/websocket.h"

#include <string.h>

#define ACCEPT_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* RFC 6455, 1.3 */

enum { DIGEST_SIZE = 20, BLOCK = 64 };

/* ---- SHA-1 ----------------------------------------------------------------------------------- */

static uint32_t websocket_key_rotate(uint32_t v, unsigned n)
{
    return v << n | v >> (32 - n);
}

static void sha1_block(uint32_t h[5], const unsigned char *p)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 |
               p[4 * i + 3];
    for (unsigned i = 16; i < 80; i++)
        w[i] = websocket_key_rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                              : (b ^ c ^ d) + 0xca62c1d6;
        uint32_t t = websocket_key_rotate(a, 5) + f + e + w[i];

        e = d;
        d = c;
        c = websocket_key_rotate(b, 30);
        b = a;
        a = t;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

/* Of at most two blocks, padding included: 119 bytes. */
static void sha1(const char *text, size_t n, unsigned char ret[DIGEST_SIZE])
{
    uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
    unsigned char padded[2 * BLOCK] = { 0 };
    size_t blocks = n + 9 <= BLOCK ? 1 : 2;

    memcpy(padded, text, n);
    padded[n] = 0x80;
    padded[blocks * BLOCK - 2] = (unsigned char)(n * 8 >> 8);
    padded[blocks * BLOCK - 1] = (unsigned char)(n * 8);
    for (size_t i = 0; i < blocks; i++)
        sha1_block(h, padded + i * BLOCK);
    for (unsigned i = 0; i < DIGEST_SIZE; i++)
        ret[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- base64 ---------------------------------------------------------------------------------- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* n bytes with n % 3 != 0, as all that are encoded here have. */
static void base64(const unsigned char *p, size_t n, char *ret)
{
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v =
            (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0u);

        *ret++ = digits[v >> 18];
        *ret++ = digits[v >> 12 & 63];
        *ret++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
        *ret++ = i + 2 < n ? digits[v & 63] : '=';
    }
    *ret = '\0';
}

/* ---- keys ------------------------------------------------------------------------------------ */

void ws_accept_key(const char *key, char ret[WS_ACCEPT_SIZE])
{
    unsigned char digest[DIGEST_SIZE];
    char text[64 + sizeof(ACCEPT_GUID)];
    size_t n = strnlen(key, 64);

    memcpy(text, key, n);
    memcpy(text + n, ACCEPT_GUID, sizeof(ACCEPT_GUID));
    sha1(text, n + sizeof(ACCEPT_GUID) - 1, digest);
    base64(digest, sizeof(digest), ret);
}

bool ws_key_valid(const char *key)
{
    size_t n = strspn(key, digits);

    /* The last digit stands for 2 bits. */
    return n == WS_KEY_SIZE - 3 && strcmp(key + n, "==") == 0 && strchr("AQgw", key[n - 1]) != NULL;
}

void ws_key_make(const unsigned char random[16], char ret[WS_KEY_SIZE])
{
    base64(random, 16, ret);
}
