/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/damaged_file.h"

#include "base/clock.h"
#include "base/files/fs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MARK ".damaged-"
#define STAMP_LEN 16 /* 20260102T030405Z */

static const char *stamp(const char *name)
{
    const char *found = NULL, *at = name;

    while ((at = strstr(at, MARK)) != NULL) {
        at += strlen(MARK);
        found = at;
    }
    return found;
}

bool damaged_file_is(const char *name)
{
    return stamp(name) != NULL;
}

int64_t damaged_file_since_ns(const char *name)
{
    const char *s = stamp(name);
    struct tm tm = { 0 };
    int used = 0;

    if (s == NULL ||
        sscanf(s, "%4d%2d%2dT%2d%2d%2dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
               &tm.tm_sec, &used) != 6 ||
        used != STAMP_LEN)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return (int64_t)timegm(&tm) * INT64_C(1000000000);
}

struct visit {
    void (*fn)(const char *name, void *arg);
    void *arg;
};

static bool visit_one(const char *name, void *arg)
{
    const struct visit *v = arg;

    if (damaged_file_is(name))
        v->fn(name, v->arg);
    return true;
}

struct presence damaged_file_look(int dirfd, void (*fn)(const char *name, void *arg), void *arg,
                                  struct err *e)
{
    struct visit v = { fn, arg };

    return fs_list(dirfd, ".", visit_one, &v, e);
}

struct oldest {
    char name[DAMAGED_FILE_NAME_SIZE];
    unsigned n;
};

static void note_oldest(const char *name, void *arg)
{
    struct oldest *o = arg;
    const char *at = stamp(name), *before = stamp(o->name);

    o->n++;
    if (strlen(name) < sizeof(o->name) && at != NULL && (before == NULL || strcmp(at, before) < 0))
        memcpy(o->name, name, strlen(name) + 1);
}

enum err_code damaged_file_set_aside(int dirfd, const char *name, char ret[DAMAGED_FILE_NAME_SIZE],
                                     struct err *e)
{
    char away[DAMAGED_FILE_NAME_SIZE], at[STAMP_LEN + 1];
    struct tm tm;

    clock_utc(clock_wall_ns() / INT64_C(1000000000), &tm);
    if (strftime(at, sizeof(at), "%Y%m%dT%H%M%SZ", &tm) != STAMP_LEN)
        memcpy(at, "19700101T000000Z", sizeof(at)); /* the clock is beyond the year 9999 */
    if ((size_t)snprintf(away, sizeof(away), "%s" MARK "%s", name, at) >= sizeof(away))
        return err_sys(e, ENAMETOOLONG, "set %s aside", name);
    for (;;) {
        struct oldest o = { .n = 0 };
        struct err unseen = { 0 };

        if (presence_is_unknown(damaged_file_look(dirfd, note_oldest, &o, &unseen)) ||
            o.n < DAMAGED_FILE_MAX || o.name[0] == '\0' || unlinkat(dirfd, o.name, 0) != 0)
            break;
    }
    if (renameat(dirfd, name, dirfd, away) != 0)
        return err_sys(e, errno, "set %s aside", name);
    memcpy(ret, away, sizeof(away));
    return ERR_OK;
}
