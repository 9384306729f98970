use super::*;
use crate::statement::Tuple;
use crate::statement::tests::statement;
use proptest::prelude::*;

const KEY: [u8; 32] = [7; 32];

fn simple(text: &str) -> Statement {
    Statement {
        text: text.to_owned(),
        ..statement()
    }
}

fn tuple(values: &[Option<&str>], text: Option<&str>) -> Tuple {
    Tuple {
        text: text.map(str::to_owned),
        values: values
            .iter()
            .map(|value| value.map(str::to_owned))
            .collect(),
        ms: Some(1.0),
        n: 1.0,
    }
}

fn redacted(statements: Vec<Statement>) -> Capture {
    let mut capture = Capture {
        statements,
        ..Capture::default()
    };
    redact(&mut capture, KEY);
    capture
}

fn value(text: &str) -> String {
    let mut one = statement();
    one.tuples = vec![tuple(&[Some(text)], None)];
    redacted(vec![one]).statements[0].tuples[0].values[0]
        .clone()
        .unwrap()
}

#[test]
fn a_text_keeps_its_words_and_operators_and_loses_values_and_comments() {
    let text = "SELECT a /* user=jones */ FROM t -- jones\nWHERE b = 'jones' AND c > 4711 \
                AND d = $tag$jones$tag$ \
                AND e = E'it\\'s jones' AND f = B'1011' LIMIT 25";
    let names =
        "INSERT INTO t VALUES (nextval('t_id_seq'), current_setting('app.mode'), 't'::regclass)";
    assert_eq!(redacted(vec![simple(names)]).statements[0].text, names);
    let found = redacted(vec![simple(text)]).statements[0].text.clone();
    for gone in ["jones", "4711", "1011", "/*", "--"] {
        assert!(!found.contains(gone), "{gone}: {found}");
    }
    for kept in ["SELECT a FROM t", "LIMIT 25", "$tag$", "E'", "AND f = B'"] {
        assert!(found.contains(kept), "{kept}: {found}");
    }
    let same = |text: &str| crate::Fingerprint::of(&tokens(text).tokens).normalised;
    assert_eq!(same(&found), same(text));
}

#[test]
fn equal_values_stay_equal_in_texts_and_parameters_and_others_stay_others() {
    let mut one = simple("SELECT 'O''Neill', 'other value'");
    one.tuples = vec![tuple(
        &[Some("O''Neill"), None, Some("x")],
        Some("SELECT 'O''Neill', 'third value'"),
    )];
    let found = redacted(vec![one]).statements.remove(0);
    let values = &found.tuples[0].values;
    let neill = values[0].clone().unwrap();
    assert_ne!(neill, "O''Neill");
    assert!(
        found.text.starts_with(&format!("SELECT '{neill}', '")),
        "{}",
        found.text
    );
    let own = found.tuples[0].text.clone().unwrap();
    assert!(own.starts_with(&format!("SELECT '{neill}', '")) && own != found.text);
    assert_eq!((&values[1], values[2].as_deref()), (&None, Some("x")));
}

