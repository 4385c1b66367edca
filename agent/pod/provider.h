/* provider - what the status server asks the node: pods, events, logs, images, metrics. */
#ifndef AGENT_POD_PROVIDER_H
#define AGENT_POD_PROVIDER_H
#include "agent/pod/pod.h"

void provider_init(struct node *n);
bool provider_busy(const struct node *n); /* an import is under way */
void provider_cancel(struct node *n);
#endif
