/* SPDX-License-Identifier: Apache-2.0 */
/* selector - label selectors in kubectl's text form: "app=web,tier!=db,env in (a,b),!old,track". Rules:
 * apimachinery pkg/labels. An empty text selects everything. */
#ifndef AGENT_API_SELECTOR_H
#define AGENT_API_SELECTOR_H
#include "agent/api/types.h"
#include "base/scope.h"

struct api_selector;
enum err_code api_selector_parse(const char *text, struct api_selector **ret, struct err *e) MUST_CHECK;
bool api_selector_matches(const struct api_selector *s, const struct api_kvs *labels);
void api_selector_free(struct api_selector *s); /* NULL is fine */
SCOPE_DEFINE(struct api_selector, api_selector_free)
#endif
