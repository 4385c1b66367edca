/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods begin again after a shutdown, and what is refused during one. */
#include "agent/pod/admit/admit.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/node/record_load.h"
#include "agent/pod/record/record.h"
#include "agent/pod/sandbox/internal.h"
#include "agent/pod/volume/internal.h"
#include "tests/unit/agent_pod/world.h"

#include "agent/pod/worker/shutdown.h"

static struct pod *ended(struct world *w, const char *spec)
{
    struct pod *p = world_pod(w, "web", spec);

    w->node.sources_ready = true;
    p->state = POD_TERMINATED;
    p->admitted = true;
    p->shutdown_ns = 1000;
    snprintf(p->phase, sizeof(p->phase), "Failed");
    snprintf(p->reason, sizeof(p->reason), "Terminated");
    p->message = strdup("Pod was terminated in response to imminent node shutdown.");
    sandbox_of(p)->net = NET_DELETED;
    volumes_of(p)->vols = VOLS_REMOVED;
    p->initialized = true;
    for (size_t i = 0; i < p->n_ctrs; i++) {
        memset(p->ctrs[i]->cur.id, 'a', 64);
        p->ctrs[i]->cur.ended = true;
        own_of(p->ctrs[i])->backoff_ms = 10000;
    }
    return p;
}

#define ONE "containers: [{name: main, image: a:1}]"

static void it_begins_again_once_no_shutdown_is_known_of(void **state)
{
    struct world *w = *state;
    struct pod *p = ended(w, ONE);

    worker_node(&w->node)->shutdown.state = SHUTDOWN_NO;
    assert_true(shutdown_revive(p));
    assert_int_equal(p->state, POD_PENDING);
    assert_string_equal(p->phase, "");
    assert_string_equal(p->reason, "");
    assert_null(p->message);
    assert_false(p->admitted); /* judged anew */
    assert_int_equal(sandbox_of(p)->net, NET_NONE);
    assert_int_equal(volumes_of(p)->vols, VOLS_NONE);
    assert_false(p->initialized);
    assert_int_equal(own_of(p->ctrs[0])->backoff_ms, 0); /* it did not crash */
    assert_int_equal(p->shutdown_ns, 0);
    assert_false(shutdown_revive(p)); /* once */
}

/* Whatever a room noted of its old sandbox and volumes: nothing of it applies to the new ones. */
static void it_begins_again_as_a_new_pod_does(void **state)
{
    struct world *w = *state;
    struct pod *p = ended(w, ONE), *new = world_pod(w, "new", ONE);
    struct pod_volumes *vols = volumes_of(p);
    struct sandbox *box = sandbox_of(p);

    vols->vols_backoff_ms = vols->payload_backoff_ms = box->net_backoff_ms = 10000;
    vols->vols_tidy_at = vols->tokens_renew_at = box->net_check_at = clock_boot_in_ms(1);
    vols->vols_held = vols->payload_stale = box->net_check = box->net_told = box->net_healing = true;
    live_of(p->ctrs[0])->live_due = true;
    vols->overlaps = strdup("volume");
    snprintf(box->net_again_ip, sizeof(box->net_again_ip), "10.0.0.1");
    worker_node(&w->node)->shutdown.state = SHUTDOWN_NO;
    assert_true(shutdown_revive(p));
    volumes_of(new)->vols_since_ns = vols->vols_since_ns;
    sandbox_of(new)->net_since_ns = box->net_since_ns;
    memcpy(sandbox_of(new)->netns_dir, box->netns_dir, sizeof(box->netns_dir));
    assert_memory_equal(vols, volumes_of(new), sizeof(*vols));
    assert_memory_equal(live_of(p->ctrs[0]), live_of(new->ctrs[0]), sizeof(struct live_ctr));
    assert_memory_equal(box, sandbox_of(new), sizeof(*box));
}

static void while_the_machine_goes_down_it_stays_ended(void **state)
{
    struct world *w = *state;
    struct pod *p = ended(w, ONE);

    p->rebooted = true; /* by an earlier reboot: says nothing about this shutdown */
    worker_node(&w->node)->shutdown.state = SHUTDOWN_ENDING;
    assert_false(shutdown_revive(p));
    worker_node(&w->node)->shutdown.state = SHUTDOWN_DONE;
    assert_false(shutdown_revive(p));
}

