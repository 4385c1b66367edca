#include "agent/cli/internal.h"

#include "base/json.h"

#include <string.h>

int cli_version(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    const char *format = NULL;
    const struct cli_flag flags[] = {
        { "output", 'o', FLAG_TEXT, &format, "FORMAT", "json or yaml" },
        { NULL, 0, FLAG_SWITCH, NULL, NULL, NULL },
    };
    struct cli_response r = CLI_RESPONSE_INIT;
    json_auto_t *server = NULL, *both = NULL;
    struct err e = { 0 };
    int code = EXIT_OK;

    if (!cli_parse(cli, command, flags, &argc, argv, &code))
        return code;
    if (argc > 0)
        return cli_usage_error(cli, command, flags, "unexpected word \"%s\"", argv[0]);
    if (format != NULL && strcmp(format, "json") != 0 && strcmp(format, "yaml") != 0)
        return cli_error(cli, "unknown output format \"%s\": json or yaml", format);

    if (cli_request(cli, "GET", "/version", false, NULL, NULL, &r, &e) == ERR_OK && r.code != 200)
        cli_server_error(cli, &r);
    else if (e.code == ERR_OK)
        (void)!json_parse(r.body.p, r.body.n, CLI_BODY_MAX, &server, "version", &e);
    buf_done(&r.body);

    if (format != NULL) {
        both = json_pack("{s:{s:s, s:s}, s:O*}", "clientVersion", "gitVersion", "v" CORACLE_VERSION,
                         "compiler", __VERSION__, "serverVersion", server);
        code = cli_print_value(cli, both, format);
    } else {
        cli_say(cli, "Client Version: v" CORACLE_VERSION "\n");
        if (server != NULL)
            cli_say(cli, "Server Version: %s\n", cli_text(server, "gitVersion"));
    }
    if (e.code != ERR_OK) {
        cli_flush(cli);
        fprintf(cli->err, "%s\n", e.text); /* the client's version was asked for, too: no failure */
    }
    return code;
}
