/* SPDX-License-Identifier: Apache-2.0 */
#include "deviceplugin/plugin/plugin.h"

#include "base/codec/go_quote.h"
#include "base/scope.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

void dp_quote(char *ret, size_t size, const char *text)
{
    buf_auto quoted = BUF_INIT(4096);
    size_t n = strlen(text);

    go_quote(&quoted, text, n < 1000 ? n : 1000);
    n = quoted.n < size ? quoted.n : utf8_cut(quoted.p, size - 1);
    memcpy(ret, quoted.p, n);
    ret[n] = '\0';
}

/* Plugins are freed on later turns, so this struct outlives a failed open by a turn or two. */
enum err_code dp_plugins_open(struct dp_plugins **ret, const struct dp_plugins_options *o, struct err *e)
{
    struct dp_plugins *all = calloc(1, sizeof(*all));

    if (all == NULL)
        return err_nomem(e);
    all->o = *o;
    TAILQ_INIT(&all->plugins);
    TAILQ_INIT(&all->problems.all);
    all->o.dir = strdup(o->dir);
    all->o.registry_dir = strdup(o->registry_dir);
    if (all->o.dir == NULL || all->o.registry_dir == NULL)
        err_nomem(e);
    else if (registration_open(&all->registration, all, e) == ERR_OK)
        ERR_IGNORE(watcher_open(&all->watcher, all, e));
    if (e->code != ERR_OK) {
        dp_plugins_close(all); /* no calls have begun: the loop has not run */
        return e->code;
    }
    *ret = all;
    return ERR_OK;
}

bool dp_plugins_busy(const struct dp_plugins *all)
{
    return !TAILQ_EMPTY(&all->plugins) || registration_busy(all->registration) || watcher_busy(all->watcher);
}

void dp_plugins_cancel(struct dp_plugins *all)
{
    struct plugin *p, *next;

    if (all->cancelled)
        return;
    all->cancelled = true;
    registration_cancel(all->registration);
    watcher_cancel(all->watcher);
    TAILQ_FOREACH_SAFE (p, &all->plugins, link, next)
        plugin_cancel(p);
}

void dp_plugins_close(struct dp_plugins *all)
{
    if (all == NULL)
        return;
    watcher_close(all->watcher);
    registration_close(all->registration);
    dp_problems_done(all);
    dp_counts_done(&all->counts);
    free((char *)all->o.dir);
    free((char *)all->o.registry_dir);
    free(all);
}

const struct dp_counts *dp_plugins_counts(const struct dp_plugins *all)
{
    return &all->counts;
}
