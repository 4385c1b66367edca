/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/fs.h"
#include "base/scope.h"
#include "base/siphash.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { HEX_SIZE = 2 * SIPHASH_KEY_SIZE };

static bool from_hex(const char *hex, unsigned char key[SIPHASH_KEY_SIZE])
{
    if (strlen(hex) != HEX_SIZE || strspn(hex, "0123456789abcdef") != HEX_SIZE)
        return false;
    for (size_t i = 0; i < SIPHASH_KEY_SIZE; i++) {
        const char digits[] = { hex[2 * i], hex[2 * i + 1], '\0' };
        key[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return true;
}

void siphash_key(const char *path, unsigned char ret[SIPHASH_KEY_SIZE], struct err *e)
{
    char hex[HEX_SIZE + 1];
    struct err damaged = { 0 };
    str_auto text = NULL;
    bool is_whole = fs_read_at(AT_FDCWD, path, sizeof(hex), &text, NULL, &damaged) == ERR_OK;
    /* A file that could not be read may hold a good key: keep it for the next start. */
    const bool unknown = !is_whole && damaged.sys != 0 && damaged.sys != EISDIR &&
                         presence_is_unknown(presence_from_err(&damaged));

    is_whole = is_whole && from_hex(text, ret);
    if (!is_whole) {
        id_random_hex(hex, HEX_SIZE);
        from_hex(hex, ret);
        if (unknown)
            *e = damaged;
        else
            ERR_IGNORE(fs_replace_at(AT_FDCWD, path, hex, strlen(hex), 0600, false, e));
        explicit_bzero(hex, sizeof(hex));
    }
    if (text != NULL)
        explicit_bzero(text, strlen(text));
}

static unsigned char own_key[SIPHASH_KEY_SIZE];

static void make_own_key(void)
{
    char hex[HEX_SIZE + 1];

    id_random_hex(hex, HEX_SIZE);
    from_hex(hex, own_key);
}

uint64_t siphash_part(uint64_t before, const void *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned char key[SIPHASH_KEY_SIZE];

    pthread_once(&once, make_own_key);
    memcpy(key, own_key, sizeof(key));
    for (size_t i = 0; i < sizeof(before); i++)
        key[i] ^= (unsigned char)(before >> 8 * i);
    return siphash(key, data, size);
}