#[test]
fn what_a_type_insists_on_stays() {
    for same in ["", "7", "-1", "t", "true", "NULL", "infinity", "day"] {
        assert_eq!(value(same), same);
    }
    let number = |text: &str| value(text).parse::<i64>().unwrap();
    assert!((10_000..=32_767).contains(&number("21000")));
    assert!((-2_147_483_647..=-1_000_000_000).contains(&number("-2000000000")));
    assert!(number("9000000000000000000") >= 1_000_000_000_000_000_000);
    let decimal = value("12.50");
    assert!(
        decimal.len() == 5 && decimal.parse::<f64>().unwrap() >= 10.0,
        "{decimal}"
    );
    let moment = value("2026-11-02 10:11:12.345+01");
    assert!(
        moment.starts_with("2026-") && moment.ends_with("+01"),
        "{moment}"
    );
    let field = |from: usize| moment[from..from + 2].parse::<u32>().unwrap();
    assert!((1..=12).contains(&field(5)) && (1..=28).contains(&field(8)) && field(11) < 24);
    assert!(field(14) < 60 && field(17) < 60);
    let date = value("1987-03-12");
    assert!(date.len() == 10 && date != "1987-03-12");
    let uuid = value("3f2504e0-4f89-41d3-9a0c-0305e82c3301");
    assert_eq!(uuid.matches('-').count(), 4);
    assert!(uuid.chars().all(|c| c == '-' || c.is_ascii_hexdigit()));
    assert!(value("\\x00ff10").starts_with("\\x"));
    let address = value("192.168.17.4/24");
    assert!(address.ends_with("/24") && address != "192.168.17.4/24");
    let object = value("{\"paid\": true, \"city\": \"Wien\", \"zip\": 1010}");
    assert!(
        serde_json::from_str::<serde_json::Value>(&object)
            .unwrap()
            .is_object()
    );
    assert!(object.contains(": true, ") && !object.contains("Wien"));
    let interval = value("15 days");
    assert!(interval.ends_with(" days") && interval.len() == 7);
    let like = value("%jones_@example.org");
    assert!(
        like.starts_with('%') && like.contains("_@") && like.len() == 19,
        "{like}"
    );
}

#[test]
fn another_key_gives_other_values_and_the_same_one_the_same() {
    let mut capture = Capture {
        statements: vec![simple("SELECT 'a long enough value'")],
        ..Capture::default()
    };
    let before = capture.clone();
    redact(&mut capture, KEY);
    assert!(capture.header.redacted && !before.header.redacted);
    let with = |key: [u8; 32]| {
        let mut other = before.clone();
        redact(&mut other, key);
        other.statements[0].text.clone()
    };
    assert_eq!(with(KEY), capture.statements[0].text);
    assert_ne!(with([8; 32]), capture.statements[0].text);
}

#[test]
fn a_sentence_that_begins_like_something_else_keeps_no_word() {
    for before in [
        "2026-11-02 ",
        "2026-11-02-",
        "2026-11-02T",
        "10:30 ",
        "10:30:11+",
        "10:30 Z",
        "10.1.2.3/",
        "42 ",
        "4.5",
        "'",
        "{",
        "[",
        "\\",
        "CORP\\",
        "Jan ",
        "15 days ",
        "\\x",
        "null ",
        "-",
        "",
    ] {
        for word in ["Smith", "hiv", "Dowson"] {
            let found = value(&format!("{before}{word} {word}"));
            assert!(!found.contains(word), "{before}{word} became {found}");
        }
    }
    for name in ["Jan", "Dow", "Jan Min Dow", "Mon", "min"] {
        assert_ne!(value(name), name);
    }
    assert_eq!(value("true"), "true");
    assert!(value("2026-11-02 10:11:12.5+00").starts_with("2026-"));
}

proptest! {
    /// No value of four characters or more stays, whatever it is made of.
    #[test]
    fn no_value_stays(text in "[a-zA-Z0-9äß漢 .,:@'-]{4,24}") {
        let has_letters = text.chars().filter(|c| c.is_alphanumeric()).count() >= 4;
        prop_assume!(has_letters && Shape::of(&text).is_some());
        // A year, and words that units of time are, may be all of it.
        let mut words = text.split(|c: char| !c.is_alphabetic());
        prop_assume!(!words.any(|word| word.len() > 1 && Shape::of(word).is_none()));
        let found = value(&text);
        prop_assert_ne!(&found, &text);
        let alike = |one: char, other: char| one.is_alphabetic() == other.is_alphabetic();
        let kept = Shape::of(&text) != Some(Shape::Text)
            || (found.chars().count() == text.chars().count()
                && found.chars().zip(text.chars()).all(|(one, other)| alike(one, other)));
        prop_assert!(kept, "{} became {}", text, found);
    }
}