static void an_agent_that_was_restarted_waits_to_be_told_unless_the_machine_was_too(void **state)
{
    struct world *w = *state;
    struct pod *p = ended(w, ONE);

    worker_node(&w->node)->shutdown.state = SHUTDOWN_UNKNOWN;
    assert_false(shutdown_revive(p));
    p->rebooted = true;
    assert_true(shutdown_revive(p));
}

static void what_ran_once_for_good_is_not_run_twice(void **state)
{
    struct world *w = *state;
    struct pod *p = ended(w, ONE ", restartPolicy: Never");

    worker_node(&w->node)->shutdown.state = SHUTDOWN_NO;
    assert_false(shutdown_revive(p));
    p->ctrs[0]->cur.id[0] = '\0'; /* it never got so far */
    assert_true(shutdown_revive(p));
}

static void who_was_refused_for_it_is_admitted_anew_whatever_its_policy(void **state)
{
    struct world *w = *state;
    struct pod *p = ended(w, ONE ", restartPolicy: Never");

    worker_node(&w->node)->shutdown.state = SHUTDOWN_NO;
    p->rejected = true;
    p->start_time_ns = 5;
    assert_true(shutdown_revive(p));
    assert_false(p->rejected);
    assert_int_equal(p->start_time_ns, 0);
}

static void init_containers_run_again(void **state)
{
    struct world *w = *state;
    struct pod *p = ended(w, ONE ", initContainers: [{name: before, image: a:1}]");

    worker_node(&w->node)->shutdown.state = SHUTDOWN_NO;
    assert_true(shutdown_revive(p));
    assert_int_equal(p->ctrs[0]->kind, CTR_INIT);
    assert_true(p->ctrs[0]->replace);
    assert_false(p->ctrs[1]->replace);
}

static void whose_manifest_is_gone_or_new_does_not(void **state)
{
    struct world *w = *state;
    struct pod *p = ended(w, ONE);

    worker_node(&w->node)->shutdown.state = SHUTDOWN_NO;
    p->wanted = false;
    assert_false(shutdown_revive(p));
    p->wanted = true;
    p->successor = api_pod_ref(p->api);
    assert_false(shutdown_revive(p));
}

static void new_pods_are_refused_in_kubelets_words(void **state)
{
    struct world *w = *state;
    struct pod *p = world_pod(w, "new", ONE);
    struct err e = { 0 };
    char reason[64] = "";

    assert_int_equal(admit_pod(p, reason, &e), ERR_OK);
    w->node.shutting_down = true;
    assert_int_equal(admit_pod(p, reason, &e), ERR_PRECONDITION);
    assert_string_equal(reason, "NodeShutdown");
    assert_string_equal(e.text, "Pod was rejected as the node is shutting down.");
}

static void the_record_tells_of_it(void **state)
{
    struct world *w = *state;
    struct pod *p = ended(w, ONE);
    struct err e = { 0 };

    for (size_t i = 0; i < p->n_ctrs; i++)
        p->ctrs[i]->cur.id[0] = '\0';
    p->shutdown_ns = INT64_C(1700000000000000000);
    str_auto dir = str_printf("%s/pods", w->dir);
    assert_int_equal(fs_mkdirs(dir, 0700, &e), ERR_OK);
    assert_int_equal(record_save(p, &(bool){ false }, &e), ERR_OK);
    world_forget(w);
    assert_int_equal(record_load_all(&w->node, &e), ERR_OK);
    p = pods_find(&w->node, "default", "web");
    assert_non_null(p);
    assert_int_equal(p->shutdown_ns, INT64_C(1700000000000000000));
    assert_string_equal(p->phase, "Failed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(it_begins_again_once_no_shutdown_is_known_of),
        WORLD_TEST(it_begins_again_as_a_new_pod_does),
        WORLD_TEST(while_the_machine_goes_down_it_stays_ended),
        WORLD_TEST(an_agent_that_was_restarted_waits_to_be_told_unless_the_machine_was_too),
        WORLD_TEST(what_ran_once_for_good_is_not_run_twice),
        WORLD_TEST(who_was_refused_for_it_is_admitted_anew_whatever_its_policy),
        WORLD_TEST(init_containers_run_again),
        WORLD_TEST(whose_manifest_is_gone_or_new_does_not),
        WORLD_TEST(new_pods_are_refused_in_kubelets_words),
        WORLD_TEST(the_record_tells_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
