/* SPDX-License-Identifier: Apache-2.0 */
/* table - the pods of this node, by name, uid and container. */
#include "agent/pod/core/pod.h"

#include <stdio.h>
#include <string.h>

void pods_key(char ret[POD_KEY_SIZE], const char *namespace_, const char *name)
{
    snprintf(ret, POD_KEY_SIZE, "%s/%s", namespace_, name);
}

struct pod *pods_find(struct node *n, const char *namespace_, const char *name)
{
    char key[POD_KEY_SIZE];
    struct pod *p;

    pods_key(key, namespace_, name);
    HASH_FIND_STR(n->pods, key, p);
    return p;
}

struct pod *pods_by_uid(struct node *n, const char *uid)
{
    pods_each (n, p)
        if (strcmp(p->uid, uid) == 0)
            return p;
    return NULL;
}

struct ctr *pods_by_container(struct node *n, const char *id)
{
    pods_each (n, p)
        for (size_t i = 0; i < p->n_ctrs; i++)
            if (strcmp(p->ctrs[i]->cur.id, id) == 0)
                return p->ctrs[i];
    return NULL;
}

void node_check_idle(struct node *n)
{
    if (n->draining && n->drained != NULL && n->n_pods == 0 && n->sweeps == 0) {
        void (*done)(void *) = n->drained;
        n->drained = NULL;
        done(n->drained_arg);
    }
}
