/* SPDX-License-Identifier: Apache-2.0 */
/* The pod's record: what is written is read back; what is damaged is set aside and harms nobody. */
#include "agent/pod/container/internal.h"
#include "agent/pod/node/record_load.h"
#include "agent/pod/record/internal.h"
#include "agent/pod/record/record.h"
#include "agent/pod/status/internal.h"
#include "agent/pod/worker/pods.h"
#include "tests/unit/agent_pod/world.h"

#include "agent/pod/worker/worker.h"
#include "base/files/damaged_file.h"
#include "tests/unit/script_clock.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UID "0a4f7c1e-0000-4000-8000-000000000001"

static const char spec[] = "{apiVersion: v1, kind: Pod, metadata: {name: p, uid: " UID "}, spec: {"
                           "initContainers: [{name: i, image: x}], containers: [{name: a, image: x}]}}";

static const char spec_json[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"uid\":"
    "\"" UID "\"},\"spec\":{\"initContainers\":[{\"name\":\"i\",\"image\":\"x\"}],\"containers\":[{\"name\":"
    "\"a\",\"image\":\"x\"}]}}";

static void save(struct world *w, struct pod *p)
{
    struct err e = { 0 };
    char dir[128];

    snprintf(dir, sizeof(dir), "%s/pods", w->dir);
    assert_int_equal(fs_mkdirs(dir, 0700, &e), ERR_OK);
    if (record_save(p, &(bool){ false }, &e) != ERR_OK)
        fail_msg("%s", e.text);
}

static int setup(void **state)
{
    script_clock_reset();
    return world_setup(state);
}

static struct pod *load(struct world *w)
{
    struct err e = { 0 };

    world_forget(w);
    if (record_load_all(&w->node, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return pods_find(&w->node, "default", "p");
}

static bool exists(const struct world *w, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/pods/%s", w->dir, name);
    return access(path, F_OK) == 0;
}

static void if_so(const char *name, void *arg)
{
    if (strncmp(name, UID ".json", strlen(UID ".json")) == 0)
        ++*(unsigned *)arg;
}

/* How many files of the record were set aside. */
static unsigned aside(const struct world *w)
{
    char path[128];
    unsigned n = 0;
    struct err e = { 0 };
    int dir;

    snprintf(path, sizeof(path), "%s/pods", w->dir);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_false(presence_is_unknown(damaged_file_look(dir, if_so, &n, &e)));
    close(dir);
    return n;
}

static void write_record(const struct world *w, const char *text, size_t n)
{
    struct err e = { 0 };
    char path[128];

    snprintf(path, sizeof(path), "%s/pods", w->dir);
    assert_int_equal(fs_mkdirs(path, 0700, &e), ERR_OK);
    snprintf(path, sizeof(path), "%s/pods/" UID ".json", w->dir);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, text, n, 0600, false, &e), ERR_OK);
}

static char *read_record(const struct world *w)
{
    struct err e = { 0 };
    char path[128], *text = NULL;

    snprintf(path, sizeof(path), "%s/pods/" UID ".json", w->dir);
    assert_int_equal(fs_read_at(AT_FDCWD, path, 1 << 20, &text, NULL, &e), ERR_OK);
    return text;
}

/* So many seconds after SCRIPT_BOOT_NS. */
static struct boot_time moment(int64_t s)
{
    return (struct boot_time){ SCRIPT_BOOT_NS + s * SCRIPT_SECOND };
}

static struct pod *lively_pod(struct world *w)
{
    struct pod *p = world_add(w, spec);
    struct ctr *i = p->ctrs[0], *a = p->ctrs[1];

    p->state = POD_RUNNING;
    p->admitted = p->initialized = true;
    p->priority = -7;
    p->start_time_ns = 5;
    memset(p->sandbox_id, 'c', 64);
    memset(i->cur.id, '1', 64);
    i->cur.ended = true;
    i->cur.finished_ns = 9;
    snprintf(i->cur.reason, sizeof(i->cur.reason), "Completed");
    i->replace = true;
    memset(a->cur.id, '2', 64);
    a->cur.attempt = a->restarts = 2;
    a->cur.started_ns = 11;
    a->cur.image_id = strdup("sha256:abc");
    a->cur.image_ref = strdup("r.io/box@sha256:def");
    memset(a->last.id, '3', 64);
    a->last.ended = true;
    a->last.exit_code = 137;
    a->last.finished_ns = 10;
    a->last.message = strdup("bye");
    instance_add_why(&a->last, "liveness probe failed: %s", "no answer\n");
    instance_add_why(&a->last, "preStop hook failed: exit code %d", 2);
    instance_add_why(&a->last, "liveness probe failed: no answer"); /* known already */
    own_of(a)->backoff_ms = 20000;
    a->cur.started_at = moment(3);
    own_of(a)->backoff_at = moment(4);
    a->last.ended_at = moment(5);
    p->active_began = moment(1);
    p->state_began = moment(2);
    snprintf(shown_of(p)->conditions[2].status, sizeof(shown_of(p)->conditions[2].status), "True");
    shown_of(p)->conditions[2].since_ns = 12;
    return p;
}

static void what_is_written_is_read_back(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);

    save(w, p);
    p = load(w);
    assert_non_null(p);
    assert_string_equal(p->uid, UID);
    assert_int_equal(p->state, POD_RUNNING);
    assert_true(p->admitted && p->initialized && p->recovered && p->wanted);
    assert_false(p->rebooted);
    assert_int_equal(p->priority, -7);
    assert_int_equal(strlen(p->sandbox_id), 64);
    assert_int_equal(p->ctrs[0]->state, CTR_NONE);
    assert_true(p->ctrs[0]->replace);
    assert_int_equal(p->ctrs[1]->state, CTR_RUNNING);
    assert_int_equal(p->ctrs[1]->restarts, 2);
    assert_int_equal(own_of(p->ctrs[1])->backoff_ms, 20000);
    assert_string_equal(p->ctrs[1]->cur.image_id, "sha256:abc");
    assert_string_equal(p->ctrs[1]->cur.image_ref, "r.io/box@sha256:def");
    assert_int_equal(p->ctrs[1]->last.exit_code, 137);
    assert_string_equal(p->ctrs[1]->last.message, "bye");
    assert_string_equal(p->ctrs[1]->last.why,
                        "liveness probe failed: no answer; preStop hook failed: exit code 2");
    assert_string_equal(shown_of(p)->conditions[2].status, "True");
    assert_int_equal(shown_of(p)->conditions[2].since_ns, 12);
}

