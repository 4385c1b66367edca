/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tar.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/scope.h"
#include "base/tar_internal.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 64 * 1024, ATTRIBUTES_MAX = 64 * 1024, NAME_SIZE = 256 };
enum { NAMES_TRIED = 100, BESIDE_SIZE = 48 }; /* of files that are not whole yet */

struct unpack {
    int dir, in;
    const struct tar_options *o;
    char name[TAR_NAME_MAX + 1], link[TAR_NAME_MAX + 1]; /* of the entry */
    bool name_given, link_given, size_given;             /* by entries before it */
    uint64_t size;
    char top[NAME_SIZE]; /* the first element that was renamed */
    bool below;          /* there is none: it is "." that was */
};

/* ---- reading --------------------------------------------------------------------------------- */

/* *ret_end: nothing came at all (with ret_end NULL that is an error, too). */
static enum err_code tar_unpack_take(const struct unpack *u, void *data, size_t n, bool *ret_end,
                                     struct err *e)
{
    size_t have = 0;

    while (have < n) {
        ssize_t got = read(u->in, (char *)data + have, n - have);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(e, errno, "read the archive");
        if (got == 0 && have == 0 && ret_end != NULL) {
            *ret_end = true;
            return ERR_OK;
        }
        if (got == 0)
            return err_set(e, ERR_DATA_LOSS, "the archive ends early");
        have += (size_t)got;
    }
    return ERR_OK;
}

