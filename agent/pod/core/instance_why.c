/* SPDX-License-Identifier: Apache-2.0 */
/* instance_why - the cause of the end of a container's run, as far as its exit code does not show it. */
#include "agent/pod/core/ctr.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void instance_add_why(struct instance *i, const char *fmt, ...)
{
    buf_auto text = BUF_INIT(64 * 1024);
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    while (text.n > 0 && strchr(" \n\r\t", text.p[text.n - 1]) != NULL)
        text.p[--text.n] = '\0';
    if (text.n == 0 || (i->why != NULL && strstr(i->why, text.p) != NULL))
        return;
    if (i->why != NULL) {
        str_auto before = take_ptr(&i->why);

        i->why = str_printf("%s; %s", before, text.p);
    } else {
        i->why = strdup(text.p);
    }
    if (i->why != NULL && strlen(i->why) > INSTANCE_WHY_MAX)
        i->why[INSTANCE_WHY_MAX] = '\0';
}
