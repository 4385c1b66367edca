/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/image/internal.h"

#include "base/codec/json.h"
#include "base/codec/percent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *cli_image_ask(struct cli *cli, const char *verb, const char *name, const char *more, int *ret_code)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    buf_auto url = BUF_INIT(64 * 1024);
    json_t *answer = NULL;
    struct err e = { 0 };
    int code = EXIT_OK;

    buf_addf(&url, "/images/%s?name=", verb);
    percent_add(&url, name != NULL ? name : "");
    buf_adds(&url, more);
    if (cli_request(cli, "POST", url.p, true, NULL, NULL, &r, &e) != ERR_OK)
        code = cli_failed(cli, &e);
    else if (r.code != 200)
        code = cli_server_error(cli, &r);
    else if (json_parse(r.body.p, r.body.n, CLI_BODY_MAX, &answer, "answer", &e) != ERR_OK)
        code = cli_error(cli, "%s", e.text);
    *ret_code = code;
    buf_done(&r.body);
    return answer;
}

/* The name to show. */
static const char *image_care_name_of(const json_t *image)
{
    const char *name = json_string_value(json_array_get(cli_at(image, "names"), 0));

    return name != NULL ? name : cli_text(image, "id");
}

/* ---- verify ---- */

static int print_verified(struct cli *cli, const json_t *answer)
{
    const json_t *image, *text;
    size_t i, k;
    int code = EXIT_OK;

    json_array_foreach (cli_at(answer, "items"), i, image) {
        const json_t *problems = cli_at(image, "problems"), *unknown = cli_at(image, "unknown");

        if (json_array_size(problems) + json_array_size(unknown) == 0) {
            cli_print(cli, "image/%s ok\n", image_care_name_of(image));
            continue;
        }
        code = EXIT_ERROR;
        json_array_foreach (problems, k, text)
            cli_print(cli, "image/%s damaged: %s\n", image_care_name_of(image), json_string_value(text));
        json_array_foreach (unknown, k, text)
            cli_print(cli, "image/%s unknown: %s\n", image_care_name_of(image), json_string_value(text));
    }
    json_array_foreach (cli_at(answer, "orphans"), i, text) {
        code = EXIT_ERROR;
        cli_print(cli, "%s does not belong to an image\n", json_string_value(text));
    }
    return code;
}

static int image_care_verify(struct cli *cli, int argc, char **argv)
{
    int code = EXIT_OK;

    for (int i = 0; i < argc || i == 0; i++) {
        int its;
        json_auto_t *answer = cli_image_ask(cli, "verify", argc > 0 ? argv[i] : NULL, "", &its);

        cli_keep_first(&code, answer != NULL ? print_verified(cli, answer) : its);
    }
    return code;
}

/* ---- prune, pin ---- */

static int image_care_prune(struct cli *cli, bool all)
{
    int code;
    json_auto_t *answer = cli_image_ask(cli, "prune", NULL, all ? "&all=true" : "", &code);
    char size[CLI_AGE_SIZE];
    const json_t *image;
    size_t i;

    if (answer == NULL)
        return code;
    json_array_foreach (cli_at(answer, "items"), i, image)
        cli_print(cli, "image %s deleted\n", cli_text(image, "id"));
    cli_size((uint64_t)cli_number(answer, "bytes"), size);
    cli_print(cli, "Total reclaimed space: %s\n", size);
    return EXIT_OK;
}

static int image_care_pin(struct cli *cli, const char *verb, int argc, char **argv)
{
    int code = EXIT_OK;

    for (int i = 0; i < argc; i++) {
        int its;
        json_auto_t *answer = cli_image_ask(cli, verb, argv[i], "", &its);

        cli_keep_first(&code, its);
        if (answer != NULL)
            cli_print(cli, "image \"%s\" %sned\n", argv[i], verb);
    }
    return code;
}

/* ---- export ---- */

/* Exports into an existing file. */
static int export_into(struct cli *cli, const char *name, const char *path)
{
    buf_auto more = BUF_INIT(64 * 1024);
    int code;

    buf_adds(&more, "&file=");
    percent_add(&more, path);
    json_decref(cli_image_ask(cli, "export", name, more.p, &code));
    return code;
}

static int export_stream(struct cli *cli, const char *name)
{
    struct err e = { 0 };
    const char *path;
    int fd, code;

    if (cli->terminal)
        return cli_wrong(cli, "refusing to write an archive to a terminal: use a pipe or a file");
    fd = cli_spool_open(cli, &path);
    if (fd < 0)
        return EXIT_ERROR;
    code = export_into(cli, name, path);
    if (code == EXIT_OK && cli_spool_print(cli, fd, &e) != ERR_OK)
        code = cli_failed(cli, &e);
    cli_spool_close(fd);
    return code;
}

/* The file is made here so that the caller owns it, and because the daemon has another working directory. */
static int image_care_export_image(struct cli *cli, const char *name, const char *file)
{
    char path[PATH_MAX];
    int fd, code;

    if (strcmp(file, "-") == 0)
        return export_stream(cli, name);
    fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 || realpath(file, path) == NULL) {
        int sys = errno;

        if (fd >= 0)
            close(fd);
        return cli_error(cli, "create %s: %s", file, strerror(sys));
    }
    close(fd);
    code = export_into(cli, name, path);
    if (code != EXIT_OK) {
        unlink(path);
        return code;
    }
    cli_print(cli, "image \"%s\" exported\n", name);
    return EXIT_OK;
}

/* ---- dispatch ---- */

bool cli_image_care(struct cli *cli, int argc, char **argv, bool all, int *ret)
{
    const char *verb = argc > 0 ? argv[0] : "";

    if (strcmp(verb, "verify") == 0)
        *ret = image_care_verify(cli, argc - 1, argv + 1);
    else if (strcmp(verb, "prune") == 0 && argc == 1)
        *ret = image_care_prune(cli, all);
    else if ((strcmp(verb, "pin") == 0 || strcmp(verb, "unpin") == 0) && argc > 1)
        *ret = image_care_pin(cli, verb, argc - 1, argv + 1);
    else if (strcmp(verb, "export") == 0 && argc == 3)
        *ret = image_care_export_image(cli, argv[1], argv[2]);
    else
        return false;
    return true;
}
