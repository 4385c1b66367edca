/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tar.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/scope.h"
#include "base/tar_internal.h"
#include "base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 256, PIECE = 64 * 1024, UNSIZED_MAX = 1024 * 1024 };

struct pack {
    int out;
    const struct tar_options *o;
    struct buf path; /* in the archive */
    unsigned depth;
};

static enum err_code tar_pack_put(const struct pack *p, const void *data, size_t n, struct err *e)
{
    int sys = fs_write_all(p->out, data, n);

    return sys == 0 ? ERR_OK : err_sys(e, sys, "write the archive");
}

static enum err_code pad(const struct pack *p, uint64_t size, struct err *e)
{
    static const char zeros[TAR_BLOCK];
    size_t over = (size_t)(size % TAR_BLOCK);

    return over > 0 ? tar_pack_put(p, zeros, TAR_BLOCK - over, e) : ERR_OK;
}

/* Octal, or GNU's base 256 where that is too short. */
static void tar_pack_number(char *field, size_t width, uint64_t value)
{
    if (width == 8 || value < (UINT64_C(1) << 33)) {
        snprintf(field, width, "%0*llo", (int)width - 1, (unsigned long long)value);
        return;
    }
    memset(field, 0, width);
    for (size_t i = width - 1; i > 0 && value > 0; i--, value >>= 8)
        field[i] = (char)(value & 255);
    field[0] = (char)0x80;
}

static void seal(struct tar_header *h)
{
    const unsigned char *bytes = (const unsigned char *)h;
    unsigned sum = 0;

    memcpy(h->magic, "ustar  ", 8);
    memset(h->checksum, ' ', sizeof(h->checksum));
    for (size_t i = 0; i < sizeof(*h); i++)
        sum += bytes[i];
    snprintf(h->checksum, 7, "%06o", sum & 0777777);
}

/* A name that does not fit its field comes before, as the content of an entry of its own. */
static enum err_code put_long(const struct pack *p, char type, const char *text, struct err *e)
{
    struct tar_header h = { .name = "././@LongLink", .type = type };
    size_t n = strlen(text) + 1;

    tar_pack_number(h.mode, sizeof(h.mode), 0);
    tar_pack_number(h.size, sizeof(h.size), n);
    tar_pack_number(h.mtime, sizeof(h.mtime), 0);
    seal(&h);
    if (tar_pack_put(p, &h, sizeof(h), e) != ERR_OK || tar_pack_put(p, text, n, e) != ERR_OK)
        return e->code;
    return pad(p, n, e);
}

static enum err_code put_head(const struct pack *p, const struct stat *st, char type, const char *link,
                              struct err *e)
{
    struct tar_header h = { .type = type };
    const char *name = p->path.p;

    if (strlen(name) > sizeof(h.name) && put_long(p, 'L', name, e) != ERR_OK)
        return e->code;
    if (strlen(link) > sizeof(h.link) && put_long(p, 'K', link, e) != ERR_OK)
        return e->code;
    memcpy(h.name, name, strlen(name) < sizeof(h.name) ? strlen(name) : sizeof(h.name));
    memcpy(h.link, link, strlen(link) < sizeof(h.link) ? strlen(link) : sizeof(h.link));
    tar_pack_number(h.mode, sizeof(h.mode), st->st_mode & 07777);
    tar_pack_number(h.uid, sizeof(h.uid), 0);
    tar_pack_number(h.gid, sizeof(h.gid), 0);
    tar_pack_number(h.size, sizeof(h.size), type == '0' ? (uint64_t)st->st_size : 0);
    tar_pack_number(h.mtime, sizeof(h.mtime), st->st_mtim.tv_sec > 0 ? (uint64_t)st->st_mtim.tv_sec : 0);
    seal(&h);
    return tar_pack_put(p, &h, sizeof(h), e);
}

static void tar_pack_warn(const struct pack *p, const char *what)
{
    char text[TAR_NAME_MAX + 100];

    snprintf(text, sizeof(text), "%s: %s", p->path.p, what);
    text_printable(text);
    if (p->o->warn != NULL)
        p->o->warn(text, p->o->arg);
}

