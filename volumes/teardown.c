/*
 * teardown - everything of one pod goes: first every mount below its two folders, found in mountinfo and not
 * in anybody's memory, then the folders.  A mount that could not be taken away stops the removal, so nothing
 * behind it is ever deleted.  By path: in the forked child where this runs no descriptor of the node is open.
 */
#include "base/fs.h"
#include "volumes/internal.h"

#include <fcntl.h>

enum err_code vol_pod_teardown(struct vol_node *n, const char *uid, struct err *e)
{
    char payloads[VOL_PATH_MAX], pod[VOL_PATH_MAX];

    if (vol_check_name("pod uid", uid, e) != ERR_OK)
        return e->code;
    if (vol_join(payloads, sizeof(payloads), e, "%s/%s", n->tmpfs, uid) != ERR_OK ||
        vol_join(pod, sizeof(pod), e, "%s/%s", n->pods, uid) != ERR_OK ||
        fs_unmount_below(pod, e) != ERR_OK || fs_unmount_below(payloads, e) != ERR_OK ||
        fs_remove_tree(AT_FDCWD, pod, e) != ERR_OK || fs_remove_tree(AT_FDCWD, payloads, e) != ERR_OK)
        return err_wrap(e, "take down volumes of %s", uid);
    return ERR_OK;
}
