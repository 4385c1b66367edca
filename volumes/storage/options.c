/* SPDX-License-Identifier: Apache-2.0 */
/* options - mountOptions of a PersistentVolume. */
#include "volumes/storage/internal.h"

#include <stdlib.h>
#include <string.h>

/* They would make something else than a new mount, or run a program. */
static const char *const refused[] = { "bind",   "rbind",   "move",    "remount", "loop",
                                       "bg",     "helper",  "uhelper", "X-mount", "x-mount",
                                       "shared", "rshared", "private", "slave",   "unbindable" };

static bool is_refused(const char *option)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        size_t n = strlen(refused[i]);

        if (strncmp(option, refused[i], n) == 0 &&
            (option[n] == '\0' || option[n] == '=' || option[n] == '.'))
            return true;
    }
    return false;
}

static enum err_code check_part(const char *part, size_t n, struct err *e)
{
    char one[256];

    if (n == 0)
        return err_set(e, ERR_INVALID, "an empty mount option");
    if (n >= sizeof(one))
        return err_set(e, ERR_INVALID, "a mount option of %zu characters", n);
    memcpy(one, part, n);
    one[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)one[i] <= ' ' || one[i] == 0x7f || one[i] == '\\')
            return err_set(e, ERR_INVALID, "a mount option with blanks or control characters");
    if (one[0] == '-' || is_refused(one))
        return err_set(e, ERR_INVALID, "mount option \"%.100s\" is not allowed", one);
    return ERR_OK;
}

enum err_code storage_check_options(const char *const *options, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        const char *part = options[i];

        for (;;) { /* several in one, as mount(8) has them */
            size_t k = strcspn(part, ",");

            if (check_part(part, k, e) != ERR_OK)
                return e->code;
            if (part[k] == '\0')
                break;
            part += k + 1;
        }
    }
    return ERR_OK;
}

char *storage_join_options(const struct storage_spec *s, const char *more)
{
    struct buf text = BUF_INIT(64 * 1024);

    for (size_t i = 0; i < s->n_options; i++)
        buf_addf(&text, "%s%s", text.n > 0 ? "," : "", s->options[i]);
    if (more != NULL)
        buf_addf(&text, "%s%s", text.n > 0 ? "," : "", more);
    if (buf_check(&text, ERR_IGNORED) != ERR_OK) {
        buf_done(&text);
        return NULL;
    }
    if (text.p == NULL || text.n == 0) {
        buf_done(&text);
        return strdup("");
    }
    return buf_detach(&text);
}
