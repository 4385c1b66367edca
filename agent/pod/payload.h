/*
 * payload - what a ConfigMap, Secret, downwardAPI or projected volume shall show: files made from the store
 * and the pod.
 */
#ifndef AGENT_POD_PAYLOAD_H
#define AGENT_POD_PAYLOAD_H
#include "agent/pod/pod.h"
#include "base/arena.h"

/*
 * *ret_overlaps: which paths several sources give, so that the later one hides the earlier one's file, as in
 * kubelet; NULL: none.  In the arena, too.
 *
 * *ret lives in the arena; its data is borrowed from the store's objects: use it before the loop turns.
 * ERR_PRECONDITION with kubelet's text: `configmap "c" not found`, `references non-existent secret key: k`.
 */
enum err_code payload_build(const struct pod *p, const struct api_volume *v, struct arena *a,
                            struct vol_file **ret, size_t *ret_n, char **ret_overlaps,
                            struct err *e) MUST_CHECK;
#endif
