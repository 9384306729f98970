# Process ids of servers that a killed deltabench left: they run as the user whom the owner file of a directory above them names, its
# lock is free, and root or that user wrote it.
left_servers() {
    for process in "$ROOT"/proc/[0-9]*; do
        [ "$(cat "$process/comm" 2>/dev/null)" = postgres ] || continue
        user=$(stat -Lc %u "$process") || continue
        owner=$(readlink "$process/cwd") || continue
        while [ "$owner" != / ] && [ ! -f "$owner/owner.json" ]; do owner=$(dirname "$owner"); done
        owner=$owner/owner.json
        case $(stat -c %u "$owner" 2>/dev/null) in 0 | "$user") ;; *) continue ;; esac
        grep -q '"deltabench.workspace"' "$owner" && grep -Eq "\"server_uid\": *$user\\b" "$owner" &&
            flock -n "$owner" true && basename "$process"
    done
    return 0
}
