/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/client/reflector.h"

enum err_code kube_reflector_open(struct kube_reflector **ret, const struct kube_reflector_options *o,
                                  struct err *e)
{
    (void)ret;
    (void)o;
    return err_set(e, ERR_UNIMPLEMENTED, "collections cannot be followed yet");
}

void kube_reflector_close(struct kube_reflector *r)
{
    (void)r;
}

bool kube_reflector_is_synced(const struct kube_reflector *r)
{
    (void)r;
    return false;
}
