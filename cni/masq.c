/* SPDX-License-Identifier: Apache-2.0 */
#include "cni/masq.h"

#include "base/codec/json.h"
#include "base/scope.h"

#include <sha512.h>
#include <string.h>

#define CHAIN_DIGITS 24

bool cni_masq_wanted(const struct cni_list *l)
{
    for (size_t i = 0; i < cni_list_size(l); i++)
        if (json_flag(cni_list_plugin(l, i), "ipMasq"))
            return true;
    return false;
}

/* ---- the text ---- */

enum err_code cni_masq_removal(const char *save, const char *chain, struct buf *ret, struct err *e)
{
    str_auto declared = str_printf(":%s ", chain);
    str_auto jump = str_printf(" -j %s", chain);
    size_t n_jump;
    bool in_nat = false, found = false;

    if (declared == NULL || jump == NULL)
        return err_nomem(e);
    n_jump = strlen(jump);
    buf_adds(ret, "*nat\n");
    for (const char *line = save; *line != '\0';) {
        size_t n = strcspn(line, "\n");

        if (line[0] == '*')
            in_nat = n == 4 && memcmp(line, "*nat", 4) == 0;
        else if (in_nat && str_starts(line, declared))
            found = true;
        else if (in_nat && n > n_jump && memcmp(line, "-A ", 3) == 0 &&
                 memcmp(line + n - n_jump, jump, n_jump) == 0) {
            buf_adds(ret, "-D"); /* delete the rule by its exact text */
            buf_add(ret, line + 2, n - 2);
            buf_addc(ret, '\n');
        }
        line += n + (line[n] == '\n');
    }
    buf_addf(ret, "-F %s\n-X %s\nCOMMIT\n", chain, chain);
    if (!found)
        buf_reset(ret);
    return buf_check(ret, e);
}

/* ---- the operation ---- */

static enum err_code masq_edit(void *arg, const char *family, const char *save, struct buf *script,
                               struct err *e)
{
    const struct cni_masq *m = arg;

    (void)family;
    return cni_masq_removal(save, m->chain, script, e);
}

void cni_masq_start(struct cni_masq *m, uv_loop_t *loop, const char *network, const char *container_id,
                    int cgroup_fd, const char *cgroup_procs, op_done_fn done, void *owner)
{
    const struct cni_iptables_spec spec = { .table = "nat",
                                            .edit = masq_edit,
                                            .arg = m,
                                            .cgroup_fd = cgroup_fd,
                                            .cgroup_procs = cgroup_procs,
                                            .deadline_ms = CNI_MASQ_DEADLINE_MS };
    char hash[SHA512_DIGEST_STRING_LENGTH];
    SHA512_CTX sum;

    SHA512Init(&sum);
    SHA512Update(&sum, (const uint8_t *)network, strlen(network));
    SHA512Update(&sum, (const uint8_t *)container_id, strlen(container_id));
    SHA512End(&sum, hash);
    snprintf(m->chain, sizeof(m->chain), "CNI-%.*s", CHAIN_DIGITS, hash);
    cni_iptables_start(&m->rules, loop, "remove masquerading", container_id, &spec, done, owner);
}
