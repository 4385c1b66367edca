/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_view - a pod's sandbox as shown to other rooms and people. */
#include "agent/pod/core/explain_step.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/sandbox/userns.h"
#include "base/scope.h"

#include <stdio.h>

enum net_state sandbox_net(const struct pod *p)
{
    return sandbox_of(p)->net;
}

const struct cni_result *sandbox_addresses(const struct pod *p)
{
    return &sandbox_of(p)->net_result;
}

const char *sandbox_trouble(const struct pod *p)
{
    return sandbox_of(p)->net_error;
}

const char *sandbox_pins(const struct pod *p)
{
    return sandbox_of(p)->netns_dir;
}

const char *sandbox_netns_path(const struct pod *p)
{
    return sandbox_of(p)->netns_path;
}

const char *sandbox_hostname(const struct pod *p)
{
    return sandbox_of(p)->hostname;
}

uint32_t sandbox_first_id(const struct pod *p)
{
    return sandbox_of(p)->first_id;
}

bool sandbox_is_lost(const struct pod *p)
{
    return sandbox_of(p)->net_lost;
}

/* "attaching: waits for its turn after 12 others": malloc'ed; NULL if it does not wait. */
static char *net_turn_text(const struct sandbox *box)
{
    const char *name = net_state_name(box->net);
    struct cni_turn turn;

    if (!cni_waits(&box->cni_op, &turn))
        return NULL;
    if (turn.now == turn.most)
        return str_printf("%s: waits for its turn after %zu others", name, turn.before);
    return str_printf("%s: waits for its turn after %zu others; the network plugins are slow, so %zu at a "
                      "time instead of %zu",
                      name, turn.before, turn.now, turn.most);
}

static void explain_network(const struct pod *p, json_t *steps)
{
    const struct sandbox *box = sandbox_of(p);
    bool bad = box->net_error != NULL;
    const char *state = bad                                                ? "failed"
                        : box->net == NET_READY || box->net == NET_DELETED ? "done"
                        : box->net == NET_NONE                             ? "waiting"
                                                                           : "running";

    str_auto told = box->net == NET_READY && box->net_timed != NULL
                        ? str_printf("%s (%s)", net_state_name(box->net), box->net_timed)
                        : net_turn_text(box);

    explain_step(steps, "network", state, box->net_since_ns,
                 bad            ? box->net_error
                 : told != NULL ? told
                                : net_state_name(box->net),
                 clock_boot_to_wall_ns(box->net_retry_at));
}

static void explain_users(const struct pod *p, json_t *steps)
{
    uint32_t first_id = sandbox_of(p)->first_id;
    char text[100];

    if (first_id == 0)
        return;
    snprintf(text, sizeof(text), "0 to %d are %u to %u on the host", USERNS_IDS - 1, first_id,
             first_id + USERNS_IDS - 1);
    explain_step(steps, "users", "done", 0, text, 0);
}

void sandbox_explain(const struct pod *p, json_t *steps)
{
    explain_network(p, steps);
    explain_users(p, steps);
}
