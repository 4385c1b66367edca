/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/image/image_right.h"
#include "base/log.h"

#include "agent/pod/core/facts.h"
#include "agent/pod/image/images.h"
#include "agent/pod/image/internal.h"
#include "agent/pod/image/pull_secrets.h"

static const char *image_right_name(enum image_right right)
{
    switch (right) {
    case RIGHT_UNKNOWN:
        return "unknown";
    case RIGHT_GRANTED:
        return "granted";
    case RIGHT_REFUSED:
        return "refused";
    }
    return "?";
}

void image_set_right(struct pod_image *i, enum image_right right)
{
    if (i->right == right)
        return;
    log_debug("right to an image", F_STR("pod", i->pod->key), F_STR("image", i->reference),
              F_STR("from", image_right_name(i->right)), F_STR("to", image_right_name(right)));
    i->right = right;
}

static void image_right_on_checked(struct op *op, const struct err *result)
{
    struct pod_image *i = op->owner;

    i->checking = false;
    if (images_free_dropped(i))
        return;
    /* Out of memory, or with invalid secrets, a pull yields a better error. */
    if (i->right == RIGHT_UNKNOWN && !i->stale)
        image_set_right(i, result->code == ERR_OK && json_is_true(i->check.answer) ? RIGHT_GRANTED
                                                                                   : RIGHT_REFUSED);
    pod_wake(i->pod, "right to an image is known");
}

static void start_check(struct pod_image *i, const char *name)
{
    struct pull_secrets secrets;
    struct err e = { 0 };

    if (pull_secrets_collect(i->pod, &secrets, &e) == ERR_OK && secrets.missing.n > 0 &&
        (secrets.unknown || pod_is_new(i->pod))) {
        pod_wake_at(i->pod, pod_new_until(i->pod),
                    "secret may be in a file that is being read"); /* the file with it may be read next */
    } else if (e.code != ERR_OK || secrets.json.n == 0) {
        image_set_right(i, RIGHT_REFUSED);
    } else {
        i->checking = true;
        i->stale = false;
        img_access_start(&i->check, i->pod->node->o.images, name, secrets.json.p, image_right_on_checked, i);
    }
    pull_secrets_done(&secrets);
}

void image_right_look(struct pod_image *i, const struct img_image *image, const char *name)
{
    if (i->right != RIGHT_UNKNOWN || i->checking)
        return;
    switch (img_access(i->pod->node->o.images, image, name)) {
    case IMG_ACCESS_GRANTED:
        image_set_right(i, RIGHT_GRANTED);
        break;
    case IMG_ACCESS_REFUSED:
        image_set_right(i, RIGHT_REFUSED);
        break;
    case IMG_ACCESS_SECRETS:
        start_check(i, name);
        break;
    }
}
