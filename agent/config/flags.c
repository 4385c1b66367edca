/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, in kubelet's syntax: --name value, --name=value, switches without a value, "_" as "-",
 * -v 4. */
#include "agent/config/internal.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define FLAGS_MAX 1000

static enum err_code config_flags_add(struct config_flags *f, size_t row, const char *value, struct err *e)
{
    if (f->n == FLAGS_MAX)
        return err_set(e, ERR_INVALID, "more than %d flags", FLAGS_MAX);
    if (!array_room(f->v, f->n))
        return err_nomem(e);
    f->v[f->n++] = (struct config_flag){ row, value };
    return ERR_OK;
}

static enum err_code config_flags_unknown_flag(const char *name, size_t n, struct err *e)
{
    str_auto copy = strndup(name, n < 100 ? n : 100);
    const char *near = copy != NULL ? config_nearest_flag(copy) : NULL;

    if (near != NULL)
        return err_set(e, ERR_INVALID, "unknown flag --%s; did you mean --%s?", copy, near);
    return err_set(e, ERR_INVALID, "unknown flag --%.*s; see coracle run --help", (int)(n < 100 ? n : 100),
                   name);
}

/* `arg` begins with "--", or is "-v...". */
static enum err_code take_flag(struct config_flags *f, const char *arg, int argc, char **argv, int *i,
                               struct err *e)
{
    bool letter = arg[1] == 'v';
    const char *name = letter ? arg + 1 : arg + 2, *value;
    size_t n = letter ? 1 : strcspn(name, "="), row = config_find_flag(name, n);
    const struct config_row *r;

    if (row == config_n_rows())
        return config_flags_unknown_flag(name, n, e);
    r = config_row(row, NULL);
    if (name[n] == '=')
        value = name + n + 1;
    else if (letter && name[n] != '\0')
        value = name + n;
    else if (r->type == T_BOOL)
        value = "true";
    else if (*i + 1 < argc)
        value = argv[++*i];
    else
        return err_set(e, ERR_INVALID, "--%s needs a value", r->flag);
    return config_flags_add(f, row, value, e);
}

enum err_code config_flags_parse(struct config_flags *f, int argc, char **argv, struct err *e)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];

        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            f->help = true;
            return ERR_OK;
        }
        if ((strncmp(arg, "--", 2) != 0 || arg[2] == '\0') && strncmp(arg, "-v", 2) != 0)
            return err_set(e, ERR_INVALID, "unexpected argument \"%.200s\"; see coracle run --help", arg);
        if (take_flag(f, arg, argc, argv, &i, e) != ERR_OK)
            return e->code;
    }
    return ERR_OK;
}

enum err_code config_check_words(int argc, char **argv, struct err *e)
{
    struct config_flags f = { 0 };

    if (config_flags_parse(&f, argc, argv, e) == ERR_OK)
        for (size_t i = 0; i < f.n && e->code == ERR_OK; i++) {
            const struct config_row *r = config_row(f.v[i].row, NULL);
            json_auto_t *value = NULL;

            if (config_flag_value(r, f.v[i].value, &value, e) != ERR_OK)
                err_wrap(e, "--%s", r->flag);
        }
    config_flags_done(&f);
    return e->code;
}

void config_flags_done(struct config_flags *f)
{
    free(f->v);
    *f = (struct config_flags){ 0 };
}

const char *config_flags_last(const struct config_flags *f, const char *name)
{
    for (size_t i = f->n; i > 0; i--)
        if (str_eq(config_row(f->v[i - 1].row, NULL)->flag, name))
            return f->v[i - 1].value;
    return NULL;
}

static bool given_before(const struct config_flags *f, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (f->v[i].row == f->v[at].row)
            return true;
    return false;
}

/* A repeated list or mapping is appended to; its first occurrence replaces the files' value, except feature
 * gates, which are merged (kubelet: kubeletConfigFlagPrecedence()). */
static enum err_code apply_one(struct config_state *s, const struct config_flags *f, size_t at, struct err *e)
{
    size_t i = f->v[at].row;
    const struct config_row *r = config_row(i, NULL);
    bool again = given_before(f, at);
    json_auto_t *value = NULL, *both = NULL;
    char from[120];

    if (config_flag_value(r, f->v[at].value, &value, e) != ERR_OK)
        return err_wrap(e, "--%s", r->flag);
    if (config_means_default(r, value)) {
        config_unset(s, i);
        return ERR_OK;
    }
    if (!again && r->type != T_BOOL_MAP)
        config_unset(s, i);
    if (again && json_is_array(value) && json_is_array(s->set[i].value)) {
        both = json_copy(s->set[i].value);
        if (both == NULL || json_array_extend(both, value) != 0)
            return err_nomem(e);
        json_decref(value);
        value = NULL;
        if (config_check_value(r, both, &value, e) != ERR_OK)
            return err_wrap(e, "--%s", r->flag);
    }
    snprintf(from, sizeof(from), "--%s", r->flag);
    return config_set(s, i, value, from, e);
}

enum err_code config_flags_apply(struct config_state *s, const struct config_flags *f, struct err *e)
{
    for (size_t i = 0; i < f->n; i++)
        if (apply_one(s, f, i, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}