/* The very node that was looked at, whatever has its name by now. */
static int reopen(const struct pack *p, int node, int flags)
{
    char name[16];

    snprintf(name, sizeof(name), "%d", node);
    return openat(p->o->proc_fds, name, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Files of procfs say that they are empty; what they hold is known when it is read. */
static enum err_code pack_unsized(const struct pack *p, int fd, const struct stat *st, struct err *e)
{
    struct stat sized = *st;
    struct err why = { 0 };
    str_auto text = NULL;
    size_t n = 0;

    if (fs_read_fd(fd, UNSIZED_MAX, &text, &n, &why) != ERR_OK) {
        char what[sizeof(why.text) + 20];

        if (p->depth == 0)
            return err_set(e, why.code, "read %s: %s", p->path.p, why.text);
        snprintf(what, sizeof(what), "left out: %s", why.text);
        tar_pack_warn(p, what);
        return ERR_OK;
    }
    sized.st_size = (off_t)n;
    if (put_head(p, &sized, '0', "", e) != ERR_OK || tar_pack_put(p, text, n, e) != ERR_OK)
        return e->code;
    return pad(p, n, e);
}

/* As many bytes as the header says: a file may grow or shrink meanwhile. */
static enum err_code pack_file(const struct pack *p, int node, const struct stat *st, struct err *e)
{
    fd_auto fd = reopen(p, node, O_RDONLY);
    uint64_t left = (uint64_t)st->st_size;
    char piece[PIECE];

    if (fd < 0)
        return err_sys(e, errno, "open %s", p->path.p);
    if (left == 0)
        return pack_unsized(p, fd, st, e);
    if (put_head(p, st, '0', "", e) != ERR_OK)
        return e->code;
    while (left > 0) {
        size_t wanted = left < sizeof(piece) ? (size_t)left : sizeof(piece);
        ssize_t n = read(fd, piece, wanted);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, errno, "read %s", p->path.p);
        if (n == 0)
            return err_set(e, ERR_ABORTED, "%s became shorter while it was read", p->path.p);
        if (tar_pack_put(p, piece, (size_t)n, e) != ERR_OK)
            return e->code;
        left -= (uint64_t)n;
    }
    return pad(p, (uint64_t)st->st_size, e);
}

static enum err_code pack_node(struct pack *p, int node, struct err *e);

static enum err_code pack_entry(struct pack *p, int dir, const char *name, struct err *e)
{
    size_t before = p->path.n;
    fd_auto node = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (node < 0)
        return errno == ENOENT ? ERR_OK : err_sys(e, errno, "open %s/%s", p->path.p, name);
    buf_addf(&p->path, "%s%s", before > 0 && p->path.p[before - 1] == '/' ? "" : "/", name);
    if (p->path.failed)
        return err_set(e, ERR_INVALID, "a path of more than %d bytes", TAR_NAME_MAX);
    if (pack_node(p, node, e) == ERR_OK) {
        p->path.n = before;
        p->path.p[before] = '\0';
    }
    return e->code;
}

static enum err_code pack_folder(struct pack *p, int node, const struct stat *st, struct err *e)
{
    int fd = reopen(p, node, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (dir == NULL) {
        err_sys(e, errno, "open %s", p->path.p);
        if (fd >= 0)
            close(fd);
        return e->code;
    }
    if (++p->depth > DEPTH_MAX)
        err_set(e, ERR_INVALID, "%s: folders are nested more than %d deep", p->path.p, DEPTH_MAX);
    else
        (void)!put_head(p, st, '5', "", e);
    while (e->code == ERR_OK && (entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)!pack_entry(p, dirfd(dir), entry->d_name, e);
    p->depth--;
    closedir(dir);
    return e->code;
}

static enum err_code pack_link(const struct pack *p, int node, const struct stat *st, struct err *e)
{
    char target[TAR_NAME_MAX + 1];
    ssize_t n = readlinkat(node, "", target, sizeof(target) - 1);

    if (n < 0)
        return err_sys(e, errno, "read the link %s", p->path.p);
    target[n] = '\0';
    return put_head(p, st, '2', target, e);
}

static enum err_code pack_node(struct pack *p, int node, struct err *e)
{
    struct stat st;

    if (fstat(node, &st) != 0)
        return err_sys(e, errno, "look at %s", p->path.p);
    if (S_ISREG(st.st_mode))
        return pack_file(p, node, &st, e);
    if (S_ISDIR(st.st_mode))
        return pack_folder(p, node, &st, e);
    if (S_ISLNK(st.st_mode))
        return pack_link(p, node, &st, e);
    if (p->depth == 0) /* which is all there was to pack */
        return err_set(e, ERR_INVALID, "%s is neither a file, a folder nor a link", p->path.p);
    tar_pack_warn(p, "left out: neither a file, a folder nor a link");
    return ERR_OK;
}

void tar_base_name(const char *path, char ret[256])
{
    size_t n = strlen(path), from;

    while (n > 0 && path[n - 1] == '/')
        n--;
    for (from = n; from > 0 && path[from - 1] != '/';)
        from--;
    snprintf(ret, 256, "%.*s", (int)(n - from), path + from);
    if (strcmp(ret, ".") == 0 || strcmp(ret, "..") == 0)
        ret[0] = '\0';
}

enum err_code tar_pack(int node, const char *as, int out, const struct tar_options *o, struct err *e)
{
    static const char end[2 * TAR_BLOCK];
    struct pack p = { .out = out, .o = o, .path = BUF_INIT(TAR_NAME_MAX) };

    buf_adds(&p.path, as);
    if (pack_node(&p, node, e) == ERR_OK)
        (void)!tar_pack_put(&p, end, sizeof(end), e);
    buf_done(&p.path);
    return e->code;
}
