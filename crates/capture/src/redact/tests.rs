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
    for kept in ["SELECT a FROM t", "LIMIT 25", "$d$", "E'", "AND f = B'"] {
        assert!(found.contains(kept), "{kept}: {found}");
    }
    let same = |text: &str| crate::Fingerprint::of(&tokens(text).tokens).normalised;
    assert_eq!(same(&found), same(text));
}

#[test]
fn equal_values_stay_equal_in_texts_and_parameters_and_others_stay_others() {
    let mut one = simple("SELECT 'O''Neill', 'other value'");
    one.tuples = vec![tuple(
        &[Some("O'Neill"), None, Some("x")],
        Some("SELECT 'O''Neill', 'third value'"),
    )];
    let found = redacted(vec![one]).statements.remove(0);
    let values = &found.tuples[0].values;
    let neill = values[0].clone().unwrap();
    assert_ne!(neill, "O'Neill");
    let neill = neill.replace('\'', "''");
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
    for same in [
        "",
        "7",
        "-1",
        "t",
        "true",
        "null",
        "infinity",
        "-Infinity",
        "day",
        " ",
    ] {
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

#[test]
fn the_whole_value_has_the_shape_or_none_of_it_stays() {
    // Two digits of a whole may be drawn again; so many may not.
    for (value_of, secrets) in [
        (" 10:30:11.123456", &["10:30:11", "123456"][..]),
        ("+10:30:11.123456", &["10:30:11", "123456"]),
        ("-2026-11-02", &["2026"]),
        ("2026-11-02 10:30-19870312", &["2026", "19870312"]),
        ("10:30-19870312", &["19870312"]),
        ("10:30+05:19870312", &["19870312"]),
        ("1e19870312", &["19870312"]),
        ("1.5e19870312", &["19870312"]),
        ("10.1.2.3/19870312", &["19870312"]),
        ("4929-12-34", &["4929"]),
        ("4711-12-30 10:30", &["4711"]),
        ("winter2024Day", &["winter", "2024", "Day"]),
        ("winter 2024 days", &["winter", "2024", "days"]),
        ("2024 days of Smith", &["2024", "days", "Smith"]),
        ("Christopher Null", &["Christopher", "Null"]),
        ("null island", &["null", "island"]),
        ("TRUE", &["TRUE"]),
        ("Null", &["Null"]),
        ("{Smith,null,winter}", &["Smith", "null", "winter"]),
        ("[Smith,today]", &["Smith", "today"]),
        ("(Smith,2026-11-02)", &["Smith", "2026"]),
        (
            "{\"now\": \"today\", \"yes\": [\"Smith\", 19870312]}",
            &["now", "today", "yes", "Smith", "19870312"],
        ),
        ("{\"\\u0053mith\": 1e400}", &["Smith", "mith", "1e400"]),
        ("٤٧١١٤٧١١", &["٤٧١١", "٤٧"]),
        ("Ⅻ½㊿Ⅻ½㊿", &["Ⅻ½", "㊿"]),
        ("क्षत्रिय क्षत्रिय", &["क्ष", "त्रि"]),
        ("Z\u{301}e\u{308}z", &["\u{301}", "\u{308}"]),
        ("👩‍👩‍👧👩‍👩‍👧", &["👩", "👧", "\u{200d}"]),
        (
            "Smith\u{a0}Dowson\u{a0}Smith",
            &["Smith", "Dowson", "\u{a0}Sm"],
        ),
        ("\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}", &["\u{1}\u{2}"]),
        ("CORP\\jones", &["jones"]),
        ("\\x53mith", &["53", "mith"]),
        ("123456789012345678901234.5678", &["1234567890"]),
        ("1234567890123456789012345", &["1234567890"]),
        ("0049174711", &["0049174711", "4711"]),
        ("feed:dead:beef::4929", &["feed", "dead", "4929"]),
        ("P19870312D", &["19870312"]),
        ("1987 days ago now", &["1987", "days", "now"]),
    ] {
        let found = value(value_of);
        for secret in secrets {
            assert!(!found.contains(secret), "{value_of} became {found}");
        }
    }
}

#[test]
fn values_of_types_stay_values_of_them() {
    for (text, kept) in [
        (" 10:30 ", " "),
        ("2026-11-02T10:11:12.123456789Z", "2026-"),
        ("2026-11-02 10:11:12 UTC", "2026-"),
        ("{2026-11-02,2026-11-03,NULL}", "{2026-"),
        ("[2026-11-02,2026-11-05)", "[2026-"),
        ("[\"2026-11-02 10:00:00+01\",)", "[\"2026-"),
        ("{\"2026-11-02 10:00:00+01\"}", "{\"2026-"),
        ("1 year 2 mons -30 days 04:05:06", ""),
        ("-15 days ago", "-"),
        ("-10:30:11", "-"),
        ("1e10", ""),
        ("1.25E-07", ""),
        ("fd00::12:1", ""),
        ("08:00:2b:01:02:03", ""),
    ] {
        let found = value(text);
        let shape = |text: &str| Shape::of(text.trim());
        assert!(
            found.starts_with(kept) && found != text,
            "{text} became {found}"
        );
        assert_eq!(shape(&found), shape(text), "{text} became {found}");
        assert_eq!(parts::parts(&found).is_some(), parts::parts(text).is_some());
    }
    assert!(value("1e10").ends_with("e10") && value("1.25E-07").ends_with("E-07"));
    assert!(value("1 year 2 mons 3 days").contains(" mons "));
    let ends =
        value("{\"paid\": true, \"n\": 4711.5, \"x\": null, \"big\": 12345678901234567890123}");
    let json: serde_json::Value = serde_json::from_str(&ends).unwrap();
    assert_eq!(json.as_object().unwrap().len(), 4, "{ends}");
    assert!(!ends.contains("4711") && ends.contains("true") && ends.contains("null"));
    let range = value("[Smith,4711)");
    assert!(range.starts_with('[') && !range.contains("4711"));
}

#[test]
fn equal_values_are_equal_inside_of_json_and_arrays_too() {
    let mut one = simple("SELECT 1 WHERE a = 'Wien''s' AND b->>'city' = $1");
    one.tuples = vec![tuple(
        &[Some("{\"city\": \"Wien's\"}"), Some("{Wien's,\"city\"}")],
        None,
    )];
    let found = redacted(vec![one]).statements.remove(0);
    let json = found.tuples[0].values[0].clone().unwrap();
    let json: BTreeMap<String, String> = serde_json::from_str(&json).unwrap();
    let (city, wien) = json.iter().next().unwrap();
    let array = found.tuples[0].values[1].clone().unwrap();
    assert_eq!(array, format!("{{{wien},\"{city}\"}}"));
    let quoted = wien.replace('\'', "''");
    assert!(
        found.text.contains(&format!("'{quoted}'")),
        "{}",
        found.text
    );
    assert!(
        found.text.contains(&format!("b->>'{city}'")),
        "{}",
        found.text
    );
}

#[test]
fn literals_are_of_the_same_kind_and_no_word_of_them_stays() {
    let text = "SELECT 1e19870312, 0x1987abcd, 1_987_031_2, .19870312, 123456789012345678901, X'Smith', \
                B'Smith', U&'\\0053mith', E'\\x53mith\\'Smith', N'Smith', $Smith$Smith$Smith$, 'a'\n'Smith' \
                FROM t WHERE at AT TIME ZONE 'Europe/Smith' > now() AND first = 'Smith' \
                AND 'Smith 1'::regclass = nextval('19870312') LIMIT 19870312987";
    let found = redacted(vec![simple(text)]).statements[0].text.clone();
    for gone in [
        "Smith",
        "mith",
        "1987",
        "987_",
        "031_2",
        "Europe",
        "123456789",
    ] {
        assert!(!found.contains(gone), "{gone}: {found}");
    }
    assert!(found.contains("AT TIME ZONE 'UTC'"), "{found}");
    let same = |text: &str| crate::Fingerprint::of(&tokens(text).tokens).normalised;
    assert_eq!(same(&found), same(text));
}

#[test]
fn the_servers_identifiers_of_texts_are_left_out() {
    let found = redacted(vec![simple("SELECT 1")]).statements.remove(0);
    assert!(!statement().query_ids.is_empty() && found.query_ids.is_empty());
}

#[test]
fn no_value_stands_for_itself_however_few_there_are() {
    let mut one = statement();
    let numbers: Vec<String> = (10..100).map(|number| number.to_string()).collect();
    one.tuples = numbers
        .iter()
        .map(|number| tuple(&[Some(number)], None))
        .collect();
    let found = redacted(vec![one]).statements.remove(0);
    let mut others = BTreeSet::new();
    for (tuple, number) in found.tuples.iter().zip(&numbers) {
        let other = tuple.values[0].clone().unwrap();
        assert_ne!(&other, number);
        others.insert(other);
    }
    // The last ones may find none that is unused, apart from themselves.
    assert!(others.len() > 80, "{}", others.len());
    let mut texts: Vec<String> = [
        "B'0'", "B'1'", "B'01'", "X'f'", "007", "00", "1_0", "12", "1.",
    ]
    .iter()
    .map(|text| (*text).to_owned())
    .collect();
    texts.extend((0..16).map(|digit| format!("0x{digit:X}")));
    texts.extend((0..16).map(|digit| format!("x'{digit:X}'")));
    texts.extend((0..2).map(|digit| format!("0b{digit}")));
    let text = format!("SELECT {}", texts.join(", "));
    let found = redacted(vec![simple(&text)]).statements.remove(0).text;
    for (new, old) in tokens(&found).tokens.iter().zip(&tokens(&text).tokens) {
        let is_literal = old.kind == TokenKind::Literal;
        assert_eq!(new.text == old.text, !is_literal, "{} in {found}", old.text);
    }
}

#[test]
fn a_number_has_the_same_digits_with_a_sign_and_without() {
    let mut one =
        simple("SELECT a FROM t WHERE b = -4711 AND c = 4711 AND d = '-4711' AND e = -12.75");
    one.tuples = vec![tuple(&[Some("-4711"), Some("+4711"), Some("-12.75")], None)];
    let found = redacted(vec![one]).statements.remove(0);
    let values: Vec<String> = found.tuples[0].values.iter().flatten().cloned().collect();
    let digits = values[0].strip_prefix('-').unwrap();
    assert_ne!(digits, "4711");
    assert_eq!(values[1], format!("+{digits}"));
    assert_eq!(
        found.text,
        format!(
            "SELECT a FROM t WHERE b = -{digits} AND c = {digits} AND d = '-{digits}' AND e = {}",
            values[2]
        )
    );
}

#[test]
fn a_literal_ends_where_its_value_does() {
    let kinds = |text: &str| {
        let found = tokens(text);
        assert!(!found.is_cut, "{text}");
        let kinds = found.tokens.iter().map(|token| token.kind);
        kinds.collect::<Vec<_>>()
    };
    let mut texts: Vec<String> = [
        "SELECT E'{\"a\": \"\\u0027, b\"}', a",
        "SELECT E'{\"a\": \"\\u0027\\u0027, b\"}', a",
        "SELECT E'[\"it''s\\\\\"]', E'it\\'s''t', a",
        "SELECT U&'{\"a\": \"it''s\"}', a",
        "SELECT $${\"a\": \"\\u0024\\u0024, b\"}$$, a",
        "SELECT $q${\"a\": \"\\u0024d\\u0024, b\"}$q$, a",
    ]
    .iter()
    .map(|text| (*text).to_owned())
    .collect();
    // One of the letters becomes the tag's.
    texts.extend(('a'..='z').map(|letter| format!("SELECT $q$a${letter}$b$q$, a")));
    let text = ('a'..='z')
        .map(|letter| format!("${letter}$"))
        .collect::<String>();
    texts.extend((0..20).map(|at| format!("SELECT $q1$ {at} {text} $q1$, a")));
    for text in texts {
        let found = redacted(vec![simple(&text)]).statements.remove(0).text;
        assert_eq!(kinds(&found), kinds(&text), "{text} became {found}");
    }
}

#[test]
fn what_has_nothing_to_replace_stays() {
    for text in ["***", "\\n", "\\n\\\\.", "::", " - "] {
        assert!(draw::is_fixed(text), "{text}");
        assert_eq!(value(text), text);
    }
    for text in ["n", "\\\\n", "**a", "\u{1}*", "\\x"] {
        assert!(!draw::is_fixed(text), "{text}");
    }
}

#[test]
fn a_time_behind_its_type_is_a_value_and_short_numbers_of_types_and_places_stay() {
    let text = "SELECT a::numeric(10,2), TIMESTAMP WITH TIME ZONE '2026-11-02 10:11:12+00' FROM t \
                GROUP BY 11 ORDER BY 12 DESC";
    let found = redacted(vec![simple(text)]).statements.remove(0).text;
    let kept = [
        "numeric(10,2)",
        "TIME ZONE '2026-",
        "GROUP BY 11 ORDER BY 12 DESC",
    ];
    assert!(kept.iter().all(|kept| found.contains(kept)), "{found}");
    assert!(!found.contains("10:11:12"), "{found}");
}

/// What stands around a secret.
fn around() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[ -~äß漢٤½\u{301}\u{a0}👩\t\n]{0,6}",
        proptest::sample::select(vec![
            "2026-11-02",
            "2026-11-02 ",
            "10:30 ",
            "10:30+",
            "-",
            "+",
            " ",
            "15 days ",
            "1e",
            "1.5e-",
            "10.1.2.3/",
            "{",
            "}",
            "[",
            ")",
            "(",
            "\"",
            "{\"a\": \"",
            "\"}",
            "{1,",
            ",NULL}",
            "[1,",
            ",2)",
            "\\x",
            "\\",
            "\\u00",
            "%",
            "_",
            "null ",
            "true",
            " day",
            "days",
            "::",
            "fd00::",
            " BC",
            "Z",
            " UTC",
            "'",
            "''",
            "$$",
            "--",
            "/*",
            "*/",
            "...",
            "\\'",
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// A secret is nowhere in the file, whatever is around it and wherever it stands.
    #[test]
    fn no_secret_is_in_the_file(
        secret in proptest::sample::select(vec![
            "Zacharias", "zacharias", "ZACHARIAS", "Žáčharías", "4929123456", "49-29-12-34-56",
            "dEadBeeF", "захария",
        ]),
        before in around(), behind in around(), more in around(),
        way in 0..9_usize,
    ) {
        let whole = format!("{more}{before}{secret}{behind}");
        let doubled = whole.replace('\'', "''");
        let escaped = whole.replace('\\', "\\\\").replace('\'', "\\'");
        let tagged = whole.replace('$', "");
        let comment = whole.replace("*/", "").replace("/*", "");
        let line = whole.replace(['\n', '\r'], "");
        let text = match way {
            0 => format!("SELECT '{doubled}', a FROM t"),
            1 => format!("SELECT a FROM t WHERE a LIKE E'%{escaped}%'"),
            2 => format!("SELECT a FROM t WHERE a = $q${tagged}$q$"),
            3 => format!("SELECT $${tagged}$$"),
            4 => format!("SELECT 1 /* {comment} */"),
            5 => format!("SELECT 1 -- {line}\n"),
            6 => format!("SELECT a->>'{doubled}' #> '{{{doubled}}}' FROM t"),
            7 => format!("SELECT a AT TIME ZONE '{doubled}', N'{doubled}' FROM t"),
            _ => "SELECT a FROM t WHERE a = $1".to_owned(),
        };
        let mut one = simple(&text);
        one.tuples = vec![tuple(&[Some(&whole), Some(&format!("{{{secret}}}"))], Some(&text))];
        let found = redacted(vec![one]).statements.remove(0);
        let file = serde_json::to_string(&found).unwrap();
        let plain = format!("{} {} {:?}", found.text, found.sent(&found.tuples[0]), found.tuples[0].values);
        for shown in [&file, &plain] {
            prop_assert!(!shown.contains(secret), "{} became {}", text, shown);
        }
        let kinds = |text: &str| {
            let found = tokens(text);
            found.tokens.iter().map(|token| token.kind).collect::<Vec<_>>()
        };
        prop_assert_eq!(kinds(&found.text), kinds(&text), "{} became {}", text, found.text);
    }
}
