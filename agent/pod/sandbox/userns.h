/* SPDX-License-Identifier: Apache-2.0 */
/*
 * userns - the host users of pods with `hostUsers: false`: each such pod gets its own block of 65536 ids
 * (kubelet: pkg/kubelet/userns). The blocks are within the subordinate ids of user "kubelet" in /etc/subuid
 * and /etc/subgid, the same in both; without those, anywhere from 65536 on. A pod's block is in its record
 * and reserved until the pod is gone. Loop thread only.
 */
#ifndef AGENT_POD_SANDBOX_USERNS_H
#define AGENT_POD_SANDBOX_USERNS_H
#include "agent/pod/sandbox/sandbox.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct node;
struct pod;

/* Sets p->first_id if it is 0. ERR_EXHAUSTED: no free block; ERR_INVALID: a problem with the files. */
enum err_code userns_allocate(struct pod *p, struct err *e) MUST_CHECK;

/* The range of kubelet's user in the text of /etc/subuid or /etc/subgid; *ret_n 0: none. */
enum err_code userns_parse_range(const char *text, const char *file, uint32_t *ret_first, uint32_t *ret_n,
                                 struct err *e) MUST_CHECK;
#endif
