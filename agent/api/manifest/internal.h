/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal - declarations shared by agent/api/manifest: defaults, the validation passes, ConfigMap and
 * Secret.
 *
 * A manifest becomes an object in four steps. defaults.c fills in defaults that depend on other fields; the
 * walker (schema.c) checks names, types, ranges and formats against the tables, adds the fixed defaults to
 * the JSON and copies fields with a slot to the structs; defaults.c completes resources; validate_*.c checks
 * rules across fields. Every step continues after a problem, so that all problems are reported together;
 * structs may therefore hold NULL for invalid fields.
 */
#ifndef AGENT_API_MANIFEST_INTERNAL_H
#define AGENT_API_MANIFEST_INTERNAL_H
#include "agent/api/manifest/decode.h"
#include "agent/api/resources.h"
#include "agent/api/schema/schema.h"
#include "base/buf.h"

#include <jansson.h>

struct api_pv;

/* ---- defaults that depend on other fields (defaults.c) ---- */
void api_defaults_before(struct api_check *c, json_t *pod);                        /* before the walk */
void api_defaults_after(struct api_check *c, json_t *object, struct api_pod *pod); /* after it */

/* ---- validation (validate_*.c): cross-field rules ---- */
void api_validate_meta(struct api_check *c, const struct api_meta *meta);
void api_validate_kvs(struct api_check *c, const char *field, const struct api_kvs *m, enum api_format value);
void api_validate_pod(struct api_check *c, const struct api_pod *pod, const json_t *object);
void api_validate_containers(struct api_check *c, const struct api_pod_spec *spec, const json_t *json);
void api_validate_volumes(struct api_check *c, const struct api_pod_spec *spec);
void api_validate_storage(struct api_check *c, const struct api_storage *s, bool of_pod);
void api_validate_access_modes(struct api_check *c, const json_t *modes);
void api_validate_pv(struct api_check *c, const struct api_pv *pv, const json_t *spec); /* inside its spec */
void api_validate_trust(struct api_check *c, const struct api_payload_source *s); /* a clusterTrustBundle */
void api_validate_probes(struct api_check *c, const struct api_container *container, const json_t *object,
                         bool init, int64_t grace_seconds);
void api_validate_env(struct api_check *c, const struct api_pod_spec *spec,
                      const struct api_container *container);
void api_validate_field_ref(struct api_check *c, const struct api_field_ref *ref, bool volume);
void api_validate_resource_field_ref(struct api_check *c, const struct api_resource_field_ref *ref,
                                     bool volume);
void api_validate_pod_security(struct api_check *c, const struct api_pod_spec *spec, const json_t *security);
void api_validate_security(struct api_check *c, const struct api_container *container, const json_t *security,
                           const struct api_pod_spec *spec);
void api_validate_apparmor_name(struct api_check *c, const char *name); /* not empty */
#define API_APPARMOR_OF                                                                                      \
    "container.apparmor.security.beta.kubernetes.io/" /* followed by a container's name                      \
                                                       */
void api_validate_annotations(struct api_check *c, const struct api_pod *pod);
void api_validate_scheduling(struct api_check *c, const json_t *spec);
void api_validate_service(struct api_check *c, const struct api_meta *meta, const json_t *spec);
void api_validate_claim(struct api_check *c, const json_t *spec); /* inside the claim's spec */
/* ---- validate_selector.c: at the path of the selector ---- */
/* False: it is not valid, and cannot be matched. */
bool api_validate_selector(struct api_check *c, const json_t *selector);
/* Inside the spec: whether the selector selects the labels of the template, also those that are not valid.
 * NULL selects nothing. */
void api_validate_selected(struct api_check *c, const struct api_label_selector *selector,
                           const json_t *template_);
/* ---- validate_workload.c: Deployment, ReplicaSet, StatefulSet, DaemonSet, inside the spec ---- */
void api_validate_workload(struct api_check *c, enum api_kind kind, const struct api_generic *o,
                           const json_t *spec);
