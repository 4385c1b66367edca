/* SPDX-License-Identifier: Apache-2.0 */
/* health - /healthz, /livez and /readyz, whole or one check of them, as apiservers answer. */
#include "agent/kube/apiserver/internal.h"

#include "base/scope.h"

#include <string.h>

struct check {
    const char *name;
    bool readyz; /* not a check of /livez and /healthz */
    bool (*fine)(const struct kube_api *a);
};

static bool ping(const struct kube_api *a)
{
    (void)a;
    return true;
}

/* The copy equals the daemon's objects. */
static bool objects(const struct kube_api *a)
{
    return a->ready && a->set_complete;
}

static const struct check checks[] = { { "ping", false, ping }, { "informer-sync", true, objects } };

bool api_is_health(const struct http_request *r)
{
    return r->n_segments >= 1 &&
           (strcmp(r->segments[0], "healthz") == 0 || strcmp(r->segments[0], "livez") == 0 ||
            strcmp(r->segments[0], "readyz") == 0);
}

static bool has_param(const struct http_request *r, const char *key, const char *value)
{
    for (size_t i = 0; i < r->n_params; i++)
        if (strcmp(r->params[i].key, key) == 0 && (value == NULL || strcmp(r->params[i].value, value) == 0))
            return true;
    return false;
}

void api_health(struct kube_api *a, struct caller *c)
{
    const struct http_request *r = &c->parser.request;
    const bool readyz = strcmp(r->segments[0], "readyz") == 0;
    const char *only = r->n_segments == 2 ? r->segments[1] : NULL;
    bool known = only == NULL && r->n_segments == 1, fine = true;
    buf_auto text = BUF_INIT(4096);

    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        const bool excluded = has_param(r, "exclude", checks[i].name);
        const bool good = excluded || checks[i].fine(a);

        if ((checks[i].readyz && !readyz) || (only != NULL && strcmp(only, checks[i].name) != 0))
            continue;
        known = true;
        fine &= good;
        buf_addf(&text, "[%c]%s %s\n", good ? '+' : '-', checks[i].name,
                 excluded ? "excluded: ok"
                 : good   ? "ok"
                          : "failed: reason withheld");
    }
    if (!known)
        api_answer_status(
            c, api_status(404, "NotFound", NULL, "the server could not find the requested resource"));
    else if (!fine || (only == NULL && has_param(r, "verbose", NULL))) {
        buf_addf(&text, "%s check %s\n", r->segments[0], fine ? "passed" : "failed");
        caller_text(c, fine ? 200 : 500, text.p);
    } else {
        caller_text(c, 200, "ok");
    }
}
