/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/fs.h"
#include "base/files/patience.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* Up to 256 bytes, getrandom() neither fails nor returns less once the pool is seeded. */
static void random_bytes(unsigned char *p, size_t n)
{
    while (n > 0) {
        ssize_t got = getrandom(p, n, 0);

        if (got > 0) {
            p += got;
            n -= (size_t)got;
        }
    }
}

void id_random_hex(char *ret, size_t digits)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[32];
    size_t i;

    for (i = 0; i < digits; i++) {
        if (i % (2 * sizeof(bytes)) == 0)
            random_bytes(bytes, sizeof(bytes));
        ret[i] = hex[bytes[i / 2 % sizeof(bytes)] >> (i % 2 * 4) & 15];
    }
    ret[digits] = '\0';
}

/* RFC 9562 version 4, like the UIDs of Kubernetes objects. */
void id_random_uuid(char ret[37])
{
    static const char variant[] = "89ab";
    char hex[33];
    size_t i, out = 0;

    id_random_hex(hex, 32);
    hex[12] = '4';
    hex[16] = variant[(hex[16] <= '9' ? hex[16] - '0' : hex[16] - 'a' + 10) & 3];
    for (i = 0; i < 32; i++) {
        if (i == 8 || i == 12 || i == 16 || i == 20)
            ret[out++] = '-';
        ret[out++] = hex[i];
    }
    ret[out] = '\0';
}

enum err_code id_boot(char ret[ID_BOOT_SIZE], struct err *e)
{
    struct patience patience = { 0 };
    str_auto text = NULL;
    struct presence found;

    do {
        *e = (struct err){ 0 };
        found = fs_read_if_there(AT_FDCWD, BOOT_ID, 64, &text, NULL, e);
    } while (presence_is_unknown(found) && patience_wait(&patience));
    if (presence_is_unknown(found))
        return e->code;
    if (text != NULL && strcspn(text, "\n") != ID_BOOT_SIZE - 1)
        return err_set(e, ERR_INTERNAL, BOOT_ID " has no id");
    snprintf(ret, ID_BOOT_SIZE, "%.*s", ID_BOOT_SIZE - 1, text != NULL ? text : "");
    return ERR_OK;
}