static void a_reboot_is_noticed(void **state)
{
    struct world *w = *state;

    save(w, lively_pod(w));
    snprintf(w->node.boot_id, sizeof(w->node.boot_id), "boot-2");
    assert_true(load(w)->rebooted);
}

static void a_cut_off_record_is_set_aside(void **state)
{
    struct world *w = *state;
    str_auto text = NULL;

    save(w, lively_pod(w));
    text = read_record(w);
    write_record(w, text, strlen(text) / 2);
    assert_null(load(w));
    assert_int_equal(aside(w), 1);
    assert_false(exists(w, UID ".json"));
}

/* Replaces `from` in the record that a lively pod leaves. */
static struct pod *load_changed(struct world *w, const char *from, const char *to)
{
    str_auto text = NULL;
    str_auto changed = NULL;
    char *at;

    save(w, lively_pod(w));
    text = read_record(w);
    at = strstr(text, from);
    if (at == NULL)
        fail_msg("%s is not in %s", from, text);
    *at = '\0';
    changed = str_printf("%s%s%s", text, to, at + strlen(from));
    write_record(w, changed, strlen(changed));
    return load(w);
}

static void ids_that_would_leave_their_folder_are_refused(void **state)
{
    struct world *w = *state;
    char id[65];
    const struct pod *p;

    memset(id, 'c', 64);
    id[64] = '\0';
    assert_null(load_changed(w, id, "../../../../etc"));
    memset(id, '2', 64);
    p = load_changed(w, id, "../../../../etc");
    assert_non_null(p); /* the pod stays; the run is not known */
    assert_string_equal(p->ctrs[1]->cur.id, "");
    assert_int_equal(p->ctrs[1]->state, CTR_NONE);
    assert_null(load_changed(w, "\"uid\":\"" UID "\"", "\"uid\":\"x/../y\""));
}

