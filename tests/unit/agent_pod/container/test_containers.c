/* SPDX-License-Identifier: Apache-2.0 */
/* A container on its way up, as far as that goes without a runtime. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/events.h"
#include "agent/pod/image/images.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/volume/internal.h"
#include "base/codec/json.h"
#include "tests/unit/agent_pod/world.h"

static void times_of(const json_t *events, const char *reason, json_int_t wanted)
{
    json_int_t times = 0;
    const json_t *v;
    size_t i;

    json_array_foreach (events, i, v)
        if (str_eq(json_str(v, "reason"), reason))
            times += json_int(v, "count", 0);
    assert_int_equal(times, wanted);
}

static void add_line(const struct log_recent *line, void *arg)
{
    if (strstr(line->text, "cannot configure container") != NULL)
        *(unsigned *)arg += line->times;
}

static void each_try_counts_the_event_and_the_log_has_one_line(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "a",
                              "containers: [{name: c, image: x, env: [{name: X, valueFrom: {configMapKeyRef: "
                              "{name: m, key: k}}}]}]");
    struct ctr *c = p->ctrs[0];
    struct img_image image = { .refs = 2 };
    struct pod_image *i;
    json_t *events;
    unsigned lines = 0;

    log_init(LOG_LVL_WARN, LOG_FMT_TEXT);
    worker_node(&w->node)->runner_active = true; /* pods are woken, but nobody looks at them */
    container_node(&w->node)->create_max = 1;
    p->seen_at = CLOCK_BOOT_NONE;
    sandbox_of(p)->net = NET_READY;
    volumes_of(p)->vols = VOLS_READY;
    p->state = POD_STARTING;
    p->admitted = true;
    i = images_find(p, "x");
    assert_non_null(i);
    i->image = &image;
    i->pulled = false;
    for (int n = 0; n < 3; n++) {
        own_of(c)->retry_at = CLOCK_BOOT_NONE;
        ctr_step(c);
    }
    assert_string_equal(c->waiting_reason, "CreateContainerConfigError");
    events = events_json(&w->node);
    times_of(events, "Failed", 3);
    times_of(events, "Pulled", 3);
    json_decref(events);
    log_recent_each(add_line, &lines);
    assert_int_equal(lines, 1);
    i->image = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(each_try_counts_the_event_and_the_log_has_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
