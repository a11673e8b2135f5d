
# Candidates of the endpoint on the command line.
function __antiphon_dynamic
    set -l words (commandline -pxc 2>/dev/null; or commandline -poc)
    command $words[1] completions fish (commandline -pc | string collect) 2>/dev/null
end
complete -c antiphon -n "__fish_antiphon_using_subcommand call notify subscribe describe" -f -a "(__antiphon_dynamic)"
