/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"

#include <fcntl.h>
#include <string.h>

#define SWAPS_MAX 65536

void settings_init_log(const struct agent_config *c)
{
    enum log_level level = LOG_LVL_INFO;
    enum log_format format = log_format_default();

    if (strcmp(c->log_level, "debug") == 0)
        level = LOG_LVL_DEBUG;
    else if (strcmp(c->log_level, "warn") == 0)
        level = LOG_LVL_WARN;
    else if (strcmp(c->log_level, "error") == 0)
        level = LOG_LVL_ERROR;
    if (strcmp(c->log_format, "text") == 0)
        format = LOG_FMT_TEXT;
    else if (strcmp(c->log_format, "json") == 0)
        format = LOG_FMT_JSON;
    else if (strcmp(c->log_format, "journal") == 0)
        format = LOG_FMT_JOURNAL;
    log_init(level, format);
}

static void log_warning(const struct config_warning *w, void *arg)
{
    (void)arg;
    log_warn("a setting has no effect", F_STR("setting", w->setting), F_STR("value", w->value),
             F_STR("from", w->from), F_STR("why", w->why));
}

void settings_warn(const struct agent_config *c)
{
    config_warnings(c, log_warning, NULL);
}

enum err_code settings_check_swap(const struct agent_config *c, struct err *e)
{
    str_auto text = NULL;
    const char *line;

    if (!c->fail_swap_on ||
        fs_read_at(AT_FDCWD, "/proc/swaps", SWAPS_MAX, &text, NULL, ERR_IGNORED) != ERR_OK)
        return ERR_OK;
    line = strchr(text, '\n'); /* the first line has the column names */
    if (line == NULL || line[1] == '\0')
        return ERR_OK;
    return err_set(e, ERR_PRECONDITION, "failSwapOn: true, and swap is on: %.*s",
                   (int)strcspn(line + 1, " \t"), line + 1);
}

/* ---- reload ---- */

static void log_changed(const char *setting, bool live, void *arg)
{
    unsigned *n = arg;

    ++*n;
    if (live)
        log_info("a setting has changed", F_STR("setting", setting));
    else
        log_warn("a changed setting needs a restart", F_STR("setting", setting));
}

bool settings_reload(struct agent_config *c, int argc, char **argv)
{
    struct agent_config next = { 0 };
    struct err e = { 0 };
    unsigned changes = 0;
    bool help = false;
    bool ok = config_parse(&next, argc, argv, &help, &e) == ERR_OK;

    if (ok) {
        config_take(c, &next, log_changed, &changes);
        settings_init_log(c);
        log_info("configuration reloaded", F_U64("changes", changes));
        settings_warn(c);
    } else {
        log_error("cannot reload the configuration; the old one stays in effect", F_ERR(&e));
    }
    config_done(&next);
    return ok;
}
