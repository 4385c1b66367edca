#include "agent/cli/internal.h"

#include <string.h>

static void show_flag(struct buf *b, const struct cli_flag *f)
{
    char left[80];
    int n;

    n = snprintf(left, sizeof(left), "    %s%c%s--%s%s%s", f->letter ? "-" : " ", f->letter ? f->letter : ' ',
                 f->letter ? ", " : "  ", f->name, f->value != NULL ? " " : "",
                 f->value != NULL ? f->value : "");
    buf_addf(b, "%-*s %s\n", n > 31 ? n + 1 : 31, left, f->help);
}

static void show_usage(FILE *to, const struct cli_command *command, const struct cli_flag *flags)
{
    static const struct cli_flag common[] = {
        { "socket", 0, FLAG_TEXT, NULL, "PATH", "the daemon's socket (" CLI_SOCKET ", or CORACLE_SOCKET)" },
        { "help", 'h', FLAG_SWITCH, NULL, NULL, "this text" },
    };
    buf_auto b = BUF_INIT(64 * 1024);

    buf_addf(&b, "%s\n\nUsage:\n    %s\n\nFlags:\n", command->about, command->usage);
    for (; flags->name != NULL; flags++)
        show_flag(&b, flags);
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        show_flag(&b, &common[i]);
    fputs(b.p, to);
}

int cli_usage_error(struct cli *cli, const struct cli_command *command, const struct cli_flag *flags,
                    const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("error: ", cli->err);
    vfprintf(cli->err, fmt, ap);
    fputs("\n\n", cli->err);
    va_end(ap);
    show_usage(cli->err, command, flags);
    return EXIT_USAGE;
}

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

static bool set_switch(const struct cli_flag *f, const char *value)
{
    if (value != NULL && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return false;
    *(bool *)f->to = value == NULL || strcmp(value, "true") == 0;
    return true;
}

struct parse {
    struct cli *cli;
    const struct cli_command *command;
    const struct cli_flag *flags; /* the command's, for its usage */
    const struct cli_flag *common;
    int argc;
    char **argv;
    int at, words;
};

/* The value that follows a flag: the next word. */
static const char *next_word(struct parse *p)
{
    return p->at + 1 < p->argc ? p->argv[++p->at] : NULL;
}

/* "--name", "--name=value", "--name value" */
static int long_flag(struct parse *p, const char *arg)
{
    const char *name = arg + 2, *equals = strchr(name, '='), *value = equals != NULL ? equals + 1 : NULL;
    size_t n = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const struct cli_flag *f = by_name(p->flags, name, n);

    if (f == NULL)
        f = by_name(p->common, name, n);
    if (f == NULL)
        return cli_usage_error(p->cli, p->command, p->flags, "unknown flag: --%.*s", (int)n, name);
    if (f->type == FLAG_SWITCH)
        return set_switch(f, value)
                   ? EXIT_OK
                   : cli_usage_error(p->cli, p->command, p->flags,
                                     "invalid value \"%s\" for --%s: true or false", value, f->name);
    if (value == NULL && (value = next_word(p)) == NULL)
        return cli_usage_error(p->cli, p->command, p->flags, "flag needs a value: --%s", f->name);
    *(const char **)f->to = value;
    return EXIT_OK;
}

/* "-A", "-Aw", "-n value", "-nvalue", "-n=value" */
static int short_flags(struct parse *p, const char *arg)
{
    for (const char *s = arg + 1; *s != '\0'; s++) {
        const struct cli_flag *f = by_letter(p->flags, *s);
        const char *value;

        if (f == NULL)
            f = by_letter(p->common, *s);
        if (f == NULL)
            return cli_usage_error(p->cli, p->command, p->flags, "unknown flag: -%c", *s);
        if (f->type == FLAG_SWITCH) {
            set_switch(f, NULL);
            continue;
        }
        value = s[1] == '=' ? s + 2 : s[1] != '\0' ? s + 1 : next_word(p);
        if (value == NULL)
            return cli_usage_error(p->cli, p->command, p->flags, "flag needs a value: -%c", *s);
        *(const char **)f->to = value;
        break;
    }
    return EXIT_OK;
}

bool cli_parse(struct cli *cli, const struct cli_command *command, const struct cli_flag *flags, int *argc,
               char **argv, int *ret)
{
    const struct cli_flag common[] = {
        { "socket", 0, FLAG_TEXT, &cli->socket, NULL, NULL },
        { "help", 'h', FLAG_SWITCH, &cli->help, NULL, NULL },
        { NULL, 0, FLAG_SWITCH, NULL, NULL, NULL },
    };
    struct parse p = { cli, command, flags, common, *argc, argv, 0, 0 };

    for (; p.at < p.argc; p.at++) {
        char *arg = argv[p.at];

        *ret = EXIT_OK;
        if (strcmp(arg, "--") == 0) {
            while (++p.at < p.argc)
                argv[p.words++] = argv[p.at];
            break;
        }
        if (arg[0] != '-' || arg[1] == '\0') {
            argv[p.words++] = arg;
            if (p.words == command->rest_from)
                while (++p.at < p.argc)
                    argv[p.words++] = argv[p.at];
        } else if (arg[1] == '-')
            *ret = long_flag(&p, arg);
        else
            *ret = short_flags(&p, arg);
        if (*ret != EXIT_OK)
            return false;
    }
    if (cli->help) {
        show_usage(cli->out, command, flags);
        *ret = EXIT_OK;
        return false;
    }
    *argc = p.words;
    return true;
}
