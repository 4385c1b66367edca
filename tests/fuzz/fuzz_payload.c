/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two versions of a payload volume, apart by a line "%%", a file a line: `path=content`.  Paths are what a
 * manifest says (items[].path, keys), the writer's rules are the last that stand before the disk: whatever
 * they let through is found under its path, nothing is written beside the volume, and nothing is left of the
 * version before.
 */
#include "volumes/internal.h"

#include "tests/fuzz/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILES_MAX 64

static size_t parse(char *text, struct vol_file *files)
{
    size_t n = 0;

    for (char *line = text, *next; line != NULL && n < FILES_MAX; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        char *content = strchr(line, '=');
        if (content != NULL)
            *content++ = '\0';
        files[n] = (struct vol_file){ .path = line,
                                      .data = content != NULL ? content : "",
                                      .size = content != NULL ? strlen(content) : 0,
                                      .mode = (mode_t)(n % 2 == 0 ? 0644 : 0400) };
        n++;
    }
    return n;
}

/* What may stand at the top: ..data, its generation, and a link for each file or folder of the version. */
static void check_top(int volume)
{
    char is[320], to[320];
    unsigned generations = 0;
    int copy = openat(volume, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fdopendir(copy);

    assert(list != NULL);
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 || strcmp(d->d_name, "..data") == 0)
            continue;
        if (vol_generation_is(d->d_name)) {
            generations++;
            continue;
        }
        int n = snprintf(to, sizeof(to), "..data/%s", d->d_name);
        assert(readlinkat(volume, d->d_name, is, sizeof(is)) == n && memcmp(is, to, (size_t)n) == 0);
        assert(faccessat(volume, d->d_name, F_OK, 0) == 0);
    }
    closedir(list);
    assert(generations == 1);
}

/* "a//b/." is found as it is meant. */
static void check_last(int volume, const struct vol_file *f)
{
    struct vol_plan plan = { 0 };
    struct err e = { 0 };
    str_auto text = NULL;
    struct stat st;

    assert(vol_plan_make(&plan, f, 1, &e) == ERR_OK);
    assert(fs_read_at(volume, plan.v[0].path, 1 << 20, &text, NULL, &e) == ERR_OK);
    assert(strlen(text) == f->size && memcmp(text, f->data, f->size) == 0);
    assert(fstatat(volume, plan.v[0].path, &st, 0) == 0 && (st.st_mode & 07777) == f->mode);
    vol_plan_done(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int scratch = -1;
    struct str parts[2];
    char target[128];
    struct vol_writer *w = NULL;
    struct err e = { 0 };

    if (scratch < 0)
        scratch = scratch_open();
    scratch_write(scratch, "beside", (struct str){ "untouched", 9 });
    scratch_mkdir(scratch, "volume");
    snprintf(target, sizeof(target), "%s/volume", scratch_path);
    assert(vol_writer_open(&w, target, &e) == ERR_OK);
    int volume = scratch_open_folder(scratch, "volume");
    for (size_t i = 0, n_parts = scratch_parts(data, size, parts, 2); i < n_parts; i++) {
        struct vol_file files[FILES_MAX];
        bool changed = false;
        char *text = malloc(parts[i].n + 1);
        if (text == NULL)
            break;
        memcpy(text, parts[i].p, parts[i].n);
        text[parts[i].n] = '\0';
        size_t n = parse(text, files);
        e = (struct err){ 0 };
        if (vol_writer_publish(w, files, n, -1, &changed, &e) == ERR_OK) {
            check_top(volume);
            check_last(volume, &files[n - 1]);
            assert(vol_writer_publish(w, files, n, -1, &changed, &e) == ERR_OK && !changed);
        } else {
            assert(e.code != ERR_INTERNAL && e.text[0] != '\0' && !changed);
        }
        free(text);
    }
    close(volume);
    vol_writer_free(w);
    scratch_clear(scratch, "volume");
    int count = 0;
    DIR *list = opendir(scratch_path);
    assert(list != NULL);
    while (readdir(list) != NULL)
        count++;
    closedir(list);
    assert(count == 3); /* ".", ".." and the file beside */
    str_auto beside = NULL;
    e = (struct err){ 0 };
    assert(fs_read_at(scratch, "beside", 64, &beside, NULL, &e) == ERR_OK &&
           strcmp(beside, "untouched") == 0);
    return 0;
}
