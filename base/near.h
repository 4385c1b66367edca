/* SPDX-License-Identifier: Apache-2.0 */
/* near - what somebody who mistyped a name most likely meant. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H
#include <stddef.h>

struct near { /* { .name = what was typed } */
    const char *name;
    const char *found; /* the nearest candidate so far; NULL: none is near */
    size_t distance;
};

/* Borrowed.  Near: at most three letters differ, and not more than half of the name. */
void near_try(struct near *n, const char *candidate);
#endif
