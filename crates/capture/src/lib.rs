//! What does the user send: the statements of a workload, with their values and weights.
//!
//! Reads logs and files of statements; needs no server. A [`Capture`] is written to a file that is a secret,
//! because values of users are in it: no message and no `Debug` of this crate shows one.
//!
//! ```
//! use deltabench_capture::{Fingerprint, tokens};
//!
//! let text = "SELECT * FROM orders WHERE id IN (1, 2, 3) -- of today";
//! let fingerprint = Fingerprint::of(&tokens(text).tokens);
//! assert_eq!(fingerprint.normalised, "select * from orders where id in (?)");
//! ```

mod capture;
mod collect;
mod csv;
mod fingerprint;
mod gathered;
mod id;
mod kind;
mod known;
mod lexer;
mod log;
mod logs;
mod meaning;
mod message;
mod parts;
mod redact;
mod sampling;
mod session;
mod sql;
mod statement;
mod statistics;
mod strata;
mod summary;

pub use capture::{Capture, Counted, FORMAT, Header, Source, VERSION};
pub use fingerprint::Fingerprint;
pub use kind::Nature;
pub use lexer::{Token, TokenKind, Tokens, executed_tokens, tokens};
pub use logs::Request;
pub use parts::statements;
pub use redact::redact;
pub use statement::{Kind, Obstacle, Protocol, Statement, Tuple, Unusable, Weight};
pub use summary::{Basis, LeftOut, Summary};
