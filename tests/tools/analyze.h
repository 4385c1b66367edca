/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyze - states a promise of base/error.h in a form that an analyzer understands: a failure has a code
 * other than ERR_OK. tests/tools/analyze includes this before each source.
 */
#include "base/error.h"

#define ANALYZE_FAILED(e, call)                                                                              \
    ({                                                                                                       \
        (void)(call);                                                                                        \
        if ((e)->code == ERR_OK)                                                                             \
            __builtin_unreachable();                                                                         \
        (e)->code;                                                                                           \
    })
#define err_set(e, ...) ANALYZE_FAILED(e, err_set(e, __VA_ARGS__))
#define err_sys(e, ...) ANALYZE_FAILED(e, err_sys(e, __VA_ARGS__))
#define err_wrap(e, ...) ANALYZE_FAILED(e, err_wrap(e, __VA_ARGS__))
#define err_nomem(e) ANALYZE_FAILED(e, err_nomem(e))
