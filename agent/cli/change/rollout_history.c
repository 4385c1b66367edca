/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `coracle rollout history` and `undo`: the revisions that the node keeps of a workload, and the way back to
 * one, as kubectl's polymorphichelpers have it.
 */
#include "agent/cli/change/internal.h"

#include <stdlib.h>
#include <string.h>

#define ANNOTATION "deployment.kubernetes.io/revision"
#define HASH "pod-template-hash"

struct revisions {
    json_t **v; /* borrowed from `all`; by number */
    size_t n;
    json_t *all;
};

static int64_t number_of(const json_t *revision)
{
    const json_t *text = json_object_get(cli_at(revision, "metadata.annotations"), ANNOTATION);

    return text != NULL ? strtoll(json_string_value(text), NULL, 10) : cli_number(revision, "revision");
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = number_of(*(json_t *const *)a), y = number_of(*(json_t *const *)b);

    return (x > y) - (x < y);
}

static void revisions_done(struct revisions *r)
{
    free(r->v);
    json_decref(r->all);
}

static int revisions_get(struct cli *cli, const struct cli_target *t, const json_t *live,
                         struct revisions *ret)
{
    const struct api_kind_row *kind =
        &api_kinds[t->kind->id == API_KIND_DEPLOYMENT ? API_KIND_REPLICA_SET : API_KIND_CONTROLLER_REVISION];
    const char *uid = cli_text(live, "metadata.uid");
    int code = EXIT_OK;
    json_t *one;
    size_t i;

    *ret = (struct revisions){ .all = cli_get_all(cli, kind, t->namespace_, NULL, &code) };
    if (ret->all == NULL)
        return code;
    ret->v = calloc(json_array_size(ret->all) + 1, sizeof(json_t *));
    if (ret->v == NULL) {
        revisions_done(ret);
        return cli_error(cli, "out of memory");
    }
    json_array_foreach (ret->all, i, one)
        if (strcmp(cli_text(json_array_get(cli_at(one, "metadata.ownerReferences"), 0), "uid"), uid) == 0 &&
            number_of(one) > 0)
            ret->v[ret->n++] = one;
    qsort(ret->v, ret->n, sizeof(json_t *), by_number);
    return EXIT_OK;
}

/* Without what makes it the template of a revision. NULL: out of memory. */
static json_t *template_of(const json_t *object)
{
    const json_t *in_data = cli_at(object, "data.spec.template");
    json_t *copy = json_deep_copy(in_data != NULL ? in_data : cli_at(object, "spec.template"));

    json_object_del(copy, "$patch");
    json_object_del(cli_at(copy, "metadata.labels"), HASH);
    return copy;
}

/* ---- history ---- */

static int show_one(struct cli *cli, const struct cli_target *t, const struct revisions *r, int64_t number)
{
    char name[CLI_FULL_NAME_SIZE];
    json_auto_t *template_ = NULL;

    for (size_t i = 0; i < r->n && template_ == NULL; i++)
        if (number_of(r->v[i]) == number)
            template_ = template_of(r->v[i]);
    if (template_ == NULL)
        return cli_error(cli, "unable to find the specified revision");
    cli_full_name(t->kind, t->name, name);
    cli_print(cli, "%s with revision #%lld\n", name, (long long)number);
    return cli_print_value(cli, template_, "yaml");
}

int rollout_history(struct cli *cli, const struct cli_target *t, int64_t number)
{
    int code;
    json_auto_t *live = cli_get_one(cli, t->kind, t->namespace_, t->name, &code);
    char name[CLI_FULL_NAME_SIZE];
    struct revisions r;

    if (live == NULL || (code = revisions_get(cli, t, live, &r)) != EXIT_OK)
        return code;
    if (number > 0) {
        code = show_one(cli, t, &r, number);
    } else {
        cli_full_name(t->kind, t->name, name);
        cli_print(cli, "%s\n", name);
        cli_print(cli, "%-8s  %s\n", "REVISION", "CHANGE-CAUSE");
        for (size_t i = 0; i < r.n; i++) {
            const char *cause = json_string_value(
                json_object_get(cli_at(r.v[i], "metadata.annotations"), "kubernetes.io/change-cause"));

            cli_print(cli, "%-8lld  %s\n", (long long)number_of(r.v[i]), cause != NULL ? cause : "<none>");
        }
    }
    revisions_done(&r);
    return code;
}

/* ---- undo ---- */

struct undo {
    int64_t to; /* 0: the one before */
    bool same;  /* its template is in force */
};

/* NULL: there is none. */
static const json_t *choose(const struct revisions *r, int64_t to)
{
    for (size_t i = 0; to > 0 && i < r->n; i++)
        if (number_of(r->v[i]) == to)
            return r->v[i];
    return to == 0 && r->n > 1 ? r->v[r->n - 2] : NULL;
}

/* A Deployment gets the cause of the change back, too; what tools keep in it stays. */
static bool take_cause(json_t *made, const json_t *revision)
{
    static const char cause[] = "kubernetes.io/change-cause";
    json_t *then = json_object_get(cli_at(revision, "metadata.annotations"), cause),
           *now = cli_at(made, "metadata.annotations");

    if (then == NULL) {
        json_object_del(now, cause);
        return true;
    }
    return now != NULL ? json_object_set(now, cause, then) == 0
                       : json_object_set_new(json_object_get(made, "metadata"), "annotations",
                                             json_pack("{s:O}", cause, then)) == 0;
}

static int make_object(struct cli *cli, const struct change *c, const json_t *live, json_t **ret)
{
    struct undo *u = c->arg;
    json_auto_t *made = json_deep_copy(live), *template_ = NULL;
    struct revisions r;
    const json_t *found;
    int code = revisions_get(cli, c->target, live, &r);

    if (code != EXIT_OK)
        return code;
    found = choose(&r, u->to);
    template_ = found != NULL ? template_of(found) : NULL;
    u->same = template_ != NULL && json_equal(template_, cli_at(live, "spec.template"));
    if (cli_true(live, "spec.paused"))
        code = cli_error(cli,
                         "cannot rollback a paused deployment; resume it first with 'coracle rollout resume' "
                         "and try again");
    else if (found == NULL && u->to > 0)
        code = cli_error(cli, "unable to find specified revision %lld in history", (long long)u->to);
    else if (found == NULL)
        code = cli_error(cli, "no rollout history found for %s \"%s\"", c->target->kind->singular,
                         c->target->name);
    else if (template_ == NULL || made == NULL ||
             (c->target->kind->id == API_KIND_DEPLOYMENT && !take_cause(made, found)) ||
             json_object_set(cli_at(made, "spec"), "template", template_) != 0)
        code = cli_error(cli, "out of memory");
    if (code == EXIT_OK && !u->same)
        *ret = json_incref(made);
    revisions_done(&r);
    return code;
}

int rollout_undo(struct cli *cli, const struct cli_target *t, int64_t to, bool dry, const char *note)
{
    struct undo u = { .to = to };
    const struct change c = { .target = t, .dry = dry, .whole = true, .make = make_object, .arg = &u };
    char name[CLI_FULL_NAME_SIZE];
    const int code = change_object(cli, &c, NULL, NULL);

    cli_full_name(t->kind, t->name, name);
    if (code == EXIT_OK && u.same)
        cli_print(cli, "%s skipped rollback (current template already matches revision %lld)\n", name,
                  (long long)to);
    else if (code == EXIT_OK)
        cli_print(cli, "%s rolled back%s\n", name, note);
    return code;
}
