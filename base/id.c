#include "base/fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Up to 256 bytes getrandom() neither fails nor comes back short once the pool is seeded at boot. */
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

/* RFC 9562 version 4, as Kubernetes' object UIDs. */
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

void id_boot(char ret[ID_BOOT_SIZE])
{
    struct err ignored = { 0 };
    str_auto text = NULL;

    ret[0] = '\0';
    if (fs_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &text, NULL, &ignored) == ERR_OK)
        snprintf(ret, ID_BOOT_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
}
