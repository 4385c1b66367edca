/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places - the positions of fields in the text of a manifest, for problems, which contain line and column.
 *
 * The readers of YAML and JSON fill the table, one entry of 16 bytes for each key and each element of a list
 * in the text; fields that an alias or a merge adds have none. The check context looks up the path of a
 * problem in it. The table is freed after the decode, so objects do not keep it.
 *
 * An entry has no text, only the hash of its path. Fields and keys of maps are written differently in a path
 * ("limits.memory", "limits[memory]"), but have the same hash, because a reader cannot distinguish them.
 */
#ifndef AGENT_API_PLACES_H
#define AGENT_API_PLACES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api_place {
    uint32_t line, column; /* from 1, a column is a character; 0: unknown */
};

struct api_spot; /* an entry */

struct api_places {
    struct api_spot *v; /* malloc'ed */
    size_t n, room;
    bool sorted;
};

/* The hash of a path: it begins with the document, from 1, and is continued for each step. */
uint64_t api_path_of_document(int document);
uint64_t api_path_of_key(uint64_t path, const char *key, size_t n);
uint64_t api_path_of_element(uint64_t path, size_t index);

/* `line` and `column` count from 0, as those of libyaml. False: out of memory. */
bool api_places_add(struct api_places *p, uint64_t path, size_t line, size_t column);
/* The place of a path as in check.h, or of its nearest ancestor in the text: a field that is missing has its
 * object's place. Sorts the table the first time. */
struct api_place api_places_find(struct api_places *p, int document, const char *path);
void api_places_done(struct api_places *p); /* frees; the table is empty and usable again */
#endif
