/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kept/kept.h"

#include "agent/kept/internal.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/log.h"
#include "base/scope.h"
#include "base/siphash.h"

#include <stdlib.h>
#include <string.h>

/* ---- entries ---- */

struct kept_entry *kept_find(struct kept *k, const char *name)
{
    struct kept_entry *t;

    HASH_FIND_STR(k->entries, name, t);
    return t;
}

struct kept_entry *kept_entry_of(struct kept *k, const char *name, bool sealed)
{
    struct kept_entry *t = kept_find(k, name);

    if (t == NULL && HASH_COUNT(k->entries) < KEPT_OBJECTS_MAX && kept_name_is_good(name)) {
        t = calloc(1, sizeof(*t) + strlen(name) + 1);
        if (t == NULL)
            return NULL;
        strcpy(t->name, name);
        HASH_ADD_STR(k->entries, name, t);
        if (t->hh.tbl == NULL) {
            free(t);
            return NULL;
        }
    }
    if (t != NULL)
        t->sealed = sealed;
    return t;
}

void kept_entry_free(struct kept *k, struct kept_entry *t)
{
    HASH_DEL(k->entries, t);
    free(t);
}

uint64_t kept_hash(const char *text, size_t n)
{
    uint64_t h = siphash_part(0, text, n);

    return h != 0 ? h : 1;
}

void kept_text_wipe(struct buf *b)
{
    buf_wipe(b);
}

/* ---- jobs ---- */

struct kept_item *kept_job_add(struct kept *k)
{
    struct kept_item *item;

    if (k->job.items == NULL)
        k->job.items = calloc(KEPT_BATCH_FILES, sizeof(*k->job.items));
    if (k->job.items == NULL || k->job.n >= KEPT_BATCH_FILES)
        return NULL;
    item = &k->job.items[k->job.n++];
    *item = (struct kept_item){ 0 };
    buf_init(&item->text, KEPT_FILE_MAX);
    buf_init(&item->bytes, KEPT_FILE_MAX);
    return item;
}

void kept_job_done(struct kept *k)
{
    for (size_t i = 0; i < k->job.n; i++) {
        kept_text_wipe(&k->job.items[i].text);
        kept_text_wipe(&k->job.items[i].bytes);
    }
    free(take_ptr(&k->job.items));
    k->job.n = 0;
}

void kept_trouble(char **at, const char *what, const struct err *e)
{
    if (str_keep(at, e->text))
        log_warn(what, F_ERR(e));
}

void kept_seal_start(struct kept *k, struct buf *request, op_done_fn done)
{
    const char *const argv[] = { k->o.program, NULL };
    const struct proc_spec spec = { .name = "coracle-seal",
                                    .argv = argv,
                                    .stdin_data = request->p,
                                    .stdin_size = request->n,
                                    .stdout_max = BATCH_MAX,
                                    .cgroup_fd = k->o.cgroup_fd,
                                    .cgroup_procs = k->o.cgroup_procs,
                                    .deadline_ms = KEPT_SEAL_MS,
                                    .no_rights = true };

    proc_start(&k->proc, &spec, k->o.loop, done, k);
    kept_text_wipe(request);
}

/* ---- due work ---- */

static void kept_on_timer(uv_timer_t *timer)
{
    kept_wake(timer->data);
}

void kept_wake(struct kept *k)
{
    uint64_t now = clock_mono_ms(), next = UINT64_MAX;
    struct kept_entry *t, *tmp;

    if (k->closing || k->state != KEPT_IDLE)
        return; /* kept_over() follows */
    if (k->load_due) {
        kept_load_start(k);
        return;
    }
    HASH_ITER (hh, k->entries, t, tmp)
        if ((t->dirty || t->dropped) && t->due_ms < next)
            next = t->due_ms;
    if (next == UINT64_MAX)
        return;
    if (next <= now && kept_save_start(k))
        return;
    uv_timer_start(&k->timer, kept_on_timer, next > now ? next - now : KEPT_FIRST_MS, 0);
}

void kept_over(struct kept *k)
{
    kept_job_done(k);
    k->state = KEPT_IDLE;
    kept_wake(k);
}

void kept_load(struct kept *k)
{
    k->load_due = true;
    kept_wake(k);
}

