/* SPDX-License-Identifier: Apache-2.0 */
/* Thresholds from the configuration's maps, and thresholds that are implied by others. */
#include "agent/eviction/settings.h"

#include "base/duration.h"

#include <string.h>

static const json_t *text_of(const json_t *map, enum ev_signal s)
{
    return map != NULL ? json_object_get(map, ev_signal_name(s)) : NULL;
}

static enum err_code known_signals(const json_t *map, const char *setting, struct err *e)
{
    const char *name;
    json_t *item;

    json_object_foreach ((json_t *)map, name, item) {
        if (ev_signal_parse(name) == EV_SIGNALS)
            return err_set(e, ERR_INVALID,
                           "%s: unknown eviction signal \"%.60s\"; there are " EV_SIGNALS_TEXT, setting,
                           name);
        if (!json_is_string(item))
            return err_set(e, ERR_INVALID, "%s: %s: not a text", setting, name);
    }
    return ERR_OK;
}

static enum err_code parse_amount(const json_t *map, const char *setting, enum ev_signal s, bool zero,
                                  struct ev_amount *ret, struct err *e)
{
    const json_t *text = text_of(map, s);

    *ret = (struct ev_amount){ 0 };
    if (text != NULL && ev_amount_parse(json_string_value(text), zero, ret, e) != ERR_OK)
        return err_wrap(e, "%s: %s", setting, ev_signal_name(s));
    return ERR_OK;
}

static enum err_code parse_grace(const json_t *map, enum ev_signal s, uint64_t *ret_ms, struct err *e)
{
    const json_t *text = text_of(map, s);
    int64_t ns;

    if (text == NULL)
        return err_set(e, ERR_INVALID, "evictionSoft: %s needs a grace period in evictionSoftGracePeriod",
                       ev_signal_name(s));
    if (!duration_parse(json_string_value(text), &ns) || ns < 0)
        return err_set(e, ERR_INVALID,
                       "evictionSoftGracePeriod: %s: \"%.60s\" is not a duration like \"90s\"",
                       ev_signal_name(s), json_string_value(text));
    *ret_ms = (uint64_t)ns / 1000000;
    return ERR_OK;
}

struct maps {
    const json_t *hard, *soft, *grace, *reclaim;
};

static bool is_nothing(const struct ev_amount *a)
{
    return a->quantity == 0 && !(a->share > 0);
}

static enum err_code add_threshold(struct ev_settings *s, const struct maps *m, enum ev_signal signal,
                                   bool soft, struct err *e)
{
    struct ev_threshold t = { .signal = signal, .soft = soft };

    if (text_of(soft ? m->soft : m->hard, signal) == NULL)
        return ERR_OK;
    if (parse_amount(soft ? m->soft : m->hard, soft ? "evictionSoft" : "evictionHard", signal, false,
                     &t.value, e) != ERR_OK ||
        parse_amount(m->reclaim, "evictionMinimumReclaim", signal, true, &t.reclaim, e) != ERR_OK ||
        (soft && parse_grace(m->grace, signal, &t.grace_ms, e) != ERR_OK))
        return e->code;
    if (!is_nothing(&t.value))
        s->v[s->n++] = t;
    return ERR_OK;
}

enum err_code ev_settings_parse(struct ev_settings *ret, const json_t *hard, const json_t *soft,
                                const json_t *soft_grace, const json_t *reclaim, struct err *e)
{
    const struct maps m = { hard, soft, soft_grace, reclaim };
    struct ev_settings s = *ret;

    s.n = 0;
    if (known_signals(hard, "evictionHard", e) != ERR_OK ||
        known_signals(soft, "evictionSoft", e) != ERR_OK ||
        known_signals(soft_grace, "evictionSoftGracePeriod", e) != ERR_OK ||
        known_signals(reclaim, "evictionMinimumReclaim", e) != ERR_OK)
        return e->code;
    for (enum ev_signal i = 0; i < EV_SIGNALS; i++)
        if (add_threshold(&s, &m, i, false, e) != ERR_OK || add_threshold(&s, &m, i, true, e) != ERR_OK)
            return e->code;
    *ret = s;
    return ERR_OK;
}

static void remove_containerfs(struct ev_settings *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].signal != EV_CONTAINERFS && s->v[i].signal != EV_CONTAINERFS_INODES)
            s->v[n++] = s->v[i];
    s->n = n;
}

/* The signal for which this threshold implies another one; EV_SIGNALS: none. */
static enum ev_signal implied(const struct ev_threshold *t, enum ev_layout layout, bool pods_enforced)
{
    const bool with_images = layout == EV_LAYOUT_IMAGEFS;

    switch (t->signal) {
    case EV_MEMORY:
        return pods_enforced && !t->soft ? EV_ALLOCATABLE_MEMORY : EV_SIGNALS;
    case EV_NODEFS:
        return with_images ? EV_SIGNALS : EV_CONTAINERFS;
    case EV_NODEFS_INODES:
        return with_images ? EV_SIGNALS : EV_CONTAINERFS_INODES;
    case EV_IMAGEFS:
        return with_images ? EV_CONTAINERFS : EV_SIGNALS;
    case EV_IMAGEFS_INODES:
        return with_images ? EV_CONTAINERFS_INODES : EV_SIGNALS;
    default:
        return EV_SIGNALS;
    }
}

void ev_settings_complete(struct ev_settings *s, enum ev_layout layout, bool pods_enforced)
{
    size_t n;

    remove_containerfs(s);
    n = s->n;
    for (size_t i = 0; i < n && s->n < EV_THRESHOLDS_MAX; i++) {
        struct ev_threshold t = s->v[i];

        t.signal = implied(&t, layout, pods_enforced);
        if (t.signal != EV_SIGNALS)
            s->v[s->n++] = t;
    }
}
