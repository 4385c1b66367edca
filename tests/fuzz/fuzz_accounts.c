/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/passwd and /etc/group of an image: "USER\0passwd\0group". */
#include "agent/runtime/spec/internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 3), *passwd, *group;
    struct img_image image = { 0 };
    struct rt_config config = {
        .image = &image, .pod_name = "p", .pod_namespace = "n", .pod_uid = "u", .container_name = "c"
    };
    struct rt_user user = { 0 };
    struct err e = { 0 };

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    image.user = text;
    passwd = text + strlen(text) + 1;
    group = passwd + strlen(passwd) + 1;
    if (rt_user_choose(&config, passwd, group, &user, &e) == ERR_OK) {
        for (size_t i = 1; i < user.n_gids; i++)
            if (user.gids[i - 1] >= user.gids[i])
                abort();
        if (user.home == NULL)
            abort();
        rt_user_done(&user);
    }
    free(text);
    return 0;
}
