/* SPDX-License-Identifier: Apache-2.0 */
/* record_files - the files of a pod's record.  Loop thread only. */
#ifndef AGENT_POD_LEFTOVERS_RECORD_FILES_H
#define AGENT_POD_LEFTOVERS_RECORD_FILES_H
#include "agent/pod/core/pod.h"

/* Removes all of its files; returns the first error after trying all. */
enum err_code record_remove_files(const struct node *n, const char *uid, struct err *e);
#endif
