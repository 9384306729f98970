//! Addresses as they may be shown and kept: without the name and password that some hold.

/// The text with `user:password@` taken out of every address in it.
pub(crate) fn without_credentials(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        // A name or password holds none of these unless it is written as `%2F`.
        let is_end = |one: char| one.is_whitespace() || "/?#'\"<>".contains(one);
        let (host, tail) = after.split_at(after.find(is_end).unwrap_or(after.len()));
        shown.push_str(host.rsplit_once('@').map_or(host, |(_, host)| host));
        rest = tail;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_go_and_everything_else_stays() {
        for (text, shown) in [
            ("https://u:S3@m.example/p", "https://m.example/p"),
            ("https://token@m.example:8443", "https://m.example:8443"),
            (
                "E: 'https://u:a@b@m/x' and http://v:S3@n failed",
                "E: 'https://m/x' and http://n failed",
            ),
            ("https://m.example/p@2/x y@z", "https://m.example/p@2/x y@z"),
            ("file:///srv/a@b", "file:///srv/a@b"),
            ("nothing@all", "nothing@all"),
            ("", ""),
        ] {
            assert_eq!(without_credentials(text), shown);
        }
    }
}
