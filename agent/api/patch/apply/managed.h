/* SPDX-License-Identifier: Apache-2.0 */
/*
 * managed - the managers of an object: metadata.managedFields, decoded.  Private to the room.
 *
 * Decoded entries are a list of objects as in managedFields, with fieldsV1 as a canonical set (fields.h) and
 * without fieldsType.  An entry is the one of a manager, operation, subresource and, of updates, apiVersion.
 */
#ifndef AGENT_API_PATCH_APPLY_MANAGED_H
#define AGENT_API_PATCH_APPLY_MANAGED_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define MANAGED_ENTRIES_MAX 1000
#define MANAGED_UPDATERS_MAX 10 /* older ones are merged, DefaultMaxUpdateManagers of apimachinery */

/* Decodes metadata.managedFields; NULL is an empty list.  *ret_why: why it cannot be decoded, "" or NULL with
 * a NULL result. */
json_t *managed_decode(const json_t *list, const char **ret_why);

/* Sorted, as an apiserver stores them; NULL: out of memory. */
json_t *managed_encode(const json_t *entries);

/* A new entry without fields; NULL: out of memory. */
json_t *managed_entry(const char *manager, const char *operation, const char *api_version,
                      const char *subresource);
/* The entry that is the same manager's as `like`: its index; -1: none. */
ssize_t managed_find(const json_t *entries, const json_t *like);

const json_t *managed_set(const json_t *entry); /* borrowed */

/* Puts a set into the entry; an empty one removes the entry.  `set` is stolen; NULL fails. */
bool managed_put(json_t *entries, size_t index, json_t *set);

/* Merges the oldest updaters until there are at most MANAGED_UPDATERS_MAX. */
bool managed_cap(json_t *entries);
#endif
