agent_cli_SRCS := cli.c commands.c args.c help.c man.c complete.c completion.c client.c values.c table.c pods.c manifests.c hints.c restart.c delete.c watch.c events.c get.c get_tables.c describe.c describe_container.c \
                  describe_volume.c logs.c log_streams.c exec.c exec_stream.c attach.c port_forward.c explain.c top.c validate.c version.c image.c image_care.c config.c
