//! Reading answers without building rows: count, check, find the end.

use crate::error::ServerError;
use crate::inbox::Inbox;
use crate::kept::Kept;

/// Tag and length word.
const HEADER: usize = 5;
/// PostgreSQL's own limit on one message (MaxAllocSize, 1 GiB - 1).
const LARGEST_ROW: usize = 0x3fff_ffff;
/// Far above any error, notice or notification; below what a mistaken length looks like.
const LARGEST_TEXT: usize = 16 << 20;
/// A command tag is at most 63 bytes and a zero (COMPLETION_TAG_BUFSIZE).
const LARGEST_TAG: usize = 64;

/// BindComplete was seen, or none is due.
const BOUND: u8 = 1;
/// Rows are described before they come.
const DESCRIBED: u8 = 2;
/// A Parse was sent: its completion comes first.
const PARSED: u8 = 4;

/// Whether the answer is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More bytes must be received.
    More,
    /// ReadyForQuery has come.
    Ready,
}

/// What the server is to do with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Nothing was asked.
    No,
    Count,
    /// Rows and their columns are kept.
    Keep,
}

/// Transaction state of ReadyForQuery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    /// None open.
    Idle,
    Open,
    Failed,
}

/// How rows that are wanted come to be described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Described {
    /// A simple query does it by itself.
    Query,
    /// Describe was sent after Bind.
    Bound,
}

impl Described {
    fn seen(self, executions: u32) -> u8 {
        match self {
            Self::Query => BOUND | DESCRIBED,
            Self::Bound if executions == 0 => BOUND | DESCRIBED,
            Self::Bound => DESCRIBED | PARSED,
        }
    }
}

/// Why a connection cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loss {
    /// No answer in time.
    Stalled,
    /// The peer closed, or the system says the connection is broken.
    Closed(String),
    /// The server reported the end of the connection.
    Fatal(Box<ServerError>),
    /// Not the protocol.
    Nonsense(String),
}

impl Loss {
    fn nonsense(what: impl Into<String>) -> Self {
        Self::Nonsense(what.into())
    }
}

/// Reads the answers of one connection, however they are cut into pieces.
#[derive(Debug)]
pub struct Scanner {
    /// Bytes of the present message that are still to come and that nobody wants.
    skip: usize,
    seen: u8,
    /// Whether a ReadyForQuery is due.
    waiting: Waiting,
    /// How many more of them come after the next.
    later: u32,
    /// Results that must still come before the last of them.
    results: u32,
    transaction: Transaction,
    rows: u64,
    error: Option<Box<ServerError>>,
    kept: Box<Kept>,
}

impl Scanner {
    /// For a connection that is ready.
    pub fn new() -> Self {
        Self {
            skip: 0,
            seen: 0,
            waiting: Waiting::No,
            later: 0,
            results: 0,
            transaction: Transaction::Idle,
            rows: 0,
            error: None,
            kept: Box::default(),
        }
    }

    fn expect(&mut self, seen: u8, waiting: Waiting) {
        self.seen = seen;
        self.waiting = waiting;
        self.results = 1;
    }

    /// A Bind, Execute and Sync are being sent.
    pub fn expect_execution(&mut self) {
        self.expect(0, Waiting::Count);
    }

    /// A simple query without rows is being sent.
    pub fn expect_command(&mut self) {
        self.expect(BOUND, Waiting::Count);
    }

    /// A simple query that may have rows is being sent; one with several statements has several results.
    pub fn expect_query(&mut self) {
        self.expect(BOUND | DESCRIBED, Waiting::Count);
    }

    /// The same, or a Bind, Describe, Execute and Sync with perhaps a Parse before, whose rows are wanted
    /// ([`Scanner::kept`]).
    pub fn expect_rows(&mut self, described: Described) {
        self.expect(described.seen(1), Waiting::Keep);
        self.kept.clear();
    }

    /// Executions that are described, and perhaps parsed, are being sent, with `syncs` Sync after and between
    /// them.
    pub fn expect_described(&mut self, executions: u32, syncs: u32) {
        self.expect(Described::Bound.seen(executions), Waiting::Count);
        self.results = executions;
        self.later = syncs.saturating_sub(1);
    }

