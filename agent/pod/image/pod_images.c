/* SPDX-License-Identifier: Apache-2.0 */
/* The images of a pod, each pulled once however many containers use it. */
#include "agent/pod/core/events.h"
#include "agent/pod/core/explain_step.h"
#include "agent/pod/core/facts.h"
#include "agent/pod/core/pod.h"
#include "agent/pod/core/pod_look.h"
#include "agent/pod/image/image_right.h"
#include "agent/pod/image/images.h"
#include "agent/pod/image/internal.h"
#include "agent/pod/image/pull_secrets.h"
#include "agent/runtime/mount/image_mount.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/log.h"

#include <string.h>

/* kubelet: 10 s doubled up to 300 s (BACKOFF_MAX_MS), from the last failed try */
#define BACKOFF_FIRST_MS 10000
#define MS INT64_C(1000000)
#define UNREAD_PATIENCE_NS (60 * INT64_C(1000000000))

struct pod_image *images_find(const struct pod *p, const char *reference)
{
    const struct pod_images *part = images_of(p);

    for (size_t i = 0; i < part->n_images; i++)
        if (strcmp(part->images[i]->reference, reference) == 0)
            return part->images[i];
    return NULL;
}

/* ---- the list ---- */

static void image_free(struct pod_image *i)
{
    img_unref(i->image);
    free(i->message);
    free(i);
}

static bool is_busy(const struct pod_image *i)
{
    return i->bringing || i->checking;
}

/* Frees it now, or when the operation in progress has finished. */
static void pod_images_drop(struct pod_image *i)
{
    if (!is_busy(i)) {
        image_free(i);
        return;
    }
    i->dropped = true;
    i->reference = NULL;
    images_of(i->pod)->images_dropped++;
    op_cancel(i->bringing ? &i->bring.op : &i->check.op);
}

bool images_free_dropped(struct pod_image *i)
{
    struct pod *p = i->pod;

    if (!i->dropped)
        return false;
    images_of(p)->images_dropped--;
    image_free(i);
    pod_wake(p, "image is not needed any more");
    return true;
}

void images_clear(struct pod *p)
{
    struct pod_images *part = images_of(p);

    for (size_t i = 0; i < part->n_images; i++)
        pod_images_drop(part->images[i]);
    part->n_images = 0;
    free(take_ptr(&part->images));
}

bool images_busy(const struct pod *p)
{
    const struct pod_images *part = images_of(p);

    for (size_t i = 0; i < part->n_images; i++)
        if (is_busy(part->images[i]))
            return true;
    return part->images_dropped > 0;
}

struct wanted { /* by a container, or as a volume */
    const char *reference;
    enum api_pull_policy policy;
};

static struct pod_image *find_in(struct pod_image *const *list, size_t n, const char *reference)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i]->reference, reference) == 0)
            return list[i];
    return NULL;
}

/* Puts the image into `list`, unless it is there: moved from p->images, or new; false when out of memory. */
static bool pod_images_place(struct pod *p, struct wanted w, struct pod_image **list, size_t *n)
{
    struct pod_images *part = images_of(p);
    struct pod_image *found = find_in(list, *n, w.reference);

    if (found != NULL) {
        if (w.policy < found->policy)
            found->policy = w.policy; /* Always takes precedence over IfNotPresent over Never */
        return true;
    }
    for (size_t i = 0; i < part->n_images && found == NULL; i++)
        if (strcmp(part->images[i]->reference, w.reference) == 0) {
            found = part->images[i];
            part->images[i] = part->images[--part->n_images];
        }
    if (found == NULL && (found = calloc(1, sizeof(*found))) == NULL)
        return false;
    found->pod = p;
    found->reference = w.reference;
    found->policy = w.policy;
    list[(*n)++] = found;
    return true;
}

enum err_code images_build(struct pod *p, struct err *e)
{
    struct pod_images *part = images_of(p);
    size_t most = p->n_ctrs + p->api->spec.n_volumes + 1, n = 0;
    struct pod_image **list = calloc(most, sizeof(struct pod_image *));
    bool room = list != NULL;

