/* SPDX-License-Identifier: Apache-2.0 */
/* kinds - the kinds that can be patched, and the tables of their fields. */
#ifndef AGENT_API_PATCH_KINDS_KINDS_H
#define AGENT_API_PATCH_KINDS_KINDS_H
#include "agent/api/schema/kinds.h"
#include "agent/api/schema/schema.h"

#include <stdbool.h>

struct api_patch_kind {
    const struct api_kind_row *row;
    bool generation;                 /* metadata.generation counts the changes of spec */
    const struct api_schema *schema; /* of the whole object with its status */
    const char *zero; /* JSON text: what Go's encoder writes of an object of which nothing is set */
};

/* NULL: not one of ours.  api_version is "v1" or "apps/v1". */
const struct api_patch_kind *api_patch_kind_find(const char *api_version, const char *kind);
#endif
