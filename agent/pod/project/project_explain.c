/* SPDX-License-Identifier: Apache-2.0 */
/* For `coracle explain node` and /metrics. */
#include "agent/pod/core/explain_step.h"
#include "agent/pod/project/internal.h"
#include "base/buf.h"

#include <inttypes.h>

static size_t trees_of(const struct project_node *part, const struct quota_fs *fs)
{
    size_t n = 0;

    for (const struct entry *x = part->by_path; x != NULL; x = x->hh.next)
        n += fs == NULL || x->fs == fs;
    return n;
}

static void explain_place(const struct project_node *part, enum project_kind kind, json_t *steps)
{
    static const char *const names[PROJECT_KINDS] = { "quota of volumes", "quota of layers", "quota of logs",
                                                      "quota of claims" };
    const struct place *at = &part->places[kind];
    buf_auto text = BUF_INIT(1000);

    if (at->fs == NULL && at->why[0] == '\0')
        return;
    if (at->fs == NULL)
        buf_addf(&text, "none, trees are scanned: %s", at->why);
    else
        buf_addf(&text, "%s, %s; %zu trees on this file system", quota_fs_type(at->fs),
                 quota_fs_enforces(at->fs) ? "enforces limits" : "only counts", trees_of(part, at->fs));
    explain_step(steps, names[kind], "done", 0, text.p, 0);
}

void project_explain(const struct node *n, json_t *steps)
{
    const struct project_node *part = project_node(n);

    for (size_t i = 0; i < PROJECT_KINDS; i++)
        explain_place(part, i, steps);
    if (part->warn_why[0] != '\0')
        explain_step(steps, "quota warnings", "failed", 0, part->warn_why, 0);
    if (part->problem[0] != '\0')
        explain_step(steps, "projects", "failed", 0, part->problem, 0);
}

void project_metrics(const struct node *n, struct buf *out)
{
    const struct project_node *part = project_node(n);

    if (part->n_open == 0)
        return;
    buf_addf(out,
             "# HELP coracle_storage_projects Trees of pods with a project of the kernel's quota.\n"
             "# TYPE coracle_storage_projects gauge\n"
             "coracle_storage_projects %zu\n",
             trees_of(part, NULL));
}
