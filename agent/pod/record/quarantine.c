/* SPDX-License-Identifier: Apache-2.0 */
/* State files that were set aside (base/files/damaged_file.h): reported by an event when it happens, and by
 * `coracle explain node` while they exist. */
#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/record/record.h"
#include "base/buf.h"
#include "base/files/damaged_file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* "": the folder above itself. */
static const struct quarantine_folder {
    bool in_root; /* below the root folder; else below the state folder */
    const char *path;
} folders[] = {
    { false, "" },
    { false, "pods" },
    { false, "images/images" },
    { false, "images/refs" },
    { false, "cni/results" },
    { false, "kept" },
    { false, "jobs" },
    { true, "device-plugins" },
};

struct look {
    struct node *node;
    const char *folder; /* its path, absolute */
    int64_t since_ns;
    unsigned n;
    char first[512];
};

static enum err_code quarantine_look_into(struct look *l, const char *path,
                                          void (*fn)(const char *name, void *arg), struct err *e)
{
    fd_auto dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0) {
        err_sys(e, errno, "open %s", path);
        return presence_is_unknown(presence_from_err(e)) ? e->code : ERR_OK;
    }
    return presence_is_unknown(damaged_file_look(dir, fn, l, e)) ? err_wrap(e, "%s", path) : ERR_OK;
}

/* Returns the first error, after trying the other folders. */
static enum err_code each_folder(struct look *l, void (*fn)(const char *name, void *arg), struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        const char *above = folders[i].in_root ? l->node->o.root_dir : l->node->o.state_dir;
        str_auto path = str_printf("%s%s%s", above, folders[i].path[0] != '\0' ? "/" : "", folders[i].path);
        struct err one = { 0 };

        if (above == NULL)
            continue;
        l->folder = path;
        if (path == NULL)
            err_nomem(&one);
        if (one.code == ERR_OK && quarantine_look_into(l, path, fn, &one) == ERR_OK)
            continue;
        if (e->code == ERR_OK)
            *e = one;
    }
    return e->code;
}

static void quarantine_tell(const char *name, void *arg)
{
    struct look *l = arg;
    str_auto text = NULL;

    if (damaged_file_since_ns(name) < l->since_ns)
        return;
    text = str_printf("%s/%s: the state file was damaged and has been set aside", l->folder, name);
    if (text != NULL)
        node_event(l->node, true, "StateFileDamaged", text);
}

void quarantine_report(struct node *n, int64_t since_ns)
{
    struct look l = { .node = n, .since_ns = since_ns / INT64_C(1000000000) * INT64_C(1000000000) };
    struct err e = { 0 };

    if (each_folder(&l, quarantine_tell, &e) != ERR_OK)
        log_warn("cannot report all damaged state files", F_ERR(&e));
}

static void quarantine_count(const char *name, void *arg)
{
    struct look *l = arg;

    if (l->n++ == 0)
        snprintf(l->first, sizeof(l->first), "%s/%s", l->folder, name);
}

void quarantine_explain(struct node *n, json_t *steps)
{
    struct look l = { .node = n };
    str_auto text = NULL;
    struct err e = { 0 };

    if (each_folder(&l, quarantine_count, &e) != ERR_OK)
        explain_step(steps, "damaged state files", "failed", 0, e.text, 0);
    if (l.n == 0)
        return;
    text = l.n == 1 ? strdup(l.first) : str_printf("%s and %u more", l.first, l.n - 1);
    if (text != NULL)
        explain_step(steps, "damaged state files", "failed", 0, text, 0);
}
