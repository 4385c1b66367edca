/* The images of a pod, each brought once however many containers use it. */
#include "agent/pod/pod.h"
#include "base/clock.h"
#include "base/log.h"

#include <string.h>

#define BACKOFF_FIRST_MS                                                                                     \
    10000 /* kubelet: 10 s doubling to 300 s (BACKOFF_MAX_MS), from the last failed try */
#define MS INT64_C(1000000)

struct pod_image *images_find(const struct pod *p, const char *reference)
{
    for (size_t i = 0; i < p->n_images; i++)
        if (strcmp(p->images[i]->reference, reference) == 0)
            return p->images[i];
    return NULL;
}

/* ---- the list ------------------------------------------------------------------------------------- */

static void image_free(struct pod_image *i)
{
    img_unref(i->image);
    free(i->message);
    free(i);
}

/* Freed now, or when its bring has answered. */
static void drop(struct pod_image *i)
{
    if (!i->bringing) {
        image_free(i);
        return;
    }
    i->dropped = true;
    i->reference = NULL;
    i->pod->images_dropped++;
    op_cancel(&i->bring.op);
}

void images_clear(struct pod *p)
{
    for (size_t i = 0; i < p->n_images; i++)
        drop(p->images[i]);
    p->n_images = 0;
    free(take_ptr(&p->images));
}

bool images_busy(const struct pod *p)
{
    for (size_t i = 0; i < p->n_images; i++)
        if (p->images[i]->bringing)
            return true;
    return p->images_dropped > 0;
}

/* The place of `spec`'s image in `list`: there already, taken over from p->images, or new; NULL: no memory.
 */
static struct pod_image *place(struct pod *p, const struct api_container *spec, struct pod_image **list,
                               size_t *n)
{
    struct pod_image *found = NULL;

    for (size_t i = 0; i < *n; i++)
        if (strcmp(list[i]->reference, spec->image) == 0)
            return list[i];
    for (size_t i = 0; i < p->n_images && found == NULL; i++)
        if (strcmp(p->images[i]->reference, spec->image) == 0) {
            found = p->images[i];
            p->images[i] = p->images[--p->n_images];
        }
    if (found == NULL && (found = calloc(1, sizeof(*found))) == NULL)
        return NULL;
    found->pod = p;
    found->reference = spec->image;
    found->policy = spec->pull_policy;
    list[(*n)++] = found;
    return found;
}

enum err_code images_build(struct pod *p, struct err *e)
{
    struct pod_image **list = calloc(p->n_ctrs + 1, sizeof(struct pod_image *)), *i;
    size_t n = 0;

    for (size_t k = 0; list != NULL && k < p->n_ctrs; k++) {
        const struct api_container *spec = p->ctrs[k].spec;
        i = place(p, spec, list, &n);
        if (i == NULL)
            break;
        if (spec->pull_policy < i->policy)
            i->policy = spec->pull_policy; /* Always before IfNotPresent before Never */
        if (k + 1 == p->n_ctrs) {
            images_clear(p); /* what is left of the old ones */
            p->images = list;
            p->n_images = n;
            return ERR_OK;
        }
    }
    /* Nothing may point into the old manifest any more: they are begun anew when there is memory. */
    images_clear(p);
    while (n > 0)
        drop(list[--n]);
    free(list);
    return err_nomem(e);
}

/* ---- bringing --------------------------------------------------------------------------------------- */

static void say(struct pod_image *i, const char *reason, const char *message)
{
    snprintf(i->reason, sizeof(i->reason), "%s", reason);
    free(i->message);
    i->message = strdup(message);
}

/* The first container that wants it: events carry a container. */
static const struct ctr *user_of(const struct pod_image *i)
{
    for (size_t k = 0; k < i->pod->n_ctrs; k++)
        if (strcmp(i->pod->ctrs[k].spec->image, i->reference) == 0)
            return &i->pod->ctrs[k];
    return NULL;
}