    for (size_t k = 0; room && k < p->n_ctrs; k++)
        room = pod_images_place(p, (struct wanted){ p->ctrs[k]->spec->image, p->ctrs[k]->spec->pull_policy },
                                list, &n);
    for (size_t k = 0; room && k < p->api->spec.n_volumes; k++) {
        const struct api_volume *v = &p->api->spec.volumes[k];
        if (v->kind == API_VOL_IMAGE && volumes_is_mounted(p, v->name))
            room = pod_images_place(p, (struct wanted){ v->image_reference, v->image_pull_policy }, list, &n);
    }
    if (room) {
        images_clear(p); /* the rest of the old ones */
        part->images = list;
        part->n_images = n;
        return ERR_OK;
    }
    /* Nothing may point to the old manifest any more: they are made again when there is memory. */
    images_clear(p);
    while (n > 0)
        pod_images_drop(list[--n]);
    free(list);
    return err_nomem(e);
}

/* ---- bringing ---- */

static void pod_images_say(struct pod_image *i, const char *reason, const char *message)
{
    snprintf(i->reason, sizeof(i->reason), "%s", reason);
    free(i->message);
    i->message = strdup(message);
    i->pull_failed = false;
}

/* The first container that uses it, because events name a container. NULL: only a volume, reported like in
 * kubelet. */
static const struct ctr *user_of(const struct pod_image *i)
{
    for (size_t k = 0; k < i->pod->n_ctrs; k++)
        if (strcmp(i->pod->ctrs[k]->spec->image, i->reference) == 0)
            return i->pod->ctrs[k];
    return NULL;
}

/* The CRI's name for the reason; "": none. */
static const char *failure_name(enum img_failure failure)
{
    switch (failure) {
    case IMG_FAILED:
        break;
    case IMG_REGISTRY_UNAVAILABLE:
        return "RegistryUnavailable";
    case IMG_SIGNATURE_REJECTED:
        return "SignatureValidationFailed";
    }
    return "";
}

/* Reason and message like kubelet's image manager. */
static void pod_images_say_failure(struct pod_image *i, const char *why)
{
    str_auto text = NULL;

    switch (i->bring.failure) {
    case IMG_FAILED:
        text = str_printf("failed to pull image \"%s\": %s", i->reference, why);
        break;
    case IMG_REGISTRY_UNAVAILABLE:
        text =
            str_printf("image pull failed for %s because the registry is unavailable: %s", i->reference, why);
        break;
    case IMG_SIGNATURE_REJECTED:
        text = str_printf("image pull failed for %s because the signature validation failed: %s",
                          i->reference, why);
        break;
    }
    pod_images_say(i, i->bring.failure == IMG_FAILED ? "ErrImagePull" : failure_name(i->bring.failure),
                   text != NULL ? text : why);
    i->pull_failed = true;
}

static void on_brought(struct op *op, const struct err *result)
{
    struct pod_image *i = op->owner;
    struct pod *p = i->pod;
    const struct ctr *c;

    i->bringing = false;
    if (images_free_dropped(i))
        return;
    c = user_of(i);
    if (result->code == ERR_OK) {
        i->image = img_ref(i->bring.image);
        i->pulled = true;
        i->reason[0] = '\0';
        i->backoff_ms = 0;
        pod_event(p, c, false, "Pulled",
                  "Successfully pulled image \"%s\" in %s (%s including waiting). Image size: %llu bytes.",
                  i->reference, duration_format_ms(i->bring.ran_ms).s,
                  duration_format_ms(clock_mono_ms() - i->pull_started_ms).s,
                  (unsigned long long)i->image->size_bytes);
    } else if (result->code != ERR_CANCELLED) {
        i->backoff_ms = backoff_next_ms(i->backoff_ms, BACKOFF_FIRST_MS, BACKOFF_MAX_MS);
        i->retry_at = clock_boot_in_ms(i->backoff_ms);
        pod_images_say_failure(i, result->text);
        log_warn("cannot pull image", F_STR("pod", p->key), F_STR("image", i->reference),
                 F_U64("retryMs", i->backoff_ms), F_ERR(result));
        pod_event(p, c, true, "Failed", "Failed to pull image \"%s\": %s%s%s", i->reference,
                  failure_name(i->bring.failure), i->bring.failure != IMG_FAILED ? ": " : "", result->text);
        pod_event(p, c, true, "Failed", "Error: %s", i->reason);
    }
    pod_wake(p, "image pull ended");
}

