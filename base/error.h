/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error - how a failure travels: as a value, with no allocation and nothing to free.
 *
 * Rules: A function that can fail returns enum err_code and takes `struct err *e` as its last parameter; the
 * returned code equals e->code. `e` is never NULL; callers initialize it to { 0 }; callees write to it only
 * on failure, and change outputs only on success. The codes are gRPC's canonical ones in gRPC's order, so
 * that a device plugin's status maps one to one. err_wrap() prepends context on the way up: "sync pod a/web:
 * mount volume cfg: rename ..data: No space left on device".
 *
 * Library code returns errors and never logs them above debug; the function that handles an error logs it,
 * once.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H
#include <stdbool.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
/* For a result that this function does not act on: its caller checks *e, or the failure has no consequence.
 */
#define ERR_IGNORE(call) ((void)!(call))

enum err_code {
    ERR_OK = 0,
    ERR_CANCELLED, /* the caller asked for it */
    ERR_UNKNOWN,   /* a peer failed without a reason */
    ERR_INVALID,   /* INVALID_ARGUMENT: bad input; a retry cannot help */
    ERR_DEADLINE,  /* DEADLINE_EXCEEDED */
    ERR_NOT_FOUND,
    ERR_EXISTS,       /* ALREADY_EXISTS */
    ERR_PERMISSION,   /* PERMISSION_DENIED */
    ERR_EXHAUSTED,    /* RESOURCE_EXHAUSTED: memory, disk, or one of our limits */
    ERR_PRECONDITION, /* FAILED_PRECONDITION: not in this state; something else must happen first */
    ERR_ABORTED,
    ERR_RANGE, /* OUT_OF_RANGE */
    ERR_UNIMPLEMENTED,
    ERR_INTERNAL,    /* our bug, or a peer broke its contract */
    ERR_UNAVAILABLE, /* a retry may succeed */
    ERR_DATA_LOSS,
    ERR_UNAUTHENTICATED,
};

struct err {
    enum err_code code; /* what callers branch on */
    int sys;            /* the original errno, or 0 */
    char text[504];     /* always NUL-terminated; truncated when too long */
};

/* An error that is kept for long: 16 bytes as long as nothing failed. { 0 } is no error. Its text is owned;
 * NULL if there is no error or no memory for its text. */
struct err_kept {
    enum err_code code;
    int sys;
    char *text;
};

/* Replaces *kept by *e, which may be no error (code ERR_OK). */
void err_keep(struct err_kept *kept, const struct err *e);
/* The error as a value; without memory for its text, the code's name is the text. */
struct err err_kept_get(const struct err_kept *kept);
/* Frees the text. The code stays. */
void err_kept_drop_text(struct err_kept *kept);

/* For callers that do not need the reason of a failure. */
#define ERR_IGNORED (&(struct err){ 0 })

/* Sets *e; returns `code` (which must not be ERR_OK). */
enum err_code err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Sets *e from an errno: the text becomes "<fmt>: <strerror(sys)>", the code err_from_errno(sys). */
enum err_code err_sys(struct err *e, int sys, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Prepends "<fmt>: " to the text of a failed *e; returns e->code. */
enum err_code err_wrap(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Allocation failed: ERR_EXHAUSTED "out of memory". */
/* The cause was a lack of memory or descriptors, so the object examined may be fine. */
bool err_is_shortage(const struct err *e);
enum err_code err_nomem(struct err *e);

/* ENOENT -> ERR_NOT_FOUND, EACCES -> ERR_PERMISSION, ENOSPC -> ERR_EXHAUSTED, ...; never ERR_OK. */
enum err_code err_from_errno(int sys);

/* "NOT_FOUND", "INVALID", ...: for logs and JSON. */
const char *err_code_name(enum err_code code);

#endif
