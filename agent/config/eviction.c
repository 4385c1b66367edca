/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of eviction: checks of single rows, and thresholds as numbers. */
#include "agent/config/internal.h"

#include "base/duration.h"

#include <string.h>

/* ---- rows ---- */

static enum err_code check_signal(const char *name, struct err *e)
{
    return ev_signal_parse(name) != EV_SIGNALS
               ? ERR_OK
               : err_set(e, ERR_INVALID, "unknown eviction signal \"%.60s\"; there are " EV_SIGNALS_TEXT,
                         name);
}

static enum err_code check_map(const json_t *v, enum err_code (*check)(const char *text, struct err *e),
                               struct err *e)
{
    const char *name;
    json_t *item;

    json_object_foreach ((json_t *)v, name, item) {
        const char *text = json_string_value(item);

        if (text == NULL)
            continue;
        if (check_signal(name, e) != ERR_OK)
            return e->code;
        if (check(text, e) != ERR_OK)
            return err_wrap(e, "%s", name);
    }
    return ERR_OK;
}

static enum err_code check_threshold(const char *text, struct err *e)
{
    struct ev_amount a;

    return ev_amount_parse(text, false, &a, e);
}

static enum err_code check_reclaim(const char *text, struct err *e)
{
    struct ev_amount a;

    return ev_amount_parse(text, true, &a, e);
}

static enum err_code check_grace(const char *text, struct err *e)
{
    int64_t ns;

    return duration_parse(text, &ns) && ns >= 0
               ? ERR_OK
               : err_set(e, ERR_INVALID, "\"%.60s\" is not a duration like \"90s\"", text);
}

enum err_code config_check_thresholds(const json_t *v, struct err *e)
{
    return check_map(v, check_threshold, e);
}

enum err_code config_check_signal_quantities(const json_t *v, struct err *e)
{
    return check_map(v, check_reclaim, e);
}

enum err_code config_check_signal_durations(const json_t *v, struct err *e)
{
    return check_map(v, check_grace, e);
}

/* ---- the whole ---- */

static const json_t *get(const struct config_state *s, const char *key)
{
    return config_effective(s, config_find_key(DOC_KUBELET, key));
}

enum err_code config_parse_eviction(const struct config_state *s, struct ev_settings *ret, struct err *e)
{
    ret->max_pod_grace_s = json_integer_value(get(s, "evictionMaxPodGracePeriod"));
    ret->transition_ms = (uint64_t)(config_duration_ns(get(s, "evictionPressureTransitionPeriod")) / 1000000);
    return ev_settings_parse(ret, get(s, "evictionHard"), get(s, "evictionSoft"),
                             get(s, "evictionSoftGracePeriod"), get(s, "evictionMinimumReclaim"), e);
}