    /// What came of the rows that were wanted.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Transaction state after the last answer.
    pub fn transaction(&self) -> Transaction {
        self.transaction
    }

    /// The error of the last answer, if it was one; taken once.
    pub fn take_error(&mut self) -> Option<Box<ServerError>> {
        self.error.take()
    }

    /// Rows since the last call.
    pub fn take_rows(&mut self) -> u64 {
        std::mem::take(&mut self.rows)
    }

    /// Reads all that has been received.
    ///
    /// Errors: a fatal server error, or bytes that are not an answer to what was sent.
    pub fn scan(&mut self, inbox: &mut Inbox) -> Result<Progress, Loss> {
        let mut rest = inbox.pending();
        if self.skip > 0 {
            match rest.get(self.skip..) {
                Some(after) => rest = after,
                None => {
                    self.skip -= rest.len();
                    inbox.keep(0, 0);
                    return Ok(Progress::More);
                }
            }
            self.skip = 0;
        }
        let mut counting = self.waiting == Waiting::Count;
        let mut rows = 0;
        while let Some((&[tag, a, b, c, d], body)) = rest.split_first_chunk::<HEADER>() {
            let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
            let Some(length) = length.checked_sub(4) else {
                return Err(Loss::nonsense(format!(
                    "message {:?} of length {length}",
                    char::from(tag)
                )));
            };
            if counting && tag == b'D' && length <= LARGEST_ROW {
                rows += 1;
            } else {
                self.rows += std::mem::take(&mut rows);
                let whole = body.get(..length);
                check_length(tag, length)?;
                if whole.is_none() && self.is_read(tag) {
                    break;
                }
                self.message(tag, whole.unwrap_or(&[]))?;
                counting = self.waiting == Waiting::Count;
            }
            match body.get(length..) {
                Some(after) => rest = after,
                None => {
                    self.skip = length - body.len();
                    rest = &[];
                    break;
                }
            }
        }
        self.rows += rows;
        let (left, wanted) = (rest.len(), wanted(rest));
        inbox.keep(left, wanted);
        Ok(if self.waiting == Waiting::No {
            Progress::Ready
        } else {
            Progress::More
        })
    }

    /// Whether what is in a message matters, and not only that it came.
    fn is_read(&self, tag: u8) -> bool {
        match tag {
            b'E' | b'Z' => true,
            b'D' | b'T' => self.waiting == Waiting::Keep,
            _ => false,
        }
    }

    /// A message other than a row that is only counted.
    #[inline]
    fn message(&mut self, tag: u8, body: &[u8]) -> Result<(), Loss> {
        match (tag, self.waiting) {
            (b'2', Waiting::Count | Waiting::Keep) => {
                self.seen |= BOUND;
                Ok(())
            }
            (b'T' | b'n', Waiting::Count) if self.seen & DESCRIBED != 0 => Ok(()),
            (b'C' | b'I', Waiting::Count) => {
                self.results = self.results.saturating_sub(1);
                Ok(())
            }
            (b'Z', Waiting::Count | Waiting::Keep) => {
                self.ready(body.first().copied().unwrap_or(0))
            }
            _ => self.rare_message(tag, body),
        }
    }

    /// What does not come with every operation, or is kept.
    fn rare_message(&mut self, tag: u8, body: &[u8]) -> Result<(), Loss> {
        let (waiting, keeping) = (self.waiting != Waiting::No, self.waiting == Waiting::Keep);
        match tag {
            b'N' | b'S' | b'A' => return Ok(()),
            b'E' => {
                let error = Box::new(ServerError::parse(body));
                if error.is_fatal() {
                    return Err(Loss::Fatal(error));
                }
                if waiting {
                    self.error.get_or_insert(error);
                    return Ok(());
                }
            }
            b'1' | b'3' if waiting && self.seen & PARSED != 0 => return Ok(()),
            b'T' | b'n' if keeping && self.seen & DESCRIBED != 0 => {
                self.kept.described(body);
                return Ok(());
            }
            b'D' if keeping => {
                self.rows += 1;
                self.kept.row(body);
                return Ok(());
            }
            b'C' | b'I' if keeping => {
                self.results = self.results.saturating_sub(1);
                self.kept.complete();
                return Ok(());
            }
            b'G' | b'H' | b'W' if waiting => {
                return Err(Loss::nonsense("COPY, which no script can do"));
            }
            _ => {}
        }
        let when = if waiting {
            "in an answer"
        } else {
            "without a question"
        };
        Err(Loss::nonsense(format!(
            "message {:?} {when}",
            char::from(tag)
        )))
    }

