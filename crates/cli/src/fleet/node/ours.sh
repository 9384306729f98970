# Process ids of servers that a killed deltabench left: in a directory below one with an owner file whose lock is free.
left_servers() {
    for process in "$ROOT"/proc/[0-9]*; do
        [ "$(cat "$process/comm" 2>/dev/null)" = postgres ] || continue
        directory=$(readlink "$process/cwd") || continue
        while [ "$directory" != / ] && [ ! -f "$directory/owner.json" ]; do
            directory=$(dirname "$directory")
        done
        [ "$directory" != / ] && flock -n "$directory/owner.json" true && basename "$process"
    done
    return 0
}
