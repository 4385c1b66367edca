/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store - the single store of desired state. Sources put and remove objects; users do not see whether they
 * come from a file or an apiserver. Keyed by origin, kind, namespace, name: objects that a pod refers to are
 * looked up in the pod's own source, so a file never replaces a Secret of the cluster, nor the cluster an
 * object of a file.
 *
 * Only objects that pods refer to are requested from the apiserver. Until it has answered, an object of that
 * origin is unknown, not absent. Loop thread only.
 */
#ifndef AGENT_SOURCE_STORE_H
#define AGENT_SOURCE_STORE_H
#include "agent/api/manifest/decode.h"
#include "base/presence.h"

struct src_store;

enum src_change { SRC_ADDED, SRC_UPDATED, SRC_REMOVED };

/* Called on the loop after a change; `object` is the new one, or for SRC_REMOVED the old one. */
typedef void (*src_watch_fn)(enum src_change change, const struct api_object *object, void *arg);

struct src_store *src_store_new(void); /* NULL: no memory */
void src_store_free(struct src_store *s);
/* Up to SRC_WATCHERS_MAX watchers; they cannot be removed. */
#define SRC_WATCHERS_MAX 8
void src_store_watch(struct src_store *s, src_watch_fn fn, void *arg);

/* Takes its own reference. Equal content (same json/data) is not a change. */
enum err_code src_store_put(struct src_store *s, const struct api_object *object, struct err *e) MUST_CHECK;
void src_store_remove(struct src_store *s, enum api_origin origin, enum api_kind kind, const char *namespace_,
                      const char *name);

/* Records the apiserver's answer about a ConfigMap or Secret. `refused` NULL: the apiserver provably has no
 * such object, and the store's is removed. Otherwise the text of its refusal: the store's object stays.
 * Watchers are notified of a removal only. */
void src_store_lacks(struct src_store *s, enum api_config_kind kind, const char *namespace_, const char *name,
                     const char *refused);
/* Called when no pod refers to the object any more: it becomes unknown. Watchers are not notified. */
void src_store_forget(struct src_store *s, enum api_config_kind kind, const char *namespace_,
                      const char *name);

/* Borrowed until the next change; NULL if absent. */
struct api_pod *src_store_pod(const struct src_store *s, enum api_origin origin, const char *namespace_,
                              const char *name);
/* NULL if absent, or unknown. */
struct api_config *src_store_config(const struct src_store *s, enum api_origin origin,
                                    enum api_config_kind kind, const char *namespace_, const char *name);
/* Whether the object exists; if unknown, *e has the cause of the wait. */
struct presence src_store_look_config(const struct src_store *s, enum api_origin origin,
                                      enum api_config_kind kind, const char *namespace_, const char *name,
                                      struct err *e) MUST_CHECK;
struct api_priority_class *src_store_priority_class(const struct src_store *s, const char *name);
/* The class with globalDefault (the smallest value if several), or NULL. */
struct api_priority_class *src_store_default_priority(const struct src_store *s);
/* NULL if absent, or unknown. */
struct api_runtime_class *src_store_runtime_class(const struct src_store *s, enum api_origin origin,
                                                  const char *name);
/* An object of a kind for which api_kind_is_generic() is true; NULL if absent. */
struct api_generic *src_store_generic(const struct src_store *s, enum api_origin origin, enum api_kind kind,
                                      const char *namespace_, const char *name);
/* Whether the two are equal for every reader. */
bool src_object_equal(const struct api_object *a, const struct api_object *b);
void src_store_each(const struct src_store *s, enum api_kind kind,
                    void (*fn)(const struct api_object *o, void *arg), void *arg);
/* All sources have delivered their first set (orphans may be removed only then). The folder is always one,
 * the apiserver after src_store_expect_server(). */
bool src_store_ready(const struct src_store *s);
void src_store_expect_server(struct src_store *s);
/* Does not call watchers; see src_folder's first_set. */
void src_store_set_ready(struct src_store *s, enum api_origin origin);
#endif
