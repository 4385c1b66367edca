/* SPDX-License-Identifier: Apache-2.0 */
/* near - suggests the known name that is closest to a mistyped one. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H
#include <stddef.h>

struct near { /* initialize as { .name = the typed name } */
    const char *name;
    const char *found; /* the nearest candidate so far, or NULL */
    size_t distance;
};

/* The candidate is borrowed. Near: at most two letters differ, and no more than half of the name. */
void near_try(struct near *n, const char *candidate);
#endif
