/* SPDX-License-Identifier: Apache-2.0 */
/*
 * userns - which users of the host the pods with `hostUsers: false` have: each such pod a block of 65536 ids,
 * never one that another pod has (kubelet: pkg/kubelet/userns).  The blocks lie where user "kubelet" has its
 * subordinate ids in /etc/subuid and /etc/subgid, the same in both; without those anywhere from 65536 on.  A
 * pod's block is part of its record and stays its own until the pod is gone.  Loop thread only.
 */
#ifndef AGENT_POD_SANDBOX_USERNS_H
#define AGENT_POD_SANDBOX_USERNS_H
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define USERNS_IDS 65536 /* of one pod */

struct node;
struct pod;

/* Sets p->first_id if it is 0.  ERR_EXHAUSTED: no block is free; ERR_INVALID: what is wrong with the files.
 */
enum err_code userns_allocate(struct pod *p, struct err *e) MUST_CHECK;

/* The text of /etc/subuid or /etc/subgid: kubelet's own range; *ret_n 0: it has none. */
enum err_code userns_parse_range(const char *text, const char *file, uint32_t *ret_first, uint32_t *ret_n,
                                 struct err *e) MUST_CHECK;
#endif
