/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_plan - the quota limits of a pod's trees, chosen so that exceeding a common limit of several trees is
 * detected without polling. Pure.
 *
 * A soft limit warns. Of what is left of a limit, each of its n trees gets the n-th part: if together they
 * use more than was left, at least one has used more than its part, and its warning leads to a new plan. Each
 * new plan comes after at least an n-th of what was left, so there are few of them: 40 from 1 GiB down to one
 * block for three trees.
 *
 * A hard limit refuses. Each tree gets all that is left: one that grows alone stops exactly at the limit.
 * When several grow, their soft limits lower the hard ones of the others, as fast as the agent is woken; what
 * they write until then can exceed the sum, and none of them grows after that. Logs get no hard limit,
 * because what is refused would be lost; they are bounded by rotation and do not count in this mode.
 */
#ifndef AGENT_POD_USAGE_LOCAL_PLAN_H
#define AGENT_POD_USAGE_LOCAL_PLAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum local_kind { LOCAL_VOLUME, LOCAL_LAYER, LOCAL_LOG };

struct plan_tree {
    enum local_kind kind;
    size_t index;        /* of the volume or the container */
    uint64_t bytes;      /* used */
    bool quota;          /* the tree has a project; otherwise it only counts */
    bool warns;          /* it may have a soft limit */
    uint64_t soft, hard; /* the result; 0: none */
};

enum plan_of { PLAN_OF_VOLUME, PLAN_OF_CONTAINER, PLAN_OF_POD };

struct plan_limit {
    enum plan_of of;
    size_t index;
    uint64_t bytes;
};

#define PLAN_STEP 1024 /* ext4 keeps limits in these units; a soft limit must be above the usage */

void local_plan(struct plan_tree *trees, size_t n, const struct plan_limit *limits, size_t n_limits,
                bool enforce);
/* Whether usage is above a limit. */
bool local_plan_exceeded(const struct plan_tree *trees, size_t n, const struct plan_limit *limits,
                         size_t n_limits, bool enforce);
#endif
