    # What the endpoint on the line can tell comes first, and else what is known without it.
    local -a antiphon_live
    antiphon_live=("${(@f)$(_call_program methods "$words[1]" completions zsh ${(q)${:-"${(j: :)words[1,CURRENT-1]} $PREFIX"}} 2>/dev/null)}")
    antiphon_live=("${(@)antiphon_live%%$'\t'*}")
    if [[ -n "$antiphon_live[1]" ]]; then
        if [[ "$antiphon_live[1]" == *= ]]; then
            compadd -S '' -a antiphon_live
        else
            compadd -a antiphon_live
        fi
        return
    fi