static uint64_t padded(uint64_t size)
{
    return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

static enum err_code tar_unpack_skip(const struct unpack *u, uint64_t n, struct err *e)
{
    char piece[PIECE];

    while (n > 0) {
        size_t part = n < sizeof(piece) ? (size_t)n : sizeof(piece);

        if (tar_unpack_take(u, piece, part, NULL, e) != ERR_OK)
            return e->code;
        n -= part;
    }
    return ERR_OK;
}

/* Octal, or GNU's base 256; false: neither, or more than a file can have. */
static bool tar_unpack_number(const char *field, size_t width, uint64_t *ret)
{
    uint64_t value = 0;
    size_t i = 0;

    if ((field[0] & 0x80) != 0) {
        for (i = 1; i < width; i++) {
            if (value >> 54 != 0)
                return false;
            value = value << 8 | (unsigned char)field[i];
        }
        *ret = value;
        return (field[0] & 0x7f) == 0;
    }
    while (i < width && field[i] == ' ')
        i++;
    for (; i < width && field[i] >= '0' && field[i] <= '7'; i++) {
        if (value >> 59 != 0)
            return false;
        value = value << 3 | (uint64_t)(field[i] - '0');
    }
    *ret = value;
    return value <= INT64_MAX - TAR_BLOCK && (i == width || field[i] == '\0' || field[i] == ' ');
}

static bool sealed(const struct tar_header *h)
{
    const unsigned char *bytes = (const unsigned char *)h;
    const size_t at = offsetof(struct tar_header, checksum);
    uint64_t said, sum = 0;

    for (size_t i = 0; i < sizeof(*h); i++)
        sum += i >= at && i < at + sizeof(h->checksum) ? ' ' : bytes[i];
    return tar_unpack_number(h->checksum, sizeof(h->checksum), &said) && said == sum;
}

/* ---- names that come before their entry ------------------------------------------------------- */

static enum err_code take_text(const struct unpack *u, uint64_t size, char *to, struct err *e)
{
    if (size == 0 || size > TAR_NAME_MAX)
        return err_set(e, ERR_INVALID, "a name of %llu bytes in the archive", (unsigned long long)size);
    if (tar_unpack_take(u, to, (size_t)size, NULL, e) != ERR_OK)
        return e->code;
    to[size] = '\0';
    return tar_unpack_skip(u, padded(size) - size, e);
}

/* One of "<length> <key>=<value>\n" */
static enum err_code take_attribute(struct unpack *u, const char *key, const char *value, size_t n,
                                    struct err *e)
{
    bool name = strncmp(key, "path=", 5) == 0, link = strncmp(key, "linkpath=", 9) == 0;
    char *end;

    if ((name || link) && n > TAR_NAME_MAX)
        return err_set(e, ERR_INVALID, "a name of %zu bytes in the archive", n);
    if (name) {
        snprintf(u->name, sizeof(u->name), "%.*s", (int)n, value);
        u->name_given = true;
    } else if (link) {
        snprintf(u->link, sizeof(u->link), "%.*s", (int)n, value);
        u->link_given = true;
    } else if (strncmp(key, "size=", 5) == 0) {
        u->size = strtoull(value, &end, 10);
        u->size_given = u->size <= INT64_MAX - TAR_BLOCK;
    }
    return ERR_OK;
}

static enum err_code take_attributes(struct unpack *u, uint64_t size, struct err *e)
{
    mem_auto char *text = size <= ATTRIBUTES_MAX ? malloc((size_t)size + 1) : NULL;
    char *at = text;

    if (size > ATTRIBUTES_MAX)
        return err_set(e, ERR_INVALID, "attributes of %llu bytes in the archive", (unsigned long long)size);
    if (text == NULL)
        return err_nomem(e);
    if (tar_unpack_take(u, text, (size_t)size, NULL, e) != ERR_OK)
        return e->code;
    text[size] = '\0';
    while (at < text + size) {
        char *key, *equals;
        unsigned long n = strtoul(at, &key, 10);

        if (n < 5 || n > (size_t)(text + size - at) || *key != ' ' || at[n - 1] != '\n')
            return err_set(e, ERR_INVALID, "the archive has broken attributes");
        at[n - 1] = '\0';
        equals = strchr(++key, '=');
        if (equals != NULL &&
            take_attribute(u, key, equals + 1, (size_t)(at + n - 1 - (equals + 1)), e) != ERR_OK)
            return e->code;
        at += n;
    }
    return tar_unpack_skip(u, padded(size) - size, e);
}

/* ---- where it goes --------------------------------------------------------------------------- */

static void tar_unpack_warn(const struct unpack *u, const char *what)
{
    char text[TAR_NAME_MAX + 100];

    snprintf(text, sizeof(text), "%s: %s", u->name, what);
    text_printable(text); /* names may hold anything, and warnings go to terminals */
    if (u->o->warn != NULL)
        u->o->warn(text, u->o->arg);
}

static bool is_dots(const char *s, size_t n)
{
    return (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.');
}

static enum err_code tar_unpack_enter(int *dir, const char *name, const struct unpack *u, struct err *e)
{
    int next;

    if (mkdirat(*dir, name, 0755) != 0 && errno != EEXIST)
        return err_sys(e, errno, "make %s", u->name);
    next = openat(*dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0)
        return err_sys(e, errno, "%s: open folder %s", u->name, name);
    close(*dir);
    *dir = next;
    return ERR_OK;
}

/* With a new first name, an archive is one file or folder. */
static enum err_code rename_first(struct unpack *u, char last[NAME_SIZE], struct err *e)
{
    if (u->top[0] == '\0')
        snprintf(u->top, sizeof(u->top), "%s", last);
    if (strcmp(u->top, last) != 0)
        return err_set(
            e, ERR_INVALID,
            "the archive holds more than one file or folder (%s, %s): its destination must be a folder",
            u->top, last);
    snprintf(last, NAME_SIZE, "%s", u->o->rename);
    return ERR_OK;
}

/*
 * The folder that the entry goes into, and its last name; "" for the destination itself.  Each element is
 * opened from the one before it, and none is a link.
 */
static enum err_code tar_unpack_walk(struct unpack *u, int *ret_dir, char last[NAME_SIZE], struct err *e)
{
    fd_auto dir = fcntl(u->dir, F_DUPFD_CLOEXEC, 3);
    const char *at = u->name;
    bool first = true;

    snprintf(last, NAME_SIZE, "%s", u->below ? u->o->rename : "");
    if (dir < 0)
        return err_sys(e, errno, "open the destination");
    if (at[0] == '/')
        return err_set(e, ERR_INVALID, "the archive has a name that begins with /: %s", at);
    while (*at != '\0') {
        size_t n = strcspn(at, "/");

        if (n >= NAME_SIZE)
            return err_set(e, ERR_INVALID, "the archive has a name that is too long: %s", at);
        if (n == 2 && is_dots(at, n))
            return err_set(e, ERR_INVALID, "the archive has a name with ..: %s", u->name);
        if (n > 0 && !is_dots(at, n)) {
            if (last[0] != '\0' && tar_unpack_enter(&dir, last, u, e) != ERR_OK)
                return e->code;
            snprintf(last, NAME_SIZE, "%.*s", (int)n, at);
            if (first && u->o->rename != NULL && !u->below && rename_first(u, last, e) != ERR_OK)
                return e->code;
            first = false;
        }
        at += n;
        at += strspn(at, "/");
    }
    *ret_dir = take_fd(&dir);
    return ERR_OK;
}

static void set_time(int fd, uint64_t mtime)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = (time_t)mtime } };

    if (futimens(fd, times) != 0)
        return; /* the content matters */
}

