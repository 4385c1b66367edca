/* SPDX-License-Identifier: Apache-2.0 */
/* flex, private. */
#ifndef VOLUMES_FLEX_INTERNAL_H
#define VOLUMES_FLEX_INTERNAL_H
#include "volumes/flex/flex.h"

/* Blocks. An answer that is none, or an exit code other than 0 with Success, is an error; a failure is not.
 */
enum err_code flex_call(const char *program, const char *const *args, struct flex_answer *ret,
                        struct err *e) MUST_CHECK;
#endif
