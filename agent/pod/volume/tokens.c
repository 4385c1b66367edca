/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/tokens.h"
#include "agent/pod/core/pod.h"

void node_token_changed(struct node *n, const char *pod_uid)
{
    struct pod *p = pods_by_uid(n, pod_uid);

    if (p == NULL)
        return;
    p->payload_stale = true;
    p->vols_retry_ns = 0;
    pod_wake(p);
}

int64_t pod_token_renew_ns(int64_t expires_ns, int64_t expiration_seconds, unsigned jitter_s)
{
    const int64_t second = INT64_C(1000000000), day_s = 24 * 3600;
    int64_t issued_ns = expires_ns - expiration_seconds * second;
    int64_t old_ns = issued_ns + day_s * second;
    int64_t late_ns = expires_ns - expiration_seconds * second / 5;

    return (old_ns < late_ns ? old_ns : late_ns) - jitter_s * second;
}

static bool same_user(const struct api_pod *api, const struct api_container *c, bool *known, uid_t *user)
{
    const struct api_security *s = &c->security;
    const struct api_pod_security *of_pod = &api->spec.security;
    uid_t mine;

    if (s->has_run_as_user)
        mine = (uid_t)s->run_as_user;
    else if (of_pod->has_run_as_user)
        mine = (uid_t)of_pod->run_as_user;
    else
        return false;
    if (*known)
        return mine == *user;
    *known = true;
    *user = mine;
    return true;
}

bool pod_token_owner(const struct api_pod *api, uid_t *ret)
{
    uid_t user = 0;
    bool known = false;

    for (size_t i = 0; i < api->spec.n_init_containers; i++)
        if (!same_user(api, &api->spec.init_containers[i], &known, &user))
            return false;
    for (size_t i = 0; i < api->spec.n_containers; i++)
        if (!same_user(api, &api->spec.containers[i], &known, &user))
            return false;
    if (known)
        *ret = user;
    return known;
}
