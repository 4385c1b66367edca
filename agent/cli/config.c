/* SPDX-License-Identifier: Apache-2.0 */
/* `coracle config`: the settings and their origin, of the daemon or for given flags and files. */
#include "agent/config/config.h"
#include "agent/cli/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

struct asked {
    const char *format; /* "json", "yaml" */
    bool sample, local, help;
    bool file;   /* --file rather than --config */
    char **argv; /* the rest: the command line of `coracle run` */
    int argc;
};

static const struct cli_flag flags[] = {
    /* for the help: the words are taken by cli_config_take_word() */
    { "output", 'o', FLAG_TEXT, 0, "FORMAT", "yaml (default) or json, as sent by the daemon", "yaml|json" },
    { "file", 0, FLAG_TEXT, 0, "FILE", "do not contact the daemon; read this file (the same as --config)",
      "@file" },
    { "local", 0, FLAG_SWITCH, 0, NULL,
      "do not contact the daemon; show the settings of `coracle run` without flags" },
    { "sample", 0, FLAG_SWITCH, 0, NULL, "print every key with its meaning and default" },
    CLI_FLAGS_END,
};

/* Takes the words of this command; all others belong to `coracle run`. */
static void cli_config_take_word(struct cli *cli, struct asked *a, int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    bool joined = strncmp(word, "--output=", strlen("--output=")) == 0;

    if (strcmp(word, "--sample") == 0) {
        a->sample = true;
    } else if (strcmp(word, "--local") == 0) {
        a->local = true;
    } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        a->help = true;
    } else if (joined) {
        a->format = word + strlen("--output=");
    } else if (strncmp(word, "-o", 2) == 0 && word[2] != '\0') {
        a->format = word + 2;
    } else if ((strcmp(word, "-o") == 0 || strcmp(word, "--output") == 0) && *i + 1 < argc) {
        a->format = argv[++*i];
    } else if (strcmp(word, "--socket") == 0 && *i + 1 < argc) {
        cli->socket = argv[++*i];
    } else if (strcmp(word, "--request-timeout") == 0 && *i + 1 < argc) {
        cli->request_timeout = argv[++*i];
    } else if (str_starts(word, "--request-timeout=")) {
        cli->request_timeout = word + strlen("--request-timeout=");
    } else if (strcmp(word, "--file") == 0) {
        a->argv[a->argc++] = (char *)"--config";
        a->local = a->file = true;
    } else {
        a->argv[a->argc++] = argv[*i];
        a->local = true;
    }
}

static int cli_config_show(struct cli *cli, const struct asked *a, const json_t *configz)
{
    buf_auto text = BUF_INIT(4u << 20);

    if (strcmp(a->format, "json") == 0)
        return cli_print_value(cli, configz, "json");
    config_yaml(configz, &text);
    if (text.failed)
        return cli_error(cli, "out of memory");
    cli_write(cli, text.p, text.n);
    return EXIT_OK;
}

static void say_problem(const char *text, void *arg)
{
    cli_error(arg, "%s", text);
}

/* A word of this command, so its help is named, not that of `coracle run`. */
static int refuse_word(struct cli *cli, const struct cli_command *command, const struct err *e)
{
    const char *hint = strstr(e->text, "; see coracle run --help");

    if (hint == NULL)
        return cli_wrong(cli, "%s", e->text);
    return cli_usage_error(cli, command, "%.*s", (int)(hint - e->text), e->text);
}

static int show_local(struct cli *cli, const struct cli_command *command, const struct asked *a)
{
    struct agent_config c = { 0 };
    struct err e = { 0 };
    json_auto_t *configz = NULL;
    bool help = false;

    if (config_check_words(a->argc, a->argv, &e) != ERR_OK)
        return refuse_word(cli, command, &e);
    if (config_parse(&c, a->argc, a->argv, &help, &e) != ERR_OK) {
        if (config_problems(&c, say_problem, cli) == 0)
            say_problem(a->file && str_starts(e.text, "--config: ") ? e.text + strlen("--config: ") : e.text,
                        cli);
        config_done(&c);
        return EXIT_ERROR;
    }
    configz = config_json(&c);
    config_done(&c);
    return configz != NULL ? cli_config_show(cli, a, configz) : cli_error(cli, "out of memory");
}

static int show_sample(struct cli *cli)
{
    buf_auto text = BUF_INIT(4u << 20);

    config_sample(&text);
    cli_write(cli, text.p, text.n);
    return text.failed ? cli_error(cli, "out of memory") : EXIT_OK;
}

static bool somebody_listens(const char *path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    fd_auto fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || path[0] == '\0' || strlen(path) >= sizeof(to.sun_path))
        return true; /* the request will report the problem */
    memcpy(to.sun_path, path, strlen(path));
    return connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 || (errno != ENOENT && errno != ECONNREFUSED);
}

static int cli_config_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    mem_auto char **left = calloc((size_t)argc + 2, sizeof(*left));
    buf_auto text = BUF_INIT(64 * 1024);
    struct asked a = { .format = "yaml", .argv = left };
    json_auto_t *configz = NULL;
    int code;

    if (argc > 0 && strcmp(argv[0], "kubeconfig") == 0)
        return command_kubeconfig.run(cli, &command_kubeconfig, argc - 1, argv + 1);
    if (left == NULL)
        return cli_error(cli, "out of memory");
    left[a.argc++] = (char *)"run";
    for (int i = 0; i < argc; i++)
        cli_config_take_word(cli, &a, argc, argv, &i);
    if (a.help) {
        help_command(command, &text);
        cli_write(cli, text.p, text.n);
        return EXIT_OK;
    }
    if (strcmp(a.format, "yaml") != 0 && strcmp(a.format, "json") != 0)
        return cli_wrong(cli, "unknown output format \"%s\": json or yaml", a.format);
    code = cli_take_patience(cli);
    if (code != EXIT_OK)
        return code;
    if (a.sample)
        return show_sample(cli);
    if (a.local)
        return show_local(cli, command, &a);
    if (!somebody_listens(cli->socket)) {
        cli_note(cli, "no daemon listens at %s; these are the settings of `coracle run` without flags\n",
                 cli->socket);
        return show_local(cli, command, &a);
    }
    configz = cli_get(cli, "/configz", &code);
    return configz != NULL ? cli_config_show(cli, &a, configz) : code;
}

static const struct cli_example examples[] = {
    { "show the current settings and their origin", "coracle config" },
    { "check a file before the daemon uses it", "coracle config --file new.yaml" },
    { "print a sample file", "coracle config --sample" },
    { NULL, NULL },
};

const struct cli_command command_config = {
    .name = "config",
    .run = cli_config_run,
    .summary = "show the configuration and the origin of its values",
    .usage = "config [-o yaml|json] [--file FILE] [--config-dir DIR] [FLAG of run...]\n"
             "config --sample\n"
             "config kubeconfig [FLAG...]",
    .about = "Shows the daemon's configuration, the origin of each value, and the settings that have "
             "no effect.  With a flag of `coracle run`, or with --file or --local, the command does "
             "not contact the daemon, but shows the configuration that these flags and files would "
             "give.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits,
    .see_also = "run validate",
    .words = "kubeconfig",
};
