# fish completion for coracle, by `coracle completion fish`
function __coracle_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] 2> /dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c coracle -f -a '(__coracle_complete)'