/* NULL: another kind of volume. */
static const struct api_volume *image_volume(const struct pod *p, const char *name)
{
    const struct api_volume *v = api_volume_find(&p->api->spec, name);

    return v != NULL && v->kind == API_VOL_IMAGE ? v : NULL;
}

static bool wants(const struct ctr *c, const char *reference)
{
    if (strcmp(c->spec->image, reference) == 0)
        return true;
    for (size_t i = 0; i < c->spec->n_mounts; i++) {
        const struct api_volume *v = image_volume(c->pod, c->spec->mounts[i].name);
        if (v != NULL && strcmp(v->image_reference, reference) == 0)
            return true;
    }
    return false;
}

bool images_ready(const struct ctr *c, const struct pod_image **ret_missing)
{
    const struct pod_image *i = images_find(c->pod, c->spec->image);

    for (size_t k = 0; k < c->spec->n_mounts && i != NULL && i->image != NULL; k++) {
        const struct api_volume *v = image_volume(c->pod, c->spec->mounts[k].name);
        if (v != NULL)
            i = images_find(c->pod, v->image_reference);
    }
    *ret_missing = i;
    return i != NULL && i->image != NULL;
}

/* Images are only pulled for containers that have to start: an adopted running pod contacts no registry. */
static bool is_needed(const struct pod_image *i)
{
    for (size_t k = 0; k < i->pod->n_ctrs; k++) {
        const struct ctr *c = i->pod->ctrs[k];
        if (wants(c, i->reference) && (c->replace || (c->state == CTR_NONE && ctr_restart_wanted(c))))
            return true;
    }
    return false;
}

/* After a restart of the agent: the mounted image is used, regardless of the present meaning of its name.
 * *ret: NULL if it is not in the store. */
static struct presence mounted_one(const struct pod_image *i, struct img_image **ret, struct err *e)
{
    const struct pod *p = i->pod;
    char path[1024], id[IMG_ID_SIZE];

    for (size_t k = 0; k < p->api->spec.n_volumes; k++) {
        const struct api_volume *v = &p->api->spec.volumes[k];
        struct presence mounted;

        if (v->kind != API_VOL_IMAGE || strcmp(v->image_reference, i->reference) != 0 ||
            volumes_host_path(p, v, path, sizeof(path), ERR_IGNORED) != ERR_OK)
            continue;
        mounted = img_mounted(path, id, e);
        if (presence_is_unknown(mounted))
            return mounted;
        if (presence_is_absent(mounted))
            continue;
        *ret = img_lookup(p->node->o.images, id);
        return *ret == NULL && img_is_unsure(p->node->o.images, e) ? presence_unknown(e) : mounted;
    }
    return presence_absent();
}

/* False: the mounted image is unknown, and will be checked again. */
static bool take_mounted(struct pod_image *i)
{
    struct err e = { 0 };

    if (!presence_is_unknown(mounted_one(i, &i->image, &e)))
        return true;
    pod_look_again(i->pod, &e);
    return false;
}

static void tell_secrets(struct pod *p, const struct pull_secrets *s)
{
    if (s->missing.n > 0)
        pod_event(p, NULL, true, "FailedToRetrieveImagePullSecret",
                  "Unable to retrieve some image pull secrets (%s); attempting to pull the image may not "
                  "succeed.",
                  s->missing.p);
    if (s->unusable.n > 0)
        pod_event(p, NULL, true, "FailedToRetrieveImagePullSecret",
                  "Unable to use some image pull secrets (%s): they are not of type "
                  "kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg; attempting to pull the image "
                  "may not succeed.",
                  s->unusable.p);
}

