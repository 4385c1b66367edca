/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/record/internal.h"
#include "agent/pod/record/record.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <string.h>

static void record_open(struct node *n)
{
    struct record_node *part = record_node(n);

    TAILQ_INIT(&part->unsynced);
    uv_timer_init(n->o.loop, &part->timer);
    part->timer.data = n;
}

static bool record_busy(const struct node *n)
{
    return record_node(n)->syncing;
}

static void record_free(struct node *n)
{
    rooms_close_handle(n, (uv_handle_t *)&record_node(n)->timer);
}

void record_step(struct pod *p)
{
    struct pod_record *r = record_of(p);
    struct err e = { 0 };
    bool written;

    if (!p->record_dirty)
        return;
    p->record_dirty = false;
    if (record_save(p, &written, &e) != ERR_OK) {
        /* Running pods continue; only data that a restart of the agent needs would be lost. */
        if (strncmp(r->error, e.text, sizeof(r->error) - 1) != 0)
            log_error("cannot write the pod's record; will retry", F_STR("pod", p->key), F_ERR(&e));
        snprintf(r->error, sizeof(r->error), "%.250s", e.text);
        p->record_dirty = true;
        p->record_failing = true;
        p->record_durable = true; /* it cannot be: no reason to hold up its start */
        pod_wake_at(p, clock_boot_in_ms(5000), "record is tried again");
        return;
    }
    if (written)
        record_sync(p);
    if (r->error[0] != '\0')
        log_info("the pod's record can be written again", F_STR("pod", p->key));
    r->error[0] = '\0';
    p->record_failing = false;
}

const char *record_error(const struct pod *p)
{
    const char *error = record_of(p)->error;

    return error[0] != '\0' ? error : NULL;
}

void record_is_aside(struct pod *p)
{
    record_of(p)->aside = true;
}

void record_outdated(struct pod *p)
{
    record_of(p)->written = false;
    p->record_dirty = true;
}

static void record_init(struct pod *p)
{
    record_of(p)->pod = p;
}

static void record_load(struct pod *p, const json_t *record)
{
    json_int_t number = json_int(record, "number", 0);

    record_of(p)->number = number > 0 ? (uint64_t)number : 0;
}

const struct room record_room = {
    .id = ROOM_RECORD,
    .name = "record",
    .node = { .size = sizeof(struct record_node),
              .open = record_open,
              .busy = record_busy,
              .free = record_free },
    .pod = { .size = sizeof(struct pod_record),
             .init = record_init,
             .free = record_sync_forget,
             .load = record_load },
};
