/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/internal.h"

#include "base/codec/json.h"

#include <string.h>

struct version {
    const char *format;
    bool client;
};

static const struct cli_flag flags[] = {
    { "client", 0, FLAG_SWITCH, offsetof(struct version, client), NULL, "the version of this program only" },
    CLI_OUTPUT(struct version, format, "json|yaml", "json or yaml"),
    CLI_FLAGS_END,
};

static int version_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    struct version v = { 0 };
    struct cli_response r = CLI_RESPONSE_INIT;
    json_auto_t *server = NULL, *both = NULL;
    struct err e = { 0 };
    int code = EXIT_OK;

    if (!cli_parse(cli, command, &v, &argc, argv, &code))
        return code;
    if (argc > 0)
        return cli_usage_error(cli, command, "unexpected word \"%s\"", argv[0]);
    if (cli_check_format(cli, v.format) != EXIT_OK)
        return EXIT_USAGE;

    if (!v.client && cli_request(cli, "GET", "/version", false, NULL, NULL, &r, &e) == ERR_OK &&
        r.code != 200)
        cli_server_error(cli, &r);
    else if (!v.client && e.code == ERR_OK)
        ERR_IGNORE(json_parse(r.body.p, r.body.n, CLI_BODY_MAX, &server, "version", &e));
    buf_done(&r.body);

    if (v.format != NULL) {
        both = json_pack("{s:{s:s, s:s}, s:O*}", "clientVersion", "gitVersion", "v" CORACLE_VERSION,
                         "compiler", __VERSION__, "serverVersion", server);
        code = cli_print_value(cli, both, v.format);
    } else {
        cli_print(cli, "Client Version: v" CORACLE_VERSION "\n");
        if (server != NULL)
            cli_print(cli, "Server Version: %s\n", cli_text(server, "gitVersion"));
    }
    if (e.code != ERR_OK) {
        cli_flush(cli);
        cli_note(cli, "%s\n", e.text); /* not a failure, since the client's version was printed */
    }
    return code;
}

static const struct cli_example examples[] = {
    { "both", "coracle version" },
    { "for scripts", "coracle version -o json" },
    { NULL, NULL },
};

const struct cli_command command_version = {
    .name = "version",
    .run = version_run,
    .summary = "show the versions of this program and the daemon",
    .usage = "version [flags]",
    .about = "Prints the versions of this program and the daemon.  A missing daemon is not an error.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits_local,
    .words = "@nothing",
};
