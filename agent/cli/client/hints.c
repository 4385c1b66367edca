/* SPDX-License-Identifier: Apache-2.0 */
/* Suggests the name that was probably meant. */
#include "agent/cli/client/client.h"

#include "base/codec/json.h"
#include "base/near.h"

#include <string.h>

static const char *elsewhere(const json_t *pods, const char *name)
{
    const json_t *pod;
    size_t i;

    json_array_foreach (pods, i, pod) {
        if (strcmp(cli_text(pod, "metadata.name"), name) == 0)
            return cli_text(pod, "metadata.namespace");
    }
    return NULL;
}

void cli_hint_pod(struct cli *cli, const char *namespace_, const char *name)
{
    struct cli_response r = CLI_RESPONSE_INIT;
    struct near near = { .name = name };
    json_auto_t *list = NULL;
    const char *other;
    const json_t *pod;
    size_t i;

    if (cli_request(cli, "GET", "/api/v1/pods", false, NULL, NULL, &r, ERR_IGNORED) == ERR_OK &&
        r.code == 200)
        ERR_IGNORE(json_parse(r.body.p, r.body.n, CLI_BODY_MAX, &list, "pods", ERR_IGNORED));
    buf_done(&r.body);
    json_array_foreach (cli_at(list, "items"), i, pod) {
        if (strcmp(cli_text(pod, "metadata.namespace"), namespace_) == 0)
            near_try(&near, cli_text(pod, "metadata.name"));
    }
    other = elsewhere(cli_at(list, "items"), name);
    if (other != NULL)
        cli_note(cli, "There is one in namespace %s: -n %s\n", other, other);
    else if (near.found != NULL)
        cli_note(cli, "Did you mean \"%s\"?\n", near.found);
}