static void on_brought(struct op *op, const struct err *result)
{
    struct pod_image *i = op->owner;
    struct pod *p = i->pod;
    const struct ctr *c;

    i->bringing = false;
    if (i->dropped) {
        p->images_dropped--;
        image_free(i);
        pod_wake(p);
        return;
    }
    c = user_of(i);
    if (result->code == ERR_OK) {
        double seconds = (double)(clock_wall_ns() - i->pull_started_ns) / 1e9;
        i->image = img_ref(i->bring.image);
        i->pulled = true;
        i->reason[0] = '\0';
        i->backoff_ms = 0;
        pod_event(
            p, c, false, "Pulled",
            "Successfully pulled image \"%s\" in %.3gs (%.3gs including waiting). Image size: %llu bytes.",
            i->reference, seconds, seconds, (unsigned long long)i->image->size_bytes);
    } else if (result->code != ERR_CANCELLED) {
        str_auto text = str_printf("failed to pull image \"%s\": %s", i->reference, result->text);
        i->backoff_ms = i->backoff_ms == 0 ? BACKOFF_FIRST_MS : i->backoff_ms * 2;
        if (i->backoff_ms > BACKOFF_MAX_MS)
            i->backoff_ms = BACKOFF_MAX_MS;
        i->retry_at_ns = clock_wall_ns() + (int64_t)i->backoff_ms * MS;
        say(i, "ErrImagePull", text != NULL ? text : result->text);
        log_warn("image cannot be pulled", F_STR("pod", p->key), F_STR("image", i->reference),
                 F_U64("retryMs", i->backoff_ms), F_ERR(result));
        pod_event(p, c, true, "Failed", "Failed to pull image \"%s\": %s", i->reference, result->text);
        pod_event(p, c, true, "Failed", "Error: ErrImagePull");
    }
    pod_wake(p);
}

/* Only what has to start is pulled for: a pod that was taken over and runs asks no registry. */
static bool is_needed(const struct pod_image *i)
{
    for (size_t k = 0; k < i->pod->n_ctrs; k++) {
        const struct ctr *c = &i->pod->ctrs[k];
        if (strcmp(c->spec->image, i->reference) == 0 &&
            (c->replace || (c->state == CTR_NONE && ctr_restart_wanted(c))))
            return true;
    }
    return false;
}

static void image_step(struct pod_image *i)
{
    struct pod *p = i->pod;
    const struct ctr *c = user_of(i);
    char name[IMG_NAME_MAX], source[IMG_NAME_MAX + 16];
    struct err e = { 0 };

    if (i->image != NULL || i->bringing || i->error_final)
        return;
    if (img_normalise(i->reference, name, &e) != ERR_OK) {
        str_auto text = str_printf("Failed to apply default image tag \"%s\": %s", i->reference, e.text);
        i->error_final = true; /* only another manifest can help */
        say(i, "InvalidImageName", text != NULL ? text : e.text);
        pod_event(p, c, true, "InspectFailed", "%s", i->message);
        pod_event(p, c, true, "Failed", "Error: InvalidImageName");
        return;
    }
    if (i->policy != API_PULL_ALWAYS && (i->image = img_lookup(p->node->o.images, name)) != NULL) {
        i->reason[0] = '\0';
        return;
    }
    if (!is_needed(i))
        return;
    if (i->policy == API_PULL_NEVER) {
        if (i->reason[0] == '\0') {
            str_auto text =
                str_printf("Container image \"%s\" is not present with pull policy of Never", i->reference);
            say(i, "ErrImageNeverPull", text != NULL ? text : "");
            pod_event(p, c, true, "ErrImageNeverPull", "%s", i->message);
            pod_event(p, c, true, "Failed", "Error: ErrImageNeverPull");
        }
        return; /* woken when an image is added */
    }
    if (i->retry_at_ns > clock_wall_ns()) {
        if (strcmp(i->reason, "ErrImagePull") == 0) {
            str_auto text = str_printf("Back-off pulling image \"%s\": ErrImagePull: %s", i->reference,
                                       i->message != NULL ? i->message : "");
            pod_event(p, c, false, "BackOff", "Back-off pulling image \"%s\"", i->reference);
            say(i, "ImagePullBackOff", text != NULL ? text : "");
        }
        pod_wake_at(p, i->retry_at_ns);
        return;
    }
    pod_event(p, c, false, "Pulling", "Pulling image \"%s\"", i->reference);
    snprintf(source, sizeof(source), "docker://%s", name);
    i->bringing = true;
    i->pull_started_ns = clock_wall_ns();
    img_bring_start(&i->bring, p->node->o.images, source, name, on_brought, i);
}

void images_step(struct pod *p)
{
    for (size_t i = 0; i < p->n_images; i++)
        image_step(p->images[i]);
}