    fn ready(&mut self, state: u8) -> Result<(), Loss> {
        self.transaction = match state {
            b'I' => Transaction::Idle,
            b'T' => Transaction::Open,
            b'E' => Transaction::Failed,
            _ => {
                return Err(Loss::nonsense(format!(
                    "transaction state {:?}",
                    char::from(state)
                )));
            }
        };
        if self.later > 0 {
            self.later -= 1;
            return Ok(());
        }
        if self.error.is_none() && (self.seen & BOUND == 0 || self.results > 0) {
            return Err(Loss::nonsense("ready without having executed"));
        }
        self.waiting = Waiting::No;
        Ok(())
    }
}

/// How much buffer the unfinished message at the start of `rest` needs.
fn wanted(rest: &[u8]) -> usize {
    match rest.split_first_chunk::<HEADER>() {
        Some((&[_, a, b, c, d], _)) => usize::try_from(u32::from_be_bytes([a, b, c, d]))
            .map_or(HEADER, |length| length.saturating_add(1)),
        None => HEADER,
    }
}

fn check_length(tag: u8, length: usize) -> Result<(), Loss> {
    let sane = match tag {
        b'1' | b'2' | b'3' | b'n' | b'I' => length == 0,
        b'Z' => length == 1,
        b'C' => length <= LARGEST_TAG,
        b'E' | b'N' | b'S' | b'A' => length <= LARGEST_TEXT,
        // Row and unknown tags; `message` refuses what remains.
        _ => length <= LARGEST_ROW,
    };
    if sane {
        return Ok(());
    }
    Err(Loss::nonsense(format!(
        "message {:?} of length {length}",
        char::from(tag)
    )))
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stalled => f.write_str("no answer within the time limit"),
            Self::Closed(what) => f.write_str(what),
            Self::Fatal(error) => write!(f, "the server ended the connection: {error}"),
            Self::Nonsense(what) => write!(f, "the server sent an invalid answer: {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[tag], &length[..], body].concat()
    }

    #[test]
    fn rows_are_described_only_after_a_simple_query() {
        let answer = [
            message(b'T', &[0; 40]),
            message(b'D', b"row"),
            message(b'C', b"SELECT 1\0"),
            message(b'Z', b"I"),
        ];
        let scan = |expect: fn(&mut Scanner)| {
            let mut scanner = Scanner::new();
            let mut inbox = Inbox::new();
            expect(&mut scanner);
            inbox.push(&answer.concat());
            let progress = scanner.scan(&mut inbox);
            (progress, scanner.take_rows())
        };
        assert_eq!(scan(Scanner::expect_query), (Ok(Progress::Ready), 1));
        for expect in [Scanner::expect_command, Scanner::expect_execution] {
            assert!(matches!(scan(expect), (Err(Loss::Nonsense(_)), 0)));
        }
    }

    #[test]
    fn a_pipeline_is_ready_when_its_last_sync_is_answered_and_everything_was_executed() {
        let execution = [
            message(b'2', b""),
            message(b'n', b""),
            message(b'C', b"X\0"),
        ]
        .concat();
        let ready = message(b'Z', b"I");
        let scan = |parts: &[&[u8]], executions, syncs| {
            let mut scanner = Scanner::new();
            let mut inbox = Inbox::new();
            scanner.expect_described(executions, syncs);
            inbox.push(&parts.concat());
            (scanner.scan(&mut inbox), scanner.take_error().is_some())
        };
        let (execution, ready) = (execution.as_slice(), ready.as_slice());
        let error = message(b'E', b"C22012\0Mno\0\0");
        for (parts, executions, syncs, expected) in [
            (
                &[execution, execution, ready][..],
                2,
                1,
                Ok(Progress::Ready),
            ),
            (&[execution, ready, ready], 1, 2, Ok(Progress::Ready)),
            (&[execution, ready], 1, 2, Ok(Progress::More)),
            (&[ready], 0, 1, Ok(Progress::Ready)),
            (&[execution, &error, ready], 3, 1, Ok(Progress::Ready)),
        ] {
            let (progress, failed) = scan(parts, executions, syncs);
            assert_eq!(progress, expected, "{parts:?}");
            assert_eq!(failed, parts.contains(&error.as_slice()));
        }
        for (parts, executions) in [(&[execution, ready][..], 2), (&[ready], 1)] {
            assert!(matches!(
                scan(parts, executions, 1).0,
                Err(Loss::Nonsense(_))
            ));
        }
    }

    /// A query with rows that are kept, in the given chunks.
    fn kept(chunks: &[usize]) -> Vec<(u64, Vec<u8>)> {
        let described = [&b"\0\x01wide\0"[..], &[0; 18]].concat();
        let mut bytes = Vec::new();
        for width in [3_usize, 100_000] {
            bytes.extend(message(b'T', &described));
            for letter in *b"ab" {
                let length = u32::try_from(width).unwrap().to_be_bytes();
                let row = [&b"\0\x01"[..], &length, &vec![letter; width]].concat();
                bytes.extend(message(b'D', &row));
            }
            bytes.extend(message(b'C', b"SELECT 2\0"));
        }
        bytes.extend(message(b'Z', b"I"));
        let mut scanner = Scanner::new();
        let mut inbox = Inbox::new();
        scanner.expect_rows(Described::Query);
        let mut sizes = chunks.iter().copied().cycle();
        let mut rest = bytes.as_slice();
        let mut progress = Progress::More;
        while !rest.is_empty() {
            let chunk = rest.split_at(sizes.next().unwrap().min(rest.len())).0;
            rest = &rest[inbox.push(chunk)..];
            progress = scanner.scan(&mut inbox).unwrap();
        }
        assert_eq!((progress, scanner.take_rows()), (Progress::Ready, 4));
        let results = scanner.kept().results().iter();
        let last = |result: &crate::kept::KeptResult| {
            let (columns, values) = result.fields().unwrap();
            assert_eq!(columns, [b"wide"]);
            (result.rows(), values[0].unwrap().to_vec())
        };
        results.map(last).collect()
    }

    #[test]
    fn rows_that_are_wanted_are_kept_however_they_are_cut() {
        let expected = vec![(2, vec![b'b'; 3]), (2, vec![b'b'; 100_000])];
        for chunks in [&[60_000][..], &[1, 2, 3], &[7], &[65_536, 11]] {
            assert_eq!(kept(chunks), expected, "{chunks:?}");
        }
    }

    /// What a scanner makes of `bytes` when they come in the given chunks.
    fn scanned(
        bytes: &[u8],
        chunks: &[usize],
    ) -> (Result<Progress, Loss>, u64, Option<String>, Transaction) {
        let mut scanner = Scanner::new();
        let mut inbox = Inbox::new();
        scanner.expect_execution();
        let mut progress = Ok(Progress::More);
        let mut sizes = chunks.iter().copied().cycle();
        let mut rest = bytes;
        while !rest.is_empty() && progress.is_ok() {
            let (chunk, _) = rest.split_at(sizes.next().unwrap_or(rest.len()).min(rest.len()));
            let taken = inbox.push(chunk);
            assert!(taken > 0, "there is always room for something");
            rest = &rest[taken..];
            progress = scanner.scan(&mut inbox);
        }
        let sqlstate = scanner.take_error().map(|error| error.sqlstate);
        (
            progress,
            scanner.take_rows(),
            sqlstate,
            scanner.transaction(),
        )
    }

    fn answer(rows: &[usize], failing: bool, chatter: bool) -> Vec<u8> {
        let mut bytes = message(b'2', b"");
        for &width in rows {
            if chatter {
                bytes.extend(message(b'N', b"SNOTICE\0MZ\0\0"));
                bytes.extend(message(b'S', b"TimeZone\0UTC\0"));
            }
            bytes.extend(message(b'D', &vec![b'Z'; width]));
        }
        if failing {
            bytes.extend(message(
                b'E',
                b"SERROR\0VERROR\0C40001\0Mcould not serialize\0\0",
            ));
        } else {
            bytes.extend(message(b'C', b"SELECT 1\0"));
        }
        bytes.extend(message(b'Z', if failing { b"E" } else { b"I" }));
        bytes
    }

    proptest! {
        #[test]
        fn an_answer_scans_the_same_however_it_is_cut(
            rows in prop::collection::vec(0_usize..3000, 0..20),
            failing: bool,
            chatter: bool,
            chunks in prop::collection::vec(1_usize..5000, 1..8),
        ) {
            let bytes = answer(&rows, failing, chatter);
            let whole = scanned(&bytes, &[60_000]);
            prop_assert_eq!(&whole.0, &Ok(Progress::Ready));
            prop_assert_eq!(whole.1, u64::try_from(rows.len()).unwrap());
            prop_assert_eq!(whole.2.as_deref(), failing.then_some("40001"));
            prop_assert_eq!(&scanned(&bytes, &chunks), &whole);
            prop_assert_eq!(&scanned(&bytes, &[1]), &whole);
        }

        #[test]
        fn an_answer_cut_short_is_never_ready(
            rows in prop::collection::vec(0_usize..50, 0..5),
            failing: bool,
            cut: prop::sample::Index,
        ) {
            let bytes = answer(&rows, failing, true);
            let short = &bytes[..cut.index(bytes.len())];
            prop_assert_eq!(scanned(short, &[7]).0, Ok(Progress::More));
        }

        #[test]
        fn any_bytes_are_scanned_without_panic_and_alike_in_any_cut(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            tags in prop::collection::vec(prop::sample::select(b"2CDEINSZ".to_vec()), 0..300),
            chunk in 1_usize..40,
        ) {
            // Half of the bytes replaced by tags and zeros, so that some of it looks like messages.
            let likely: Vec<u8> = bytes.iter().zip(tags.iter().chain([&0; 300])).flat_map(|(byte, tag)| {
                [*tag, 0, 0, 0, byte % 16, *byte]
            }).collect();
            for bytes in [bytes, likely] {
                let whole = scanned(&bytes, &[bytes.len().max(1)]);
                let cut = scanned(&bytes, &[chunk]);
                prop_assert_eq!(whole.0.is_err(), cut.0.is_err());
                if whole.0.is_ok() {
                    prop_assert_eq!(whole, cut);
                }
            }
        }
    }

    #[test]
    fn a_row_larger_than_any_buffer_is_passed_over() {
        let bytes = answer(&[1 << 20, 10, 3 << 20], false, false);
        assert_eq!(
            scanned(&bytes, &[50_000]),
            (Ok(Progress::Ready), 3, None, Transaction::Idle)
        );
    }

    #[test]
    fn an_error_larger_than_the_buffer_is_read_whole() {
        let mut text = b"SERROR\0C54000\0M".to_vec();
        text.extend(vec![b'x'; 200_000]);
        text.extend(b"\0\0");
        let bytes = [
            message(b'2', b""),
            message(b'E', &text),
            message(b'Z', b"I"),
        ]
        .concat();
        assert_eq!(scanned(&bytes, &[20_000]).2.as_deref(), Some("54000"));
    }

    #[test]
    fn a_notice_between_answers_is_fine_and_an_answer_is_not() {
        let mut scanner = Scanner::new();
        let mut inbox = Inbox::new();
        inbox.push(&message(b'S', b"work_mem\x004MB\0"));
        assert_eq!(scanner.scan(&mut inbox), Ok(Progress::Ready));
        inbox.push(&answer(&[1], false, false));
        assert!(matches!(scanner.scan(&mut inbox), Err(Loss::Nonsense(_))));
    }
}
