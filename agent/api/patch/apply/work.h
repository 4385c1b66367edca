/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work - what an apply and an update share: the managers of an object while one of them writes.  Private to
 * the room.
 *
 * Functions are false, or NULL, when out of memory; with w->status set they failed for that.
 */
#ifndef AGENT_API_PATCH_APPLY_WORK_H
#define AGENT_API_PATCH_APPLY_WORK_H
#include "agent/api/patch/apply/apply.h"
#include "agent/api/patch/apply/typed.h"

struct work {
    const struct api_patch_kind *kind;
    const struct api_manager *by;
    struct typed type;
    json_t *entries; /* owned: the managers, decoded (managed.h) */
    json_t *status;  /* owned: the failure */
    json_t *zero;    /* owned: an object of which nothing is set */
    json_t *reset;   /* owned: fields that a write by this path does not change */
};

bool work_begin(struct work *w); /* kind and by are set */
void work_done(struct work *w);

const json_t *work_managers_of(const json_t *object); /* metadata.managedFields, borrowed; NULL: none */
json_t *work_without_managers(const json_t *object);  /* a copy */
bool work_set_managers(json_t *object, const json_t *entries); /* encoded; none: the member is removed */

json_t *work_stripped(void);                          /* fields that no manager ever has */
bool work_filter(const struct work *w, json_t **set); /* to the fields that this path can change */
bool work_compare(const struct work *w, const json_t *from, const json_t *to, struct typed_change *c);
bool work_is_other(const struct work *w, const json_t *entry, const json_t *self);
/* Others than `self` lose what changed or was removed; managers without fields go. */
bool work_settle(struct work *w, const struct typed_change *c, const json_t *self);
/* The managers after an update from one object to another. */
bool work_update(struct work *w, const char *manager, const json_t *from, const json_t *to);

/* ---- conflicts.c ---- */
/* The changed fields that other managers own, except those that a client-side apply of kubectl transfers: a
 * list of {entry, set}. */
json_t *conflicts_find(const struct work *w, const struct typed_change *c, const json_t *live,
                       const json_t *self);
json_t *conflicts_status(json_t *conflicts); /* a 409 of one or more */
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"
#endif
