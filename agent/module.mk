agent_SRCS := daemon.c config.c preflight.c notify.c
