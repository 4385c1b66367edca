/* SPDX-License-Identifier: Apache-2.0 */
/* The shells' scripts for completion; complete.c has our part. */
#include "agent/cli/internal.h"

#include <string.h>

/* bash also breaks words at ":" and "=", and replaces only the part after the last break: so the line is
 * parsed again, and the part before the break removed from the candidates. */
static const char bash[] = "# bash completion for coracle, by `coracle completion bash`\n"
                           "_coracle() {\n"
                           "    local line=${COMP_LINE:0:COMP_POINT} words word current before=\n"
                           "    read -ra words <<< \"$line\"\n"
                           "    [[ $line == *[[:space:]] ]] && words+=('')\n"
                           "    current=${words[${#words[@]} - 1]}\n"
                           "    [[ $current == *[:=]* ]] && before=${current%\"${current##*[:=]}\"}\n"
                           "    COMPREPLY=()\n"
                           "    while IFS=$'\\t' read -r word _; do\n"
                           "        if [[ $word == :files ]]; then\n"
                           "            compopt -o default -o nospace 2> /dev/null\n"
                           "        elif [[ $word == \"$before\"* ]]; then\n"
                           "            COMPREPLY+=(\"${word#\"$before\"}\")\n"
                           "        fi\n"
                           "    done < <(\"${words[0]}\" __complete \"${words[@]:1}\" 2> /dev/null)\n"
                           "}\n"
                           "complete -F _coracle coracle\n";

static const char zsh[] = "#compdef coracle\n"
                          "# zsh completion for coracle, by `coracle completion zsh`\n"
                          "_coracle() {\n"
                          "    local line files=\n"
                          "    local -a found\n"
                          "    while IFS= read -r line; do\n"
                          "        if [[ $line == :files ]]; then\n"
                          "            files=1\n"
                          "        else\n"
                          "            found+=(\"${${line//:/\\\\:}/$'\\t'/:}\")\n"
                          "        fi\n"
                          "    done < <(\"${words[1]}\" __complete \"${(@)words[2,CURRENT]}\" 2> /dev/null)\n"
                          "    (( ${#found} )) && _describe coracle found\n"
                          "    [[ -n $files ]] && _files\n"
                          "}\n"
                          "if [[ $funcstack[1] == _coracle ]]; then\n"
                          "    _coracle \"$@\"\n"
                          "else\n"
                          "    compdef _coracle coracle\n"
                          "fi\n";

/* fish keeps its own file names for ":files"; a tab before the meaning is its format, too. */
static const char fish[] = "# fish completion for coracle, by `coracle completion fish`\n"
                           "function __coracle_complete\n"
                           "    set -l words (commandline -opc) (commandline -ct)\n"
                           "    for line in ($words[1] __complete $words[2..-1] 2> /dev/null)\n"
                           "        if test \"$line\" = :files\n"
                           "            __fish_complete_path (commandline -ct)\n"
                           "        else\n"
                           "            echo $line\n"
                           "        end\n"
                           "    end\n"
                           "end\n"
                           "complete -c coracle -f -a '(__coracle_complete)'\n";

static int completion_run(struct cli *cli, const struct cli_command *command, int argc, char **argv)
{
    int code;

    if (!cli_parse(cli, command, NULL, &argc, argv, &code))
        return code;
    if (argc == 1 && strcmp(argv[0], "bash") == 0)
        cli_write(cli, bash, strlen(bash));
    else if (argc == 1 && strcmp(argv[0], "zsh") == 0)
        cli_write(cli, zsh, strlen(zsh));
    else if (argc == 1 && strcmp(argv[0], "fish") == 0)
        cli_write(cli, fish, strlen(fish));
    else
        return cli_usage_error(cli, command, "you must specify bash, zsh or fish");
    return EXIT_OK;
}

static const struct cli_flag flags[] = { CLI_FLAGS_END };

static const struct cli_example examples[] = {
    { "in the current shell", "source <(coracle completion bash)" },
    { "if it is not installed yet", "coracle completion zsh > ~/.zfunc/_coracle" },
    { "for fish", "coracle completion fish > ~/.config/fish/completions/coracle.fish" },
    { NULL, NULL },
};

const struct cli_command command_completion = {
    .name = "completion",
    .run = completion_run,
    .summary = "print the completion script for bash, zsh or fish",
    .usage = "completion bash|zsh|fish",
    .about = "Prints a completion script for the shell.  It completes commands, flags, and the names "
             "of pods, containers and images, which it requests from the daemon.",
    .flags = flags,
    .examples = examples,
    .exits = cli_exits_local,
    .words = "bash|zsh|fish",
};
