/* SPDX-License-Identifier: Apache-2.0 */
/* generations - the folders of a payload volume, each a complete version: their names, and which may be
 * removed. A superseded one is kept for a while for readers that followed "..data" just before the switch and
 * still open files in it. */
#include "base/array.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "volumes/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

void vol_generation_name(char ret[64])
{
    unsigned number = 0;
    struct tm tm;

    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
        number = (unsigned)clock_mono_ms();
    clock_utc(clock_wall_ns() / 1000000000, &tm);
    size_t n = strftime(ret, 64, "..%Y_%m_%d_%H_%M_%S.", &tm);
    snprintf(ret + n, 64 - n, "%u", number);
}

bool vol_generation_is(const char *name)
{
    static const char shape[] = "..dddd_dd_dd_dd_dd_dd.";
    size_t n = sizeof(shape) - 1;

    for (size_t i = 0; i < n; i++)
        if (shape[i] == 'd' ? !isdigit((unsigned char)name[i]) : name[i] != shape[i])
            return false;
    return name[n] != '\0' && strspn(name + n, "0123456789") == strlen(name + n);
}

enum err_code vol_generations_add(struct vol_generations *g, int volume_fd, const char *name, bool is_current,
                                  struct err *e)
{
    struct stat st;
    struct presence found = presence_absent();

    if (strlen(name) < sizeof(g->v->name))
        found = fs_look_at(volume_fd, name, &st, e);
    if (presence_is_unknown(found))
        return e->code;
    if (presence_is_absent(found))
        return ERR_OK;
    if (!array_room(g->v, g->n))
        return err_nomem(e);
    struct vol_generation *one = &g->v[g->n++];
    *one = (struct vol_generation){ .made_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
                                    .is_current = is_current };
    snprintf(one->name, sizeof(one->name), "%s", name);
    return ERR_OK;
}

/* Newest first; the current one before others of the same clock tick. */
static int newest_first(const void *a, const void *b)
{
    const struct vol_generation *x = a, *y = b;

    if (x->made_ns != y->made_ns)
        return x->made_ns < y->made_ns ? 1 : -1;
    return (int)y->is_current - (int)x->is_current;
}

size_t vol_generations_sort_out(struct vol_generations *g)
{
    int64_t now = clock_wall_ns(), keep_ns = (int64_t)g->keep_ms * 1000000, superseded_ns = 0;
    size_t kept = 0;
    bool seen_current = false;

    if (g->n > 1)
        qsort(g->v, g->n, sizeof(*g->v), newest_first);
    for (size_t i = 0; i < g->n; i++) {
        struct vol_generation *one = &g->v[i];
        int64_t age_ns = now - superseded_ns;

        if (one->is_current) {
            seen_current = true;
        } else if (!seen_current || kept >= g->keep_max || age_ns < 0 || age_ns >= keep_ns) {
            one->remove = true; /* newer than the current one: it never became visible */
            continue;
        } else {
            kept++;
        }
        superseded_ns = one->made_ns;
    }
    return kept;
}

void vol_generations_done(struct vol_generations *g)
{
    free(g->v);
    *g = (struct vol_generations){ 0 };
}
