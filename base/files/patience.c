/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/patience.h"

#include <time.h>

#define FIRST_NS 10000000L

bool patience_wait(struct patience *p)
{
    struct timespec wait = { .tv_nsec = FIRST_NS << p->tries };

    if (++p->tries >= PATIENCE_TRIES)
        return false;
    nanosleep(&wait, NULL);
    return true;
}
