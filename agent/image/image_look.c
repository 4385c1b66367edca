/* SPDX-License-Identifier: Apache-2.0 */
/* Failed lookups of the store: the objects are kept, and lookups are retried with back-off. */
#include "agent/image/image_internal.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/files/patience.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define FIRST_MS 50
#define LAST_MS 60000

struct img_unread { /* a record that may be valid */
    int dir;
    char file[80];
    TAILQ_ENTRY(img_unread) more;
};

/* ---- records ---- */

static struct img_unread *image_look_find(const struct img_store *s, int dir, const char *file)
{
    struct img_unread *u;

    TAILQ_FOREACH (u, &s->looks.unread, more)
        if (u->dir == dir && strcmp(u->file, file) == 0)
            return u;
    return NULL;
}

void img_unread_add(struct img_store *s, int dir, const char *file, const struct err *why)
{
    struct img_unread *u = image_look_find(s, dir, file) != NULL ? NULL : calloc(1, sizeof(*u));
    struct err e = *why;

    if (u != NULL) {
        u->dir = dir;
        snprintf(u->file, sizeof(u->file), "%s", file);
        TAILQ_INSERT_TAIL(&s->looks.unread, u, more);
    } else if (image_look_find(s, dir, file) == NULL) {
        s->looks.lost = true;
    }
    err_wrap(&e, "record %s/%s is not read", dir == s->images_fd ? "images" : "refs", file);
    img_look_again(s, &e);
}

bool img_unread_has(const struct img_store *s, int dir, const char *hex)
{
    char file[80];

    snprintf(file, sizeof(file), "%s.json", hex);
    return image_look_find(s, dir, file) != NULL || s->looks.lost;
}

void img_unread_forget(struct img_store *s, int dir, const char *hex)
{
    struct img_unread *u;
    char file[80];

    snprintf(file, sizeof(file), "%s.json", hex);
    u = image_look_find(s, dir, file);
    if (u == NULL)
        return;
    TAILQ_REMOVE(&s->looks.unread, u, more);
    free(u);
}

bool img_unread_any(const struct img_store *s)
{
    return !TAILQ_EMPTY(&s->looks.unread) || s->looks.lost;
}

/* Images are read before the names that refer to them. */
static void read_again(struct img_store *s, struct img_unreads *list, int dir)
{
    struct img_unread *u, *next;

    TAILQ_FOREACH_SAFE (u, list, more, next) {
        if (u->dir != dir)
            continue;
        TAILQ_REMOVE(list, u, more);
        img_load_record(s, u->dir, u->file);
        free(u);
    }
}

static void read_all_again(struct img_store *s)
{
    struct img_unreads list = TAILQ_HEAD_INITIALIZER(list);

    TAILQ_CONCAT(&list, &s->looks.unread, more);
    read_again(s, &list, s->images_fd);
    read_again(s, &list, s->refs_fd);
}

void img_unread_free(struct img_store *s)
{
    struct img_unread *u, *next;

    TAILQ_FOREACH_SAFE (u, &s->looks.unread, more, next)
        free(u);
}

/* ---- retries ---- */

void img_look_at_names(struct img_store *s)
{
    struct reg_names names = { 0 };
    struct err e = { 0 };

    if (reg_names_load(&names, s->registries_conf, &e) != ERR_OK)
        img_look_again(s, &e);
    s->names_unknown = e;
    reg_names_done(&s->short_names);
    s->short_names = names;
}

static void on_look_timer(uv_timer_t *timer)
{
    struct img_store *s = timer->data;

    /* A pull writes records that are not in the tables yet. */
    if (s->running > 0 || !TAILQ_EMPTY(&s->writers)) {
        uv_timer_start(timer, on_look_timer, s->looks.wait_ms, 0);
        return;
    }
    if (s->names_unknown.code != ERR_OK)
        img_look_at_names(s);
    read_all_again(s);
    img_collect(s);
}

void img_look_again(struct img_store *s, const struct err *why)
{
    struct img_looks *l = &s->looks;

    l->why = *why;
    if (l->since_ns == 0) {
        l->since_ns = clock_wall_ns();
        log_warn("images: cannot read the store; nothing is removed until it can be read",
                 F_STR("folder", s->dir), F_ERR(why));
    }
    if (s->closing || uv_is_active((uv_handle_t *)&l->timer))
        return;
    l->wait_ms = backoff_next_ms(l->wait_ms, FIRST_MS, LAST_MS);
    l->retry_at = clock_boot_in_ms(l->wait_ms);
    uv_timer_start(&l->timer, on_look_timer, l->wait_ms, 0);
}

void img_look_over(struct img_store *s)
{
    struct img_looks *l = &s->looks;

    if (l->since_ns == 0 || s->names_unknown.code != ERR_OK)
        return;
    log_info("images: the store is readable again", F_STR("folder", s->dir));
    uv_timer_stop(&l->timer);
    l->why = (struct err){ 0 };
    l->since_ns = 0;
    l->retry_at = CLOCK_BOOT_NONE;
    l->wait_ms = 0;
}

bool img_look_failed(const struct img_store *s, struct img_look *ret)
{
    if (s->looks.since_ns == 0)
        return false;
    *ret = (struct img_look){ .why = s->looks.why,
                              .since_ns = s->looks.since_ns,
                              .retry_at = s->looks.retry_at };
    return true;
}

bool img_is_unsure(const struct img_store *s, struct err *why)
{
    if (!img_unread_any(s))
        return false;
    if (why != NULL)
        *why = s->looks.why;
    return true;
}

/* ---- while the store is opened ---- */

enum err_code img_list_surely(struct img_store *s, int dir, const char *name, img_entry_fn fn, struct err *e)
{
    struct patience patience = { 0 };

    while (img_each_entry(s, dir, fn, e) != ERR_OK) {
        log_warn("images: cannot list a folder", F_STR("folder", name), F_ERR(e));
        if (!patience_wait(&patience))
            return err_wrap(e, "list folder %s", name);
        *e = (struct err){ 0 };
    }
    return ERR_OK;
}

void img_read_surely(struct img_store *s)
{
    struct patience patience = { 0 };

    while (!TAILQ_EMPTY(&s->looks.unread) && patience_wait(&patience))
        read_all_again(s);
}
