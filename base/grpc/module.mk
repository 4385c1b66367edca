# SPDX-License-Identifier: Apache-2.0
base_grpc_SRCS := status.c frame.c session.c stream.c request_head.c stream_headers.c stream_send.c wire.c address.c client.c call.c server.c request.c
