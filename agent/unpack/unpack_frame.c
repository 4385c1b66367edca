#include "agent/unpack/unpack.h"

#include "base/fs.h"

#include <archive.h>
#include <archive_entry.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/*
 * A layer's tar without the content of its files, which stands in the tree already.  Compressed, it is
 *
 *     'L' <length, 4 bytes> <bytes>                      as they stand in the tar
 *     'F' <size, 8 bytes> <length, 4 bytes> <path>       the content of that file
 *
 * Whatever our look at the headers gets wrong (a name of another form, a file that comes twice) gives other
 * bytes when the tar is put together again, and that is tried before a frame is kept.
 */

enum { BLOCK = 512, CHUNK = 64 * 1024, NAME_MAX_BYTES = 4096, HEADER_MAX = 1 << 20 };

struct unpack_frame {
    struct archive *out;
    struct archive_entry *entry;
    enum { IN_HEADER, IN_LITERAL, IN_CONTENT } state;
    uint64_t left, padding; /* of what the header announced */
    unsigned char block[BLOCK];
    size_t n_block;
    struct buf literal;            /* not written yet */
    struct buf extended;           /* data of a pax header or of a long name */
    char extended_type;            /* 'x', 'L'; 0: none is being read */
    char name[NAME_MAX_BYTES + 1]; /* that the next header has by an extended one; "" */
    bool has_size, is_sparse;
    uint64_t size;
};

static enum err_code written(struct unpack_frame *f, const void *data, size_t n, struct err *e)
{
    if (archive_write_data(f->out, data, n) != (la_ssize_t)n)
        return unpack_archive_error(f->out, "frame of the layer", e);
    return ERR_OK;
}

static enum err_code flush(struct unpack_frame *f, struct err *e)
{
    unsigned char head[5] = { 'L' };
    uint32_t n = htole32((uint32_t)f->literal.n);

    if (f->literal.failed)
        return err_nomem(e);
    if (f->literal.n == 0)
        return ERR_OK;
    memcpy(head + 1, &n, sizeof(n));
    if (written(f, head, sizeof(head), e) != ERR_OK || written(f, f->literal.p, f->literal.n, e) != ERR_OK)
        return e->code;
    buf_reset(&f->literal);
    return ERR_OK;
}

static enum err_code add_literal(struct unpack_frame *f, const void *data, size_t n, struct err *e)
{
    buf_add(&f->literal, data, n);
    return f->literal.n >= CHUNK || f->literal.failed ? flush(f, e) : ERR_OK;
}

static enum err_code add_file(struct unpack_frame *f, const char *path, uint64_t size, struct err *e)
{
    unsigned char head[13] = { 'F' };
    uint64_t size_le = htole64(size);
    uint32_t n = htole32((uint32_t)strlen(path));

    memcpy(head + 1, &size_le, sizeof(size_le));
    memcpy(head + 9, &n, sizeof(n));
    if (flush(f, e) != ERR_OK || written(f, head, sizeof(head), e) != ERR_OK)
        return e->code;
    return written(f, path, strlen(path), e);
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Octal, or GNU's binary form. */
static uint64_t number(const unsigned char *field, size_t n)
{
    uint64_t value = 0;

    if (field[0] & 0x80) {
        for (size_t i = n - 8; i < n; i++)
            value = value << 8 | field[i];
        return value;
    }
    for (size_t i = 0; i < n && (field[i] == ' ' || (field[i] >= '0' && field[i] <= '7')); i++)
        if (field[i] != ' ')
            value = value << 3 | (uint64_t)(field[i] - '0');
    return value;
}

static void take_name(struct unpack_frame *f, const char *name, size_t n)
{
    if (n > NAME_MAX_BYTES || memchr(name, '\0', n) != NULL)
        n = 0;
    memcpy(f->name, name, n);
    f->name[n] = '\0';
}

/* "<length> <key>=<value>\n", again and again */
static void take_pax(struct unpack_frame *f)
{
    const char *at = f->extended.p, *end = at + f->extended.n;

    while (at < end) {
        char *key, *equals;
        unsigned long n = strtoul(at, &key, 10); /* the buffer ends with NUL */

        if (n == 0 || n > (size_t)(end - at) || *key != ' ' || key >= at + n)
            return;
        key++;
        equals = memchr(key, '=', (size_t)(at + n - key));
        if (equals == NULL)
            return;
        if (str_starts(key, "path="))
            take_name(f, equals + 1, (size_t)(at + n - 1 - (equals + 1)));
        if (str_starts(key, "size=")) {
            f->size = strtoull(equals + 1, NULL, 10);
            f->has_size = true;
        }
        f->is_sparse = f->is_sparse || str_starts(key, "GNU.sparse.");
        at += n;
    }
}

static void extended_ends(struct unpack_frame *f)
{
    if (f->extended_type == 'x' && !f->extended.failed)
        take_pax(f);
    else if (f->extended_type == 'L' && !f->extended.failed)
        take_name(f, f->extended.p, strnlen(f->extended.p, f->extended.n));
    buf_reset(&f->extended);
    f->extended_type = 0;
}

/* Of a header without an extended one. */
static void own_name(struct unpack_frame *f)
{
    const char *name = (const char *)f->block, *prefix = name + 345;
    int n_prefix = memcmp(name + 257, "ustar\0", 6) == 0 ? (int)strnlen(prefix, 155) : 0;

    snprintf(f->name, sizeof(f->name), "%.*s%s%.*s", n_prefix, prefix, n_prefix > 0 ? "/" : "",
             (int)strnlen(name, 100), name);
}

static enum err_code header_ends(struct unpack_frame *f, struct err *e)
{
    const char type = (char)f->block[156];
    const uint64_t size = f->has_size && type != 'x' && type != 'L' ? f->size : number(f->block + 124, 12);
    char path[NAME_MAX_BYTES + 1];
    struct err ignored = { 0 };

