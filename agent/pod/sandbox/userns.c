/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod/sandbox/userns.h"

#include "agent/pod/core/pod.h"
#include "agent/pod/sandbox/internal.h"
#include "base/files/fs.h"
#include "base/parse.h"

#include <fcntl.h>
#include <string.h>

#define OWNER "kubelet" /* whose subordinate ids pods have, as under kubelet */

/* ---- the range of blocks ---- */

static enum err_code userns_parse_line(char *line, const char *file, uint32_t *ret_first, uint32_t *ret_n,
                                       struct err *e)
{
    uint64_t first, n;
    char *rest = line, *name = strsep(&rest, ":"), *start = strsep(&rest, ":");

    if (!str_eq(name, OWNER))
        return ERR_OK;
    if (start == NULL || rest == NULL || parse_u64(start, 0, UINT32_MAX, &first, "first id", e) != ERR_OK ||
        parse_u64(rest, 0, UINT32_MAX, &n, "number of ids", e) != ERR_OK)
        return err_set(e, ERR_INVALID,
                       "%s: the line of user " OWNER " is not \"" OWNER ":<first id>:<number>\"", file);
    if (*ret_n != 0)
        return err_set(e, ERR_INVALID, "%s: user " OWNER " has more than one range; one is allowed", file);
    if (first % USERNS_IDS != 0 || n % USERNS_IDS != 0 || first < USERNS_IDS || n == 0 ||
        first + n > UINT32_MAX)
        return err_set(e, ERR_INVALID,
                       "%s: range %s:%s of user " OWNER
                       ": both must be multiples of 65536, from 65536 up to 4294901760",
                       file, start, rest);
    *ret_first = (uint32_t)first;
    *ret_n = (uint32_t)n;
    return ERR_OK;
}

enum err_code userns_parse_range(const char *text, const char *file, uint32_t *ret_first, uint32_t *ret_n,
                                 struct err *e)
{
    str_auto copy = strdup(text);
    char *rest = copy, *line;

    *ret_first = *ret_n = 0;
    if (copy == NULL)
        return err_nomem(e);
    while ((line = strsep(&rest, "\n")) != NULL)
        if (userns_parse_line(line, file, ret_first, ret_n, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

static enum err_code read_range(const char *file, uint32_t *ret_first, uint32_t *ret_n, struct err *e)
{
    str_auto text = NULL;

    *ret_first = *ret_n = 0;
    if (fs_read_at(AT_FDCWD, file, FS_SMALL_MAX, &text, NULL, e) != ERR_OK) {
        if (e->code != ERR_NOT_FOUND)
            return e->code;
        *e = (struct err){ 0 };
        return ERR_OK;
    }
    return userns_parse_range(text, file, ret_first, ret_n, e);
}

static enum err_code find_range(unsigned max_pods, uint32_t *ret_first, uint32_t *ret_n, struct err *e)
{
    uint32_t gid_first, gid_n;

    if (read_range("/etc/subuid", ret_first, ret_n, e) != ERR_OK ||
        read_range("/etc/subgid", &gid_first, &gid_n, e) != ERR_OK)
        return e->code;
    if (*ret_first != gid_first || *ret_n != gid_n)
        return err_set(e, ERR_INVALID, "user " OWNER " has other ids in /etc/subuid than in /etc/subgid");
    if (*ret_n > 0 && *ret_n / USERNS_IDS < max_pods) /* kubelet does not start with so few */
        return err_set(e, ERR_INVALID,
                       "/etc/subuid: user " OWNER " has %u ids, but %u pods (maxPods) may need %u each",
                       *ret_n, max_pods, USERNS_IDS);
    if (*ret_n == 0) {
        *ret_first = USERNS_IDS;
        *ret_n = UINT32_MAX - 2 * USERNS_IDS + 1; /* the last block contains ids that mean "none" */
    }
    return ERR_OK;
}

/* ---- blocks ---- */

static bool is_taken(const struct node *n, uint32_t first)
{
    pods_each (n, o)
        if (sandbox_of(o)->first_id == first)
            return true;
    return false;
}

enum err_code userns_allocate(struct pod *p, struct err *e)
{
    struct sandbox *box = sandbox_of(p);
    uint32_t first, n;

    if (box->first_id != 0)
        return ERR_OK;
    if (find_range(p->node->o.max_pods, &first, &n, e) != ERR_OK)
        return e->code;
    for (uint32_t i = 0; i < n / USERNS_IDS; i++)
        if (!is_taken(p->node, first + i * USERNS_IDS)) {
            box->first_id = first + i * USERNS_IDS;
            p->record_dirty = true;
            return ERR_OK;
        }
    return err_set(e, ERR_EXHAUSTED, "no block of 65536 ids is free for the pod's user namespace");
}
