#include "agent/cli/internal.h"

#include "base/near.h"

#include <string.h>

const struct cli_flag cli_common_flags[] = {
    { "socket", 0, FLAG_TEXT, offsetof(struct cli, socket), "PATH",
      "the daemon's socket (" CLI_SOCKET ", or CORACLE_SOCKET)", "@file" },
    { "help", 'h', FLAG_SWITCH, offsetof(struct cli, help), NULL, "this text", NULL },
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

struct hit { /* a flag, and the struct that its offset is of */
    const struct cli_flag *flag;
    char *base;
};

static const struct cli_flag *by_name(const struct cli_flag *flags, const char *name, size_t n)
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

static struct hit find(const struct parse *p, const char *name, size_t n, char letter)
{
    const struct cli_flag *own =
        name != NULL ? by_name(p->command->flags, name, n) : by_letter(p->command->flags, letter);

    if (own != NULL)
        return (struct hit){ own, p->options };
    return (struct hit){ name != NULL ? by_name(cli_common_flags, name, n)
                                      : by_letter(cli_common_flags, letter),
                         (char *)p->cli };
}

static bool set_switch(const struct hit *hit, const char *value)
{
    if (value != NULL && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return false;
    *(bool *)(hit->base + hit->flag->at) = value == NULL || strcmp(value, "true") == 0;
    return true;
}

static void set_text(const struct hit *hit, const char *value)
{
    *(const char **)(hit->base + hit->flag->at) = value;
}

/* The value that follows a flag: the next word. */
static const char *next_word(struct parse *p)
{
    return p->at + 1 < p->argc ? p->argv[++p->at] : NULL;
}

static int unknown_flag(struct parse *p, const char *name, size_t n)
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
    const struct hit hit = find(p, name, n, 0);

    if (hit.flag == NULL)
        return unknown_flag(p, name, n);
    if (hit.flag->type == FLAG_SWITCH)
        return set_switch(&hit, value)
                   ? EXIT_OK
                   : cli_usage_error(p->cli, p->command, "invalid value \"%s\" for --%s: true or false",
                                     value, hit.flag->name);
    if (value == NULL && (value = next_word(p)) == NULL)
        return cli_usage_error(p->cli, p->command, "flag needs a value: --%s", hit.flag->name);
    set_text(&hit, value);
    return EXIT_OK;
}

/* "-A", "-Aw", "-n value", "-nvalue", "-n=value" */
static int short_flags(struct parse *p, const char *arg)
{
    for (const char *s = arg + 1; *s != '\0'; s++) {
        const struct hit hit = find(p, NULL, 0, *s);
        const char *value;

        if (hit.flag == NULL)
            return cli_usage_error(p->cli, p->command, "unknown flag: -%c", *s);
        if (hit.flag->type == FLAG_SWITCH) {
            set_switch(&hit, NULL);
            continue;
        }
        value = s[1] == '=' ? s + 2 : s[1] != '\0' ? s + 1 : next_word(p);
        if (value == NULL)
            return cli_usage_error(p->cli, p->command, "flag needs a value: -%c", *s);
        set_text(&hit, value);
        break;
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
    *argc = p.words;
    return true;
}
