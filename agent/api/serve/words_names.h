/* SPDX-License-Identifier: Apache-2.0 */
/* words_names - problems of names, of labels and their keys, in the words of an apiserver; and the patterns
 * of the daemon's texts. Private to words.c. */
#ifndef AGENT_API_SERVE_WORDS_NAMES_H
#define AGENT_API_SERVE_WORDS_NAMES_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define WORDS_PARTS 4

struct words_parts { /* of a text: what each '*' of the pattern stands for */
    const char *at[WORDS_PARTS];
    size_t size[WORDS_PARTS];
};

/* Whether the text matches the pattern, in which each '*' matches any characters. `part`: 0. */
bool words_fit(const char *pattern, const char *text, struct words_parts *parts, size_t part);
/* Without memory nothing is added. */
void words_cause(json_t *causes, const char *reason, const char *field, const char *text);

enum words_rule { WORDS_KEY, WORDS_VALUE, WORDS_LABEL, WORDS_DOMAIN, WORDS_CONFIG_KEY, WORDS_PORT };
struct words_name {
    enum words_rule rule;
    bool of_member; /* the field is one of a map, and an apiserver names the map */
    char *text;     /* the name, in full */
};

/* Whether the message is about a name. `value` is the value at the field, `key` the field's last key. The
 * caller owns *ret: words_name_done(). */
bool words_of_name(const char *message, const char *field, const json_t *value, const char *key,
                   struct words_name *ret);
void words_name_causes(json_t *causes, const char *field, const struct words_name *w);
void words_name_done(struct words_name *w);
#endif
