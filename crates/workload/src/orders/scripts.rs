//! The transactions, as scripts in pgbench's language, and the functions that one form of them calls.
//!
//! Source: clause 2 for what each transaction reads, writes and draws; 5.2.3 for the weights, with which
//! every kind but new-order has at least its share. Deviations are in the comments of the scripts.

use deltabench_model::plan::WorkloadSource;
use deltabench_model::work::orders::OrdersForm;

/// What a transaction can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transaction {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Transaction {
    /// All of them, in the order of the specification.
    pub const ALL: [Self; 5] = [
        Self::NewOrder,
        Self::Payment,
        Self::OrderStatus,
        Self::Delivery,
        Self::StockLevel,
    ];

    /// Its name, for example `new-order`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new-order",
            Self::Payment => "payment",
            Self::OrderStatus => "order-status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock-level",
        }
    }

    /// How often it is drawn, of 100 transactions.
    pub fn weight(self) -> u32 {
        match self {
            Self::NewOrder => 45,
            Self::Payment => 43,
            Self::OrderStatus | Self::Delivery | Self::StockLevel => 4,
        }
    }

    /// Whether it changes data, also where a function does.
    pub fn writes(self) -> bool {
        matches!(self, Self::NewOrder | Self::Payment | Self::Delivery)
    }
}

macro_rules! text {
    ($file:literal) => {
        include_str!(concat!("../../../../workloads/orders/", $file))
    };
}

/// The script of a transaction. It needs the variable `warehouses` and the tables of [`super::tables`]; in
/// the form of functions also [`functions_sql`].
pub fn script(transaction: Transaction, form: OrdersForm) -> WorkloadSource {
    use OrdersForm::{Functions, Statements};
    let text = match (form, transaction) {
        (Statements, Transaction::NewOrder) => text!("statements/new-order.sql"),
        (Statements, Transaction::Payment) => text!("statements/payment.sql"),
        (Statements, Transaction::OrderStatus) => text!("statements/order-status.sql"),
        (Statements, Transaction::Delivery) => text!("statements/delivery.sql"),
        (Statements, Transaction::StockLevel) => text!("statements/stock-level.sql"),
        (Functions, Transaction::NewOrder) => text!("functions/new-order.sql"),
        (Functions, Transaction::Payment) => text!("functions/payment.sql"),
        (Functions, Transaction::OrderStatus) => text!("functions/order-status.sql"),
        (Functions, Transaction::Delivery) => text!("functions/delivery.sql"),
        (Functions, Transaction::StockLevel) => text!("functions/stock-level.sql"),
    };
    WorkloadSource {
        file: format!("orders/{}/{}.sql", form.word(), transaction.name()),
        text: text.to_owned(),
    }
}

/// What ends a statement in the file of functions: the end of the body, on a line of its own.
const END: &str = "\n$$;\n";