static void numbers_out_of_range_count_as_none(void **state)
{
    struct world *w = *state;
    const struct pod *p = load_changed(w, "\"backoffMs\":20000", "\"backoffMs\":9223372036854775807");

    assert_int_equal(own_of(p->ctrs[1])->backoff_ms, 0);
    p = load_changed(w, "\"restarts\":2", "\"restarts\":-5");
    assert_int_equal(p->ctrs[1]->restarts, 0);
    p = load_changed(w, "\"graceSeconds\":0", "\"graceSeconds\":9223372036854775807");
    assert_int_equal(p->grace_seconds, 0);
    p = load_changed(w, "\"state\":\"running\"", "\"state\":\"nonsense\"");
    assert_int_equal(p->state, POD_PENDING);
}

static void another_version_is_set_aside(void **state)
{
    struct world *w = *state;

    assert_null(load_changed(w, "\"version\":1", "\"version\":2"));
    assert_int_equal(aside(w), 1);
}

static int renames_to_fail;

/* NOLINTBEGIN: glibc's names and parameters */
int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    const char *end = strstr(to, ".synced");

    if (end != NULL && renames_to_fail > 0) {
        renames_to_fail--;
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_renameat, from_dir, from, to_dir, to);
}
/* NOLINTEND */

static void sync_record(struct world *w, struct pod *p)
{
    worker_node(&w->node)->runner_active = true; /* nobody reconciles here */
    save(w, p);
    record_sync(p);
    uv_run(&w->loop, UV_RUN_DEFAULT);
}

static void a_record_is_on_the_disk_under_two_names(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);

    worker_node(&w->node)->runner_active = true;
    save(w, p);
    assert_false(p->record_durable);
    record_sync(p);
    assert_false(p->record_durable); /* not before it is said to be there */
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_true(p->record_durable);
    assert_true(exists(w, UID ".json.synced"));
    assert_false(exists(w, "." UID ".json.synced"));
    sync_record(w, p); /* again */
    p = load(w);
    assert_true(p->record_durable);
    assert_false(p->record_dirty);
    record_remove(p);
    assert_false(exists(w, UID ".json.synced"));
    assert_false(exists(w, UID ".json"));
}

static void a_second_name_that_cannot_be_given_leaves_nothing(void **state)
{
    struct world *w = *state;

    renames_to_fail = 1;
    sync_record(w, lively_pod(w));
    assert_int_equal(renames_to_fail, 0);
    assert_false(exists(w, "." UID ".json.synced"));
    assert_false(exists(w, UID ".json.synced"));
}

static bool newest_is_synced(struct world *w)
{
    char path[128], synced[128];
    struct stat a, b;

    snprintf(path, sizeof(path), "%s/pods/" UID ".json", w->dir);
    snprintf(synced, sizeof(synced), "%s/pods/" UID ".json.synced", w->dir);
    return stat(path, &a) == 0 && stat(synced, &b) == 0 && a.st_ino == b.st_ino;
}

static void later_records_are_synced_together(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);

    sync_record(w, p);
    assert_true(newest_is_synced(w));
    for (int i = 0; i < 3; i++) {
        p->start_time_ns++;
        save(w, p);
        record_sync(p);
        assert_false(record_node(&w->node)->syncing); /* not now */
    }
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_true(newest_is_synced(w));
    assert_false(uv_is_active((uv_handle_t *)&record_node(&w->node)->timer));
}

static void a_record_that_changed_while_the_first_was_synced_is_synced_later(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);

    worker_node(&w->node)->runner_active = true;
    save(w, p);
    record_sync(p);
    assert_true(record_node(&w->node)->syncing);
    p->start_time_ns++;
    save(w, p);
    record_sync(p);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_true(newest_is_synced(w));
    assert_true(TAILQ_EMPTY(&record_node(&w->node)->unsynced));
    assert_false(uv_is_active((uv_handle_t *)&record_node(&w->node)->timer));
}

static void a_record_that_was_not_synced_is_written_again(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);

    sync_record(w, p);
    p->start_time_ns++;
    save(w, p);
    p = load(w);
    assert_false(p->record_durable);
    assert_true(p->record_dirty);
}

