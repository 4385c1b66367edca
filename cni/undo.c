/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/undo.h"

#include "base/codec/json.h"
#include "base/files/fs.h"
#include "base/log.h"
#include "base/scope.h"
#include "cni/host/hoststate.h"
#include "cni/host/nft.h"
#include "cni/host/scaffold.h"
#include "cni/internal.h"

#include <string.h>

#define FILE_NAME "undo.json"
#define FILE_MAX (1024 * 1024) /* a host with thousands of links and chains */
#define KIND "cniUndo"

/* ---- the record ---- */

/* The record of this boot; *ret NULL: none, or a damaged one or one of an earlier boot. */
static enum err_code undo_load(const struct cni *c, json_t **ret, struct err *e)
{
    json_auto_t *record = NULL;
    str_auto text = NULL;
    struct err bad = { 0 };
    size_t n;

    *ret = NULL;
    if (fs_read_at(c->cache_fd, FILE_NAME, FILE_MAX, &text, &n, &bad) != ERR_OK) {
        if (bad.code == ERR_NOT_FOUND)
            return ERR_OK;
        *e = bad;
        return err_wrap(e, "CNI undo record");
    }
    if (json_parse(text, n, FILE_MAX, &record, FILE_NAME, &bad) == ERR_OK &&
        str_eq(json_str(record, "kind"), KIND) && str_eq(json_str(record, "bootId"), c->boot_id))
        *ret = take_ptr(&record);
    return ERR_OK;
}

static enum err_code undo_to_json(const struct strs *list, json_t *record, const char *key, struct err *e)
{
    json_auto_t *v = json_array();

    for (size_t i = 0; i < list->n && v != NULL; i++) {
        if (json_array_append_new(v, json_string(list->v[i])) < 0)
            return err_nomem(e);
    }
    return v == NULL || json_object_set(record, key, v) < 0 ? err_nomem(e) : ERR_OK;
}

static enum err_code from_json(const json_t *record, const char *key, struct strs *ret, struct err *e)
{
    const json_t *v;
    size_t i;

    json_array_foreach (json_object_get(record, key), i, v) {
        if (json_is_string(v) && !strs_add(ret, json_string_value(v)))
            return err_nomem(e);
    }
    return ERR_OK;
}

bool cni_undo_link_existed(const struct cni *c, const char *name)
{
    json_auto_t *record = NULL;
    struct err e = { 0 };

    if (undo_load(c, &record, &e) != ERR_OK) {
        log_debug("CNI undo record not readable", F_ERR(&e));
        return true; /* keeping a link is better than removing a foreign one */
    }
    return json_has(json_object_get(record, "links"), name);
}

/* The parts that need no child; then writes the file. */
static enum err_code record_rest(struct cni_undo *u, struct err *e)
{
    json_auto_t *links = cni_hoststate_links(e);
    json_auto_t *sysctls = links != NULL ? cni_hoststate_sysctls(e) : NULL;
    struct strs nft = { 0 };
    str_auto text = NULL;
    enum err_code code;

    if (sysctls == NULL)
        return e->code;
    code = cni_nft_list(&nft, e);
    if (code == ERR_OK)
        code = undo_to_json(&nft, u->record, "nft", e);
    strs_done(&nft);
    if (code != ERR_OK)
        return e->code;
    if (!json_put_str(u->record, "kind", KIND) || !json_put_str(u->record, "bootId", u->c->boot_id) ||
        json_object_set(u->record, "links", links) < 0 || json_object_set(u->record, "sysctls", sysctls) < 0)
        return err_nomem(e);
    text = json_text(u->record);
    if (text == NULL)
        return err_nomem(e);
    return fs_replace_at(u->c->cache_fd, FILE_NAME, text, strlen(text), 0600, true, e);
}

/* ---- iptables ---- */

/* A failure does not stop undoing, but it stops recording. */
static void undo_note(struct cni_undo *u, const struct err *e)
{
    if (u->first.code == ERR_OK)
        u->first = *e;
}

