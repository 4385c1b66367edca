/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/show/write_file.h"

#include "agent/source/put.h"
#include "agent/source/store.h"
#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/siphash.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define NAME_ROOM 200 /* of a file: file systems have 255 bytes, and a temporary name is longer */
#define TEXT_MAX (API_FILE_MAX + (8u << 20))

char *write_file_name(const struct src_key *key, bool again)
{
    static const unsigned char same_at_each_start[SIPHASH_KEY_SIZE] = { 0 };
    str_auto whole = str_printf("%s/%s/%s", api_kind_name(key->kind),
                                key->namespace_ != NULL ? key->namespace_ : "", key->name);
    char *text =
        str_printf("%s-%s%s%s", api_kind_name(key->kind), key->namespace_ != NULL ? key->namespace_ : "",
                   key->namespace_ != NULL ? "-" : "", key->name);
    char *name = NULL;

    for (char *c = text; c != NULL && *c != '\0'; c++)
        *c = *c == ':' ? '_' : (char)tolower((unsigned char)*c); /* names of roles may have colons */
    if (whole == NULL || text == NULL)
        ;
    else if (!again && strlen(text) <= NAME_ROOM)
        name = str_printf("%s.yaml", text);
    else
        name = str_printf("%.*s.%08llx.yaml", NAME_ROOM - 9, text,
                          (unsigned long long)siphash(same_at_each_start, whole, strlen(whole)) >> 32);
    free(text);
    return name;
}

void write_file_done(struct write_file *f)
{
    if (f->text != NULL)
        explicit_bzero(f->text, strlen(f->text));
    free(f->text);
    free(f->dir);
    free(f->name);
    json_decref(f->causes);
    if (f->was.pod != NULL)
        api_object_unref(&f->was);
}

/* ---- the present file ---- */

/* The file has the object as it is in force; *ret: whether it has others. */
static enum err_code check_old(const struct write_file *f, const char *text, size_t n, size_t *ret_n,
                               struct err *e)
{
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };
    bool same = false;

    if (api_decode_file(f->name, text, n, &objects, &problems, e) == ERR_OK && problems.n == 0)
        for (size_t i = 0; i < objects.n; i++)
            same = same || src_object_equal(&objects.v[i], &f->was);
    *ret_n = objects.n;
    if (e->code == ERR_OK && problems.n > 0)
        err_set(e, ERR_PERMISSION, "the file %s of the manifest folder has errors; fix it first", f->name);
    else if (e->code == ERR_OK && !same)
        err_set(e, ERR_ABORTED, "the file %s has changed", f->name);
    api_objects_done(&objects);
    api_problems_done(&problems);
    return e->code;
}

/* The problems of the new file. */
static enum err_code check_new(struct write_file *f, const char *text, size_t n, size_t n_wanted,
                               struct err *e)
{
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };

    if (api_decode_file(f->name, text, n, &objects, &problems, e) == ERR_OK && problems.n > 0) {
        f->causes = json_array();
        err_set(e, ERR_RANGE, "%s%s%s", problems.v[0].field, problems.v[0].field[0] != '\0' ? ": " : "",
                problems.v[0].message);
        for (size_t i = 0; i < problems.n; i++)
            json_array_append_new(f->causes, api_problem_json(&problems.v[i]));
    } else if (e->code == ERR_OK && objects.n != n_wanted) {
        err_set(e, ERR_INTERNAL, "%s would not contain the written object", f->name);
    }
    api_objects_done(&objects);
    api_problems_done(&problems);
    return e->code;
}

/* ---- the disk ---- */

/*
 * The name of a new object's file is taken. By the object itself, which could not be read until now, it must
 * not be taken twice: the second file would come into force when the first is removed.
 */
static enum err_code check_taken(const struct write_file *f, int folder, struct err *e)
{
    struct api_objects objects = { 0 };
    struct api_problems problems = { 0 };
    str_auto text = NULL;
    size_t n = 0;

