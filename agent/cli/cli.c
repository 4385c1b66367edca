#include "agent/cli/internal.h"

#include "agent/api/yaml.h"
#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_command commands[] = {
    { "get", "coracle get pods|manifests|images|events [NAME...] [flags]",
      "Shows what runs: a table, or whole objects with -o json|yaml.", cli_get_command },
    { "describe", "coracle describe pod [NAME...] [flags]",
      "Shows everything about a pod, its events included.", cli_describe },
    { "logs", "coracle logs [-f] [-p] POD [CONTAINER] [flags]", "Prints the log of a container.", cli_logs },
    { "exec", "coracle exec [-i] [-t] [-c CONTAINER] POD [--] COMMAND [ARG...]",
      "Runs a command in a container.  Its exit code is the exit code; 127: it was not found, 126: it "
      "cannot\n"
      "be executed.",
      cli_exec, 2 },
    { "explain", "coracle explain pod NAME [flags]\n    coracle explain node [flags]",
      "Says for a pod which step it is in, since when, and what it waits for; for the node what is wrong "
      "with it, what\n"
      "is under way, and its latest warnings.",
      cli_explain },
    { "top", "coracle top pods [NAME] [flags]\n    coracle top node [flags]",
      "Shows what pods, containers or the node use: processor and memory, right now.  The first question "
      "takes\n"
      "half a second, since a rate needs two looks.",
      cli_top },
    { "validate", "coracle validate FILE... | -",
      "Checks manifests as the daemon would, without one.  Exit code 1 if there is any problem.",
      cli_validate },
    { "config",
      "coracle config [-o yaml|json] [--file FILE] [--config-dir DIR] [flags of coracle run]\n    coracle "
      "config --sample",
      "Shows the daemon's configuration and where each value comes from, or that of files and flags; and\n"
      "which settings are not acted on.",
      cli_config },
    { "version", "coracle version [flags]", "Prints the versions of this program and of the daemon.",
      cli_version },
    { "image",
      "coracle image ls [flags]\n"
      "    coracle image import FILE [--name REFERENCE]\n"
      "    coracle image pull REFERENCE\n"
      "    coracle image rm REFERENCE...",
      "Lists, brings and removes images.  FILE is an OCI or Docker archive, or the folder of an OCI layout.",
      cli_image },
};

static const char usage[] = "coracle - a node agent for Kubernetes pods\n"
                            "\n"
                            "    coracle run        the agent itself (coracle run --help)\n"
                            "    coracle get        pods, manifests, images or events\n"
                            "    coracle describe   everything about a pod\n"
                            "    coracle logs       a container's log\n"
                            "    coracle exec       run a command in a container\n"
                            "    coracle explain    what a pod waits for\n"
                            "    coracle top        what pods and the node use\n"
                            "    coracle validate   check manifests, without a daemon\n"
                            "    coracle config     the configuration in force, and where it comes from\n"
                            "    coracle image      list, import, pull and remove images\n"
                            "    coracle version    of this program and of the daemon\n"
                            "\n"
                            "coracle COMMAND --help says more.  Clients reach the daemon at " CLI_SOCKET ",\n"
                            "or where --socket PATH or CORACLE_SOCKET says.\n";

/* ---- output ---------------------------------------------------------------------------------- */

int64_t cli_now(const struct cli *cli)
{
    return cli->now_ns != 0 ? cli->now_ns : clock_wall_ns();
}

int cli_error(struct cli *cli, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("error: ", cli->err);
    vfprintf(cli->err, fmt, ap);
    fputc('\n', cli->err);
    va_end(ap);
    return EXIT_ERROR;
}

bool cli_flush(struct cli *cli)
{
    errno = 0;
    if (cli->write_errno == 0 && (fflush(cli->out) != 0 || ferror(cli->out)))
        cli->write_errno = errno != 0 ? errno : EIO;
    return cli->write_errno == 0;
}

bool cli_write(struct cli *cli, const char *data, size_t n)
{
    errno = 0;
    if (fwrite(data, 1, n, cli->out) < n && cli->write_errno == 0)
        cli->write_errno = errno != 0 ? errno : EIO;
    return cli_flush(cli);
}

void cli_say(struct cli *cli, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    errno = 0;
    if (vfprintf(cli->out, fmt, ap) < 0 && cli->write_errno == 0)
        cli->write_errno = errno != 0 ? errno : EIO;
    va_end(ap);
}

int cli_print_value(struct cli *cli, const json_t *value, const char *format)
{
    bool yaml = strcmp(format, "yaml") == 0;
    char *text = yaml ? yaml_from_json(value) : json_dumps(value, JSON_INDENT(4) | JSON_SORT_KEYS);

    if (text == NULL)
        return cli_error(cli, "out of memory");
    cli_write(cli, text, strlen(text));
    if (!yaml)
        cli_write(cli, "\n", 1);
    free(text);
    return EXIT_OK;
}

/* ---- dispatch -------------------------------------------------------------------------------- */

int cli_run(struct cli *cli, int argc, char **argv)
{
    /* Flags of all commands may stand before the command, too. */
    while (argc > 2 && strcmp(argv[1], "--socket") == 0) {
        cli->socket = argv[2];
        argv += 2;
        argc -= 2;
    }
    if (argc > 1 && strncmp(argv[1], "--socket=", strlen("--socket=")) == 0) {
        cli->socket = argv[1] + strlen("--socket=");
        argv++;
        argc--;
    }
    if (argc < 2) {
        fputs(usage, cli->err);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        fputs(usage, cli->out);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        fputs("coracle v" CORACLE_VERSION "\n", cli->out);
        return EXIT_OK;
    }
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(cli, &commands[i], argc - 2, argv + 2);
    fprintf(cli->err, "error: unknown command \"%s\"\n\n%s", argv[1], usage);
    return EXIT_USAGE;
}

int cli_main(int argc, char **argv)
{
    const char *socket = getenv("CORACLE_SOCKET");
    struct cli cli = {
        .out = stdout,
        .err = stderr,
        .socket = socket != NULL && socket[0] != '\0' ? socket : CLI_SOCKET,
    };
    int code;

    signal(SIGPIPE, SIG_IGN); /* seen as EPIPE below */
    code = cli_run(&cli, argc, argv);
    if (!cli_flush(&cli) && cli.write_errno != EPIPE) {
        fprintf(stderr, "error: write to standard output: %s\n", strerror(cli.write_errno));
        return EXIT_ERROR;
    }
    return code;
}
