/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope - resources that are released when the variable holding them goes out of scope.
 *
 *     fd_auto fd = open(...);                  closed unless take_fd(&fd) moved it out
 *     str_auto text = NULL;                    free()d unless take_ptr(&text) moved it out
 *     scoped(vol_writer_free) struct vol_writer *w = NULL;
 *
 * SCOPE_DEFINE(type, destroy) after a module's destructor makes it usable with scoped(). For synchronous code
 * only: memory passed to the loop belongs to its operation.
 */
#ifndef BASE_SCOPE_H
#define BASE_SCOPE_H
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define scoped(destroy) __attribute__((cleanup(destroy##_p)))

#define SCOPE_DEFINE(type, destroy)                                                                          \
    static inline void destroy##_p(type **p)                                                                 \
    {                                                                                                        \
        if (*p != NULL)                                                                                      \
            destroy(*p);                                                                                     \
    }

static inline void scope_close_p(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
    }
}

static inline void scope_free_p(void *p)
{
    free(*(void **)p);
}

#define fd_auto __attribute__((cleanup(scope_close_p))) int
#define str_auto __attribute__((cleanup(scope_free_p))) char *
#define mem_auto __attribute__((cleanup(scope_free_p)))

static inline int take_fd(int *fd)
{
    int moved = *fd;
    *fd = -1;
    return moved;
}

/* Moves a pointer out of a scoped variable, which becomes NULL. */
#define take_ptr(p)                                                                                          \
    ({                                                                                                       \
        __typeof__(p) at_ = (p); /* evaluated once */                                                        \
        __typeof__(*at_) moved_ = *at_;                                                                      \
        *at_ = NULL;                                                                                         \
        moved_;                                                                                              \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#endif
