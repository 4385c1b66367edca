/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer's tar (plain, gzip, zstd) through the whole of unpack_stream() into a folder on tmpfs: whatever the
 * bytes, nothing outside of that folder changes, no device is made but those that every container has, and it
 * ends with success or a reason.  An input whose size is odd is taken for the archive around an image.
 * Checksums of tar headers are put right before, so that mutated headers get past libarchive's first look. As
 * root, owners and nodes are real; else the first entry with another owner ends it.
 */
#include "agent/unpack/unpack.h"
#include "tests/fuzz/scratch.h"

#include <dirent.h>
#include <locale.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    BLOCK = 512,
    CHECKSUM = 148,
    CHECKSUM_SIZE = 8,
    SIZE_FIELD = 124,
    INPUT_MAX = 256 * 1024,
    ENTRIES_MAX = 300
};

static int scratch = -1;
static struct unpack_lower lower;

/* What a layer may find below it; and next to its root, what it must not reach. */
static void prepare(void)
{
    scratch = scratch_open();
    umask(0);
    setlocale(LC_CTYPE, "C.UTF-8");
    scratch_mkdir(scratch, "outside");
    scratch_write(scratch, "outside/victim", (struct str){ "safe", 4 });
    scratch_mkdir(scratch, "lower");
    lower.fds[lower.n++] = scratch_open_folder(scratch, "lower");
    scratch_mkdir(lower.fds[0], "tmp");
    scratch_mkdir(lower.fds[0], "a");
    scratch_mkdir(lower.fds[0], "a/b");
    if (fchmodat(lower.fds[0], "tmp", 01777, 0) != 0 || symlinkat("../outside", lower.fds[0], "out") != 0)
        abort();
}

static void fix_checksums(unsigned char *tar, size_t size)
{
    for (size_t at = 0; at + BLOCK <= size;) {
        unsigned char *h = tar + at;
        unsigned sum = 0;
        size_t n = 0;

        for (size_t i = 0; i < BLOCK; i++)
            sum += i >= CHECKSUM && i < CHECKSUM + CHECKSUM_SIZE ? ' ' : h[i];
        if (sum > 8 * ' ') { /* no header of zeros, which is the end */
            snprintf((char *)h + CHECKSUM, CHECKSUM_SIZE, "%06o", sum & 0777777);
            h[CHECKSUM + 7] = ' ';
        }
        for (size_t i = 0; i < 11 && h[SIZE_FIELD + i] >= '0' && h[SIZE_FIELD + i] <= '7'; i++)
            n = n * 8 + (size_t)(h[SIZE_FIELD + i] - '0');
        at += BLOCK + (n < size ? (n + BLOCK - 1) / BLOCK * BLOCK : 0);
    }
}

/* `depth` levels of descriptors at most; names only, links are not followed. */
static void check_tree(int dir, enum unpack_kind kind, unsigned depth)
{
    DIR *d = fdopendir(dir);
    struct dirent *entry;

    assert(d != NULL);
    while ((entry = readdir(d)) != NULL) {
        bool known = false;
        struct stat st;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        assert(fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0);
        assert(kind == UNPACK_LAYER || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode));
        assert(!S_ISBLK(st.st_mode) && !S_ISSOCK(st.st_mode));
        for (size_t i = 0; i < unpack_n_devices; i++)
            known = known || st.st_rdev == makedev(unpack_devices[i].major, unpack_devices[i].minor);
        assert(!S_ISCHR(st.st_mode) || known || st.st_rdev == 0);
        if (S_ISDIR(st.st_mode) && depth > 0)
            check_tree(openat(dirfd(d), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), kind,
                       depth - 1);
    }
    closedir(d);
}

static void check_outside(void)
{
    int fd = dup(scratch);
    DIR *d = fdopendir(fd);
    char content[8] = "";
    struct stat st;
    unsigned n = 0;

    assert(d != NULL);
    rewinddir(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    assert(n == 2 + 3); /* ".", "..", lower, outside, root */
    assert(fstatat(scratch, "outside", &st, 0) == 0 && (st.st_mode & 07777) == 0700 && st.st_nlink == 2);
    fd = openat(scratch, "outside/victim", O_RDONLY | O_CLOEXEC);
    assert(fstat(fd, &st) == 0 && st.st_nlink == 1 && (st.st_mode & 07777) == 0600 && st.st_size == 4);
    assert(read(fd, content, sizeof(content)) == 4 && strcmp(content, "safe") == 0);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const enum unpack_kind kind = size % 2 == 0 ? UNPACK_LAYER : UNPACK_ARCHIVE;
    struct unpack_budget budget = { .bytes = 1 << 20, .entries = ENTRIES_MAX };
    struct unpack_result result = { 0 };
    struct err e = { 0 };
    unsigned char *tar;
    int fd, root;

    if (scratch < 0)
        prepare();
    if (size > INPUT_MAX)
        return 0;
    fd = memfd_create("layer", MFD_CLOEXEC);
    tar = malloc(size + 1);
    assert(fd >= 0 && tar != NULL);
    memcpy(tar, data, size);
    if (size < 2 || (memcmp(tar, "\x1f\x8b", 2) != 0 && memcmp(tar, "\x28\xb5", 2) != 0))
        fix_checksums(tar, size);
    assert(write(fd, tar, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
    free(tar);
    scratch_mkdir(scratch, "root");
    root = scratch_open_folder(scratch, "root");

    if (unpack_stream(fd, "", -1, NULL, root, kind, &lower, &budget, &result, &e) != ERR_OK)
        assert(e.code != ERR_OK && e.text[0] != '\0');
    else
        assert(e.code == ERR_OK && result.bytes <= 1 << 20);
    check_outside();
    check_tree(dup(root), kind, 100);
    close(root);
    close(fd);
    scratch_clear(scratch, "root");
    return 0;
}
