/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entries - a sorted array with one element for each container: what cpu_state and memory_state have in
 * common. The type of the elements is the caller's; each begins with a struct pl_owner. `size` is sizeof(*v).
 */
#ifndef AGENT_PLACEMENT_ENTRIES_H
#define AGENT_PLACEMENT_ENTRIES_H
#include <stdbool.h>
#include <stddef.h>

struct pl_owner {
    char *pod, *container; /* the pod's uid, the container's name; owned */
};

struct pl_position {
    size_t i; /* the element's index, or the index at which to insert it */
    bool found;
};

struct pl_position pl_entries_find(const void *v, size_t n, size_t size, const char *pod,
                                   const char *container);
/* Inserts an element at index `at`, zero except for its owner. v has room for it (array_room()).
 * false: out of memory, nothing is changed. */
bool pl_entries_insert(void *v, size_t *n, size_t size, size_t at, const char *pod, const char *container);
void pl_entries_remove(void *v, size_t *n, size_t size, const char *pod, const char *container);
void pl_entries_free(void *v, size_t n, size_t size); /* the array, too */
#endif
