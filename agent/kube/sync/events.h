/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events - events of the node and its pods, one request after the other (client-go's recorder).
 *
 * At most EVENTS_QUEUE_MAX wait, later ones are dropped. Requests are paced by eventRecordQPS and its burst
 * (0: not at all). Without an answer a request is tried again 10 s later (the first time sooner, at random),
 * 12 times; one that the apiserver refuses is dropped. A PATCH that finds no event any more becomes a POST.
 */
#ifndef AGENT_KUBE_SYNC_EVENTS_H
#define AGENT_KUBE_SYNC_EVENTS_H
#define EVENTS_QUEUE_MAX 1000
#define EVENTS_TRIES 12
#define EVENTS_RETRY_MS 10000
#define EVENTS_RATE 50   /* eventRecordQPS */
#define EVENTS_BURST 100 /* eventBurst */
#endif