/* A file under a name that nobody has, beside the one that it will get. */
static int open_beside(int dir, char name[BESIDE_SIZE])
{
    int fd = -1;

    for (int i = 0; i < NAMES_TRIED && fd < 0; i++) {
        snprintf(name, BESIDE_SIZE, ".coracle-cp.%d.%d", (int)getpid(), i);
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

static enum err_code tar_unpack_fill(const struct unpack *u, int fd, mode_t mode, uint64_t mtime,
                                     struct err *e)
{
    uint64_t left = u->size;
    char piece[PIECE];

    while (left > 0) {
        size_t part = left < sizeof(piece) ? (size_t)left : sizeof(piece);
        int sys;

        if (tar_unpack_take(u, piece, part, NULL, e) != ERR_OK)
            return e->code;
        sys = fs_write_all(fd, piece, part);
        if (sys != 0)
            return err_sys(e, sys, "write %s", u->name);
        left -= part;
    }
    if (fchmod(fd, mode) != 0)
        return err_sys(e, errno, "set permissions of %s", u->name);
    set_time(fd, mtime);
    return tar_unpack_skip(u, padded(u->size) - u->size, e);
}

/* What has that name stays as it is until the new file is whole. */
static enum err_code tar_unpack_make_file(const struct unpack *u, int dir, const char *last, mode_t mode,
                                          uint64_t mtime, struct err *e)
{
    char beside[BESIDE_SIZE];
    fd_auto fd = open_beside(dir, beside);

    if (fd < 0)
        return err_sys(e, errno, "make %s", u->name);
    if (tar_unpack_fill(u, fd, mode, mtime, e) == ERR_OK && renameat(dir, beside, dir, last) != 0)
        err_sys(e, errno, "replace %s", u->name);
    if (e->code != ERR_OK)
        unlinkat(dir, beside, 0);
    return e->code;
}

static enum err_code tar_unpack_make_folder(const struct unpack *u, int dir, const char *last, mode_t mode,
                                            struct err *e)
{
    fd_auto fd = -1;

    if (mkdirat(dir, last, 0700) != 0)
        return errno == EEXIST ? ERR_OK : err_sys(e, errno, "make %s", u->name);
    fd = openat(dir, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* So that what is in it can be made: its owner may write. */
    if (fd < 0 || fchmod(fd, mode | 0700) != 0)
        return err_sys(e, errno, "set permissions of %s", u->name);
    return ERR_OK;
}

static enum err_code tar_unpack_make_link(const struct unpack *u, int dir, const char *last, struct err *e)
{
    if (u->o->no_links) {
        tar_unpack_warn(u, "left out: a symbolic link");
        return ERR_OK;
    }
    if (unlinkat(dir, last, 0) != 0 && errno != ENOENT)
        return err_sys(e, errno, "replace %s", u->name);
    if (symlinkat(u->link, dir, last) != 0)
        return err_sys(e, errno, "make the link %s", u->name);
    return ERR_OK;
}

static enum err_code make_entry(struct unpack *u, const struct tar_header *h, struct err *e)
{
    bool file = h->type == '0' || h->type == '\0' || h->type == '7';
    uint64_t mode = 0, mtime = 0;
    char last[NAME_SIZE];
    fd_auto dir = -1;

    if (!tar_unpack_number(h->mode, sizeof(h->mode), &mode) ||
        !tar_unpack_number(h->mtime, sizeof(h->mtime), &mtime))
        return err_set(e, ERR_INVALID, "the archive has a broken header");
    if (!file && h->type != '5' && h->type != '2') {
        tar_unpack_warn(u, "left out: neither a file, a folder nor a symbolic link");
        return tar_unpack_skip(u, padded(u->size), e);
    }
    if (tar_unpack_walk(u, &dir, last, e) != ERR_OK)
        return e->code;
    if (last[0] == '\0' && u->o->rename != NULL && u->top[0] == '\0' && h->type == '5') {
        u->below = true;
        snprintf(last, sizeof(last), "%s", u->o->rename);
    }
    if (last[0] == '\0')
        return tar_unpack_skip(u, file ? padded(u->size) : 0, e);
    if (file)
        return tar_unpack_make_file(u, dir, last, (mode_t)mode & 0777, mtime, e);
    if (h->type == '5' ? tar_unpack_make_folder(u, dir, last, (mode_t)mode & 0777, e) != ERR_OK
                       : tar_unpack_make_link(u, dir, last, e) != ERR_OK)
        return e->code;
    return tar_unpack_skip(u, padded(u->size), e);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void name_entry(struct unpack *u, const struct tar_header *h)
{
    bool ustar = memcmp(h->magic, "ustar\0", 6) == 0 && h->prefix[0] != '\0';

    if (!u->name_given)
        snprintf(u->name, sizeof(u->name), "%.*s%s%.*s", ustar ? (int)sizeof(h->prefix) : 0, h->prefix,
                 ustar ? "/" : "", (int)sizeof(h->name), h->name);
    if (!u->link_given)
        snprintf(u->link, sizeof(u->link), "%.*s", (int)sizeof(h->link), h->link);
    u->name_given = u->link_given = u->size_given = false;
}

static enum err_code take_block(struct unpack *u, const struct tar_header *h, struct err *e)
{
    uint64_t size;

    if (!sealed(h) || !tar_unpack_number(h->size, sizeof(h->size), &size))
        return err_set(e, ERR_INVALID, "this is no tar archive, or it is damaged");
    switch (h->type) {
    case 'L':
        u->name_given = true;
        return take_text(u, size, u->name, e);
    case 'K':
        u->link_given = true;
        return take_text(u, size, u->link, e);
    case 'x':
        return take_attributes(u, size, e);
    case 'g':
        return tar_unpack_skip(u, padded(size), e);
    default:
        break;
    }
    if (!u->size_given)
        u->size = size;
    name_entry(u, h);
    return make_entry(u, h, e);
}

/* Of a file: one element, and not the folder itself or the one above. */
static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n < NAME_SIZE && !is_dots(name, n) && strchr(name, '/') == NULL;
}

enum err_code tar_unpack(int dir, int in, const struct tar_options *o, struct err *e)
{
    static const struct tar_header zeros;
    struct unpack u = { .dir = dir, .in = in, .o = o };
    struct tar_header h;
    bool end = false, over = false;

    if (o->rename != NULL && !is_name(o->rename))
        return err_set(e, ERR_INVALID, "\"%s\" is no name for a file or folder", o->rename);
    for (;;) {
        if (tar_unpack_take(&u, &h, sizeof(h), &end, e) != ERR_OK || end)
            return e->code;
        if (memcmp(&h, &zeros, sizeof(h)) == 0)
            over = true; /* what follows is padding: it is read, so that nobody writes into a closed pipe */
        else if (!over && take_block(&u, &h, e) != ERR_OK)
            return e->code;
    }
}