static void undo_end(struct cni_undo *u)
{
    json_decref(u->record);
    u->record = NULL;
    if (u->first.code != ERR_OK)
        err_wrap(&u->first, u->undoing ? "undo changes of CNI plugins" : "record the network's state");
    op_finish(&u->op, u->first.code != ERR_OK ? &u->first : NULL);
}

static enum err_code record_chains(struct cni_undo *u, const char *family, const char *save, struct err *e)
{
    struct strs found = { 0 };
    enum err_code code = cni_scaffold_find(save, &found, e);

    if (code == ERR_OK)
        code = undo_to_json(&found, u->record, family, e);
    strs_done(&found);
    return code;
}

static enum err_code removal(struct cni_undo *u, const char *family, const char *save, struct buf *ret,
                             struct err *e)
{
    struct strs before = { 0 };
    enum err_code code = from_json(u->record, family, &before, e);

    if (code == ERR_OK)
        code = cni_scaffold_removal(save, &before, cni_hoststate_link_exists, ret, e);
    strs_done(&before);
    return code;
}

static enum err_code undo_edit(void *arg, const char *family, const char *save, struct buf *script,
                               struct err *e)
{
    struct cni_undo *u = arg;

    return u->undoing ? removal(u, family, save, script, e) : record_chains(u, family, save, e);
}

/* ---- the operation ---- */

static void undo_rest(struct cni_undo *u)
{
    struct strs nft = { 0 };
    struct err e = { 0 };

    if (from_json(u->record, "nft", &nft, &e) != ERR_OK || cni_nft_remove_empty(&nft, &e) != ERR_OK)
        undo_note(u, &e);
    strs_done(&nft);
    e = (struct err){ 0 };
    if (cni_hoststate_restore(json_object_get(u->record, "sysctls"), &e) != ERR_OK)
        undo_note(u, &e);
    if (u->first.code == ERR_OK)
        fs_remove_quietly(u->c->cache_fd, FILE_NAME);
}

static void undo_on_rules_done(struct op *op, const struct err *result)
{
    struct cni_undo *u = op->owner;
    struct err e = { 0 };

    if (result->code != ERR_OK)
        undo_note(u, result);
    if (u->undoing && u->op.why.code == ERR_OK)
        undo_rest(u);
    else if (!u->undoing && u->first.code == ERR_OK && record_rest(u, &e) != ERR_OK)
        undo_note(u, &e);
    undo_end(u);
}

static void abort_undo(struct op *op)
{
    op_cancel(&container_of(op, struct cni_undo, op)->rules.op);
}

static void undo_start(struct cni_undo *u, struct cni *c, bool undoing, op_done_fn done, void *owner)
{
    const struct cni_iptables_spec rules = { .edit = undo_edit,
                                             .arg = u,
                                             .cgroup_fd = c->cgroup_fd,
                                             .cgroup_procs = c->cgroup_procs,
                                             .deadline_ms = CNI_UNDO_DEADLINE_MS };
    json_auto_t *record = NULL;
    struct err e = { 0 };

    *u = (struct cni_undo){ .c = c, .undoing = undoing };
    op_init(&u->op, c->loop, undoing ? "cni undo" : "cni undo record", 0, abort_undo, done, owner);
    if (undo_load(c, &record, &e) != ERR_OK)
        undo_note(u, &e);
    if (e.code != ERR_OK || undoing == (record == NULL)) {
        if (e.code == ERR_OK && undoing) /* of an earlier boot */
            fs_remove_quietly(c->cache_fd, FILE_NAME);
        undo_end(u);
        return;
    }
    u->record = undoing ? take_ptr(&record) : json_object();
    if (u->record == NULL) {
        err_nomem(&e);
        undo_note(u, &e);
        undo_end(u);
        return;
    }
    cni_iptables_start(&u->rules, c->loop, undoing ? "remove CNI's chains" : "list CNI's chains", NULL,
                       &rules, undo_on_rules_done, u);
}

void cni_undo_record_start(struct cni_undo *u, struct cni *c, op_done_fn done, void *owner)
{
    undo_start(u, c, false, done, owner);
}

void cni_undo_start(struct cni_undo *u, struct cni *c, op_done_fn done, void *owner)
{
    undo_start(u, c, true, done, owner);
}