    if (fs_read_at(folder, f->name, API_FILE_MAX, &text, &n, e) != ERR_OK)
        return src_put_failed(e);
    if (api_decode_file(f->name, text, n, &objects, &problems, e) == ERR_OK && problems.n > 0)
        err_set(e, ERR_PERMISSION, "the file %s of the manifest folder has errors; fix it first", f->name);
    for (size_t i = 0; i < objects.n && e->code == ERR_OK; i++)
        if (src_key_is(&f->key, &objects.v[i]))
            err_set(e, ERR_ABORTED, "the file %s already contains the object", f->name);
    explicit_bzero(text, n);
    api_objects_done(&objects);
    api_problems_done(&problems);
    return e->code;
}

/* A file that is there already stays: the next name is tried, then given up. */
static enum err_code write_new(struct write_file *f, int folder, struct err *e)
{
    for (int again = 0; again < 2; again++) {
        if (again == 1) {
            free(f->name);
            f->name = write_file_name(&f->key, true);
        }
        if (f->name == NULL)
            return err_nomem(e);
        *e = (struct err){ 0 };
        if (src_put_new(folder, f->dir, f->name, f->text, strlen(f->text), f->secret ? 0600 : 0644, e) !=
            ERR_EXISTS)
            return e->code;
        *e = (struct err){ 0 };
        if (check_taken(f, folder, e) != ERR_OK)
            return e->code;
    }
    return err_set(e, ERR_PERMISSION,
                   "the manifest folder has a file %s already, and it is not of this object", f->name);
}

static enum err_code change_old(struct write_file *f, int folder, struct err *e)
{
    struct buf made = BUF_SECRET(TEXT_MAX);
    struct stat st;
    str_auto text = NULL;
    size_t n = 0, n_objects = 0;
    bool alone;

    if (fstatat(folder, f->name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
            return err_set(e, ERR_ABORTED, "the file %s is gone", f->name);
        err_sys(e, errno, "stat %s/%s", f->dir, f->name);
        return src_put_failed(e);
    }
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_PERMISSION,
                       "the file %s of the manifest folder is not a regular file: change its target",
                       f->name);
    if (fs_read_at(folder, f->name, API_FILE_MAX, &text, &n, e) != ERR_OK)
        return src_put_failed(e);
    if (check_old(f, text, n, &n_objects, e) != ERR_OK)
        goto out;
    alone = f->alone = n_objects == 1;
    if (!alone && src_rewrite(text, n, &f->key, f->text, &made, e) != ERR_OK) {
        if (e->code == ERR_PRECONDITION)
            err_set(e, ERR_PERMISSION,
                    "the object is part of a list in the file %s of the manifest folder: edit that file",
                    f->name);
        goto out;
    }
    if (alone && f->text != NULL)
        buf_adds(&made, f->text);
    if (made.failed)
        err_nomem(e);
    else if ((!alone || f->text != NULL) &&
             check_new(f, made.p, made.n, f->text != NULL ? n_objects : n_objects - 1, e) != ERR_OK)
        ;
    else if (f->dry)
        ;
    else if (alone && f->text == NULL)
        ERR_IGNORE(src_put_remove(folder, f->dir, f->name, &st, e)); /* *e has it */
    else
        ERR_IGNORE(src_put_over(folder, f->dir, f->name, &st, made.p, made.n,
                                st.st_mode & (f->secret ? 0700 : 07777), e));
out:
    buf_done(&made);
    explicit_bzero(text, n);
    return e->code;
}

enum err_code write_file_run(void *arg, struct err *e)
{
    struct write_file *f = arg;
    fd_auto folder = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0) {
        err_sys(e, errno, "open the manifest folder %s", f->dir);
        return src_put_failed(e);
    }
    if (!f->create)
        return change_old(f, folder, e);
    if (check_new(f, f->text, strlen(f->text), 1, e) != ERR_OK || f->dry)
        return e->code;
    return write_new(f, folder, e);
}
