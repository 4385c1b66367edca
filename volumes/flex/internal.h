/* SPDX-License-Identifier: Apache-2.0 */
/* flex, private. */
#ifndef VOLUMES_FLEX_INTERNAL_H
#define VOLUMES_FLEX_INTERNAL_H
#include "volumes/flex/flex.h"

/* Blocks. An answer that is none, or an exit code other than 0 with Success, is an error; a failure is not.
 */
enum err_code flex_call(const char *program, const char *const *args, struct flex_answer *ret,
                        struct err *e) MUST_CHECK;
/* The same, and a failure that the driver named is an error. *ret_supported: false after "Not supported". */
enum err_code flex_ask(const char *program, const char *const *args, bool *ret_supported,
                       struct flex_answer *answer, struct err *e) MUST_CHECK;
#define FLEX_ASK(program, supported, answer, e, ...)                                                         \
    flex_ask(program, (const char *const[]){ __VA_ARGS__, NULL }, supported, answer, e)

/* ---- device.c ---- */
#define FLEX_PATH_SIZE 1200
/* "<root>/plugins/kubernetes.io/flexvolume/VENDOR/DRIVER/mounts/NAME" */
void flex_device_place(const struct flex_volume *v, char ret[FLEX_PATH_SIZE]);
/* Until *ret_fd is closed. Without `waits` it is -1 if somebody else has it. */
enum err_code flex_device_lock(const struct flex_volume *v, bool waits, int *ret_fd,
                               struct err *e) MUST_CHECK;
enum err_code flex_device_detach(const struct flex_volume *v, struct err *e) MUST_CHECK;
/* Of one driver (program, dir_name, root, node): those that no pod uses. */
enum err_code flex_devices_let_go(const struct flex_volume *driver, struct flex_end how,
                                  struct err *e) MUST_CHECK;
#endif
