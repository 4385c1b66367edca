/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unit_weight.h"
#include "base/log.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define UNIT "coracle-pods.service"
/* The file written by set-property --runtime; `systemctl cat` prints such a line before each file. */
#define OURS "# /run/systemd/system.control/" UNIT ".d/50-CPUWeight.conf"
#define FILE_PREFIX "# /"
#define SYSTEMCTL "/usr/bin/systemctl"
#define FILES_MAX 65536
#define DEADLINE_MS 60000 /* systemd is busy while a machine boots */
#define UNREADABLE "?"    /* not a valid value */

/* ---- the origin of the weight ---- */

/* The value of "Key = value" without surrounding blanks; NULL for another line. */
static const char *unit_weight_value_of(const char *line, const char *key)
{
    line += strspn(line, " \t");
    if (!str_starts(line, key))
        return NULL;
    line += strlen(key);
    line += strspn(line, " \t");
    return *line == '=' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

/* A number or a word ("idle"); an empty value resets earlier ones. */
static void unit_weight_take(const char *value, char ret[UNIT_WEIGHT_SIZE])
{
    size_t n = 0, blanks;

    while (isalnum((unsigned char)value[n]))
        n++;
    blanks = strspn(value + n, " \t\r");
    if (n >= UNIT_WEIGHT_SIZE || (value[n + blanks] != '\n' && value[n + blanks] != '\0'))
        snprintf(ret, UNIT_WEIGHT_SIZE, UNREADABLE);
    else
        snprintf(ret, UNIT_WEIGHT_SIZE, "%.*s", (int)n, value);
}

static bool is_line(const char *at, const char *line)
{
    return str_starts(at, line) && (at[strlen(line)] == '\n' || at[strlen(line)] == '\0');
}

bool unit_weight_due(const char *cat, const char *wanted, char ret_due[UNIT_WEIGHT_SIZE])
{
    char ours[UNIT_WEIGHT_SIZE] = "", theirs[UNIT_WEIGHT_SIZE] = "", shares[UNIT_WEIGHT_SIZE] = "";
    bool in_ours = false, ours_is_last = false, is_theirs;
    const char *value, *end;

    for (const char *at = cat; at != NULL; at = end != NULL ? end + 1 : NULL) {
        end = strchr(at, '\n');
        if (str_starts(at, FILE_PREFIX)) {
            in_ours = is_line(at, OURS);
        } else if ((value = unit_weight_value_of(at, "CPUWeight")) != NULL) {
            unit_weight_take(value, in_ours ? ours : theirs);
            ours_is_last = in_ours;
        } else if ((value = unit_weight_value_of(at, "CPUShares")) != NULL) { /* of cgroup v1 */
            unit_weight_take(value, shares);
        }
    }
    ret_due[0] = '\0';
    is_theirs = theirs[0] != '\0' || shares[0] != '\0';
    if (!is_theirs && strcmp(ours, wanted) != 0)
        snprintf(ret_due, UNIT_WEIGHT_SIZE, "%s", wanted);
    else if (theirs[0] != '\0' && ours_is_last && strcmp(theirs, UNREADABLE) != 0 &&
             strcmp(ours, theirs) != 0)
        snprintf(ret_due, UNIT_WEIGHT_SIZE, "%s", theirs);
    return is_theirs;
}

/* ---- asking systemd ---- */

static void unit_weight_start(struct unit_weight *u, const char *name, const char *const *argv,
                              op_done_fn done)
{
    const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL };
    const struct proc_spec spec = { .name = name,
                                    .subject = UNIT,
                                    .argv = argv,
                                    .env = env,
                                    .stdout_max = FILES_MAX,
                                    .cgroup_fd = u->o.cgroup_fd,
                                    .cgroup_procs = u->o.cgroup_procs,
                                    .deadline_ms = DEADLINE_MS };

    proc_start(&u->proc, &spec, u->o.loop, done, u);
}

static void unit_weight_over(struct unit_weight *u, const struct err *result)
{
    bool again = u->again;

    u->again = false;
    if (!u->open)
        return;
    if (result->code != ERR_OK)
        log_warn("cannot set the CPU weight of the pods' unit; will retry on the next reload",
                 F_STR("unit", UNIT), F_ERR(result));
    if (again)
        unit_weight_look(u);
}

static void on_set(struct op *op, const struct err *result)
{
    struct unit_weight *u = op->owner;

    if (result->code == ERR_OK)
        log_info("set the CPU weight of the pods' unit", F_STR("unit", UNIT), F_STR("weight", u->due));
    unit_weight_over(u, result);
}

static void on_files(struct op *op, const struct err *result)
{
    struct unit_weight *u = op->owner;
    char wanted[UNIT_WEIGHT_SIZE], property[32];
    const char *const argv[] = { SYSTEMCTL, "set-property", "--runtime", UNIT, property, NULL };

    if (result->code != ERR_OK) {
        unit_weight_over(u, result);
        return;
    }
    snprintf(wanted, sizeof(wanted), "%" PRIu64, u->o.weight);
    if (unit_weight_due(u->proc.out.p, wanted, u->due))
        log_info("keeping the administrator's CPU weight of the pods' unit", F_STR("unit", UNIT));
    if (u->due[0] == '\0' || !u->open) {
        unit_weight_over(u, result);
        return;
    }
    snprintf(property, sizeof(property), "CPUWeight=%s", u->due);
    unit_weight_start(u, "systemctl set-property", argv, on_set);
}

void unit_weight_look(struct unit_weight *u)
{
    static const char *const argv[] = { SYSTEMCTL, "cat", UNIT, NULL };

    if (op_live(&u->proc.op))
        u->again = true;
    else if (u->open)
        unit_weight_start(u, "systemctl cat", argv, on_files);
}

void unit_weight_open(struct unit_weight *u, const struct unit_weight_options *o)
{
    const char *name = strrchr(o->cgroup_root, '/');

    *u = (struct unit_weight){ .o = *o, .open = name != NULL && strcmp(name + 1, UNIT) == 0 };
    unit_weight_look(u);
}

void unit_weight_close(struct unit_weight *u)
{
    u->open = false;
    if (op_live(&u->proc.op))
        proc_cancel(&u->proc);
}
