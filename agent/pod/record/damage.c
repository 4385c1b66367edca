/* SPDX-License-Identifier: Apache-2.0 */
/* State files that were set aside (base/aside.h): told by an event when it happens, by `coracle explain node`
 * as long as they lie there. */
#include "agent/pod/record/damage.h"
#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "base/aside.h"
#include "base/buf.h"

#include <fcntl.h>
#include <string.h>

static const char *const folders[] = { "pods", "images/images", "images/refs", "cni/results" };

struct look {
    struct node *node;
    const char *folder;
    int64_t since_ns;
    unsigned n;
    char first[320];
};

static void each_folder(struct look *l, void (*fn)(const char *name, void *arg))
{
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        str_auto path = str_printf("%s/%s", l->node->o.state_dir, folders[i]);
        fd_auto dir = path == NULL ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        l->folder = folders[i];
        if (dir >= 0)
            aside_each(dir, fn, l);
    }
}

static void quarantine_tell(const char *name, void *arg)
{
    struct look *l = arg;
    str_auto text = NULL;

    if (aside_since_ns(name) < l->since_ns)
        return;
    text = str_printf("%s/%s: the state file was damaged and was set aside", l->folder, name);
    if (text != NULL)
        node_event(l->node, true, "StateFileDamaged", text);
}

void damage_tell(struct node *n, int64_t since_ns)
{
    struct look l = { .node = n, .since_ns = since_ns / INT64_C(1000000000) * INT64_C(1000000000) };

    each_folder(&l, quarantine_tell);
}

static void quarantine_count(const char *name, void *arg)
{
    struct look *l = arg;

    if (l->n++ == 0)
        snprintf(l->first, sizeof(l->first), "%s/%s", l->folder, name);
}

void damage_explain(struct node *n, json_t *steps)
{
    struct look l = { .node = n };
    str_auto text = NULL;

    each_folder(&l, quarantine_count);
    if (l.n == 0)
        return;
    text = l.n == 1 ? str_printf("%s/%s", n->o.state_dir, l.first)
                    : str_printf("%s/%s and %u more", n->o.state_dir, l.first, l.n - 1);
    if (text != NULL)
        explain_step(steps, "damaged state files", "failed", 0, text, 0);
}
