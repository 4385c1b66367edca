/* SPDX-License-Identifier: Apache-2.0 */
/* Which file systems of the node have project quotas, and the table of ids. */
#include "agent/pod/core/node_options.h"
#include "agent/pod/project/internal.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[PROJECT_KINDS] = { "volumes", "layers", "logs", "claims" };

static void place_refused(struct place *at, enum project_kind kind, const struct err *e)
{
    snprintf(at->why, sizeof(at->why), "%.390s", e->text);
    log_info("no project quotas: trees are scanned for their usage", F_STR("what", kinds[kind]), F_ERR(e));
}

static void place_open(struct project_node *part, enum project_kind kind, const char *folder)
{
    struct place *at = &part->places[kind];
    struct quota_fs *fs;
    struct err e = { 0 };

    if (folder == NULL)
        return;
    if (quota_fs_open(&fs, folder, &e) != ERR_OK) {
        place_refused(at, kind, &e);
        return;
    }
    for (size_t i = 0; i < part->n_open; i++)
        if (quota_fs_device(part->open[i]) == quota_fs_device(fs)) {
            quota_fs_close(fs);
            at->fs = part->open[i];
            return;
        }
    at->fs = part->open[part->n_open++] = fs;
}

static void take_over(const struct project *x, void *arg)
{
    struct project_node *part = arg;

    for (size_t i = 0; i < part->n_open; i++)
        if (x->path != NULL && strcmp(x->fs, quota_fs_identity(part->open[i])) == 0)
            index_add(part, x->owner, x->path, part->open[i], x->id);
}

/* Without ids there are no projects. */
static void give_up(struct project_node *part, const struct err *e)
{
    log_warn("cannot read the table of projects; scanning folders for their usage", F_ERR(e));
    for (size_t i = 0; i < PROJECT_KINDS; i++)
        if (part->places[i].fs != NULL) {
            part->places[i].fs = NULL;
            snprintf(part->places[i].why, sizeof(part->places[i].why), "%.390s", e->text);
        }
    places_close(part);
}

void places_open(struct node *n)
{
    struct project_node *part = project_node(n);
    struct projects_options o = { .projects_file = "/etc/projects", .projid_file = "/etc/projid" };
    struct err e = { 0 };

    place_open(part, PROJECT_VOLUME, n->o.root_dir);
    place_open(part, PROJECT_LAYER, n->o.state_dir);
    place_open(part, PROJECT_LOG, n->o.pod_logs_dir);
    place_open(part, PROJECT_CLAIM, n->o.state_dir);
    if (part->n_open == 0)
        return;
    str_auto file = str_printf("%s/projects.json", n->o.state_dir);
    o.state_file = file;
    if (file == NULL || projects_open(&part->table, &o, &e) != ERR_OK) {
        if (file == NULL)
            err_set(&e, ERR_EXHAUSTED, "out of memory");
        give_up(part, &e);
        return;
    }
    projects_each(part->table, take_over, part);
    for (size_t i = 0; i < part->n_open; i++)
        log_info("project quotas count the disk usage of pods", F_STR("type", quota_fs_type(part->open[i])),
                 F_STR("identity", quota_fs_identity(part->open[i])),
                 F_STR("limits", quota_fs_enforces(part->open[i]) ? "enforced" : "only counted"));
    if (quota_warn_open(&part->warn, n->o.loop, index_on_warning, n, &e) != ERR_OK) {
        snprintf(part->warn_why, sizeof(part->warn_why), "%.290s", e.text);
        log_warn("no quota notifications from the kernel; reading usage periodically", F_ERR(&e));
    }
}

void places_close(struct project_node *part)
{
    projects_close(take_ptr(&part->table));
    for (size_t i = 0; i < part->n_open; i++)
        quota_fs_close(take_ptr(&part->open[i]));
    part->n_open = 0;
    memset(part->open, 0, sizeof(part->open));
    for (size_t i = 0; i < PROJECT_KINDS; i++)
        part->places[i].fs = NULL;
}

/* Its descriptor stays open: the pool may be using it. */
void places_lost(struct node *n, const struct quota_fs *fs, const struct err *why)
{
    struct project_node *part = project_node(n);

    log_warn("project quotas were disabled; scanning folders for their usage", F_ERR(why));
    for (size_t i = 0; i < PROJECT_KINDS; i++)
        if (part->places[i].fs == fs) {
            part->places[i].fs = NULL;
            snprintf(part->places[i].why, sizeof(part->places[i].why), "%.390s", why->text);
        }
    index_remove_fs(part, fs);
    pods_each (n, p)
        pod_wake(p, "quotas were switched off");
}
