/* SPDX-License-Identifier: Apache-2.0 */
/* The termination message: the end of a file written by the container, or of its log. */
#include "agent/pod/container/container.h"
#include "agent/pod/container/internal.h"
#include "agent/pod/core/pod.h"
#include "agent/status/cri_log.h"
#include "base/files/fs.h"
#include "base/log.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_MAX 4096 /* last bytes of the file */
#define LOG_LINES 80
#define LOG_MAX 2048

/* At most `max` bytes of the relevant part of the file; NULL if empty or absent. */
static char *from_file(const struct ctr *c, size_t max)
{
    str_auto dir = str_printf("%s/pods/%s", c->pod->node->o.root_dir, c->pod->uid);
    fd_auto root = dir != NULL ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    buf_auto text = BUF_INIT(3 * MESSAGE_MAX);
    char bytes[MESSAGE_MAX];
    struct err e = { 0 };
    struct stat st;
    ssize_t n;
    /* The container can write the file but not replace it; still, it is opened without following links. */
    fd_auto fd = root >= 0
                     ? fs_open_beneath(root, c->cur.message_file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &e)
                     : -1;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return NULL;
    n = pread(fd, bytes, sizeof(bytes), st.st_size > MESSAGE_MAX ? st.st_size - MESSAGE_MAX : 0);
    if (n <= 0)
        return NULL;
    for (size_t i = 0; i < (size_t)n && i < max; i++)
        if (bytes[i] == '\0') /* would end the string; U+FFFD, as for invalid UTF-8 */
            buf_adds(&text, "\xef\xbf\xbd");
        else
            buf_addc(&text, bytes[i]);
    return buf_detach(&text);
}

char *ctr_message(const struct ctr *c, int exit_code)
{
    /* kubelet divides 12 KiB among the containers of a pod and keeps the beginning */
    const size_t max = 12288 / (c->pod->n_ctrs > 0 ? c->pod->n_ctrs : 1);
    char *text = c->cur.message_file[0] != '\0' ? from_file(c, max) : NULL;

    if (text == NULL && exit_code != 0 && c->spec->message_fallback_to_logs) {
        char path[PATH_MAX];
        struct err e = { 0 };

        if (ctr_log_path(c, c->cur.attempt, path, sizeof(path)) &&
            cri_log_tail(path, LOG_LINES, LOG_MAX, &text, &e) != ERR_OK)
            log_debug("cannot read the log for the termination message", F_STR("path", path), F_ERR(&e));
        if (text != NULL && strlen(text) > max)
            text[max] = '\0';
    }
    if (text != NULL && text[0] == '\0')
        free(take_ptr(&text));
    return text;
}
