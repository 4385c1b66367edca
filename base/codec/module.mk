# SPDX-License-Identifier: Apache-2.0
base_codec_SRCS := base64.c go_quote.c http_request.c json.c percent.c protobuf.c websocket.c
