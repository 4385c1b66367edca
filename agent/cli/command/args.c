/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/command/command.h"

#include "base/near.h"
#include "base/parse.h"

#include <string.h>

const struct cli_flag cli_common_flags[] = {
    { "socket", 0, FLAG_TEXT, offsetof(struct cli, socket), "PATH",
      "the daemon's socket (" CLI_SOCKET ", or CORACLE_SOCKET)", "@file" },
    { "request-timeout", 0, FLAG_TEXT, offsetof(struct cli, request_timeout), "DURATION",
      "time limit for short answers (30s); 0: none" },
    { "help", 'h', FLAG_SWITCH, offsetof(struct cli, help), NULL, "show this help", NULL },
    CLI_FLAGS_END,
};

/* They have no offset here: the command's own table determines where their values are stored. */
const struct cli_flag cli_early_flags[] = {
    { "namespace", 'n', FLAG_TEXT, 0, "NS", "the namespace (default)", "@namespace" },
    { "all-namespaces", 'A', FLAG_SWITCH, 0, NULL, "all namespaces", NULL },
    { "output", 'o', FLAG_TEXT, 0, "FORMAT", "json, yaml or another format of the command", "json|yaml" },
    CLI_FLAGS_END,
};

struct parse {
    struct cli *cli;
    const struct cli_command *command;
    void *options;
    int argc;
    char **argv;
    int at, words;
};

struct hit { /* a flag, and the struct for its offset */
    const struct cli_flag *flag;
    char *base;
};

static const struct cli_flag *args_by_name(const struct cli_flag *flags, const char *name, size_t n)
{
    for (; flags->name != NULL; flags++)
        if (strlen(flags->name) == n && memcmp(flags->name, name, n) == 0)
            return flags;
    return NULL;
}

static const struct cli_flag *by_letter(const struct cli_flag *flags, char letter)
{
    for (; flags->name != NULL; flags++)
        if (flags->letter == letter)
            return flags;
    return NULL;
}

static struct hit args_find(const struct parse *p, const char *name, size_t n, char letter)
{
    const struct cli_flag *own =
        name != NULL ? args_by_name(p->command->flags, name, n) : by_letter(p->command->flags, letter);

    if (own != NULL)
        return (struct hit){ own, p->options };
    return (struct hit){ name != NULL ? args_by_name(cli_common_flags, name, n)
                                      : by_letter(cli_common_flags, letter),
                         (char *)p->cli };
}

const struct cli_flag *cli_early_flag(int argc, char **argv, const char **ret_value, int *ret_words)
{
    const struct cli_flag *f;
    const char *word, *end;

    if (argc < 1)
        return NULL;
    word = argv[0];
    if (str_starts(word, "--")) {
        const size_t n = strcspn(word + 2, "=");

        end = word + 2 + n;
        f = args_by_name(cli_common_flags, word + 2, n);
        if (f == NULL)
            f = args_by_name(cli_early_flags, word + 2, n);
    } else {
        end = word[0] == '-' && word[1] != '\0' ? word + 2 : word;
        f = end > word ? by_letter(cli_early_flags, word[1]) : NULL;
    }
    if (f == NULL || strcmp(f->name, "help") == 0)
        return NULL;
    *ret_words = 1;
    *ret_value = NULL;
    if (f->type == FLAG_TEXT && *end != '\0') {
        *ret_value = *end == '=' ? end + 1 : end;
    } else if (f->type == FLAG_TEXT && argc > 1) {
        *ret_value = argv[1];
        *ret_words = 2;
    }
    return f;
}

