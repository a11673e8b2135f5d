
# What the endpoint on the line can tell comes first, and else what is known without it.
_antiphon_live() {
    local line="${COMP_LINE:0:COMP_POINT}" word begun="" suggested
    word="${line##*[[:space:]]}"
    if [[ "$word" != -* ]]; then
        # To readline a word begins behind the last of these.
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
