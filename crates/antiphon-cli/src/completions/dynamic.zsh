    # Candidates of the endpoint come first; without any, the static ones of clap.
    local -a antiphon_dynamic
    antiphon_dynamic=("${(@f)$(_call_program methods "$words[1]" completions zsh ${(q)${:-"${(j: :)words[1,CURRENT-1]} $PREFIX"}} 2>/dev/null)}")
    antiphon_dynamic=("${(@)antiphon_dynamic%%$'\t'*}")
    if [[ -n "$antiphon_dynamic[1]" ]]; then
        if [[ "$antiphon_dynamic[1]" == *= ]]; then
            compadd -S '' -a antiphon_dynamic
        else
            compadd -a antiphon_dynamic
        fi
        return
    fi