void kept_changed(struct kept *k, const char *name, bool sealed)
{
    struct kept_entry *t = kept_entry_of(k, name, sealed);
    uint64_t now = clock_mono_ms();

    if (t == NULL) {
        log_warn("not storing an object on disk: there are too many", F_STR("name", name));
        return;
    }
    t->dropped = false;
    if (t->dirty)
        return;
    t->dirty = true;
    t->due_ms = now + KEPT_FIRST_MS;
    if (t->written_ms != 0 && t->written_ms + KEPT_AGAIN_MS > t->due_ms)
        t->due_ms = t->written_ms + KEPT_AGAIN_MS;
    kept_wake(k);
}

static void kept_entry_drop(struct kept *k, struct kept_entry *t)
{
    if (!t->on_disk && !t->in_job) {
        kept_entry_free(k, t);
        return;
    }
    t->dirty = false;
    t->dropped = true;
    t->due_ms = clock_mono_ms() + KEPT_FIRST_MS;
}

void kept_drop(struct kept *k, const char *name)
{
    struct kept_entry *t = kept_find(k, name);

    if (t == NULL)
        return;
    kept_entry_drop(k, t);
    kept_wake(k);
}

void kept_sweep(struct kept *k, bool (*wanted)(const char *name, void *arg))
{
    struct kept_entry *t, *tmp;

    k->wanted = wanted;
    if (!k->loaded)
        return; /* deferred until the files were read */
    HASH_ITER (hh, k->entries, t, tmp)
        if (!wanted(t->name, k->o.arg))
            kept_entry_drop(k, t);
    kept_wake(k);
}

/* ---- for `coracle explain` ---- */

static const char *kept_seal_text(const struct kept *k)
{
    switch (k->seal) {
    case KEPT_SEAL_UNKNOWN:
        return "not read yet";
    case KEPT_SEAL_NONE:
        return "nothing secret among them yet";
    case KEPT_SEAL_ROOT:
        return "Secrets are sealed with a key that only root may read, in the same folder";
    case KEPT_SEAL_TPM:
        return "Secrets are sealed with a key that only this machine's TPM gives";
    }
    return "";
}

json_t *kept_explain(const struct kept *k)
{
    const char *trouble = k->key_trouble != NULL ? k->key_trouble : k->save_trouble;
    const struct kept_entry *t;
    size_t n = 0;
    json_t *o = json_object();

    for (t = k->entries; t != NULL; t = t->hh.next)
        n += t->on_disk && !t->dropped;
    json_put_str(o, "state", trouble != NULL ? "failed" : "done");
    json_object_set_new(o, "detail",
                        trouble != NULL
                            ? json_sprintf("%zu on the disk; %s; %.400s", n, kept_seal_text(k), trouble)
                            : json_sprintf("%zu on the disk; %s", n, kept_seal_text(k)));
    return o;
}

/* ---- life ---- */

enum err_code kept_open(struct kept **ret, const struct kept_options *o, struct err *e)
{
    struct kept *k = calloc(1, sizeof(*k));

    if (k == NULL)
        return err_nomem(e);
    k->o = *o;
    buf_init(&k->tpm, KEPT_TPM_MAX);
    uv_timer_init(o->loop, &k->timer);
    k->timer.data = k;
    k->open_handles = 1;
    *ret = k;
    return ERR_OK;
}

static void kept_on_closed(uv_handle_t *handle)
{
    struct kept *k = handle->data;

    k->open_handles--;
}

void kept_close(struct kept *k)
{
    if (k == NULL || k->closing)
        return;
    k->closing = true;
    uv_close((uv_handle_t *)&k->timer, kept_on_closed);
    if (op_live(&k->proc.op))
        proc_cancel(&k->proc);
}

bool kept_busy(const struct kept *k)
{
    return k != NULL && (k->open_handles > 0 || op_live(&k->proc.op) || op_live(&k->work.op));
}

void kept_free(struct kept *k)
{
    struct kept_entry *t, *tmp;

    if (k == NULL)
        return;
    HASH_ITER (hh, k->entries, t, tmp)
        kept_entry_free(k, t);
    kept_job_done(k);
    strs_done(&k->files);
    buf_done(&k->tpm);
    explicit_bzero(k->key, sizeof(k->key));
    free(k->key_trouble);
    free(k->save_trouble);
    free(k);
}
