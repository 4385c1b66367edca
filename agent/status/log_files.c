/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/log_files.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/files/fs.h"
#include "base/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    STAMP = 15, /* 20260102-030405 */
    COUNT_DIGITS = 6,
    LOOKS = 20, /* gives up on a log that is rotated faster than its folder can be read twice */
};

/* ---- names ---- */

void log_file_name(enum log_role role, const char *base, char ret[LOG_NAME_SIZE])
{
    static const char *const forms[] = { [LOG_CURRENT] = "%.200s",
                                         [LOG_TMP] = "%.200s.tmp",
                                         [LOG_KEPT] = ".%.200s.kept",
                                         [LOG_NEXT] = ".%.200s.next" };

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(ret, LOG_NAME_SIZE, forms[role], base);
#pragma GCC diagnostic pop
}

static bool log_files_digits(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] < '0' || p[i] > '9')
            return false;
    return true;
}

/* The part after "<base>."; NULL for another name. */
static const char *stamp_of(const char *name, const char *base)
{
    size_t n = strlen(base);
    const char *stamp = name + n + 1;

    if (strncmp(name, base, n) != 0 || name[n] != '.' || strlen(stamp) < STAMP ||
        !log_files_digits(stamp, 8) || stamp[8] != '-' || !log_files_digits(stamp + 9, 6))
        return NULL;
    if (stamp[STAMP] == '\0')
        return stamp;
    return stamp[STAMP] == '.' && strlen(stamp + STAMP + 1) == COUNT_DIGITS &&
                   log_files_digits(stamp + STAMP + 1, COUNT_DIGITS)
               ? stamp
               : NULL;
}

bool log_file_is_rotated(const char *name, const char *base)
{
    return stamp_of(name, base) != NULL;
}

void log_file_rotated_name(const char *base, int64_t wall_ns, const char *newest, char ret[LOG_NAME_SIZE])
{
    const char *last = newest != NULL ? stamp_of(newest, base) : NULL;
    char stamp[STAMP + 1];
    unsigned long count;
    struct tm tm;

    clock_utc(wall_ns / 1000000000, &tm);
    if (strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm) != STAMP)
        strcpy(stamp, "19700101-000000");
    if (last == NULL || strncmp(stamp, last, STAMP) > 0) {
        snprintf(ret, LOG_NAME_SIZE, "%.200s.%s", base, stamp);
        return;
    }
    count = last[STAMP] == '.' ? strtoul(last + STAMP + 1, NULL, 10) + 1 : 1;
    snprintf(ret, LOG_NAME_SIZE, "%.200s.%.*s.%06lu", base, STAMP, last, count % 1000000);
}

/* ---- the folder ---- */

void log_files_done(struct log_files *f)
{
    free(f->v);
    *f = (struct log_files){ 0 };
}

static int log_files_by_name(const void *a, const void *b)
{
    return strcmp(((const struct log_file *)a)->name, ((const struct log_file *)b)->name);
}

static bool log_files_look_at(int dirfd, const char *name, struct log_file *ret)
{
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return false;
    *ret = (struct log_file){ .dev = st.st_dev,
                              .ino = st.st_ino,
                              .size = (uint64_t)st.st_size,
                              .mtime_ns = st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec };
    snprintf(ret->name, sizeof(ret->name), "%s", name);
    return true;
}

static enum err_code log_files_add(struct log_files *f, const struct log_file *one, struct err *e)
{
    if (!array_room(f->v, f->n))
        return err_nomem(e);
    f->v[f->n++] = *one;
    return ERR_OK;
}

static enum err_code add_rotated(int dirfd, const char *base, struct log_files *f, struct err *e)
{
    fd_auto fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct dirent *entry;
    struct log_file one;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (d == NULL)
        return err_sys(e, errno, "read the folder of the log");
    take_fd(&fd);
    while (f->n < LOG_FILES_MAX && (errno = 0, entry = readdir(d)) != NULL)
        if (log_file_is_rotated(entry->d_name, base) && log_files_look_at(dirfd, entry->d_name, &one) &&
            log_files_add(f, &one, e) != ERR_OK)
            break;
    if (e->code == ERR_OK && f->n < LOG_FILES_MAX && errno != 0)
        err_sys(e, errno, "read the folder of the log");
    closedir(d);
    if (e->code == ERR_OK && f->n > 1)
        qsort(f->v, f->n, sizeof(*f->v), log_files_by_name);
    return e->code;
}

/* Adds, after the rotated files, the files that only have their second name left, then the current file. */
static enum err_code add_named(int dirfd, const char *base, struct log_files *f, struct err *e)
{
    static const enum log_role order[] = { LOG_KEPT, LOG_NEXT, LOG_CURRENT };
    char name[LOG_NAME_SIZE];
    struct log_file one, tmp;
    bool has_tmp;

    log_file_name(LOG_TMP, base, name);
    has_tmp = log_files_look_at(dirfd, name, &tmp);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        log_file_name(order[i], base, name);
        if (!log_files_look_at(dirfd, name, &one))
            continue;
        if (order[i] != LOG_CURRENT && has_tmp && one.ino == tmp.ino && one.dev == tmp.dev)
            continue; /* not started yet */
        if (log_files_add(f, &one, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

/* Keeps only the last of several names of a file. */
static void drop_doubles(struct log_files *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++) {
        bool again = false;

        for (size_t j = i + 1; j < f->n && !again; j++)
            again = f->v[j].ino == f->v[i].ino && f->v[j].dev == f->v[i].dev;
        if (!again)
            f->v[n++] = f->v[i];
    }
    f->n = n;
}

static enum err_code log_files_look(int dirfd, const char *base, struct log_files *ret, struct err *e)
{
    *ret = (struct log_files){ 0 };
    if (add_rotated(dirfd, base, ret, e) != ERR_OK || add_named(dirfd, base, ret, e) != ERR_OK)
        return e->code;
    drop_doubles(ret);
    return ERR_OK;
}

static bool log_files_same(const struct log_files *a, const struct log_files *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->v[i].ino != b->v[i].ino || a->v[i].dev != b->v[i].dev)
            return false;
    return true;
}

enum err_code log_files_list(int dirfd, const char *base, struct log_files *ret, struct err *e)
{
    struct log_files before = { 0 };
    enum err_code code = log_files_look(dirfd, base, ret, e);

    for (int i = 0; code == ERR_OK && i < LOOKS; i++) {
        bool settled;

        log_files_done(&before);
        before = *ret;
        code = log_files_look(dirfd, base, ret, e);
        settled = log_files_same(&before, ret);
        if (settled)
            break;
    }
    log_files_done(&before);
    if (code != ERR_OK)
        log_files_done(ret);
    return code;
}

enum err_code log_files_rotated(int dirfd, const char *base, struct log_files *ret, struct err *e)
{
    *ret = (struct log_files){ 0 };
    if (add_rotated(dirfd, base, ret, e) != ERR_OK)
        log_files_done(ret);
    return e->code;
}

static bool belongs(const char *name, const char *base)
{
    size_t n = strlen(base);

    if (*name == '.')
        name++;
    return strncmp(name, base, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

void log_files_remove(int dirfd, const char *base)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct dirent *entry;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((entry = readdir(d)) != NULL)
        if (belongs(entry->d_name, base))
            fs_remove_quietly(dirfd, entry->d_name);
    closedir(d);
}
