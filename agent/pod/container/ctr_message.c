/* SPDX-License-Identifier: Apache-2.0 */
/* The termination message: the end of a file written by the container, or of its log. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/pod.h"
#include "agent/status/cri_log.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_MAX 4096 /* last bytes of the file */
#define LOG_LINES 80
#define LOG_MAX 2048

/* At most `max` bytes of the relevant part of the file; NULL if empty or absent. */
static enum err_code from_file(const struct ctr *c, size_t max, char **ret, struct err *e)
{
    str_auto dir = str_printf("%s/pods/%s", c->pod->node->o.root_dir, c->pod->uid);
    fd_auto root = dir != NULL ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    buf_auto text = BUF_INIT(3 * MESSAGE_MAX);
    char bytes[MESSAGE_MAX];
    struct stat st;
    fd_auto fd = -1;
    ssize_t n;

    if (dir == NULL)
        return err_nomem(e);
    if (root < 0)
        return err_sys(e, errno, "open %s", dir);
    /* The container can write the file but not replace it; still, it is opened without following links. */
    fd = fs_open_beneath(root, c->cur.message_file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, e);
    if (fd < 0)
        return e->code;
    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "stat %s", c->cur.message_file);
    if (!S_ISREG(st.st_mode))
        return ERR_OK;
    n = pread(fd, bytes, sizeof(bytes), st.st_size > MESSAGE_MAX ? st.st_size - MESSAGE_MAX : 0);
    if (n <= 0)
        return n == 0 ? ERR_OK : err_sys(e, errno, "read %s", c->cur.message_file);
    for (size_t i = 0; i < (size_t)n && i < max; i++)
        if (bytes[i] == '\0') /* would end the string; U+FFFD, as for invalid UTF-8 */
            buf_adds(&text, "\xef\xbf\xbd");
        else
            buf_addc(&text, bytes[i]);
    *ret = buf_detach(&text);
    return *ret != NULL ? ERR_OK : err_nomem(e);
}

/* A shortage passes, so the end waits for it; where nothing can be read at all, there is no message. */
static bool must_look_again(const struct ctr *c, struct err *e)
{
    if (e->code == ERR_OK || err_is_shortage(e))
        return e->code != ERR_OK;
    log_debug("cannot read a termination message", F_STR("pod", c->pod->key),
              F_STR("containerName", c->spec->name), F_ERR(e));
    *e = (struct err){ 0 };
    return false;
}

enum err_code ctr_message(const struct ctr *c, int exit_code, char **ret, struct err *e)
{
    /* kubelet divides 12 KiB among the containers of a pod and keeps the beginning */
    const size_t max = 12288 / (c->pod->n_ctrs > 0 ? c->pod->n_ctrs : 1);
    str_auto text = NULL;
    char path[PATH_MAX];

    if (c->cur.message_file[0] != '\0')
        ERR_IGNORE(from_file(c, max, &text, e));
    if (must_look_again(c, e))
        return e->code;
    if (text == NULL && exit_code != 0 && c->spec->message_fallback_to_logs) {
        if (ctr_log_path(c, c->cur.attempt, path, sizeof(path)))
            ERR_IGNORE(cri_log_tail(path, LOG_LINES, LOG_MAX, &text, e));
        if (must_look_again(c, e))
            return e->code;
        if (text != NULL && strlen(text) > max)
            text[max] = '\0';
    }
    *ret = text != NULL && text[0] != '\0' ? take_ptr(&text) : NULL;
    return ERR_OK;
}
