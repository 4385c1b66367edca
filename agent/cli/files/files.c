/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/files/files.h"

#include "base/files/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 32 }; /* of folders in folders */

/* ---- folders ---- */

static bool add_name(const char *name, void *arg)
{
    return strs_add(arg, name);
}

static bool counts(const char *name, enum cli_files_rule rule)
{
    return rule == CLI_FILES_ALL
               ? !api_file_is_ignored(name)
               : str_ends(name, ".yaml") || str_ends(name, ".yml") || str_ends(name, ".json");
}

static int add_folder(struct cli *cli, const char *path, enum cli_files_rule rule, unsigned depth,
                      struct strs *ret)
{
    struct strs names = { 0 };
    struct err e = { 0 };
    int code = EXIT_OK;
    struct stat st;

    if (depth == 0)
        return cli_error(cli, "%s: folders are nested deeper than %d", path, DEPTH_MAX);
    switch (presence_of(fs_list(AT_FDCWD, path, add_name, &names, &e))) {
    case PRESENCE_UNKNOWN:
        return cli_failed(cli, &e);
    case PRESENCE_ABSENT:
        return cli_error(cli, "%s is not there", path);
    case PRESENCE_PRESENT:
        break;
    }
    strs_sort(&names);
    for (size_t i = 0; i < names.n && code == EXIT_OK; i++) {
        str_auto child = str_printf("%s%s%s", path, str_ends(path, "/") ? "" : "/", names.v[i]);

        if (child == NULL)
            code = cli_error(cli, "out of memory");
        else if (stat(child, &st) == 0 && S_ISDIR(st.st_mode))
            code = depth > 1 && !api_file_is_ignored(names.v[i])
                       ? add_folder(cli, child, rule, depth - 1, ret)
                       : EXIT_OK;
        else if (counts(names.v[i], rule) && !strs_add(ret, child))
            code = cli_error(cli, "out of memory");
    }
    strs_done(&names);
    return code;
}

int cli_files_add(struct cli *cli, const char *path, enum cli_files_rule rule, bool deep, struct strs *ret)
{
    const size_t before = ret->n;
    struct stat st;
    int code;

    if (strcmp(path, "-") == 0 || stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return strs_add(ret, path) ? EXIT_OK : cli_error(cli, "out of memory");
    code = add_folder(cli, path, rule, deep ? DEPTH_MAX : 1, ret);
    if (code == EXIT_OK && ret->n == before)
        return cli_error(cli, "%s has no manifests", path);
    return code;
}

/* ---- one file ---- */

int cli_files_open(struct cli *cli, const char *path)
{
    struct stat st;
    int fd;

    if (strcmp(path, "-") == 0)
        return dup(STDIN_FILENO);
    /* stat first: opening a FIFO would wait for a writer. */
    if (stat(path, &st) < 0) {
        cli_error(cli, "open %s: %s", path, strerror(errno));
        return -1;
    }
    if (!S_ISREG(st.st_mode)) {
        cli_error(cli, "%s is %s, not a file", path,
                  S_ISDIR(st.st_mode)    ? "a folder"
                  : S_ISFIFO(st.st_mode) ? "a FIFO"
                  : S_ISSOCK(st.st_mode) ? "a socket"
                                         : "a device");
        return -1;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        cli_error(cli, "open %s: %s", path, strerror(errno));
    return fd;
}

void cli_files_print(struct cli *cli, const struct api_problems *p)
{
    buf_auto line = BUF_INIT(64 * 1024);

    for (size_t i = 0; i < p->n; i++) {
        buf_reset(&line);
        api_problem_add_text(&p->v[i], "", &line);
        cli_note(cli, "%s\n", line.p);
    }
}

int cli_files_read(struct cli *cli, const char *path, struct cli_file *ret)
{
    struct cli_file f = { .name = strcmp(path, "-") == 0 ? "stdin" : path };
    struct api_problems problems = { 0 };
    struct err e = { 0 };
    fd_auto fd = cli_files_open(cli, path);
    int code = EXIT_OK;

    if (fd < 0)
        return EXIT_ERROR;
    if (fs_read_fd(fd, API_FILE_MAX, &f.text, &f.n, &e) == ERR_EXHAUSTED)
        return cli_error(cli, "%s has more than %d bytes", f.name, API_FILE_MAX);
    if (e.code != ERR_OK)
        return cli_error(cli, "read %s: %s", f.name, e.text);
    if (api_decode_file(f.name, f.text, f.n, &f.objects, &problems, &e) != ERR_OK)
        code = cli_error(cli, "%s: %s", f.name, e.text);
    else if (problems.n > 0 || problems.dropped > 0)
        code = EXIT_ERROR;
    else if (f.objects.n == 0)
        code = cli_error(cli, "%s has no objects", f.name);
    cli_files_print(cli, &problems);
    api_problems_done(&problems);
    if (code == EXIT_OK)
        *ret = f;
    else
        cli_file_done(&f);
    return code;
}

void cli_file_done(struct cli_file *f)
{
    api_objects_done(&f->objects);
    if (f->text != NULL)
        explicit_bzero(f->text, f->n);
    free(f->text);
    *f = (struct cli_file){ 0 };
}
