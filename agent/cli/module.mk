agent_cli_SRCS :=