static void an_empty_record_is_replaced_by_the_one_that_was_on_the_disk(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);

    sync_record(w, p);
    write_record(w, "", 0); /* renamed, and the power went before its content was there */
    p = load(w);
    assert_non_null(p);
    assert_int_equal(p->ctrs[1]->restarts, 2);
    assert_int_equal(aside(w), 0);
    assert_true(exists(w, UID ".json"));
    p = load(w);
    assert_non_null(p);
}

static void a_record_both_of_whose_names_are_damaged_is_set_aside(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };
    char path[128];

    sync_record(w, lively_pod(w));
    write_record(w, "{", 1);
    snprintf(path, sizeof(path), "%s/pods/" UID ".json.synced", w->dir);
    assert_int_equal(fs_replace_at(AT_FDCWD, path, "}", 1, 0600, false, &e), ERR_OK);
    assert_null(load(w));
    assert_int_equal(aside(w), 1);
    assert_false(exists(w, UID ".json.synced"));
}

static void a_second_name_alone_is_rubbish(void **state)
{
    struct world *w = *state;
    char path[128];

    sync_record(w, lively_pod(w));
    snprintf(path, sizeof(path), "%s/pods/" UID ".json", w->dir);
    assert_int_equal(unlink(path), 0);
    assert_null(load(w));
    assert_false(exists(w, UID ".json.synced"));
}

static void a_pod_that_goes_while_its_record_is_synced_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);

    save(w, p);
    record_sync(p);
    record_remove(p);
    pods_free(p);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_false(exists(w, UID ".json.synced"));
    assert_false(exists(w, UID ".json"));
}

static void every_cut_is_survived(void **state)
{
    struct world *w = *state;
    str_auto text = NULL;
    size_t n;

    save(w, lively_pod(w));
    text = read_record(w);
    n = strlen(text);
    log_init(LOG_LVL_ERROR, LOG_FMT_TEXT);
    for (size_t i = 0; i < n; i += 97) {
        write_record(w, text, i);
        assert_null(load(w));
    }
}

/* A change of which nothing is kept costs no file; one that is kept does, also when it is the second turned
 * back. */
static void the_same_record_is_not_written_twice(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);
    struct err e = { 0 };
    bool written = false;

    save(w, p);
    assert_int_equal(record_save(p, &written, &e), ERR_OK);
    assert_false(written);
    for (int64_t t = 6; t >= 5; t--) {
        p->start_time_ns = t;
        assert_int_equal(record_save(p, &written, &e), ERR_OK);
        assert_true(written);
        assert_int_equal(record_save(p, &written, &e), ERR_OK);
        assert_false(written);
    }
    assert_int_equal(load(w)->start_time_ns, 5);
}

/* Its pods did not change while no agent ran: a restart on a full node writes nothing. */
static void the_next_agent_writes_a_record_only_if_it_says_something_else(void **state)
{
    struct world *w = *state;
    struct err e = { 0 };
    struct pod *p;
    bool written = true;

    sync_record(w, lively_pod(w));
    sync_record(w, load(w)); /* of what the test put into the pod, some is not recorded */
    script_clock_pass(20 * SCRIPT_SECOND);
    p = load(w);
    assert_int_equal(record_save(p, &written, &e), ERR_OK);
    assert_false(written);
    p->start_time_ns++;
    assert_int_equal(record_save(p, &written, &e), ERR_OK);
    assert_true(written);
    sync_record(w, p);
    script_clock_set(-7200 * SCRIPT_SECOND); /* a reboot would convert with the clocks in the record */
    assert_int_equal(record_save(load(w), &written, &e), ERR_OK);
    assert_true(written);
}

/* ---- what waits -------------------------------------------------------------------------------- */

static void assert_moment(struct boot_time t, int64_t s)
{
    assert_int_equal(t.ns, moment(s).ns);
}

static void what_waits_goes_on_though_the_clock_is_set_while_no_agent_runs(void **state)
{
    struct world *w = *state;
    const struct pod *p;

    script_clock_pass(10 * SCRIPT_SECOND);
    save(w, lively_pod(w));
    script_clock_pass(20 * SCRIPT_SECOND);
    script_clock_set(-7200 * SCRIPT_SECOND);
    p = load(w);
    assert_moment(p->active_began, 1);
    assert_moment(p->state_began, 2);
    assert_moment(p->ctrs[1]->cur.started_at, 3);
    assert_moment(own_of(p->ctrs[1])->backoff_at, 4);
    assert_moment(p->ctrs[1]->last.ended_at, 5);
}

