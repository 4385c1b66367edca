/* SPDX-License-Identifier: Apache-2.0 */
/* state - the single setter of each state: logs the change, and stops the old state's timers. */
#include "agent/pod/core/pod.h"
#include "agent/pod/core/start_times.h"
#include "base/clock.h"
#include "base/log.h"

void pod_set_state(struct pod *p, enum pod_state s)
{
    if (p->state == s)
        return;
    log_debug("pod state", F_STR("pod", p->key), F_STR("podUID", p->uid),
              F_STR("from", pod_state_name(p->state)), F_STR("to", pod_state_name(s)));
    p->state = s;
    p->state_since_ns = clock_wall_ns();
    p->state_began = clock_boot();
    p->record_dirty = true;
    boot_timer_stop(&p->timer); /* each state arms the timers that it needs */
}

void ctr_set_state(struct ctr *c, enum ctr_state s)
{
    if (c->state == s)
        return;
    log_debug("container state", F_STR("pod", c->pod->key), F_STR("containerName", c->spec->name),
              F_STR("from", ctr_state_name(c->state)), F_STR("to", ctr_state_name(s)));
    c->state = s;
    c->state_began = clock_boot();
    c->pod->record_dirty = true;
    if (s == CTR_MOUNTING || s == CTR_CREATING)
        start_times_begin(c->pod, START_CREATE);
    else if (s == CTR_CREATED)
        start_times_end(c->pod, START_CREATE);
    else if (s == CTR_STARTING)
        start_times_begin(c->pod, START_RUN);
    else if (s == CTR_RUNNING)
        start_times_end(c->pod, START_RUN);
}

static const char *state_flag(bool v)
{
    return v ? "true" : "false";
}

void pod_set_initialized(struct pod *p, bool initialized)
{
    if (p->initialized == initialized)
        return;
    log_debug("pod initialized", F_STR("pod", p->key), F_STR("podUID", p->uid),
              F_STR("from", state_flag(p->initialized)), F_STR("to", state_flag(initialized)));
    p->initialized = initialized;
    p->record_dirty = true;
}

void ctr_set_replace(struct ctr *c, bool replace)
{
    if (c->replace == replace)
        return;
    log_debug("container is to be replaced", F_STR("pod", c->pod->key), F_STR("containerName", c->spec->name),
              F_STR("from", state_flag(c->replace)), F_STR("to", state_flag(replace)));
    c->replace = replace;
    c->pod->record_dirty = true;
}

void ctr_set_again(struct ctr *c, bool again)
{
    if (c->again == again)
        return;
    log_debug("container starts again", F_STR("pod", c->pod->key), F_STR("containerName", c->spec->name),
              F_STR("from", state_flag(c->again)), F_STR("to", state_flag(again)));
    c->again = again;
    c->pod->record_dirty = true;
}
