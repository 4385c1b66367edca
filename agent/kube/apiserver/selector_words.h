/* SPDX-License-Identifier: Apache-2.0 */
/* selector_words - errors in a label selector, in an apiserver's words (apimachinery pkg/labels); the
 * messages of agent/api's parser are for the command line. Pure. */
#ifndef AGENT_KUBE_APISERVER_SELECTOR_WORDS_H
#define AGENT_KUBE_APISERVER_SELECTOR_WORDS_H
#include "base/error.h"

/* Gives *e, the failure of `text`, another text, if the selector is no sentence of the language; a key or a
 * value that breaks a rule keeps its text. */
void selector_words(const char *text, struct err *e);
#endif
