
# Candidates of the endpoint come first; without any, the static ones of clap.
_antiphon_dynamic() {
    local line="${COMP_LINE:0:COMP_POINT}" word begun="" suggested
    word="${line##*[[:space:]]}"
    if [[ "$word" != -* ]]; then
        # readline starts a new word after each of these characters.
        [[ "$COMP_WORDBREAKS" == *[:=]* ]] && begun="${word%"${word##*[:=]}"}"
        COMPREPLY=()
        while IFS=$'\t' read -r suggested _; do
            COMPREPLY+=("${suggested#"$begun"}")
        done < <("$1" completions bash "$line" 2>/dev/null)
        if [[ ${#COMPREPLY[@]} -gt 0 ]]; then
            [[ "${COMPREPLY[0]}" == *= ]] && compopt -o nospace 2>/dev/null
            return 0
        fi
    fi
    _antiphon "$@"
}
