/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/handlers.h"

#include "base/log.h"

#include <assert.h>
#include <jansson.h>
#include <unistd.h>

static_assert(CONFIG_HANDLERS_MAX + 2 <= RT_HANDLERS_MAX, "and crun and runc");
static_assert(CONFIG_HANDLER_OPTIONS_MAX <= RT_HANDLER_OPTIONS_MAX, "options of a handler");
static_assert(CONFIG_HANDLER_TEXT_MAX <= RT_HANDLER_OPTION_MAX, "an option of a handler");

static void handlers_add(struct handlers *h, const char *name, const char *program, const json_t *words)
{
    const char **options = h->options[h->n];
    size_t n = 0;

    if (access(program, X_OK) != 0) {
        log_warn("a runtime handler has no program: pods of its RuntimeClass wait", F_STR("handler", name),
                 F_STR("program", program));
        return;
    }
    for (size_t i = 1; i < json_array_size(words) && n < RT_HANDLER_OPTIONS_MAX; i++)
        options[n++] = json_string_value(json_array_get(words, i));
    options[n] = NULL;
    h->v[h->n++] = (struct rt_handler_option){ .name = name, .program = program, .options = options };
}

void handlers_find(struct handlers *ret, const struct agent_config *c)
{
    static const char *const usual[] = { "crun", "runc" };
    const json_t *given = config_value(c, "runtimeHandlers");
    const char *name;
    json_t *words;

    ret->n = 0;
    for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
        if (json_object_get(given, usual[i]) == NULL && preflight_find(usual[i], ret->found[i]))
            handlers_add(ret, usual[i], ret->found[i], NULL);
    json_object_foreach ((json_t *)given, name, words)
        if (json_array_size(words) > 0)
            handlers_add(ret, name, json_string_value(json_array_get(words, 0)), words);
}
