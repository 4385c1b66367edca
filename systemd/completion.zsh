#compdef coracle
# zsh completion for coracle, by `coracle completion zsh`
_coracle() {
    local line files=
    local -a found
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            files=1
        else
            found+=("${${line//:/\\:}/$'\t'/:}")
        fi
    done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2> /dev/null)
    (( ${#found} )) && _describe coracle found
    [[ -n $files ]] && _files
}
if [[ $funcstack[1] == _coracle ]]; then
    _coracle "$@"
else
    compdef _coracle coracle
fi
