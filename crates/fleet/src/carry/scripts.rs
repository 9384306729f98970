//! What runs on hosts: plain shell and coreutils, because nothing of ours is there before.

/// The sum over the files of a tree, and their names.
macro_rules! sum_of {
    () => {
        "sum() { (cd \"$1\" && find . -type f -exec sha256sum {} + | sort -k 2 | sha256sum); }\n"
    };
}

/// Says why a host takes nothing; else whether the element waits or has begun, what it has whole, and how
/// much room there is. Arguments: home, token, then name and hash of each file.
pub(super) const ASK: &str = concat!(
    sum_of!(),
    r#"umask 022
made() {
  mkdir -p -m 711 "$1" || return
  [ -O "$1" ] && [ ! -L "$1" ] || { echo "$1 belongs to somebody else or is a link"; return 1; }
  mkdir -p "$2/in" "$2/log"
}
why=$(made "${1%/*}" "$1" 2>&1) || { echo "cannot $why"; exit 0; }
cd "$1" || exit 1
[ ! -f "go-$2" ] || { echo begun; exit 0; }
echo waits
rm -rf in && mkdir in || exit 1
shift 2
while [ $# -gt 0 ]; do
  case $1 in
  bin/*) [ -f "$1" ] && [ "$(sha256sum <"$1")" = "$2  -" ] && echo "has $1" ;;
  *) [ -d "$1" ] && [ "$(sum "$1")" = "$(cat "$1.sum" 2>/dev/null)" ] && echo "has $1" ;;
  esac
  shift 2
done
df -Pk . | awk 'NR == 2 { print "free " $4 }'
"#
);

/// Checks what has arrived, puts it in its place and lets the element begin. Arguments: home, token,
/// execution, then name and hash of each file.
pub(super) const UNPACK: &str = concat!(
    sum_of!(),
    r#"umask 022
cd "$1" || exit 1
go=go-$2 execution=$3
shift 3
while [ $# -gt 0 ]; do
  file=in/${1##*/}
  [ "$(sha256sum <"$file")" = "$2  -" ] || { echo "$file has arrived damaged" >&2; exit 1; }
  case $1 in
  bin/*) mkdir -p bin && chmod 755 "$file" && mv -f "$file" "$1" || exit 1 ;;
  servers/*)
    rm -rf "$1" "$1.sum" && mkdir -p "$1" && tar -C "$1" --no-same-owner -xpzf "$file" &&
      sum "$1" >"$1.sum" || exit 1 ;;
  *) rm -rf "x/$execution" && tar --no-same-owner -xf "$file" || exit 1 ;;
  esac
  rm -f "$file"
  shift 2
done
rm -f go-*
: >"$go"
"#
);

/// Prints the hashes of sealed files as they are there, a line `--`, then an archive. Arguments: home,
/// execution, then options of `tar`. A full disk is no reason to send nothing, so nothing is written.
pub(super) const COLLECT: &str = r#"cd "$1" 2>/dev/null || exit 0
part=x/$2
shift 2
set -- "$@" log
if [ -d "$part" ]; then
  find "$part" -name 'sealed-*' -type f -exec sha256sum {} +
  set -- "$@" "$part"
fi
echo --
exec tar -cf - --exclude='sealing-*' --exclude='.*.new-*' --exclude=lanes.json "$@"
"#;

/// Removes the home of an execution. Arguments: home.
pub(super) const CLEAN: &str = r#"rm -rf "$1""#;