static bool set_switch(const struct hit *hit, const char *value)
{
    if (value != NULL && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return false;
    *(bool *)(hit->base + hit->flag->at) = value == NULL || strcmp(value, "true") == 0;
    return true;
}

static int args_set_text(struct parse *p, const struct hit *hit, const char *value)
{
    struct cli_list *list = (struct cli_list *)(void *)(hit->base + hit->flag->at);

    if (hit->flag->type == FLAG_TEXT)
        *(const char **)(hit->base + hit->flag->at) = value;
    else if (list->n == CLI_LIST_MAX)
        return cli_usage_error(p->cli, p->command, "--%s is given more than %d times", hit->flag->name,
                               CLI_LIST_MAX);
    else
        list->v[list->n++] = value;
    return EXIT_OK;
}

/* The value after a flag: the next word. */
static const char *args_next_word(struct parse *p)
{
    return p->at + 1 < p->argc ? p->argv[++p->at] : NULL;
}

static int args_unknown_flag(struct parse *p, const char *name, size_t n)
{
    char typed[64];
    struct near near = { .name = typed };

    snprintf(typed, sizeof(typed), "%.*s", (int)n, name);
    for (const struct cli_flag *f = p->command->flags; f->name != NULL; f++)
        near_try(&near, f->name);
    for (const struct cli_flag *f = cli_common_flags; f->name != NULL; f++)
        near_try(&near, f->name);
    return cli_usage_error(p->cli, p->command, "unknown flag: --%.*s%s%s%s", (int)n, name,
                           near.found != NULL ? " (did you mean --" : "",
                           near.found != NULL ? near.found : "", near.found != NULL ? "?)" : "");
}

/* "--name", "--name=value", "--name value" */
static int long_flag(struct parse *p, const char *arg)
{
    const char *name = arg + 2, *equals = strchr(name, '='), *value = equals != NULL ? equals + 1 : NULL;
    size_t n = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const struct hit hit = args_find(p, name, n, 0);

    if (hit.flag == NULL)
        return args_unknown_flag(p, name, n);
    if (hit.flag->type == FLAG_SWITCH)
        return set_switch(&hit, value)
                   ? EXIT_OK
                   : cli_usage_error(p->cli, p->command, "invalid value \"%s\" for --%s: true or false",
                                     value, hit.flag->name);
    if (value == NULL && (value = args_next_word(p)) == NULL)
        return cli_usage_error(p->cli, p->command, "flag needs a value: --%s", hit.flag->name);
    return args_set_text(p, &hit, value);
}

/* "-A", "-Aw", "-n value", "-nvalue", "-n=value" */
static int short_flags(struct parse *p, const char *arg)
{
    for (const char *s = arg + 1; *s != '\0'; s++) {
        const struct hit hit = args_find(p, NULL, 0, *s);
        const char *value;

        if (hit.flag == NULL)
            return cli_usage_error(p->cli, p->command, "unknown flag: -%c", *s);
        if (hit.flag->type == FLAG_SWITCH) {
            set_switch(&hit, NULL);
            continue;
        }
        value = s[1] == '=' ? s + 2 : s[1] != '\0' ? s + 1 : args_next_word(p);
        if (value == NULL)
            return cli_usage_error(p->cli, p->command, "flag needs a value: -%c", *s);
        return args_set_text(p, &hit, value);
    }
    return EXIT_OK;
}

static int take_words(struct parse *p)
{
    for (; p->at < p->argc; p->at++) {
        char *arg = p->argv[p->at];
        int code = EXIT_OK;

        if (strcmp(arg, "--") == 0) {
            while (++p->at < p->argc)
                p->argv[p->words++] = p->argv[p->at];
            break;
        }
        if (arg[0] != '-' || arg[1] == '\0') {
            p->argv[p->words++] = arg;
            if (p->words == p->command->rest_from)
                while (++p->at < p->argc)
                    p->argv[p->words++] = p->argv[p->at];
        } else if (arg[1] == '-') {
            code = long_flag(p, arg);
        } else {
            code = short_flags(p, arg);
        }
        if (code != EXIT_OK)
            return code;
    }
    return EXIT_OK;
}

int cli_take_early(struct cli *cli, int *argc, char **argv)
{
    const struct cli_flag *f;
    const char *value;
    char *command;
    int at = 1, words;

    while ((f = cli_early_flag(*argc - at, argv + at, &value, &words)) != NULL) {
        if (f->type == FLAG_TEXT && value == NULL)
            return cli_wrong(cli, "flag needs a value: %s", argv[at]);
        if (args_by_name(cli_common_flags, f->name, strlen(f->name)) == NULL) {
            at += words;
            continue;
        }
        *(const char **)((char *)cli + f->at) = value;
        *argc -= words;
        memmove(argv + at, argv + at + words, (size_t)(*argc - at) * sizeof(*argv));
    }
    if (at > 1 && at < *argc) {
        command = argv[at];
        memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
        argv[1] = command;
    } else if (at > 1) {
        return cli_wrong(cli, "no command follows %s", argv[at - 1]);
    }
    return cli_take_patience(cli);
}

int cli_take_patience(struct cli *cli)
{
    const char *text = cli->request_timeout;
    uint64_t seconds;
    struct err e = { 0 };
    int64_t ns;

    if (text == NULL)
        return EXIT_OK;
    if (parse_u64(text, 0, CLI_PATIENCE_MAX_S, &seconds, "--request-timeout", &e) == ERR_OK) {
        ns = (int64_t)seconds * 1000000000;
    } else {
        e = (struct err){ 0 };
        if (cli_parse_duration(text, &ns, &e) != ERR_OK || ns < 0) {
            return cli_wrong(cli, "--request-timeout: \"%s\" is not a duration such as 10s, 5m or 1h30m",
                             text);
        }
    }
    cli->patience_ms = ns > 0 ? (ns + 999999) / 1000000 : CLI_PATIENCE_NONE;
    return EXIT_OK;
}

bool cli_parse(struct cli *cli, const struct cli_command *command, void *options, int *argc, char **argv,
               int *ret)
{
    struct parse p = { cli, command, options, *argc, argv, 0, 0 };
    buf_auto text = BUF_INIT(64 * 1024);

    *ret = take_words(&p);
    if (*ret != EXIT_OK)
        return false;
    if (cli->help) {
        help_command(command, &text);
        cli_write(cli, text.p, text.n);
        return false;
    }
    *ret = cli_take_patience(cli);
    *argc = p.words;
    return *ret == EXIT_OK;
}
