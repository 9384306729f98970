//! No script panics, and what reads can be played.

use super::*;
use proptest::prelude::*;

/// Bits of scripts, which fall together at random.
const BITS: [&str; 44] = [
    "select ",
    "1",
    ":a",
    "::",
    ":'a'",
    "'",
    "''",
    "\"",
    "$$",
    "$a$",
    "--",
    "/*",
    "*/",
    "(",
    ")",
    ";",
    "\\;",
    "\\",
    "\\\n",
    "\n",
    " ",
    "\\set ",
    "a ",
    "\\if ",
    "\\elif ",
    "\\else\n",
    "\\endif\n",
    "\\gset\n",
    "\\aset p_\n",
    "\\sleep ",
    "1 ms\n",
    "\\startpipeline\n",
    "\\endpipeline\n",
    "random(1, 5)",
    "case when ",
    "then ",
    "end ",
    " is null",
    "not ",
    "- ",
    "9223372036854775808",
    "1e5",
    "e'\\'",
    "ä",
];

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,80}") {
        for mode in QueryMode::ALL {
            let _ = parse(mode, &text);
        }
    }

    #[test]
    fn what_reads_can_be_played(picks in prop::collection::vec(0..BITS.len(), 0..25), seed: u64) {
        let text: String = picks.into_iter().map(|pick| BITS[pick]).collect();
        for mode in QueryMode::ALL {
            let given = setup(mode, &[("a", "1")]);
            if let Ok(program) = Program::parse(&given, &mix(&[(&text, 1)])) {
                let first = played(&program, seed);
                prop_assert_eq!(&first, &played(&program, seed));
            }
        }
    }

    #[test]
    fn any_number_reads_back_as_it_was_written(value: i64, double: f64) {
        let mut text = Vec::new();
        Value::Integer(value).write(&mut text);
        prop_assert_eq!(Value::of_text("x", &text), Ok(Value::Integer(value)));
        text.clear();
        Value::Double(double).write(&mut text);
        if double.is_normal() {
            let read = Value::of_text("x", &text).unwrap().double().unwrap();
            // 15 digits of the 17 that a double needs.
            prop_assert!((read / double - 1.0).abs() < 1e-14, "{} {}", double, read);
        }
    }
}
