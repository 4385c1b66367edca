/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/volume/tokens.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/volume/csi_volumes.h"
#include "agent/pod/volume/internal.h"

/* retry interval for an overdue renewal, as kubelet's pod sync */
#define AGAIN_NS (60 * INT64_C(1000000000))

void node_token_changed(struct node *n, const char *pod_uid)
{
    struct pod *p = pods_by_uid(n, pod_uid);

    if (p == NULL)
        return;
    volumes_of(p)->payload_stale = true;
    volumes_of(p)->vols_retry_at = CLOCK_BOOT_NONE;
    csi_volumes_retry(p);
    pod_wake(p, "token changed");
}

struct boot_time pod_token_renew_at(int64_t expires_ns, int64_t expiration_seconds, unsigned jitter_s)
{
    const int64_t second = INT64_C(1000000000), day_s = 24 * 3600;
    int64_t life_s = expiration_seconds - expiration_seconds / 5;
    int64_t used_ns = clock_wall_ns() - (expires_ns - expiration_seconds * second);
    int64_t left_ns = (life_s < day_s ? life_s : day_s) * second;

    if (used_ns > 0) /* negative: our clock is behind the server's */
        left_ns -= used_ns;
    left_ns -= jitter_s * second;
    return clock_boot_in_ns(left_ns < AGAIN_NS ? AGAIN_NS : left_ns);
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
