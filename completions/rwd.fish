# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_rwd_global_optspecs
    string join \n C= data-dir= session= index= json q/quiet v/verbose color= y/yes no-input force h/help V/version
end

function __fish_rwd_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_rwd_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_rwd_using_subcommand
    set -l cmd (__fish_rwd_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c rwd -n "__fish_rwd_needs_command" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_needs_command" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_needs_command" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_needs_command" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_needs_command" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_needs_command" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_needs_command" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_needs_command" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_needs_command" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_needs_command" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_needs_command" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_needs_command" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_needs_command" -s V -l version -d 'Print version'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "log" -d 'Show the timeline of this workspace (also: bare rwd)'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "save" -d 'Make a point now'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "show" -d 'Show a point, or the content of a path in it'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "diff" -d 'Show what differs between two points, or a point and now'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "preview" -d 'Show what `rwd to` would do, and change nothing'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "to" -d 'Go to a point'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "back" -d 'Go to the start of the last turn, or of the N-th last'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "undo" -d 'Take the last restore back, or the one named'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "redo" -d 'Take the last undo back'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "recover" -d 'Finish an interrupted operation or take it back'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "name" -d 'Pin a point with a name'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "drop" -d 'Remove points'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "mark" -d 'Mark where an exploration begins, so that it can be folded'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "fold" -d 'Replace what followed the mark by a short report, in a new session'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "status" -d 'Show how this workspace is protected'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "du" -d 'Show how much is stored'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "gc" -d 'Remove what is no longer needed'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "purge" -d 'Take content out of every point for good, as a secret that was stored'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "doctor" -d 'Check the installation and this workspace\'s store'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "verify" -d 'Check that every point can be restored'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "init" -d 'Set up the agents that are here, and make the first point'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "uninstall" -d 'Take out of the agents\' settings what `rwd init` put there; points stay'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "run" -d 'Run a command, with points before, while it runs, and after'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "import" -d 'Take over what an older plugin recorded, as points; its store is only read'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "adopt" -d 'Take over a workspace that moved, or whose directory was replaced'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "session" -d 'Look at session logs of a harness, fork them, check them; needs no workspace'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "config" -d 'Show or change settings'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "sidecar" -d 'Serve a harness: JSON-RPC on standard input and output (docs/sidecar.md)'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "mcp" -d 'Serve an agent\'s model: MCP on standard input and output (docs/mcp.md)'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "completions" -d 'Print completions for a shell'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "hook" -d 'Take in what an agent reports on standard input; called by its hooks'
complete -c rwd -n "__fish_rwd_needs_command" -f -a "demo" -d 'Show in a temporary directory what rwd does, and check every byte'
complete -c rwd -n "__fish_rwd_using_subcommand log" -s n -d 'At most N, the newest' -r
complete -c rwd -n "__fish_rwd_using_subcommand log" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand log" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand log" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand log" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand log" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand log" -l all -d 'Everything: guards, gaps, and no limit'
complete -c rwd -n "__fish_rwd_using_subcommand log" -l graph -d 'Draw sessions as lanes'
complete -c rwd -n "__fish_rwd_using_subcommand log" -l named -d 'Only points with a name'
complete -c rwd -n "__fish_rwd_using_subcommand log" -l ops -d 'Operations instead of points'
complete -c rwd -n "__fish_rwd_using_subcommand log" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand log" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand log" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand log" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand log" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand log" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand log" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand save" -s m -d 'A note for people' -r
complete -c rwd -n "__fish_rwd_using_subcommand save" -l name -d 'Pin the point with a name' -r
complete -c rwd -n "__fish_rwd_using_subcommand save" -l turn -d 'The turn it belongs to' -r
complete -c rwd -n "__fish_rwd_using_subcommand save" -l step -d 'The step it belongs to' -r
complete -c rwd -n "__fish_rwd_using_subcommand save" -l kind -d 'What it is for' -r -f -a "turn-start\t'A turn begins'
turn-end\t'A turn has ended'
step\t'A step has ended'
mutation\t'A mutating tool is about to run'
auto\t'Made by a timer'
manual\t'Asked for by a person'
interrupt\t'The session\'s open turn was interrupted: no point is made'"
complete -c rwd -n "__fish_rwd_using_subcommand save" -l trigger -d 'The tool or command that caused it' -r
complete -c rwd -n "__fish_rwd_using_subcommand save" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand save" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand save" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand save" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand save" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand save" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand save" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand save" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand save" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand save" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand save" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand save" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rwd -n "__fish_rwd_using_subcommand show" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand show" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand show" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand show" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand show" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand show" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand show" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand show" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand show" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand show" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand show" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand show" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand diff" -l paths-from -d 'Read further paths from FILE, one a line; `-` is standard input' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand diff" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand diff" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand diff" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand diff" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand diff" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand diff" -l stat -d 'Count lines'
complete -c rwd -n "__fish_rwd_using_subcommand diff" -l name-only -d 'Only names'
complete -c rwd -n "__fish_rwd_using_subcommand diff" -s p -l patch -d 'As a patch'
complete -c rwd -n "__fish_rwd_using_subcommand diff" -s 0 -d 'Paths in FILE end with a NUL byte'
complete -c rwd -n "__fish_rwd_using_subcommand diff" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand diff" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand diff" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand diff" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand diff" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand diff" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand diff" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l boundary -d 'Cut the conversation before or after the point\'s turn' -r -f -a "before\t'Before the turn of the point'
after\t'After it'"
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l overwrite -d 'Restore this path although it was changed by hand' -r
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l guard -d 'What to do when a path cannot be guarded' -r -f -a "require\t'Abort when something cannot be guarded'
warn\t'Leave out what cannot be guarded'
off\t'Do not list the guard'"
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l plan -d 'Only if the plan is still this one' -r
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l paths-from -d 'Read further paths from FILE, one a line; `-` is standard input' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand preview" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l files -d 'Only files'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l chat -d 'Only the conversation'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l both -d 'Files and conversation, or nothing'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l exact -d 'Remove what the target did not have'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l adopt -d 'Also points made before this directory was replaced'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l keep-drift -d 'Leave alone what was changed by hand'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l overwrite-drift -d 'Restore what was changed by hand, too'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l with-others -d 'Restore what other sessions changed, too'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l skip-blocked -d 'Go on without paths that cannot be restored'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -s 0 -d 'Paths in FILE end with a NUL byte'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand preview" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l boundary -d 'Cut the conversation before or after the point\'s turn' -r -f -a "before\t'Before the turn of the point'
after\t'After it'"
complete -c rwd -n "__fish_rwd_using_subcommand to" -l overwrite -d 'Restore this path although it was changed by hand' -r
complete -c rwd -n "__fish_rwd_using_subcommand to" -l guard -d 'What to do when a path cannot be guarded' -r -f -a "require\t'Abort when something cannot be guarded'
warn\t'Leave out what cannot be guarded'
off\t'Do not list the guard'"
complete -c rwd -n "__fish_rwd_using_subcommand to" -l plan -d 'Only if the plan is still this one' -r
complete -c rwd -n "__fish_rwd_using_subcommand to" -l paths-from -d 'Read further paths from FILE, one a line; `-` is standard input' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand to" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand to" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand to" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand to" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand to" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand to" -l files -d 'Only files'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l chat -d 'Only the conversation'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l both -d 'Files and conversation, or nothing'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l exact -d 'Remove what the target did not have'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l adopt -d 'Also points made before this directory was replaced'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l keep-drift -d 'Leave alone what was changed by hand'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l overwrite-drift -d 'Restore what was changed by hand, too'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l with-others -d 'Restore what other sessions changed, too'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l skip-blocked -d 'Go on without paths that cannot be restored'
complete -c rwd -n "__fish_rwd_using_subcommand to" -s 0 -d 'Paths in FILE end with a NUL byte'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand to" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand to" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand to" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand to" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand to" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l boundary -d 'Cut the conversation before or after the point\'s turn' -r -f -a "before\t'Before the turn of the point'
after\t'After it'"
complete -c rwd -n "__fish_rwd_using_subcommand back" -l overwrite -d 'Restore this path although it was changed by hand' -r
complete -c rwd -n "__fish_rwd_using_subcommand back" -l guard -d 'What to do when a path cannot be guarded' -r -f -a "require\t'Abort when something cannot be guarded'
warn\t'Leave out what cannot be guarded'
off\t'Do not list the guard'"
complete -c rwd -n "__fish_rwd_using_subcommand back" -l plan -d 'Only if the plan is still this one' -r
complete -c rwd -n "__fish_rwd_using_subcommand back" -l paths-from -d 'Read further paths from FILE, one a line; `-` is standard input' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand back" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand back" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand back" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand back" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand back" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand back" -l files -d 'Only files'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l chat -d 'Only the conversation'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l both -d 'Files and conversation, or nothing'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l exact -d 'Remove what the target did not have'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l adopt -d 'Also points made before this directory was replaced'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l keep-drift -d 'Leave alone what was changed by hand'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l overwrite-drift -d 'Restore what was changed by hand, too'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l with-others -d 'Restore what other sessions changed, too'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l skip-blocked -d 'Go on without paths that cannot be restored'
complete -c rwd -n "__fish_rwd_using_subcommand back" -s 0 -d 'Paths in FILE end with a NUL byte'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand back" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand back" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand back" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand back" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand back" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l overwrite -d 'Restore this path although it was changed by hand' -r
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l guard -d 'What to do when a path cannot be guarded' -r -f -a "require\t'Abort when something cannot be guarded'
warn\t'Leave out what cannot be guarded'
off\t'Do not list the guard'"
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l plan -d 'Only if the plan is still this one' -r
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l paths-from -d 'Read further paths from FILE, one a line; `-` is standard input' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand undo" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l keep-drift -d 'Leave alone what was changed by hand'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l overwrite-drift -d 'Restore what was changed by hand, too'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l with-others -d 'Restore what other sessions changed, too'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l skip-blocked -d 'Go on without paths that cannot be restored'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -s 0 -d 'Paths in FILE end with a NUL byte'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand undo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l overwrite -d 'Restore this path although it was changed by hand' -r
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l guard -d 'What to do when a path cannot be guarded' -r -f -a "require\t'Abort when something cannot be guarded'
warn\t'Leave out what cannot be guarded'
off\t'Do not list the guard'"
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l plan -d 'Only if the plan is still this one' -r
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l paths-from -d 'Read further paths from FILE, one a line; `-` is standard input' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand redo" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l keep-drift -d 'Leave alone what was changed by hand'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l overwrite-drift -d 'Restore what was changed by hand, too'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l with-others -d 'Restore what other sessions changed, too'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l skip-blocked -d 'Go on without paths that cannot be restored'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -s 0 -d 'Paths in FILE end with a NUL byte'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand redo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rwd -n "__fish_rwd_using_subcommand recover" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand recover" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand recover" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand recover" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand recover" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand recover" -l finish -d 'Forward: do the rest'
complete -c rwd -n "__fish_rwd_using_subcommand recover" -l back -d 'Back: as it was before'
complete -c rwd -n "__fish_rwd_using_subcommand recover" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand recover" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand recover" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand recover" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand recover" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand recover" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand recover" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand name" -l delete -d 'Remove this name; the point stays' -r
complete -c rwd -n "__fish_rwd_using_subcommand name" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand name" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand name" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand name" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand name" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand name" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand name" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand name" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand name" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand name" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand name" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand name" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand drop" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand drop" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand drop" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand drop" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand drop" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand drop" -l all -d 'All points of this workspace'
complete -c rwd -n "__fish_rwd_using_subcommand drop" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand drop" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand drop" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand drop" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand drop" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand drop" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand drop" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand mark" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand mark" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand mark" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand mark" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand mark" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand mark" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand mark" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand mark" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand mark" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand mark" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand mark" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand mark" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand fold" -l report -d 'The report, as text in FILE' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand fold" -l language -d 'Language of a report that is made from the log' -r -f -a "en\t'English'
zh\t'Chinese'"
complete -c rwd -n "__fish_rwd_using_subcommand fold" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand fold" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand fold" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand fold" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand fold" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand fold" -l extract -d 'Make the report from the log alone: paths, commands, errors, the last words [default]'
complete -c rwd -n "__fish_rwd_using_subcommand fold" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand fold" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand fold" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand fold" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand fold" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand fold" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand fold" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rwd -n "__fish_rwd_using_subcommand status" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand status" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand status" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand status" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand status" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand status" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand status" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand status" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand status" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand status" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand status" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand status" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand du" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand du" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand du" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand du" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand du" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand du" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand du" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand du" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand du" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand du" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand du" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand du" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand gc" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand gc" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand gc" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand gc" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand gc" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand gc" -l dry-run -d 'Only say what would go'
complete -c rwd -n "__fish_rwd_using_subcommand gc" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand gc" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand gc" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand gc" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand gc" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand gc" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand gc" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand purge" -l match -d 'Paths that match GLOB, with all below them; from the workspace\'s root, as capture.excludes' -r
complete -c rwd -n "__fish_rwd_using_subcommand purge" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand purge" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand purge" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand purge" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand purge" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand purge" -l dry-run -d 'Only say what would go'
complete -c rwd -n "__fish_rwd_using_subcommand purge" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand purge" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand purge" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand purge" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand purge" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand purge" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand purge" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -l fix -d 'Put right what can be put right safely'
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand verify" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand verify" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand verify" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand verify" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand verify" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand verify" -l rehash -d 'Read every byte'
complete -c rwd -n "__fish_rwd_using_subcommand verify" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand verify" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand verify" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand verify" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand verify" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand verify" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand verify" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand init" -l agent -d 'Set up this agent; repeatable [default: those that are found]' -r -f -a "claude\t'Claude Code'
codex\t'Codex'
gemini\t'Gemini CLI'
opencode\t'opencode'
cursor\t'Cursor'
cline\t'Cline'"
complete -c rwd -n "__fish_rwd_using_subcommand init" -l scope -d 'For whom [default: local]' -r -f -a "local\t'You, in this workspace; where an agent has no such settings: as user'
project\t'Everybody who has this project: the settings are part of it'
user\t'You, in every directory'"
complete -c rwd -n "__fish_rwd_using_subcommand init" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand init" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand init" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand init" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand init" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand init" -l dry-run -d 'Only show what would be changed'
complete -c rwd -n "__fish_rwd_using_subcommand init" -l trust-codex -d 'Say in Codex\'s settings that you trust these hooks, so that it runs them without asking'
complete -c rwd -n "__fish_rwd_using_subcommand init" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand init" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand init" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand init" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand init" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand init" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -l agent -d 'Only this agent; repeatable [default: all]' -r -f -a "claude\t'Claude Code'
codex\t'Codex'
gemini\t'Gemini CLI'
opencode\t'opencode'
cursor\t'Cursor'
cline\t'Cline'"
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -l scope -d 'Only what was set up for this scope [default: all]' -r -f -a "local\t'You, in this workspace; where an agent has no such settings: as user'
project\t'Everybody who has this project: the settings are part of it'
user\t'You, in every directory'"
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -l dry-run -d 'Only show what would be changed'
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -l purge-data -d 'Remove the points of this workspace too'
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand uninstall" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rwd -n "__fish_rwd_using_subcommand run" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand run" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand run" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand run" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand run" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand run" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand run" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand run" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand run" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand run" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand run" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand run" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand import" -l from -d 'Which plugin\'s store' -r -f -a "dsh-checkpoint\t'States at the end of turns'
dsh-checkpoint-rewind\t'States before tools ran'
tool-checkpoint\t'Marks of explorations'"
complete -c rwd -n "__fish_rwd_using_subcommand import" -l path -d 'Where its store is, if not in its default place below the home of DeepSeek Harness' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand import" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand import" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand import" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand import" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand import" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand import" -l once -d 'Do nothing if this workspace took something from such a store before'
complete -c rwd -n "__fish_rwd_using_subcommand import" -l dry-run -d 'Only say what would come in'
complete -c rwd -n "__fish_rwd_using_subcommand import" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand import" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand import" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand import" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand import" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand import" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand adopt" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -f -a "list" -d 'List sessions'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -f -a "show" -d 'Show a session and its turns'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -f -a "boundaries" -d 'Show where a session can be cut'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -f -a "fork" -d 'Make a new session of the beginning of one; the old one stays as it is'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -f -a "verify" -d 'Check that the harness can load a session, and that its log keeps every rule'
complete -c rwd -n "__fish_rwd_using_subcommand session; and not __fish_seen_subcommand_from list show boundaries fork verify repair" -f -a "repair" -d 'Write a repaired copy of a session\'s log beside it; the log itself stays as it is'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -l harness -d 'Which harness\'s logs' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -l home -d 'Where they are: for dsh the directory that holds sessions/ [default: $DSH_HOME, else ~/.dsh]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -l harness -d 'Which harness\'s logs' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -l home -d 'Where they are: for dsh the directory that holds sessions/ [default: $DSH_HOME, else ~/.dsh]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -l harness -d 'Which harness\'s logs' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -l home -d 'Where they are: for dsh the directory that holds sessions/ [default: $DSH_HOME, else ~/.dsh]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from boundaries" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l harness -d 'Which harness\'s logs' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l home -d 'Where they are: for dsh the directory that holds sessions/ [default: $DSH_HOME, else ~/.dsh]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l at -d 'Last event that the new session shares' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l turn -d 'Last turn that the new session shares [default: all of them, which must have ended]' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l child -d 'Id of the new session' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from fork" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -l harness -d 'Which harness\'s logs' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -l home -d 'Where they are: for dsh the directory that holds sessions/ [default: $DSH_HOME, else ~/.dsh]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -l harness -d 'Which harness\'s logs' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -l home -d 'Where they are: for dsh the directory that holds sessions/ [default: $DSH_HOME, else ~/.dsh]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -l to -d 'The file to write [default: beside the log, its name with .repaired]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand session; and __fish_seen_subcommand_from repair" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -f -a "list" -d 'Show all settings'
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -f -a "get" -d 'Show one setting'
complete -c rwd -n "__fish_rwd_using_subcommand config; and not __fish_seen_subcommand_from list get set" -f -a "set" -d 'Change a setting of yours'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -l origin -d 'And where each comes from'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand config; and __fish_seen_subcommand_from set" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand sidecar" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand mcp" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand completions" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand completions" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand completions" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand completions" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand completions" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand completions" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand completions" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand completions" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand completions" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand completions" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand completions" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand completions" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand hook" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand hook" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand hook" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand hook" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand hook" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand hook" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand hook" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand hook" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand hook" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand hook" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand hook" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand hook" -s h -l help -d 'Print help'
complete -c rwd -n "__fish_rwd_using_subcommand demo" -s C -d 'Work as if started in DIR' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand demo" -l data-dir -d 'Where points are kept [default: $RWD_DATA_DIR, else $XDG_DATA_HOME/rwd]' -r -F
complete -c rwd -n "__fish_rwd_using_subcommand demo" -l session -d 'The conversation meant by targets that name none' -r
complete -c rwd -n "__fish_rwd_using_subcommand demo" -l index -d 'Kind of index for a new workspace' -r -f -a "sqlite\t''
json\t''"
complete -c rwd -n "__fish_rwd_using_subcommand demo" -l color -d 'When to use colours' -r -f -a "auto\t''
always\t''
never\t''"
complete -c rwd -n "__fish_rwd_using_subcommand demo" -l keep -d 'Leave the directory there'
complete -c rwd -n "__fish_rwd_using_subcommand demo" -l json -d 'Answer with one JSON object'
complete -c rwd -n "__fish_rwd_using_subcommand demo" -s q -l quiet -d 'Say only what was asked for'
complete -c rwd -n "__fish_rwd_using_subcommand demo" -s v -l verbose -d 'Say what is being done; twice: in detail'
complete -c rwd -n "__fish_rwd_using_subcommand demo" -s y -l yes -d 'Confirm beforehand'
complete -c rwd -n "__fish_rwd_using_subcommand demo" -l no-input -d 'Never ask'
complete -c rwd -n "__fish_rwd_using_subcommand demo" -l force -d 'Go on where rwd refuses as a precaution'
complete -c rwd -n "__fish_rwd_using_subcommand demo" -s h -l help -d 'Print help'