/// The statements that make the functions. The tables need not exist yet.
pub fn functions_sql() -> Vec<String> {
    let parts = text!("functions/create.sql").split(END);
    let create = |part: &str| {
        let start = part.find("CREATE OR REPLACE FUNCTION")?;
        Some(format!("{}\n$$", part.get(start..)?))
    };
    parts.filter_map(create).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executable::Draws;
    use crate::pgbench::{Action, Player, Program};
    use deltabench_model::units::signed_to_f64;
    use deltabench_model::work::pgbench::{
        PgbenchMix, PgbenchScript, PgbenchSetup, PgbenchTables, QueryMode,
    };
    use std::collections::BTreeSet;

    /// A number that no item has.
    const UNUSED: i64 = 100_001;

    fn program(form: OrdersForm, of: &[Transaction], mode: QueryMode, warehouses: u32) -> Program {
        let setup = PgbenchSetup {
            tables: PgbenchTables {
                scale: 0,
                ..PgbenchTables::default()
            },
            mixes: Vec::new(),
            mode,
            variables: vec![("warehouses".to_owned(), warehouses.to_string())],
            max_tries: 1,
            shared_names: false,
            reconnects: false,
            latency_limit_ms: None,
            writes: false,
        };
        let script = |&transaction: &Transaction| PgbenchScript {
            source: script(transaction, form),
            weight: transaction.weight(),
        };
        let mix = PgbenchMix {
            name: "mix".to_owned(),
            scripts: of.iter().map(script).collect(),
        };
        Program::parse(&setup, &mix).unwrap()
    }

    fn one(form: OrdersForm, transaction: Transaction, warehouses: u32) -> Program {
        program(form, &[transaction], QueryMode::Prepared, warehouses)
    }

    /// The text of a variable.
    fn text(player: &Player, program: &Program, name: &str) -> String {
        format!("{:?}", player.value(program, name))
    }

    fn number(player: &Player, program: &Program, name: &str) -> i64 {
        let text = text(player, program, name);
        let digits = text.trim_start_matches("Ok(Integer(");
        digits.trim_end_matches("))").parse().expect(&text)
    }

    fn is_true(player: &Player, program: &Program, name: &str) -> bool {
        text(player, program, name) == "Ok(Boolean(true))"
    }

    /// Names that `\set` sets, in order.
    fn set(text: &str) -> Vec<&str> {
        let names = text.lines().filter_map(|line| line.strip_prefix("\\set "));
        names.filter_map(|rest| rest.split(' ').next()).collect()
    }

    /// A player at the first statement of a transaction, for each of so many.
    fn drawn(program: &Program, transactions: u64, mut look: impl FnMut(&Player)) {
        let mut player = Player::new(program, 0);
        let mut draws = Draws::new(7, 0);
        for _ in 0..transactions {
            player.begin(program, &mut draws);
            assert!(matches!(player.next(program), Ok(Action::Send(_))));
            look(&player);
        }
    }

    /// What a transaction sends if each of its questions has one row, with an answer to everything. An unused
    /// item has no row, nor has a district without a waiting order.
    fn sent(player: &mut Player, program: &Program, waiting: bool) -> Vec<String> {
        const COLUMNS: [(&[u8], &[u8]); 15] = [
            (b"w_tax", b"0.1000"),
            (b"o_id", b"3001"),
            (b"d_tax", b"0.1000"),
            (b"c_discount", b"0.5000"),
            (b"ol_amount", b"12.50"),
            (b"i_original", b"t"),
            (b"s_original", b"f"),
            (b"namesakes", b"4"),
            (b"bad_credit", b"f"),
            (b"c_id", b"5"),
            (b"waiting_o_id", b"2101"),
            (b"amount", b"99.00"),
            (b"d_next_o_id", b"3001"),
            (b"low_stock", b"7"),
            (b"s_quantity", b"50"),
        ];
        let mut all = Vec::new();
        loop {
            match player.next(program).unwrap() {
                Action::Done => return all,
                Action::Send(statement) => {
                    let statement = &program.statements()[statement];
                    all.push(statement.sql.clone());
                    if statement.capture.is_none() {
                        continue;
                    }
                    let mut item = Vec::new();
                    let mut answers = COLUMNS.to_vec();
                    if statement.sql.contains("FROM item") {
                        player.write_parameter(program, 1, &mut item);
                        answers.push((b"item", &item));
                    }
                    let asks = |name: &[u8]| {
                        let name = String::from_utf8_lossy(name);
                        statement.sql.contains(name.as_ref())
                    };
                    let has_row = item != UNUSED.to_string().as_bytes()
                        && (waiting || !asks(b"waiting_o_id"));
                    answers.retain(|(name, _)| asks(name));
                    let (names, values): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
                    let values: Vec<_> = values.into_iter().map(Some).collect();
                    if has_row {
                        player.capture(program, 0, &names, &values).unwrap();
                    }
                    player.end_capture(program).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn every_script_can_be_sent_in_every_mode() {
        for form in OrdersForm::ALL {
            for mode in QueryMode::ALL {
                let program = program(form, &Transaction::ALL, mode, 2);
                assert_eq!(program.scripts.len(), 5);
                assert_eq!(program.writes(), form == OrdersForm::Statements);
            }
            for transaction in Transaction::ALL {
                let source = script(transaction, form);
                let own = source.file.contains(form.word());
                assert!(
                    own && source
                        .file
                        .ends_with(&format!("/{}.sql", transaction.name()))
                );
                let program = one(form, transaction, 2);
                let writes = form == OrdersForm::Statements && transaction.writes();
                assert_eq!(program.writes(), writes, "{}", source.file);
            }
        }
    }

    #[test]
    fn weights_are_shares_of_a_hundred() {
        let weights = Transaction::ALL.map(Transaction::weight);
        assert_eq!(weights, [45, 43, 4, 4, 4]);
        let program = program(
            OrdersForm::Statements,
            &Transaction::ALL,
            QueryMode::Prepared,
            2,
        );
        let mut drawn = [0_u32; 5];
        self::drawn(&program, 10_000, |player| drawn[player.script()] += 1);
        // Standard deviations: 50 for the first two, 20 for the others.
        for (drawn, weight) in drawn.into_iter().zip(weights) {
            let most = if weight == 4 { 80 } else { 200 };
            assert!(drawn.abs_diff(weight * 100) < most, "{drawn} {weight}");
        }
    }

    #[test]
    fn both_forms_draw_the_same_inputs() {
        for transaction in Transaction::ALL {
            for warehouses in [1, 2, 10] {
                let [statements, functions] =
                    OrdersForm::ALL.map(|form| one(form, transaction, warehouses));
                let text_of = script(transaction, OrdersForm::Functions).text;
                let names = set(&text_of);
                assert!(names.len() >= 2);
                let mut players = [&statements, &functions].map(|program| Player::new(program, 0));
                let mut draws = [Draws::new(3, 0), Draws::new(3, 0)];
                for _ in 0..300 {
                    let programs = [&statements, &functions];
                    for ((player, program), draws) in
                        players.iter_mut().zip(programs).zip(&mut draws)
                    {
                        player.begin(program, draws);
                        player.next(program).unwrap();
                    }
                    for name in &names {
                        let both = [
                            text(&players[0], &statements, name),
                            text(&players[1], &functions, name),
                        ];
                        assert_eq!(both[0], both[1], "{} {name}", transaction.name());
                        assert!(both[0].starts_with("Ok"), "{name} {}", both[0]);
                    }
                }
            }
        }
    }

    #[test]
    fn new_orders_have_the_shares_of_the_specification() {
        let program = one(OrdersForm::Statements, Transaction::NewOrder, 4);
        let (mut lines, mut remote, mut unused, mut beyond) = (0, 0, 0, 0);
        let mut counts = BTreeSet::new();
        drawn(&program, 20_000, |player| {
            let number = |name: &str| number(player, &program, name);
            let ol_cnt = number("ol_cnt");
            lines += ol_cnt;
            counts.insert(ol_cnt);
            let w_id = number("w_id");
            assert!((1..=4).contains(&w_id) && (1..=10).contains(&number("d_id")));
            assert!((1..=3000).contains(&number("c_id")));
            let mut away = 0;
            for line in 1..=15 {
                let supply = number(&format!("supply_w_id_{line}"));
                let item = number(&format!("i_id_{line}"));
                assert!((1..=4).contains(&supply));
                assert!((1..=10).contains(&number(&format!("quantity_{line}"))));
                if item == UNUSED {
                    assert_eq!(line, ol_cnt);
                    unused += 1;
                } else {
                    assert!((1..=100_000).contains(&item));
                }
                if supply != w_id {
                    away += 1;
                    beyond += i64::from(line > ol_cnt);
                }
            }
            remote += away;
            assert_eq!(number("all_local"), i64::from(away == 0));
        });
        assert_eq!(counts, (5..=15).collect());
        // Standard deviations: 450 lines, 14 orders, 45 lines.
        assert!((198_000..202_000).contains(&lines), "{lines}");
        assert!((144..256).contains(&unused), "{unused}");
        assert!((1_820..2_180).contains(&remote), "{remote}");
        assert_eq!(beyond, 0);
    }

    #[test]
    fn payments_have_the_shares_of_the_specification() {
        for (warehouses, away) in [(3, 1_290..1_710), (1, 0..1)] {
            let program = one(OrdersForm::Statements, Transaction::Payment, warehouses);
            let (mut remote, mut named, mut elsewhere) = (0, 0, 0);
            let mut amounts = (f64::INFINITY, 0.0_f64);
            drawn(&program, 10_000, |player| {
                let number = |name: &str| number(player, &program, name);
                assert!((1..=i64::from(warehouses)).contains(&number("c_w_id")));
                assert!((0..=999).contains(&number("name")));
                remote += u32::from(number("c_w_id") != number("w_id"));
                elsewhere += u32::from(number("c_d_id") != number("d_id"));
                named += u32::from(is_true(player, &program, "by_name"));
                let digits = [1, 2, 3].map(|place| number(&format!("syllable_{place}")) - 1);
                assert_eq!(digits[0] * 100 + digits[1] * 10 + digits[2], number("name"));
                let amount = text(player, &program, "h_amount");
                let amount = amount.trim_start_matches("Ok(Double(");
                let amount: f64 = amount.trim_end_matches("))").parse().unwrap();
                amounts = (amounts.0.min(amount), amounts.1.max(amount));
            });
            // Standard deviations: 36, 34 and 49 payments.
            assert!(away.contains(&remote), "{remote}");
            assert!((1_210..1_490).contains(&elsewhere), "{elsewhere}");
            assert!((5_800..6_200).contains(&named), "{named}");
            assert!(
                (1.0..10.0).contains(&amounts.0) && (4990.0..=5000.0).contains(&amounts.1),
                "{amounts:?}"
            );
        }
    }

    #[test]
    fn six_of_ten_order_statuses_are_by_name() {
        let program = one(OrdersForm::Statements, Transaction::OrderStatus, 2);
        let mut named = 0;
        drawn(&program, 10_000, |player| {
            named += u32::from(is_true(player, &program, "by_name"));
        });
        assert!((5_800..6_200).contains(&named), "{named}");
    }

    #[test]
    fn a_new_order_sends_three_statements_for_each_line() {
        let program = one(OrdersForm::Statements, Transaction::NewOrder, 2);
        let mut player = Player::new(&program, 0);
        let mut draws = Draws::new(7, 0);
        let mut rolled_back = 0;
        for _ in 0..1_000 {
            player.begin(&program, &mut draws);
            let all = sent(&mut player, &program, true);
            let lines = number(&player, &program, "ol_cnt");
            let unknown = is_true(&player, &program, "unused");
            let end = if unknown { "ROLLBACK;" } else { "END;" };
            assert_eq!(
                (all[0].as_str(), all[all.len() - 1].as_str()),
                ("BEGIN;", end)
            );
            let ordered = lines - i64::from(unknown);
            let expected = 7 + 3 * ordered + i64::from(unknown);
            assert_eq!(all.len(), usize::try_from(expected).unwrap());
            rolled_back += u32::from(unknown);
            if !unknown {
                // 12.50 for each line, half off, 20 % tax.
                let total = text(&player, &program, "total");
                let total = total.trim_start_matches("Ok(Double(");
                let total: f64 = total.trim_end_matches("))").parse().unwrap();
                let expected = 7.5 * signed_to_f64(lines);
                assert!((total - expected).abs() < 1e-9, "{total} {expected}");
            }
        }
        assert!((1..30).contains(&rolled_back), "{rolled_back}");
    }

    #[test]
    fn the_other_transactions_send_few_statements() {
        for (transaction, waiting, least, most) in [
            (Transaction::Payment, true, 9, 10),
            (Transaction::OrderStatus, true, 5, 6),
            (Transaction::Delivery, true, 72, 72),
            (Transaction::Delivery, false, 12, 12),
            (Transaction::StockLevel, true, 4, 4),
        ] {
            let program = one(OrdersForm::Statements, transaction, 2);
            let mut player = Player::new(&program, 0);
            let mut draws = Draws::new(7, 0);
            let mut lengths = BTreeSet::new();
            for _ in 0..100 {
                player.begin(&program, &mut draws);
                lengths.insert(sent(&mut player, &program, waiting).len());
            }
            assert_eq!(lengths, [least, most].into(), "{}", transaction.name());
        }
    }

    #[test]
    fn a_function_is_one_statement() {
        for transaction in Transaction::ALL {
            let program = one(OrdersForm::Functions, transaction, 2);
            assert_eq!(program.statements().len(), 1, "{}", transaction.name());
            let function = format!("FROM orders_{}(", transaction.name().replace('-', "_"));
            assert!(program.statements()[0].sql.contains(&function));
        }
    }

    #[test]
    fn copies_of_a_statement_have_one_text() {
        let program = program(
            OrdersForm::Statements,
            &Transaction::ALL,
            QueryMode::Prepared,
            2,
        );
        let texts: BTreeSet<&str> = program
            .statements()
            .iter()
            .map(|statement| statement.sql.as_str())
            .collect();
        assert_eq!((program.statements().len(), texts.len()), (148, 34));
    }

    #[test]
    fn each_function_is_a_statement_of_its_own() {
        let create = functions_sql();
        assert_eq!(create.len(), 5);
        for (create, transaction) in create.iter().zip(Transaction::ALL) {
            let name = format!("orders_{}(", transaction.name().replace('-', "_"));
            assert!(
                create.starts_with(&format!("CREATE OR REPLACE FUNCTION {name}")),
                "{create}"
            );
            assert_eq!(create.matches("$$").count(), 2, "{create}");
            assert!(create.ends_with("END\n$$"), "{create}");
        }
    }
}
