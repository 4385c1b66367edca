/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/decide/event_correlate.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/codec/json.h"
#include "base/scope.h"
#include "base/siphash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct event_group { /* texts of one object, reason and type */
    struct event_lru_entry entry;
    uint64_t texts[EVENT_SIMILAR];
    size_t n;
    int64_t last_ns; /* boot clock; 0: new */
};

struct event_sent {
    struct event_lru_entry entry;
    json_int_t count;
    char *name, *first; /* as the apiserver has it */
};

struct event_sender {
    struct event_lru_entry entry;
    double tokens;
    int64_t filled_ns; /* boot clock; 0: new */
};

static void event_sent_drop(struct event_lru_entry *e)
{
    struct event_sent *s = container_of(e, struct event_sent, entry);

    free(s->name);
    free(s->first);
}

void event_correlator_init(struct event_correlator *c)
{
    event_lru_init(&c->groups, sizeof(struct event_group), NULL);
    event_lru_init(&c->sent, sizeof(struct event_sent), event_sent_drop);
    event_lru_init(&c->senders, sizeof(struct event_sender), NULL);
}

void event_correlator_done(struct event_correlator *c)
{
    event_lru_done(&c->groups);
    event_lru_done(&c->sent);
    event_lru_done(&c->senders);
}

/* ---- the object ---- */

json_t *event_object(const json_t *said, const char *node, int64_t now_ns)
{
    const json_t *about = json_object_get(said, "involvedObject");
    const char *namespace_ = json_str(about, "namespace"), *name = json_str(about, "name"),
               *type = json_str(said, "type"), *message = json_str(said, "message"),
               *annotations_key = "annotations";
    json_t *annotations = json_object_get(json_object_get(said, "metadata"), annotations_key);
    char at[CLOCK_RFC3339_SIZE], event_name[320];

    if (name == NULL || json_str(said, "reason") == NULL)
        return NULL;
    clock_format_s(now_ns, at);
    snprintf(event_name, sizeof(event_name), "%.253s.%" PRIx64, name, (uint64_t)now_ns);
    return json_pack(
        "{s:s, s:s, s:{s:s, s:s, s:O*}, s:O, s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:i, s:s, s:n, s:s, s:s}",
        "kind", "Event", "apiVersion", "v1", "metadata", "name", event_name, "namespace",
        namespace_ != NULL ? namespace_ : "default", annotations_key, annotations, "involvedObject", about,
        "reason", json_str(said, "reason"), "message", message != NULL ? message : "", "source", "component",
        "kubelet", "host", node, "firstTimestamp", at, "lastTimestamp", at, "count", 1, "type",
        type != NULL ? type : "Normal", "eventTime", "reportingComponent", "kubelet", "reportingInstance",
        node);
}

/* ---- keys ---- */

static uint64_t event_key_part(uint64_t hash, const char *text)
{
    return siphash_part(hash, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 1);
}

/* Of the object and the type; its source is always this node. */
static uint64_t event_key(const json_t *event)
{
    static const char *const parts[] = { "kind", "namespace", "name", "uid", "apiVersion" };
    const json_t *about = json_object_get(event, "involvedObject");
    uint64_t hash = 0;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        hash = event_key_part(hash, json_str(about, parts[i]));
    return event_key_part(hash, json_str(event, "type"));
}

/* ---- the three steps ---- */

static bool is_one_of_many(struct event_correlator *c, uint64_t key, const char *message, int64_t boot_ns)
{
    struct event_group *g = event_lru_make(&c->groups, key);
    uint64_t text = event_key_part(0, message);

    if (g == NULL)
        return false;
    if (g->last_ns != 0 && boot_ns - g->last_ns > EVENT_SIMILAR_NS)
        g->n = 0;
    g->last_ns = boot_ns;
    for (size_t i = 0; i < g->n; i++)
        if (g->texts[i] == text)
            return g->n >= EVENT_SIMILAR;
    if (g->n + 1 < EVENT_SIMILAR) {
        g->texts[g->n++] = text;
        return false;
    }
    return true; /* the set does not grow past the limit */
}

static void event_count(struct event_correlator *c, struct event_verdict *v)
{
    struct event_sent *s = event_lru_make(&c->sent, v->key);

    if (s == NULL)
        return;
    s->count++;
    if (s->count == 1 || s->name == NULL)
        return;
    v->is_patch = true;
    json_object_set_new(json_object_get(v->event, "metadata"), "name", json_string(s->name));
    json_object_set_new(v->event, "firstTimestamp", json_string(s->first));
    json_object_set_new(v->event, "count", json_integer(s->count));
    v->patch = json_pack("{s:I, s:O, s:O}", "count", s->count, "lastTimestamp",
                         json_object_get(v->event, "lastTimestamp"), "message",
                         json_object_get(v->event, "message"));
}

static bool is_spam(struct event_correlator *c, uint64_t key, int64_t boot_ns)
{
    struct event_sender *s = event_lru_make(&c->senders, key);

    if (s == NULL)
        return false;
    if (s->filled_ns == 0)
        s->tokens = EVENT_SPAM_BURST;
    else
        s->tokens += (double)(boot_ns - s->filled_ns) / (double)EVENT_SPAM_NS;
    if (s->tokens > EVENT_SPAM_BURST)
        s->tokens = EVENT_SPAM_BURST;
    s->filled_ns = boot_ns;
    if (s->tokens < 1)
        return true;
    s->tokens -= 1;
    return false;
}

struct event_verdict event_correlate(struct event_correlator *c, const json_t *event, int64_t now_ns,
                                     int64_t boot_ns)
{
    const char *message = json_str(event, "message");
    uint64_t sender = event_key(event), group = event_key_part(sender, json_str(event, "reason"));
    struct event_verdict v = { .event = json_deep_copy(event) };
    str_auto combined = NULL;

    (void)now_ns;
    if (v.event == NULL) {
        v.dropped = true;
        return v;
    }
    if (is_one_of_many(c, group, message, boot_ns)) {
        combined = str_printf("%s%s", EVENT_COMBINED, message);
        v.key = group;
        if (combined != NULL)
            json_object_set_new(v.event, "message", json_string(combined));
    } else {
        v.key = event_key_part(
            event_key_part(group, json_str(json_object_get(event, "involvedObject"), "fieldPath")), message);
    }
    event_count(c, &v);
    if (is_spam(c, sender, boot_ns)) {
        event_verdict_done(&v);
        v.dropped = true;
    }
    return v;
}

void event_correlate_sent(struct event_correlator *c, uint64_t key, const json_t *object)
{
    struct event_sent *s = event_lru_get(&c->sent, key);
    const char *name = json_str(json_object_get(object, "metadata"), "name"),
               *first = json_str(object, "firstTimestamp");
    char *n = name != NULL ? strdup(name) : NULL, *f = first != NULL ? strdup(first) : NULL;

    if (s == NULL || n == NULL || f == NULL) {
        free(n);
        free(f);
        return;
    }
    free(s->name);
    free(s->first);
    s->name = n;
    s->first = f;
}

void event_verdict_done(struct event_verdict *v)
{
    json_decref(v->event);
    json_decref(v->patch);
    v->event = v->patch = NULL;
}
