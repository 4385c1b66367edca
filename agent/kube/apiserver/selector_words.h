/* SPDX-License-Identifier: Apache-2.0 */
/* selector_words - what is wrong with a label selector, in an apiserver's words (apimachinery pkg/labels):
 * the parser of agent/api tells it to people at a command line. Pure. */
#ifndef AGENT_KUBE_APISERVER_SELECTOR_WORDS_H
#define AGENT_KUBE_APISERVER_SELECTOR_WORDS_H
#include "base/error.h"

/* Gives *e, the failure of `text`, another text, if the selector is no sentence of the language; a key or a
 * value that breaks a rule keeps its text. */
void selector_words(const char *text, struct err *e);
#endif
