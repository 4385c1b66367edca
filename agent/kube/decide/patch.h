/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch - strategic merge patches of a status, as apimachinery's strategicpatch.CreateTwoWayMergePatch()
 * makes them for the statuses of pods and nodes. Pure.
 *
 * The lists `conditions` and `addresses` (key `type`), `podIPs` and `hostIPs` (key `ip`) are merged by their
 * key: the patch contains changed elements with their changed members, `$patch: delete` for removed ones, and
 * `$setElementOrder/<list>` if the list had elements before. All other lists are replaced whole.
 *
 * Values that Go omits when it encodes (null, false, 0, "", empty lists and objects) are equal to a missing
 * member here, and quantities are compared by value, because the apiserver returns "1Gi" for "1048576Ki". So
 * a status that was sent and came back differs in nothing.
 */
#ifndef AGENT_KUBE_DECIDE_PATCH_H
#define AGENT_KUBE_DECIDE_PATCH_H
#include <jansson.h>
#include <stdbool.h>

/* The new object that turns `from` into `to`, empty if they do not differ; NULL when out of memory. */
json_t *patch_two_way(const json_t *from, const json_t *to);
bool patch_equal(const json_t *a, const json_t *b);
bool patch_is_zero(const json_t *v); /* NULL is */
/* "500m" and "0.5"; texts that are no quantities are compared as they are. */
bool patch_quantity_equal(const char *a, const char *b);
#endif
