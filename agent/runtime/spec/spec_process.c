/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and environment of a container's process: the image's values, overridden by the manifest's. */
#include "agent/api/manifest/decode.h"
#include "agent/runtime/spec/internal.h"

#include <stdio.h>
#include <string.h>

/* The default of Docker, containerd and CRI-O. */
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static enum err_code append_strings(json_t *list, char *const *v, size_t n, const char *what, struct err *e)
{
    size_t i;

    for (i = 0; i < n; i++) {
        json_t *s = json_string(v[i]);

        if (s == NULL)
            return err_set(e, ERR_DATA_LOSS, "%s: not UTF-8", what);
        if (json_array_append_new(list, s) != 0)
            return err_nomem(e);
    }
    return ERR_OK;
}

/* command replaces ENTRYPOINT and drops CMD; args replaces CMD. */
enum err_code rt_args_build(const struct rt_config *c, json_t *ret_list, struct err *e)
{
    bool has_command = c->command != NULL && c->command->n > 0, has_args = c->args != NULL && c->args->n > 0;
    const struct img_image *image = c->image;

    if (has_command ? append_strings(ret_list, c->command->v, c->command->n, "command", e) != ERR_OK
                    : append_strings(ret_list, image->entrypoint.v, image->entrypoint.n,
                                     "ENTRYPOINT of the image", e) != ERR_OK)
        return e->code;
    if (has_args ? append_strings(ret_list, c->args->v, c->args->n, "args", e) != ERR_OK
                 : !has_command &&
                       append_strings(ret_list, image->cmd.v, image->cmd.n, "CMD of the image", e) != ERR_OK)
        return e->code;
    return json_array_size(ret_list) > 0 ? ERR_OK : err_set(e, ERR_NOT_FOUND, "no command specified");
}

/* jansson's objects keep the order of insertion, also for a variable set again. */
static enum err_code set_variable(json_t *env, const char *variable, struct err *e)
{
    const char *equals = strchr(variable, '=');
    size_t n = equals != NULL ? (size_t)(equals - variable) : 0;
    json_t *value;

    if (n == 0)
        return ERR_OK; /* not a variable; ignored */
    value = json_string(equals + 1);
    if (value == NULL)
        return err_set(e, ERR_DATA_LOSS, "environment variable %.*s: its value is not UTF-8",
                       (int)(n < 128 ? n : 128), variable);
    if (json_object_setn_new(env, variable, n, value) != 0)
        return err_set(e, ERR_DATA_LOSS, "environment variable %zu: its name is not UTF-8",
                       json_object_size(env));
    return ERR_OK;
}

static enum err_code set_default(json_t *env, const char *name, const char *value, struct err *e)
{
    char variable[PATH_MAX];

    if (json_object_get(env, name) != NULL ||
        snprintf(variable, sizeof(variable), "%s=%s", name, value) >= PATH_MAX)
        return ERR_OK;
    return set_variable(env, variable, e);
}

static enum err_code set_variables(json_t *env, const char *const *list, struct err *e)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        if (set_variable(env, list[i], e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

/* In increasing precedence: image, HOSTNAME, devices, manifest, CDI. Defaults: PATH, TERM on a terminal, and
 * HOME, which runtimes set differently if the image does not list the user. */
static enum err_code spec_process_collect(const struct rt_config *c, const char *home, json_t *env,
                                          struct err *e)
{
    char hostname[300];
    size_t i;

    for (i = 0; i < c->image->env.n; i++)
        if (set_variable(env, c->image->env.v[i], e) != ERR_OK)
            return e->code;
    if (c->hostname != NULL) {
        snprintf(hostname, sizeof(hostname), "HOSTNAME=%s", c->hostname);
        if (set_variable(env, hostname, e) != ERR_OK)
            return e->code;
    }
    if (set_variables(env, c->device_env, e) != ERR_OK || set_variables(env, c->env, e) != ERR_OK)
        return e->code;
    for (i = 0; c->edits != NULL && i < c->edits->n_env; i++)
        if (set_variable(env, c->edits->env[i], e) != ERR_OK)
            return e->code;
    if (set_default(env, "PATH", DEFAULT_PATH, e) != ERR_OK || set_default(env, "HOME", home, e) != ERR_OK)
        return e->code;
    return c->tty ? set_default(env, "TERM", "xterm", e) : ERR_OK;
}

enum err_code rt_env_build(const struct rt_config *c, const char *home, json_t *ret_list, struct err *e)
{
    json_auto_t *env = json_object();
    enum err_code code;
    const char *name;
    json_t *value;

    if (env == NULL)
        return err_nomem(e);
    code = spec_process_collect(c, home, env, e);
    json_object_foreach (env, name, value)
        if (code == ERR_OK &&
            json_array_append_new(ret_list, json_sprintf("%s=%s", name, json_string_value(value))) != 0)
            code = err_nomem(e);
    api_json_wipe(env); /* the list is wiped by its creator */
    return code;
}
