/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decisions - the record of each decision, in <state>/evictions.json: the last EV_RECORDS_MAX. Written on the
 * pool whenever one begins or ends; a damaged file is set aside.
 */
#include "agent/pod/core/events.h"
#include "agent/pod/eviction/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/files/damaged_file.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "evictions.json"
#define FILE_MAX (32u << 20)

static uint64_t now_us(void)
{
    return uv_hrtime() / 1000;
}

/* ---- the file ---- */

static enum err_code write_file(void *arg, struct err *e)
{
    const struct eviction *r = arg;
    str_auto path = str_printf("%s/" FILE_NAME, r->node->o.state_dir);

    if (path == NULL)
        return err_nomem(e);
    return fs_replace_at(AT_FDCWD, path, r->save_text, strlen(r->save_text), 0600, true, e);
}

static void save_now(struct eviction *r);

static void on_saved(struct op *op, const struct err *result)
{
    struct eviction *r = op->owner;

    r->saving = false;
    free(take_ptr(&r->save_text));
    if (result->code != ERR_OK && result->code != ERR_CANCELLED)
        log_warn("cannot write the decisions about evictions", F_ERR(result));
    if (r->save_again)
        save_now(r);
}

static void save_now(struct eviction *r)
{
    buf_auto text = BUF_INIT(FILE_MAX);
    struct err e = { 0 };

    r->save_again = r->saving;
    if (r->saving)
        return;
    if (ev_records_save(r->records, &text, &e) == ERR_OK && (r->save_text = buf_detach(&text)) == NULL)
        err_nomem(&e);
    if (e.code != ERR_OK) {
        log_warn("cannot write the decisions about evictions", F_ERR(&e));
        return;
    }
    r->saving = true;
    work_start(&r->save, "write " FILE_NAME, NULL, write_file, r, r->node->o.loop, on_saved, r);
}

static void save_on_prepare(uv_prepare_t *prepare)
{
    struct eviction *r = prepare->data;

    uv_prepare_stop(prepare);
    eviction_checks_go_on(r);
    save_now(r); /* not later: if this round decided something, the next turn may be far away */
}

/* When pods have been reconciled, in this turn of the loop or the next: the victim is killed there, and to
 * format a record takes longer than that. */
static void save(struct eviction *r)
{
    uv_prepare_start(&r->save_soon, save_on_prepare);
}

bool decisions_wait(const struct eviction *r)
{
    return uv_is_active((const uv_handle_t *)&r->save_soon);
}

static void set_aside(const struct eviction *r, const struct err *why)
{
    char aside[DAMAGED_FILE_NAME_SIZE] = "";
    struct err e = { 0 };
    int dir = open(r->node->o.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir >= 0 && damaged_file_set_aside(dir, FILE_NAME, aside, &e) == ERR_OK)
        log_error("the file of evictions is damaged and was set aside", F_STR("file", aside), F_ERR(why));
    else
        log_error("the file of evictions is damaged", F_ERR(why));
    if (dir >= 0)
        close(dir);
}

/* ---- awaited ends ---- */

static struct decision *decision_new(struct eviction *r, uint64_t number, enum ev_signal s, size_t n_victims)
{
    struct decision *d = calloc(1, sizeof(*d));

    if (d != NULL)
        d->victims = calloc(n_victims + 1, sizeof(d->victims[0]));
    if (d == NULL || d->victims == NULL) {
        free(d);
        return NULL;
    }
    d->number = number;
    d->signal = s;
    d->began_us = now_us();
    d->n_left = d->n_victims = n_victims;
    TAILQ_INSERT_TAIL(&r->decisions, d, link);
    return d;
}

static bool ends(const struct eviction *r, const char *uid)
{
    const struct pod *p = uid != NULL ? pods_by_uid(r->node, uid) : NULL;

    return p != NULL && p->state == POD_TERMINATING;
}

/* The earlier agent did not come to it. */
static bool runs_on(const struct eviction *r, const char *uid)
{
    const struct pod *p = uid != NULL ? pods_by_uid(r->node, uid) : NULL;

    return p != NULL && p->state != POD_TERMINATING && p->state != POD_TERMINATED;
}

