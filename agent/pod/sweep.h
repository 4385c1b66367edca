/*
 * sweep - what belongs to no pod is removed: left-overs of a run that was killed, of damaged records, of a
 * reboot. Containers, network attachments, namespaces, volumes, cgroups, logs; each by what the kernel and
 * the disk say.
 */
#ifndef AGENT_POD_SWEEP_H
#define AGENT_POD_SWEEP_H
#include "agent/pod/pod.h"

/* Once, when the sources are ready: only then is it known what belongs to nobody.  Counted in node.sweeps
 * while under way. */
void sweep_start(struct node *n);
void sweep_cancel(struct node *n); /* the agent ends: what is left is for the next start */
#endif