static void start_pull(struct pod_image *i, const struct ctr *c)
{
    struct pod *p = i->pod;
    char source[IMG_NAME_MAX + 16]; /* valid, so no longer than its name */
    struct pull_secrets secrets;
    struct err e = { 0 };

    if (pull_secrets_collect(p, &secrets, &e) == ERR_OK && secrets.missing.n > 0 &&
        (secrets.unknown || pod_is_new(p))) {
        if (!secrets.unknown) /* otherwise the answer wakes it */
            pod_wake_at(p, pod_new_until(p),
                        "secret may be in a file that is being read"); /* the file with it may be read next */
        pull_secrets_done(&secrets);
        return;
    }
    tell_secrets(p, &secrets);
    if (e.code != ERR_OK)
        pod_event(p, NULL, true, "FailedToRetrieveImagePullSecret",
                  "Unable to use the image pull secrets: %s; attempting to pull the image may not succeed.",
                  e.text);
    pod_event(p, c, false, "Pulling", "Pulling image \"%s\"", i->reference);
    snprintf(source, sizeof(source), "docker://%s", i->reference);
    i->bringing = true;
    i->pull_started_ns = clock_wall_ns();
    i->pull_started_ms = clock_mono_ms();
    img_bring_start_auth(&i->bring, p->node->o.images, source, NULL,
                         e.code == ERR_OK && secrets.json.n > 0 ? secrets.json.p : NULL, on_brought, i);
    pull_secrets_done(&secrets);
}

void images_secret_changed(struct pod *p, const char *name)
{
    struct pod_images *part = images_of(p);

    if (!pull_secrets_uses(p, name))
        return;
    for (size_t i = 0; i < part->n_images; i++) {
        part->images[i]->retry_at = CLOCK_BOOT_NONE;
        image_set_right(part->images[i], RIGHT_UNKNOWN);
        part->images[i]->stale = part->images[i]->checking;
    }
}

/* By name only: a part of an id would be a name on Docker Hub. `name` is normalised; it becomes the one that
 * was found. */
static struct img_image *look_up(const struct pod_image *i, char name[IMG_NAME_MAX])
{
    struct img_store *s = i->pod->node->o.images;
    struct img_image *found = NULL;
    char candidate[IMG_NAME_MAX];

    for (size_t k = 0; img_candidate(s, i->reference, k, candidate); k++)
        if ((found = img_lookup(s, candidate)) != NULL) {
            memcpy(name, candidate, IMG_NAME_MAX);
            return found;
        }
    return img_lookup(s, name);
}

/* False: it is not present, or a pull must prove the pod's access. Running pods continue with what they
 * have. */
static bool pod_images_take_present(struct pod_image *i, char name[IMG_NAME_MAX])
{
    scoped(img_unref) struct img_image *found = look_up(i, name);

    if (found == NULL)
        return false;
    if (is_needed(i)) {
        image_right_look(i, found, name);
        if (i->right != RIGHT_GRANTED)
            return i->right == RIGHT_UNKNOWN; /* it will be known */
    }
    i->image = take_ptr(&found);
    i->reason[0] = '\0';
    return true;
}

/* The image not found may have an unreadable record. A damaged disk must not prevent pulling it from a
 * registry. */
static bool pod_images_may_be_unread(const struct pod_image *i, struct err *e)
{
    const struct img_store *s = i->pod->node->o.images;
    struct img_look look;

    return i->policy != API_PULL_ALWAYS && img_is_unsure(s, e) &&
           (i->policy == API_PULL_NEVER || !img_look_failed(s, &look) ||
            clock_wall_ns() - look.since_ns < UNREAD_PATIENCE_NS);
}

