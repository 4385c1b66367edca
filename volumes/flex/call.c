/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "volumes/flex/internal.h"
#include "volumes/storage/run.h"

enum err_code flex_call(const char *program, const char *const *args, struct flex_answer *ret, struct err *e)
{
    buf_auto out = BUF_INIT(FLEX_ANSWER_MAX + 8192);
    int code = 0;
    const struct storage_run run = { .program = args[0],
                                     .path = program,
                                     .args = args,
                                     .out = &out,
                                     .out_max = FLEX_ANSWER_MAX,
                                     .ret_exit = &code };

    if (storage_run(&run, e) != ERR_OK)
        return e->code;
    if (code == 127 && out.n == 0)
        return err_set(e, ERR_UNAVAILABLE, "driver %s cannot be executed", program);
    if (flex_answer_parse(args[0], out.p != NULL ? out.p : "", out.n, ret, e) != ERR_OK)
        return e->code;
    if (code != 0 && ret->status == FLEX_SUCCESS)
        return err_set(e, ERR_UNKNOWN, "%s command: exit status %d", args[0], code);
    return ERR_OK;
}

enum err_code flex_ask(const char *program, const char *const *args, bool *ret_supported,
                       struct flex_answer *answer, struct err *e)
{
    if (flex_call(program, args, answer, e) != ERR_OK)
        return e->code;
    *ret_supported = answer->status != FLEX_NOT_SUPPORTED;
    return answer->status == FLEX_FAILED ? err_set(e, ERR_UNKNOWN, "%s", answer->message) : ERR_OK;
}
