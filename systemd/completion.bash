# bash completion for coracle, by `coracle completion bash`
_coracle() {
    local line=${COMP_LINE:0:COMP_POINT} words word current before=
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    current=${words[${#words[@]} - 1]}
    [[ $current == *[:=]* ]] && before=${current%"${current##*[:=]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        if [[ $word == :files ]]; then
            compopt -o default -o nospace 2> /dev/null
        elif [[ $word == "$before"* ]]; then
            COMPREPLY+=("${word#"$before"}")
        fi
    done < <("${words[0]}" __complete "${words[@]:1}" 2> /dev/null)
}
complete -F _coracle coracle
