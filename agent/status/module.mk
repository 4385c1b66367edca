agent_status_SRCS := server.c conn.c request.c reply.c routes.c select.c watch.c logs.c cri_log.c
