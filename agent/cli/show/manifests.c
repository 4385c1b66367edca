/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/show/internal.h"

#include "base/codec/json.h"

void cli_warn_manifests(struct cli *cli)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    json_auto_t *list = NULL;
    const json_t *m, *p;
    size_t i, k;

    if (cli_request(cli, "GET", "/manifests", false, NULL, NULL, &r, ERR_IGNORED) == ERR_OK &&
        r.code == 200 &&
        json_parse(r.body.p, r.body.n, CLI_BODY_MAX, &list, "manifests", ERR_IGNORED) == ERR_OK) {
        json_array_foreach (cli_at(list, "items"), i, m) {
            json_array_foreach (cli_at(m, "problems"), k, p) {
                cli_note(cli, "warning: manifest %s: %s: %s%s\n", cli_text(m, "name"), cli_text(p, "where"),
                         cli_text(p, "what"),
                         cli_true(m, "stale") ? " (the running pod stays as it was)" : "");
            }
        }
    }
    buf_done(&r.body);
}
