/* SPDX-License-Identifier: Apache-2.0 */
/* turns - operations on one device (paths.h) take turns, first come, first served: none is unstaged while it
 * is being published. Which devices this process has staged is kept here, too. */
#include "volumes/csi/internal.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

static bool is_taken(const struct csi *c, const char *key)
{
    const struct csi_turn *t;

    TAILQ_FOREACH (t, &c->turns, link)
        if (strcmp(t->key, key) == 0)
            return true;
    return false;
}

bool csi_turn_take(struct csi *c, struct csi_turn *t, const char *key, void (*next)(void *arg), void *arg)
{
    bool taken = is_taken(c, key);

    *t = (struct csi_turn){ .key = key, .next = next, .arg = arg };
    TAILQ_INSERT_TAIL(&c->turns, t, link);
    return !taken;
}

void csi_turn_give(struct csi *c, struct csi_turn *t)
{
    struct csi_turn *other;
    bool was_first = true;

    if (t->key == NULL)
        return;
    TAILQ_FOREACH (other, &c->turns, link) {
        if (other == t)
            break;
        was_first = was_first && strcmp(other->key, t->key) != 0;
    }
    TAILQ_REMOVE(&c->turns, t, link);
    TAILQ_FOREACH (other, &c->turns, link)
        if (was_first && strcmp(other->key, t->key) == 0)
            break;
    t->key = NULL;
    if (other != NULL)
        other->next(other->arg);
}

bool csi_turn_awaited(const struct csi_turn *t)
{
    const struct csi_turn *other = t;

    while ((other = TAILQ_NEXT(other, link)) != NULL)
        if (strcmp(other->key, t->key) == 0)
            return true;
    return false;
}

/* ---- staged volumes ---- */

static size_t find(const struct csi *c, const char *staging)
{
    size_t i = 0;

    while (i < c->n_staged && strcmp(c->staged[i], staging) != 0)
        i++;
    return i;
}

bool csi_is_staged(const struct csi *c, const char *staging)
{
    return find(c, staging) < c->n_staged;
}

void csi_set_staged(struct csi *c, const char *staging, bool is)
{
    size_t i = find(c, staging);

    if (!is && i < c->n_staged) {
        free(c->staged[i]);
        c->staged[i] = c->staged[--c->n_staged];
    } else if (is && i == c->n_staged && array_room(c->staged, c->n_staged)) {
        c->staged[c->n_staged] = strdup(staging);
        c->n_staged += c->staged[c->n_staged] != NULL; /* otherwise it is staged once more: no harm */
    }
}

void csi_staged_done(struct csi *c)
{
    while (c->n_staged > 0)
        free(c->staged[--c->n_staged]);
    free(c->staged);
    c->staged = NULL;
}
