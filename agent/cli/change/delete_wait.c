/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an object that is deleted. */
#include "agent/cli/change/internal.h"

#include "base/clock.h"

#include <string.h>
#include <time.h>

enum { LOOK_MS_FIRST = 20, LOOK_MS_MAX = 500 };

/* Whether the object is gone, or another one has its name. False with *ret_code: an error was printed. */
static bool is_gone(struct cli *cli, const struct cli_target *t, const char *uid, int *ret_code)
{
    const bool before = cli->ignore_not_found;
    json_auto_t *now = NULL;

    cli->ignore_not_found = true;
    now = cli_get_one(cli, t->kind, t->namespace_, t->name, ret_code);
    cli->ignore_not_found = before;
    if (now == NULL)
        return *ret_code == EXIT_OK;
    return uid[0] != '\0' && strcmp(cli_text(now, "metadata.uid"), uid) != 0;
}

int delete_await(struct cli *cli, const struct cli_target *t, const char *uid, uint64_t until_ms)
{
    long ms = LOOK_MS_FIRST;

    for (;;) {
        const struct timespec pause = { .tv_nsec = ms * 1000000L };
        int code;

        if (is_gone(cli, t, uid, &code) || code != EXIT_OK)
            return code;
        if (until_ms != 0 && clock_mono_ms() >= until_ms)
            return cli_error(cli, "timed out waiting for the condition on %s/%s", t->kind->plural, t->name);
        nanosleep(&pause, NULL);
        ms = ms * 2 < LOOK_MS_MAX ? ms * 2 : LOOK_MS_MAX;
    }
}
