/* SPDX-License-Identifier: Apache-2.0 */
/* Suggests the name that was probably meant. */
#include "agent/cli/client/client.h"

#include "base/codec/json.h"
#include "base/near.h"

#include <string.h>

void cli_hint_pod(struct cli *cli, const char *namespace_, const char *name)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    struct near near = { .name = name };
    json_auto_t *list = NULL;
    const json_t *pod, *other;
    size_t i;

    if (cli_request(cli, "GET", "/api/v1/pods", false, NULL, NULL, &r, ERR_IGNORED) == ERR_OK &&
        r.code == 200)
        ERR_IGNORE(json_parse(r.body.p, r.body.n, CLI_BODY_MAX, &list, "pods", ERR_IGNORED));
    buf_done(&r.body);
    json_array_foreach (cli_at(list, "items"), i, pod) {
        if (strcmp(cli_text(pod, "metadata.namespace"), namespace_) == 0)
            near_try(&near, cli_text(pod, "metadata.name"));
    }
    other = cli_find(cli_at(list, "items"), "metadata.name", name);
    if (other != NULL)
        cli_note(cli, "There is one in namespace %s: -n %s\n", cli_text(other, "metadata.namespace"),
                 cli_text(other, "metadata.namespace"));
    else if (near.found != NULL)
        cli_note(cli, "Did you mean \"%s\"?\n", near.found);
}