void api_validate_set_name(struct api_check *c, const struct api_meta *meta);          /* of a StatefulSet */
void api_validate_host_name(struct api_check *c, const char *field, const char *name); /* NULL is fine */
/* ---- validate_job.c ---- */
void api_job_defaults(struct api_check *c, json_t *spec); /* before the walk */
void api_validate_job(struct api_check *c, const struct api_generic *job, const json_t *spec,
                      bool of_cron_job);                                      /* inside its spec */
void api_validate_cron_job(struct api_check *c, const struct api_generic *o); /* likewise */
/* At the whole object: names, and labels made of them. */
void api_validate_job_name(struct api_check *c, const struct api_generic *job, const json_t *object);
void api_validate_cron_job_name(struct api_check *c, const struct api_meta *meta);
void api_lint_pod(struct api_check *c, const struct api_pod *pod); /* c->lint is set */

/* build.c: fills the reference of the kind. False: it has problems (reported), or memory ran out (noted in
 * c). */
bool api_build_object(struct api_check *c, enum api_kind kind, json_t *object, struct api_object *ret);
/* ---- build.c: the beginning and the end of each object ---- */
struct api_layout { /* of a kind's struct: its size, and offsets of the members that every kind has */
    size_t size, arena, refs, origin;
};
#define API_LAYOUT(type)                                                                                     \
    (const struct api_layout)                                                                                \
    {                                                                                                        \
        .size = sizeof(type), .arena = offsetof(type, arena), .refs = offsetof(type, refs),                  \
        .origin = offsetof(type, origin)                                                                     \
    }
struct api_building {
    struct arena *outer; /* of the object around it; NULL: none */
    size_t faults;       /* before it */
};
/* An empty struct with one reference, whose arena is the one of c until api_end(). NULL: no memory (noted in
 * c), and api_end() is not called. */
void *api_begin(struct api_check *c, struct api_building *b, const struct api_layout *l);
bool api_is_good(const struct api_check *c, const struct api_building *b); /* no problems so far */
bool api_end(struct api_check *c, const struct api_building *b);           /* api_is_good() at the end */

/* build.c: `object` along `schema`, as a pod; NULL: it has problems (reported), or memory ran out (noted in
 * c). */
struct api_pod *api_build_pod(struct api_check *c, const struct api_schema *schema, json_t *object);
struct arena *api_object_arena(const struct api_object *o);     /* object.c; borrowed */
char *api_keep_json(struct api_check *c, const json_t *object); /* in the arena; NULL: no memory */
void api_keep_ignored(struct api_check *c, struct api_strs *ret);
/* generic.c: likewise */
struct api_generic *api_build_generic(struct api_check *c, enum api_kind kind, json_t *object);

/* decode.c: another version of a pod of this node, of the same origin: a new reference. ERR_INVALID: the
 * first problem, and its field. */
enum err_code api_pod_remake(const struct api_pod *pod, const json_t *object, struct api_pod **ret,
                             struct err *e) MUST_CHECK;

/* Decodes one object of any kind; `object` is modified. ERR_INVALID: how->problems say why. */
enum err_code api_decode_one(struct api_check *how, json_t *object, struct api_object *ret,
                             struct err *e) MUST_CHECK;

/* ---- static.c: kubelet's additions to a pod of the manifest folder ---- */
void api_make_static(struct api_check *c, json_t *pod); /* c->static_node is set; before the walk */

/* ---- served.c: members that only a pod of the apiserver has ---- */
void api_take_served(struct api_check *c, json_t *object, struct api_pod *pod); /* before the walk */

/* ---- ConfigMap, Secret (config.c) ---- */
/* Checks and fills `config`, whose arena and kind are set. */
void api_build_config(struct api_check *c, struct api_config *config, json_t *object);
/* Go's standard base64: line ends are ignored, padding is required. False: invalid. */
bool api_base64(const char *text, size_t n, unsigned char *out, size_t *ret_n);
#endif
