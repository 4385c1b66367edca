agent_status_SRCS := server.c conn.c request.c reply.c routes.c select.c watch.c logs.c exec.c exec_input.c exec_upgrade.c cri_log.c log_files.c log_walk.c