    if (add_literal(f, f->block, BLOCK, e) != ERR_OK)
        return e->code;
    f->n_block = 0;
    f->left = size > INT64_MAX ? 0 : size;
    f->padding = (BLOCK - f->left % BLOCK) % BLOCK;
    if (type == 'x' || type == 'L' || type == 'K' || type == 'g') {
        f->extended_type = type;
        f->state = IN_LITERAL;
        return ERR_OK;
    }
    if (f->name[0] == '\0')
        own_name(f);
    f->state = IN_LITERAL;
    if ((type == '0' || type == '\0' || type == '7') && f->left > 0 && !f->is_sparse &&
        unpack_path_clean(f->name, path, &ignored) == ERR_OK && path[0] != '\0') {
        f->state = IN_CONTENT;
        if (add_file(f, path, f->left, e) != ERR_OK)
            return e->code;
    } else if ((type >= '1' && type <= '6') && !f->has_size) {
        f->left = f->padding = 0; /* links, nodes and folders have no data, whatever they say */
    }
    f->name[0] = '\0';
    f->has_size = f->is_sparse = false;
    return ERR_OK;
}

/* ---- the stream ------------------------------------------------------------------------------ */

static size_t smaller(uint64_t left, size_t n)
{
    return left < n ? (size_t)left : n;
}

static void data_ends(struct unpack_frame *f)
{
    if (f->extended_type != 0)
        extended_ends(f);
    f->left = f->padding;
    f->padding = 0;
    f->state = f->left > 0 ? IN_LITERAL : IN_HEADER;
}

enum err_code unpack_frame_add(struct unpack_frame *f, const void *data, size_t n, struct err *e)
{
    const char *at = data;

    while (n > 0 && e->code == ERR_OK) {
        size_t part = f->state == IN_HEADER ? smaller(BLOCK - f->n_block, n) : smaller(f->left, n);

        switch (f->state) {
        case IN_HEADER:
            memcpy(f->block + f->n_block, at, part);
            f->n_block += part;
            if (f->n_block == BLOCK)
                header_ends(f, e);
            break;
        case IN_LITERAL:
            if (f->extended_type != 0)
                buf_add(&f->extended, at, part);
            add_literal(f, at, part, e);
            f->left -= part;
            break;
        case IN_CONTENT:
            f->left -= part;
            break;
        }
        at += part;
        n -= part;
        while (f->state != IN_HEADER && f->left == 0)
            data_ends(f);
    }
    return e->code;
}

enum err_code unpack_frame_end(struct unpack_frame *f, struct err *e)
{
    if (f->n_block > 0)
        buf_add(&f->literal, f->block, f->n_block);
    if (flush(f, e) != ERR_OK)
        return e->code;
    if (archive_write_close(f->out) != ARCHIVE_OK)
        return unpack_archive_error(f->out, "frame of the layer", e);
    return ERR_OK;
}

enum err_code unpack_frame_new(struct unpack_frame **ret, int fd, struct err *e)
{
    struct unpack_frame *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return err_nomem(e);
    f->literal = (struct buf)BUF_INIT(2 * HEADER_MAX);
    f->extended = (struct buf)BUF_INIT(HEADER_MAX);
    f->out = archive_write_new();
    f->entry = archive_entry_new();
    if (f->out == NULL || f->entry == NULL)
        err_nomem(e);
    else {
        archive_entry_set_filetype(f->entry, AE_IFREG);
        if (archive_write_add_filter_zstd(f->out) != ARCHIVE_OK ||
            archive_write_set_format_raw(f->out) != ARCHIVE_OK ||
            archive_write_open_fd(f->out, fd) != ARCHIVE_OK ||
            archive_write_header(f->out, f->entry) != ARCHIVE_OK)
            unpack_archive_error(f->out, "frame of the layer", e);
    }
    if (e->code != ERR_OK) {
        unpack_frame_free(f);
        return e->code;
    }
    *ret = f;
    return ERR_OK;
}

void unpack_frame_free(struct unpack_frame *f)
{
    if (f == NULL)
        return;
    archive_entry_free(f->entry);
    archive_write_free(f->out);
    buf_done(&f->literal);
    buf_done(&f->extended);
    free(f);
}

/* ---- together again -------------------------------------------------------------------------- */

struct replay {
    struct archive *in;
    int root;
    unpack_sink_fn sink;
    void *arg;
    char chunk[CHUNK];
};

/* False: the end, or *e. */
static bool take(struct replay *r, void *to, size_t n, bool may_end, struct err *e)
{
    size_t have = 0;

    while (have < n) {
        la_ssize_t got = archive_read_data(r->in, (char *)to + have, n - have);

        if (got < 0)
            unpack_archive_error(r->in, "frame of the layer", e);
        else if (got == 0 && !(may_end && have == 0))
            err_set(e, ERR_DATA_LOSS, "the frame of the layer is cut off");
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    return true;
}

static enum err_code copy_literal(struct replay *r, uint32_t n, struct err *e)
{
    while (n > 0) {
        size_t part = smaller(n, sizeof(r->chunk));

        if (!take(r, r->chunk, part, false, e) || r->sink(r->arg, r->chunk, part, e) != ERR_OK)
            return e->code;
        n -= (uint32_t)part;
    }
    return ERR_OK;
}

static enum err_code copy_file(struct replay *r, const char *path, uint64_t size, struct err *e)
{
    fd_auto fd = fs_open_in_root(r->root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME, 0, e);
    struct stat st;

    if (fd < 0)
        return e->code;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != size)
        return err_set(e, ERR_DATA_LOSS, "\"%.200s\" is not the file that the layer brought", path);
    while (size > 0) {
        ssize_t n = read(fd, r->chunk, smaller(size, sizeof(r->chunk)));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? err_sys(e, errno, "read \"%.200s\"", path)
                         : err_set(e, ERR_DATA_LOSS, "\"%.200s\" became shorter", path);
        if (r->sink(r->arg, r->chunk, (size_t)n, e) != ERR_OK)
            return e->code;
        size -= (uint64_t)n;
    }
    return ERR_OK;
}

static enum err_code next_file(struct replay *r, struct err *e)
{
    char path[NAME_MAX_BYTES + 1];
    uint64_t size;
    uint32_t n;

