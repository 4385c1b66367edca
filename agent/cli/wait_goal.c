/* SPDX-License-Identifier: Apache-2.0 */
/* The goals of `coracle wait` and `coracle restart --wait`: parses --for, and decides whether a pod meets the
 * goal, or can no longer meet it. */
#include "agent/cli/internal.h"

#include <string.h>
#include <strings.h>

/* ---- the words ---- */

/* "Ready", "Ready=False" */
static enum err_code parse_condition(struct wait_goal *g, const char *text, struct err *e)
{
    const char *equals = strchr(text, '='), *value = equals != NULL ? equals + 1 : "True";
    const size_t n = strcspn(text, "=");

    if (n == 0 || value[0] == '\0' || n >= sizeof(g->subject) || strlen(value) >= sizeof(g->value))
        return err_set(e, ERR_INVALID, "condition=NAME or condition=NAME=VALUE is expected");
    g->kind = WAIT_CONDITION;
    snprintf(g->subject, sizeof(g->subject), "%.*s", (int)n, text);
    snprintf(g->value, sizeof(g->value), "%s", value);
    return ERR_OK;
}

/* "{.status.phase}=Running", ".status.podIP"; the value may be in quotes, as in kubectl. */
static enum err_code parse_jsonpath(struct wait_goal *g, const char *text, struct err *e)
{
    const size_t n = text[0] == '{' ? strcspn(text, "}") + 1 : strcspn(text, "=");
    buf_auto nothing = BUF_INIT(64 * 1024);
    json_auto_t *empty = json_object();
    size_t value_n;

    if (n == 0 || n > strlen(text) || n >= sizeof(g->subject) || strcspn(text + 1, "{") < n - 1 ||
        (text[n] != '\0' && (text[n] != '=' || text[n + 1] == '\0')))
        return err_set(e, ERR_INVALID, "jsonpath={PATH} or jsonpath={PATH}=VALUE is expected");
    g->kind = WAIT_JSONPATH;
    snprintf(g->subject, sizeof(g->subject), "%.*s", (int)n, text);
    if (text[n] == '=') {
        text += n + 1;
        text += strspn(text, "'\"");
        value_n = strlen(text);
        while (value_n > 0 && strchr("'\"", text[value_n - 1]) != NULL)
            value_n--;
        if (value_n >= sizeof(g->value))
            return err_set(e, ERR_INVALID, "the value is too long");
        snprintf(g->value, sizeof(g->value), "%.*s", (int)value_n, text);
    }
    return cli_jsonpath(g->subject, empty, &nothing, e); /* checks its syntax */
}

enum err_code wait_goal_parse(struct wait_goal *g, const char *text, struct err *e)
{
    *g = (struct wait_goal){ .kind = WAIT_DELETE, .text = text };
    if (strcmp(text, "delete") == 0)
        return ERR_OK;
    g->kind = WAIT_CREATE;
    if (strcmp(text, "create") == 0)
        return ERR_OK;
    if (str_starts(text, "condition="))
        return parse_condition(g, text + strlen("condition="), e);
    if (str_starts(text, CLI_JSONPATH))
        return parse_jsonpath(g, text + strlen(CLI_JSONPATH), e);
    return err_set(e, ERR_INVALID,
                   "condition=NAME[=VALUE], jsonpath={PATH}[=VALUE], create or delete is expected");
}

/* ---- a pod ---- */

static bool meets_condition(const struct wait_goal *g, const json_t *pod)
{
    const json_t *c;
    size_t i;

    json_array_foreach (cli_at(pod, "status.conditions"), i, c) {
        if (strcasecmp(cli_text(c, "type"), g->subject) == 0)
            return strcasecmp(cli_text(c, "status"), g->value) == 0;
    }
    return false;
}

/* Without a value: it is there. */
static bool meets_jsonpath(const struct wait_goal *g, const json_t *pod)
{
    buf_auto found = BUF_INIT(SIZE_MAX - 1);

    if (cli_jsonpath(g->subject, pod, &found, ERR_IGNORED) != ERR_OK)
        return false;
    return g->value[0] != '\0' ? strcmp(found.p, g->value) == 0 : found.n > 0;
}

static const json_t *of_container(const json_t *list, const char *name)
{
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one) {
        if (strcmp(cli_text(one, "name"), name) == 0)
            return one;
    }
    return NULL;
}

/* A container that had no run to end was being made, or was made later. */
static bool is_new(const json_t *ending, const json_t *status)
{
    const json_t *old = of_container(ending, cli_text(status, "name"));

    return old == NULL || strcmp(cli_text(old, "containerID"), cli_text(status, "containerID")) != 0;
}

static bool are_new_and_ready(const json_t *ending, const json_t *specs, const json_t *statuses, bool init)
{
    const json_t *spec;
    size_t i;

    json_array_foreach (specs, i, spec) {
        const json_t *status = of_container(statuses, cli_text(spec, "name"));

        /* Init containers do not run again; sidecars do. */
        if (init && strcmp(cli_text(spec, "restartPolicy"), "Always") != 0)
            continue;
        if (!cli_true(status, "ready") || !is_new(ending, status))
            return false;
    }
    return true;
}

static bool is_restarted(const json_t *ending, const json_t *pod)
{
    return are_new_and_ready(ending, cli_at(pod, "spec.containers"), cli_at(pod, "status.containerStatuses"),
                             false) &&
           are_new_and_ready(ending, cli_at(pod, "spec.initContainers"),
                             cli_at(pod, "status.initContainerStatuses"), true);
}

bool wait_goal_is_met(const struct wait_goal *g, const json_t *pod)
{
    switch (g->kind) {
    case WAIT_CONDITION:
        return meets_condition(g, pod);
    case WAIT_JSONPATH:
        return meets_jsonpath(g, pod);
    case WAIT_CREATE:
        return true;
    case WAIT_RESTART:
        return is_restarted(g->ending, pod);
    case WAIT_DELETE:
        break;
    }
    return false;
}

/* The containers of a pod that has ended do not run again, so no condition becomes true and its phase stays.
 * Other parts of the status may still follow, PodReadyToStartContainers=False for one. */
bool wait_goal_is_lost(const struct wait_goal *g, const json_t *pod)
{
    const char *phase = cli_text(pod, "status.phase");

    if (strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0)
        return false;
    if (g->kind == WAIT_RESTART)
        return true;
    if (g->kind == WAIT_CONDITION)
        return strcasecmp(g->value, "True") == 0;
    return g->kind == WAIT_JSONPATH && g->value[0] != '\0' && strstr(g->subject, ".status.phase") != NULL;
}

int wait_goal_print_lost(struct cli *cli, const struct wait_goal *g, const char *name, const json_t *pod)
{
    const char *reason = cli_text(pod, "status.reason"), *message = cli_text(pod, "status.message");

    return cli_error(cli, "pod %s has ended (%s%s%s%s%s): it no longer meets %s; see coracle explain pod %s",
                     name, cli_text(pod, "status.phase"), reason[0] != '\0' ? ", " : "", reason,
                     message[0] != '\0' ? ": " : "", message, g->text, name);
}