static void image_step(struct pod_image *i)
{
    struct pod *p = i->pod;
    const struct ctr *c = user_of(i);
    char name[IMG_NAME_MAX];
    struct err e = { 0 };

    if (i->image != NULL || is_busy(i) || i->error_final)
        return;
    if (img_normalise(i->reference, name, &e) != ERR_OK) {
        str_auto text = str_printf("Failed to apply default image tag \"%s\": %s", i->reference, e.text);
        i->error_final = true; /* only another manifest can help */
        pod_images_say(i, "InvalidImageName", text != NULL ? text : e.text);
        pod_event(p, c, true, "InspectFailed", "%s", i->message);
        pod_event(p, c, true, "Failed", "Error: InvalidImageName");
        return;
    }
    if (c == NULL && (!take_mounted(i) || i->image != NULL))
        return;
    if (i->policy != API_PULL_ALWAYS && pod_images_take_present(i, name))
        return;
    if (!is_needed(i))
        return;
    if (pod_images_may_be_unread(i, &e)) {
        pod_look_again(p, &e);
        return;
    }
    if (i->policy == API_PULL_NEVER) {
        if (i->reason[0] == '\0') {
            str_auto text =
                str_printf("Container image \"%s\" is not present with pull policy of Never", i->reference);
            pod_images_say(i, "ErrImageNeverPull", text != NULL ? text : "");
            pod_event(p, c, true, "ErrImageNeverPull", "%s", i->message);
            pod_event(p, c, true, "Failed", "Error: ErrImageNeverPull");
        }
        return; /* woken when an image is added */
    }
    if (!clock_boot_is_due(i->retry_at)) {
        if (i->pull_failed) {
            str_auto text = str_printf("Back-off pulling image \"%s\": %s: %s", i->reference, i->reason,
                                       i->message != NULL ? i->message : "");
            pod_event(p, c, false, "BackOff", "Back-off pulling image \"%s\"", i->reference);
            pod_images_say(i, "ImagePullBackOff", text != NULL ? text : "");
        }
        pod_wake_at(p, i->retry_at, "image pull is tried again");
        return;
    }
    start_pull(i, c);
}

void images_step(struct pod *p)
{
    struct pod_images *part = images_of(p);

    for (size_t i = 0; i < part->n_images; i++)
        image_step(part->images[i]);
}

void images_added(struct node *n)
{
    struct pod *p, *tmp;

    HASH_ITER (hh, n->pods, p, tmp)
        for (size_t k = 0; k < images_of(p)->n_images; k++) {
            struct pod_image *i = images_of(p)->images[k];

            if (i->image != NULL)
                continue;
            if (i->right == RIGHT_REFUSED)
                image_set_right(i, RIGHT_UNKNOWN); /* perhaps under another name now */
            else if (i->policy != API_PULL_ALWAYS)
                i->retry_at = CLOCK_BOOT_NONE;
            pod_wake(p, "image was added");
        }
}

/* ---- for people ---------------------------------------------------------------------------------- */

/* The registry's error does not explain why an image listed by `coracle image ls` is pulled. */
static void add_lacking_image(const struct pod_image *img, const char *name, json_t *steps)
{
    const char *message = img->message != NULL ? img->message : "";
    str_auto refused =
        img->right != RIGHT_REFUSED
            ? NULL
            : str_printf("%s%sit is present, but none of this pod's imagePullSecrets is known to have "
                         "pulled it (imagePullCredentialsVerificationPolicy)",
                         message, message[0] != '\0' ? "; " : "");

    explain_step(steps, name, img->reason[0] != '\0' ? "failed" : "waiting", 0,
                 refused != NULL ? refused : img->message, clock_boot_to_wall_ns(img->retry_at));
}

void images_explain(const struct pod *p, json_t *steps)
{
    for (size_t i = 0; i < images_of(p)->n_images; i++) {
        const struct pod_image *img = images_of(p)->images[i];
        str_auto name = str_printf("image %s", img->reference);
        if (name == NULL)
            continue;
        if (img->image != NULL)
            explain_step(steps, name, "done", 0, "present", 0);
        else if (img->bringing)
            explain_step(steps, name, "running", img->pull_started_ns, "pulling", 0);
        else
            add_lacking_image(img, name, steps);
    }
}