    if (!take(r, &size, sizeof(size), false, e) || !take(r, &n, sizeof(n), false, e))
        return e->code;
    n = le32toh(n);
    if (n == 0 || n > NAME_MAX_BYTES)
        return err_set(e, ERR_DATA_LOSS, "the frame of the layer is damaged");
    if (!take(r, path, n, false, e))
        return e->code;
    path[n] = '\0';
    return copy_file(r, path, le64toh(size), e);
}

static enum err_code replay_all(struct replay *r, struct err *e)
{
    uint32_t n;
    char kind;

    while (e->code == ERR_OK && take(r, &kind, 1, true, e)) {
        if (kind == 'F')
            next_file(r, e);
        else if (kind != 'L')
            err_set(e, ERR_DATA_LOSS, "the frame of the layer is damaged");
        else if (take(r, &n, sizeof(n), false, e))
            copy_literal(r, le32toh(n), e);
    }
    return e->code;
}

enum err_code unpack_frame_replay(int fd, int root, unpack_sink_fn sink, void *arg, struct err *e)
{
    mem_auto struct replay *r = calloc(1, sizeof(*r));
    struct archive_entry *entry;

    if (r == NULL || (r->in = archive_read_new()) == NULL)
        return err_nomem(e);
    r->root = root;
    r->sink = sink;
    r->arg = arg;
    if (lseek(fd, 0, SEEK_SET) != 0)
        err_sys(e, errno, "frame of the layer");
    else if (archive_read_append_filter(r->in, ARCHIVE_FILTER_ZSTD) != ARCHIVE_OK ||
             archive_read_support_format_raw(r->in) != ARCHIVE_OK ||
             archive_read_open_fd(r->in, fd, CHUNK) != ARCHIVE_OK ||
             archive_read_next_header(r->in, &entry) != ARCHIVE_OK)
        unpack_archive_error(r->in, "frame of the layer", e);
    else
        replay_all(r, e);
    archive_read_free(r->in);
    return e->code;
}

struct counting {
    struct unpack_hash *hash;
    uint64_t n;
};

static enum err_code count(void *arg, const void *data, size_t n, struct err *e)
{
    struct counting *c = arg;

    c->n += n;
    return unpack_hash_add(c->hash, data, n, e);
}

enum err_code unpack_frame_check(int fd, int root, const char *diff_id, uint64_t *ret_size, struct err *e)
{
    scoped(unpack_hash_free) struct unpack_hash *hash = NULL;
    char sum[UNPACK_DIGEST_SIZE];
    struct counting c = { 0 };

    if (unpack_hash_new(&hash, e) != ERR_OK)
        return e->code;
    c.hash = hash;
    if (unpack_frame_replay(fd, root, count, &c, e) != ERR_OK || unpack_hash_end(hash, sum, e) != ERR_OK)
        return e->code;
    if (strcmp(sum, diff_id) != 0)
        return err_set(e, ERR_DATA_LOSS, "put together again, its tar has the digest %s", sum);
    *ret_size = c.n;
    return ERR_OK;
}