/* Off for `off_s` seconds by the clock of the world, and up for 50 s since; the new boot's wall clock is
 * wrong by `wrong_s`. */
static struct pod *reboot(struct world *w, int64_t off_s, int64_t wrong_s)
{
    script_clock_set(off_s * SCRIPT_SECOND + wrong_s * SCRIPT_SECOND);
    script_clock.boot_ns = script_clock.mono_ns = 0;
    script_clock_pass(50 * SCRIPT_SECOND);
    snprintf(w->node.boot_id, sizeof(w->node.boot_id), "boot-2");
    return load(w);
}

/* Of a pod that began `counted_s` before its record was written: nothing else is known to have passed. */
static void assert_counted(struct boot_time t, int64_t counted_s)
{
    assert_int_equal(clock_boot_since_ns(t), (counted_s + 50) * SCRIPT_SECOND);
}

static void after_a_reboot_it_is_as_long_ago_as_the_wall_clock_says(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);

    script_clock_pass(30 * SCRIPT_SECOND);
    save(w, p);
    p = reboot(w, 600, 0);
    assert_int_equal(clock_boot_since_ns(p->active_began), (29 + 600 + 50) * SCRIPT_SECOND);
    assert_int_equal(clock_boot_since_ns(p->ctrs[1]->last.ended_at), (25 + 600 + 50) * SCRIPT_SECOND);
    save(w, p); /* and so it stays, whatever is done to the clock from here on */
    script_clock_pass(10 * SCRIPT_SECOND);
    script_clock_set(-5000 * SCRIPT_SECOND);
    p = load(w);
    assert_int_equal(clock_boot_since_ns(p->active_began), (29 + 600 + 60) * SCRIPT_SECOND);
}

static void a_clock_that_is_not_set_yet_after_a_reboot_takes_nothing_back(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);

    script_clock_pass(30 * SCRIPT_SECOND);
    save(w, p);
    assert_counted(reboot(w, 600, -SCRIPT_WALL_NS / SCRIPT_SECOND)->active_began, 29);
}

static void the_time_off_counts_only_for_a_clock_that_was_synchronised(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);

    script_clock.unsynchronised = true;
    script_clock_pass(30 * SCRIPT_SECOND);
    save(w, p);
    script_clock.unsynchronised = false;
    assert_counted(reboot(w, 600, 0)->active_began, 29);
}

static void a_boot_that_never_had_its_clock_set_counts_as_what_it_counted(void **state)
{
    struct world *w = *state;
    struct pod *p = lively_pod(w);

    script_clock.wall_ns = 20 * SCRIPT_SECOND; /* 1970 */
    script_clock.unsynchronised = true;
    script_clock_pass(30 * SCRIPT_SECOND);
    save(w, p);
    assert_counted(reboot(w, 600, SCRIPT_WALL_NS / SCRIPT_SECOND)->active_began, 29);
}

/* A board without a battery: its clock says what it said last, until the network sets it three days forward.
 */
static void a_clock_that_was_set_after_the_start_is_used_as_it_was_set(void **state)
{
    const int64_t three_days = 3 * INT64_C(86400);
    struct world *w = *state;
    struct pod *p = lively_pod(w);
    struct err e = { 0 };
    bool written;

    worker_node(&w->node)->runner_active = true; /* nobody reconciles here */
    script_clock_pass(30 * SCRIPT_SECOND);
    save(w, p);
    script_clock_set(three_days * SCRIPT_SECOND);
    assert_int_equal(record_save(p, &written, &e), ERR_OK);
    assert_false(written); /* nothing of it changed */
    run_queue_clock_set(&w->node);
    assert_true(p->record_dirty);
    assert_int_equal(record_save(p, &written, &e), ERR_OK);
    assert_true(written);
    assert_int_equal(clock_boot_since_ns(reboot(w, 600, 0)->active_began), (29 + 600 + 50) * SCRIPT_SECOND);
}

