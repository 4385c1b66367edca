/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of exec: the process specification, and the runtime's errors when it cannot start the
 * process. */
#include "agent/runtime/container_internal.h"
#include "agent/runtime/exec.h"

#include "base/codec/json.h"

#include <string.h>

enum {
    CONFIG_MAX = 4 * 1024 * 1024, /* ours: 50 KiB with a seccomp profile, plus the environment */
    LOG_MAX = 64 * 1024,
};

/* ---- specification ---- */

/* The parser's copies of the environment contain Secrets. */
static void wipe_env(json_t *config)
{
    const json_t *v;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(config, "process"), "env"), i, v) {
        if (json_is_string(v))
            explicit_bzero((char *)json_string_value(v), json_string_length(v));
    }
}

static enum err_code put_args(json_t *process, const char *const *argv, struct err *e)
{
    json_t *args = json_array();

    if (json_object_set_new(process, "args", args) != 0)
        return err_nomem(e);
    for (; *argv != NULL; argv++) {
        json_t *arg = json_string(*argv);

        if (arg == NULL)
            return err_set(e, ERR_DATA_LOSS, "exec: an argument is not UTF-8");
        if (json_array_append_new(args, arg) != 0)
            return err_nomem(e);
    }
    return ERR_OK;
}

/* TERM like containerd for a process on a terminal, if the container has none. */
static bool put_terminal(json_t *process, const struct rt_exec_spec *spec)
{
    json_t *env = json_object_get(process, "env");
    bool has_term = false;
    const json_t *v;
    size_t i;

    json_object_del(process, "consoleSize");
    if (json_object_set_new(process, "terminal", json_boolean(spec->tty)) != 0)
        return false;
    if (!spec->tty)
        return true;
    if (spec->rows != 0 && spec->columns != 0 &&
        json_object_set_new(process, "consoleSize",
                            json_pack("{s:i,s:i}", "height", spec->rows, "width", spec->columns)) != 0)
        return false;
    json_array_foreach (env, i, v) {
        const char *text = json_string_value(v);

        has_term = has_term || (text != NULL && str_starts(text, "TERM="));
    }
    return has_term || !json_is_array(env) || json_array_append_new(env, json_string("TERM=xterm")) == 0;
}

static enum err_code exec_spec_build(json_t *config, const struct rt_exec_spec *spec, char **ret,
                                     struct err *e)
{
    json_t *process = json_object_get(config, "process");

    if (!json_is_object(process))
        return err_set(e, ERR_DATA_LOSS, "config.json has no process");
    if (put_args(process, spec->argv, e) != ERR_OK)
        return e->code;
    if (!put_terminal(process, spec) || (*ret = json_text(process)) == NULL)
        return err_nomem(e);
    return ERR_OK;
}

static void oom_score(const json_t *process, char ret[RT_OOM_SCORE_SIZE])
{
    const json_t *score = json_object_get(process, "oomScoreAdj");

    if (json_is_integer(score) && json_integer_value(score) >= -1000 && json_integer_value(score) <= 1000)
        snprintf(ret, RT_OOM_SCORE_SIZE, "%d", (int)json_integer_value(score));
}

enum err_code rt_exec_process_build(const char *config, size_t n, const struct rt_exec_spec *spec, char **ret,
                                    char ret_oom_score[RT_OOM_SCORE_SIZE], struct err *e)
{
    json_t *value = NULL;

    snprintf(ret_oom_score, RT_OOM_SCORE_SIZE, "-");
    if (json_parse(config, n, CONFIG_MAX, &value, "config.json", e) != ERR_OK) {
        if (e->code != ERR_EXHAUSTED)
            e->code = ERR_DATA_LOSS;
        return e->code;
    }
    if (exec_spec_build(value, spec, ret, e) == ERR_OK)
        oom_score(json_object_get(value, "process"), ret_oom_score);
    wipe_env(value);
    json_decref(value);
    return e->code;
}

/* ---- failure ---- */

/* The last message of level error. */
static char *last_error(const char *log)
{
    size_t n = strnlen(log, LOG_MAX);
    const char *end = log + n;
    char *words = NULL;

    while (log < end) {
        const char *newline = memchr(log, '\n', (size_t)(end - log));
        size_t length = (size_t)((newline != NULL ? newline : end) - log);
        json_auto_t *entry = NULL;
        const char *message;

        if (length > 0 && json_parse(log, length, LOG_MAX, &entry, "log line", ERR_IGNORED) == ERR_OK &&
            str_eq(json_str(entry, "level"), "error") && (message = json_str(entry, "msg")) != NULL) {
            free(words);
            words = strdup(message);
        }
        log += length + 1;
    }
    return words;
}

/*
 * Messages of crun 1.8 to 1.21 ("executable file `x` not found in $PATH: ...", "open executable: Permission
 * denied", "the path `x` is not a regular file: Operation not permitted", "exec: Exec format error") and runc
 * 1.1 ("exec: \"x\": executable file not found in $PATH", "exec: \"/x\": stat /x: no such file or directory",
 * "exec: \"/x\": permission denied"); such messages about another file, such as the working directory, do not
 * count.
 */
bool rt_exec_failure(const char *log, int *ret_exit_code, struct err *e)
{
    str_auto words = last_error(log);
    bool about_program;

    if (words == NULL)
        return false;
    rt_words_tidy(words);
    about_program = strstr(words, "executable") != NULL || strstr(words, "exec: ") != NULL ||
                    strstr(words, "is not a regular file") != NULL;
    *ret_exit_code = 0;
    if (about_program &&
        (strcasestr(words, "not found") != NULL || strcasestr(words, "no such file or directory") != NULL)) {
        err_set(e, ERR_NOT_FOUND, "%s", words);
        *ret_exit_code = 127;
    } else if (about_program && (strcasestr(words, "permission denied") != NULL ||
                                 strcasestr(words, "operation not permitted") != NULL ||
                                 strcasestr(words, "exec format error") != NULL ||
                                 strcasestr(words, "is a directory") != NULL)) {
        err_set(e, ERR_PERMISSION, "%s", words);
        *ret_exit_code = 126;
    } else {
        err_set(e, ERR_UNKNOWN, "%s",
                *words != '\0' ? words : "the container runtime failed without a message");
    }
    return true;
}