/* One that an earlier agent began. Victims that have ended since have no time of their end. */
static void resume(const struct ev_unfinished *u, void *arg)
{
    struct eviction *r = arg;
    const int64_t since_us = (clock_wall_ns() - u->wall_ns) / 1000;
    size_t n_ending = 0, n_running = 0;
    struct decision *d;

    for (size_t i = 0; i < u->n_victims; i++) {
        n_ending += ends(r, u->uids[i]);
        n_running += runs_on(r, u->uids[i]);
    }
    if (n_ending == 0 && (u->n_victims == 0 || n_running > 0)) {
        ev_records_ended(r->records, u->number,
                         n_running > 0 ? "the agent ended before its pods were asked to end"
                                       : "the agent ended meanwhile",
                         NULL, 0);
        return;
    }
    d = decision_new(r, u->number, u->signal, u->n_victims);
    if (d == NULL)
        return;
    if (since_us > 0 && (uint64_t)since_us < d->began_us)
        d->began_us -= (uint64_t)since_us;
    for (size_t i = 0; i < u->n_victims; i++) {
        if (ends(r, u->uids[i]))
            snprintf(d->victims[i].uid, sizeof(d->victims[i].uid), "%s", u->uids[i]);
        else
            d->n_left--;
    }
}

/* ---- the start ---- */

void decisions_open(struct eviction *r)
{
    str_auto path = str_printf("%s/" FILE_NAME, r->node->o.state_dir);
    str_auto text = NULL;
    json_auto_t *saved = NULL;
    struct err e = { 0 };
    size_t size = 0, bad = 0;

    if (path == NULL || fs_read_at(AT_FDCWD, path, FILE_MAX, &text, &size, &e) != ERR_OK) {
        if (e.code != ERR_OK && e.code != ERR_NOT_FOUND)
            log_warn("cannot read earlier evictions", F_ERR(&e));
        return;
    }
    if (json_parse(text, size, FILE_MAX, &saved, FILE_NAME, &e) != ERR_OK) {
        set_aside(r, &e);
        return;
    }
    ev_records_load(r->records, saved, &bad);
    if (bad > 0)
        log_warn("some records of evictions are damaged and ignored", F_U64("records", bad));
    ev_records_unfinished(r->records, resume, r);
}

bool decisions_busy(const struct eviction *r)
{
    return r->saving || decisions_wait(r);
}

/* ---- decisions ---- */

uint64_t decision_begin(struct eviction *r, const struct ev_crossing *c)
{
    uint64_t number = ev_records_add(r->records, c, clock_wall_ns());

    save(r);
    return number;
}

void decision_reclaimed(struct eviction *r, uint64_t number, const char *what, uint64_t bytes,
                        uint64_t objects)
{
    ev_records_reclaimed(r->records, number, what, bytes, objects);
    save(r);
}

void decision_ranked(struct eviction *r, uint64_t number, const struct ev_crossing *c, enum ev_layout layout,
                     const struct ev_choice *choice)
{
    struct decision *d = decision_new(r, number, c->threshold.signal, choice->n_victims);

    ev_records_ranked(r->records, number, c->threshold.signal, layout, choice);
    for (size_t i = 0; d != NULL && i < choice->n_victims; i++)
        snprintf(d->victims[i].uid, sizeof(d->victims[i].uid), "%s", choice->ranked[choice->victims[i]]->uid);
    save(r);
}

void decision_sufficed(struct eviction *r, uint64_t number, bool enough)
{
    ev_records_ended(r->records, number,
                     enough ? "relieved without evicting pods" : "not enough was reclaimed",
                     &r->last[r->reclaim_signal], now_us() - r->reclaim_began_us);
    if (enough)
        log_info("able to reduce resource pressure without evicting pods");
    save(r);
}

void decision_pod_ended(struct eviction *r, const char *uid)
{
    struct decision *d;

    TAILQ_FOREACH (d, &r->decisions, link)
        for (size_t i = 0; i < d->n_victims; i++)
            if (uid[0] != '\0' && strcmp(d->victims[i].uid, uid) == 0) {
                ev_records_killed(r->records, d->number, uid, now_us() - d->began_us);
                d->victims[i].uid[0] = '\0';
                d->n_left--;
            }
}

void decision_local(struct eviction *r, const struct pod *p)
{
    ev_records_add_local(r->records, p->key, p->uid, p->message != NULL ? p->message : "", p->evicted_ns);
    save(r);
}

void decisions_seen(struct eviction *r)
{
    struct decision *d = TAILQ_FIRST(&r->decisions), *next;

    for (; d != NULL; d = next) {
        next = TAILQ_NEXT(d, link);
        if (d->n_left > 0)
            continue;
        ev_records_ended(r->records, d->number, "its pods ended", &r->last[d->signal],
                         now_us() - d->began_us);
        TAILQ_REMOVE(&r->decisions, d, link);
        free(d->victims);
        free(d);
        save(r);
    }
}

void decisions_close(struct eviction *r)
{
    struct decision *d;

    while ((d = TAILQ_FIRST(&r->decisions)) != NULL) {
        TAILQ_REMOVE(&r->decisions, d, link);
        free(d->victims);
        free(d);
    }
}
