agent_SRCS := daemon.c settings.c preflight.c notify.c
