/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies src into the error's text; a character cut in two at the end is dropped because the text becomes
 * part of JSON. */
static void keep_text(struct err *e, const char *src)
{
    size_t n = strnlen(src, sizeof(e->text));

    if (n == sizeof(e->text))
        n = utf8_cut(src, sizeof(e->text) - 1);
    memcpy(e->text, src, n);
    e->text[n] = '\0';
}

enum err_code err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    char text[sizeof(e->text) + 4]; /* a copy: an argument may be e->text itself */
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    e->code = code == ERR_OK ? ERR_INTERNAL : code;
    e->sys = 0;
    keep_text(e, text);
    return e->code;
}

/* The untranslated text: strerror() follows the locale and is not thread-safe. */
static const char *errno_text(int sys, char *space, size_t n)
{
    const char *text = strerrordesc_np(sys);

    if (text != NULL)
        return text;
    snprintf(space, n, "error %d", sys);
    return space;
}

enum err_code err_sys(struct err *e, int sys, const char *fmt, ...)
{
    char text[sizeof(e->text) + 4], number[32];
    const char *why = errno_text(sys, number, sizeof(number));
    size_t used, reserve = strlen(why) + 2;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    /* Shorten a long subject, so that the reason stays. */
    used = n < 0 ? 0 : (size_t)n;
    if (used > sizeof(e->text) - 1 - reserve)
        used = utf8_cut(text, sizeof(e->text) - 1 - reserve);
    snprintf(text + used, sizeof(text) - used, ": %s", why);

    e->code = err_from_errno(sys);
    e->sys = sys;
    keep_text(e, text);
    return e->code;
}

enum err_code err_wrap(struct err *e, const char *fmt, ...)
{
    char text[2 * sizeof(e->text) + 4];
    va_list ap;
    size_t used;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(e->text) + 1, fmt, ap); /* one more for utf8_cut() */
    va_end(ap);

    used = n < 0 ? 0 : (size_t)n;
    if (used >= sizeof(e->text))
        used = utf8_cut(text, sizeof(e->text) - 1);
    snprintf(text + used, sizeof(text) - used, ": %s", e->text);
    keep_text(e, text);
    return e->code;
}

void err_kept_drop_text(struct err_kept *kept)
{
    free(kept->text);
    kept->text = NULL;
}

void err_keep(struct err_kept *kept, const struct err *e)
{
    err_kept_drop_text(kept);
    kept->code = e->code;
    kept->sys = e->sys;
    if (e->code != ERR_OK)
        kept->text = strdup(e->text);
}

struct err err_kept_get(const struct err_kept *kept)
{
    struct err e = { .code = kept->code, .sys = kept->sys };

    if (kept->code != ERR_OK)
        keep_text(&e, kept->text != NULL ? kept->text : err_code_name(kept->code));
    return e;
}

bool err_is_shortage(const struct err *e)
{
    return e->sys == ENOMEM || e->sys == EMFILE || e->sys == ENFILE;
}

enum err_code err_nomem(struct err *e)
{
    e->code = ERR_EXHAUSTED;
    e->sys = ENOMEM;
    keep_text(e, "out of memory");
    return e->code;
}

enum err_code err_from_errno(int sys)
{
    switch (sys) {
    case ECANCELED:
        return ERR_CANCELLED;
    case ENOENT:
    case ESRCH:
    case ENODEV:
    case ENXIO:
        return ERR_NOT_FOUND;
    case EEXIST:
        return ERR_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
    case EXDEV: /* openat2: the path leaves its root */
        return ERR_PERMISSION;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EFBIG:
    case E2BIG:
    case ENOBUFS:
    case EMLINK:
    case EUSERS:
        return ERR_EXHAUSTED;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
    case EILSEQ:
    case EDOM:
    case EAFNOSUPPORT:
    case ENOEXEC:
        return ERR_INVALID;
    case ENOTEMPTY:
    case EBUSY:
    case ENOTDIR:
    case EISDIR:
    case ETXTBSY:
    case ENOTCONN:
    case ECHILD:
        return ERR_PRECONDITION;
    case ETIMEDOUT:
    case ETIME:
        return ERR_DEADLINE;
    case ERANGE:
    case EOVERFLOW:
        return ERR_RANGE;
    case ENOSYS:
    case EOPNOTSUPP:
    case ENOTTY:
    case EPROTONOSUPPORT:
        return ERR_UNIMPLEMENTED;
    case EAGAIN:
    case EINTR:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRINUSE:
    case ESTALE:
        return ERR_UNAVAILABLE;
    case EBADF:
    case EFAULT:
        return ERR_INTERNAL;
    case EIO:
    case EBADMSG:
    case EUCLEAN:
        return ERR_DATA_LOSS;
    default:
        return ERR_UNKNOWN;
    }
}

const char *err_code_name(enum err_code code)
{
    static const char *const names[] = {
        [ERR_OK] = "OK",
        [ERR_CANCELLED] = "CANCELLED",
        [ERR_UNKNOWN] = "UNKNOWN",
        [ERR_INVALID] = "INVALID",
        [ERR_DEADLINE] = "DEADLINE",
        [ERR_NOT_FOUND] = "NOT_FOUND",
        [ERR_EXISTS] = "EXISTS",
        [ERR_PERMISSION] = "PERMISSION",
        [ERR_EXHAUSTED] = "EXHAUSTED",
        [ERR_PRECONDITION] = "PRECONDITION",
        [ERR_ABORTED] = "ABORTED",
        [ERR_RANGE] = "RANGE",
        [ERR_UNIMPLEMENTED] = "UNIMPLEMENTED",
        [ERR_INTERNAL] = "INTERNAL",
        [ERR_UNAVAILABLE] = "UNAVAILABLE",
        [ERR_DATA_LOSS] = "DATA_LOSS",
        [ERR_UNAUTHENTICATED] = "UNAUTHENTICATED",
    };

    if ((unsigned)code >= sizeof(names) / sizeof(names[0]))
        return "UNKNOWN";
    return names[code];
}