/* As version 0.9 wrote it: wall times, how far the clock was set since, and the wall clock less the boot
 * clock. */
static const char older[] =
    "{\"version\":1,\"uid\":\"" UID "\",\"bootID\":\"%s\",\"state\":\"terminating\",\"stateSince\":%lld,"
    "\"clockOffset\":%lld,\"endingShift\":3600000000000,\"created\":4,\"startTime\":%lld,\"admitted\":true,"
    "\"graceSeconds\":30,\"containers\":{\"a\":{\"restarts\":2,\"backoffMs\":20000,\"backoffAt\":%lld,"
    "\"endedShift\":"
    "3600000000000,\"current\":{\"id\":\"2222222222222222222222222222222222222222222222222222222222222222\","
    "\"attempt\":2,\"created\":5,\"started\":%lld,\"finished\":%lld,\"exitCode\":1,\"reason\":\"Error\"}}},"
    "\"manifest\":%s}";

/* All of it happened `ago_s` before now, and the clock was set forward by an hour after that. */
static struct pod *load_older(struct world *w, const char *boot, int64_t ago_s)
{
    long long then = SCRIPT_WALL_NS - ago_s * SCRIPT_SECOND, set = then - 3600 * SCRIPT_SECOND;
    str_auto text = str_printf(older, boot, set, (long long)(SCRIPT_WALL_NS - SCRIPT_BOOT_NS), set, then, set,
                               set, spec_json);

    write_record(w, text, strlen(text));
    return load(w);
}

static void a_record_of_an_earlier_version_is_converted(void **state)
{
    struct world *w = *state;
    const struct pod *p = load_older(w, "boot-1", 12);

    assert_non_null(p);
    assert_moment(p->state_began, -12);
    assert_moment(own_of(p->ctrs[1])->backoff_at, -12);
    assert_moment(p->ctrs[1]->cur.ended_at, -12);
    assert_int_equal(p->active_began.ns, 1); /* the boot: its shift was not kept: at least since the boot */
}

static void a_record_of_an_earlier_version_is_converted_after_a_reboot(void **state)
{
    struct world *w = *state;
    const struct pod *p = load_older(w, "boot-0", 5000);

    assert_moment(p->state_began, -5000);
    assert_moment(p->ctrs[1]->cur.ended_at, -5000);
    assert_int_equal(p->active_began.ns, -1); /* the boot: whether its clock was right is not known */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back),
        TEST(the_same_record_is_not_written_twice),
        TEST(the_next_agent_writes_a_record_only_if_it_says_something_else),
        TEST(a_reboot_is_noticed),
        TEST(a_cut_off_record_is_set_aside),
        TEST(ids_that_would_leave_their_folder_are_refused),
        TEST(numbers_out_of_range_count_as_none),
        TEST(another_version_is_set_aside),
        TEST(a_record_is_on_the_disk_under_two_names),
        TEST(a_second_name_that_cannot_be_given_leaves_nothing),
        TEST(later_records_are_synced_together),
        TEST(a_record_that_changed_while_the_first_was_synced_is_synced_later),
        TEST(a_record_that_was_not_synced_is_written_again),
        TEST(an_empty_record_is_replaced_by_the_one_that_was_on_the_disk),
        TEST(a_record_both_of_whose_names_are_damaged_is_set_aside),
        TEST(a_second_name_alone_is_rubbish),
        TEST(a_pod_that_goes_while_its_record_is_synced_leaves_nothing),
        TEST(every_cut_is_survived),
        TEST(what_waits_goes_on_though_the_clock_is_set_while_no_agent_runs),
        TEST(after_a_reboot_it_is_as_long_ago_as_the_wall_clock_says),
        TEST(a_clock_that_is_not_set_yet_after_a_reboot_takes_nothing_back),
        TEST(a_boot_that_never_had_its_clock_set_counts_as_what_it_counted),
        TEST(the_time_off_counts_only_for_a_clock_that_was_synchronised),
        TEST(a_clock_that_was_set_after_the_start_is_used_as_it_was_set),
        TEST(a_record_of_an_earlier_version_is_converted),
        TEST(a_record_of_an_earlier_version_is_converted_after_a_reboot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
