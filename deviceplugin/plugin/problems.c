/* SPDX-License-Identifier: Apache-2.0 */
/* problems - current problems of plugins, by resource or socket. A problem is kept until it is resolved, or
 * dropped for a newer one. */
#include "deviceplugin/plugin/plugin.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REPORTS_AT_ONCE = 20, /* reports in a row */
    REPORT_EVERY_MS = 1000,
};

static struct dp_problem *problem_find(struct dp_problems *ps, const char *what)
{
    struct dp_problem *p;

    TAILQ_FOREACH (p, &ps->all, link) {
        if (strcmp(p->what, what) == 0)
            return p;
    }
    return NULL;
}

static void problem_drop(struct dp_problems *ps, struct dp_problem *p)
{
    TAILQ_REMOVE(&ps->all, p, link);
    ps->n--;
    free(p);
}

static struct dp_problem *problem_add(struct dp_problems *ps, const char *what)
{
    struct dp_problem *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return NULL;
    if (ps->n >= DP_PROBLEMS_MAX)
        problem_drop(ps, TAILQ_FIRST(&ps->all));
    strcpy(p->what, what);
    TAILQ_INSERT_TAIL(&ps->all, p, link);
    ps->n++;
    return p;
}

/* A burst, then one a second: a plugin that fails in a loop must not fill the log. */
bool dp_may_report(struct dp_plugins *all)
{
    struct dp_problems *ps = &all->problems;
    uint64_t now = clock_mono_ms(), back = (now - ps->reported_ms) / REPORT_EVERY_MS;

    if (back > 0) {
        ps->reported = back < ps->reported ? ps->reported - (unsigned)back : 0;
        ps->reported_ms = now;
    }
    if (ps->reported >= REPORTS_AT_ONCE)
        return false;
    ps->reported++;
    return true;
}

static void make_name(char ret[DP_RESOURCE_NAME_MAX + 1], const char *what)
{
    size_t n = strnlen(what, DP_RESOURCE_NAME_MAX + 1);

    if (n > DP_RESOURCE_NAME_MAX)
        n = utf8_cut(what, DP_RESOURCE_NAME_MAX);
    memcpy(ret, what, n);
    ret[n] = '\0';
    text_printable(ret);
}

void dp_problem_set(struct dp_plugins *all, const char *what, const char *resource, const struct err *e)
{
    struct dp_problems *ps = &all->problems;
    char name[DP_RESOURCE_NAME_MAX + 1];
    struct dp_problem *p;
    struct err shown = *e;
    bool same;

    make_name(name, what);
    text_printable(shown.text);
    p = problem_find(ps, name);
    same = p != NULL && strcmp(p->e.text, shown.text) == 0;
    if (p == NULL)
        p = problem_add(ps, name);
    if (p != NULL)
        p->e = shown;
    if (!same && dp_may_report(all) && all->o.problem != NULL)
        all->o.problem(resource, &shown, all->o.arg);
}

void dp_problem_clear(struct dp_plugins *all, const char *what)
{
    char name[DP_RESOURCE_NAME_MAX + 1];
    struct dp_problem *p;

    make_name(name, what);
    p = problem_find(&all->problems, name);
    if (p != NULL)
        problem_drop(&all->problems, p);
}

static void report_silent(const struct dp_plugins *all,
                          void (*fn)(const char *what, const char *text, void *arg), void *arg)
{
    uint64_t now = clock_mono_ms();
    const struct plugin *p;
    char text[160];

    TAILQ_FOREACH (p, &all->plugins, link) {
        if (p->state != PLUGIN_SERVES || p->listed || now - p->since_ms < DP_CALL_MS)
            continue;
        snprintf(text, sizeof(text), "its plugin registered %llu s ago and has not sent a list of devices",
                 (unsigned long long)((now - p->since_ms) / 1000));
        fn(p->resource, text, arg);
    }
}

void dp_plugins_problems(const struct dp_plugins *all,
                         void (*fn)(const char *what, const char *text, void *arg), void *arg)
{
    const struct dp_problem *p;

    TAILQ_FOREACH (p, &all->problems.all, link)
        fn(p->what, p->e.text, arg);
    report_silent(all, fn, arg);
}

void dp_problems_done(struct dp_plugins *all)
{
    struct dp_problem *p;

    while ((p = TAILQ_FIRST(&all->problems.all)) != NULL)
        problem_drop(&all->problems, p);
}
