//! The exit codes of deltabench.

/// Nothing got slower; or, where nothing is compared, all that was asked for is done.
pub const NO_REGRESSION: u8 = 0;
/// Something got slower. Of a replay also: something fails that worked on the base.
pub const REGRESSION: u8 = 1;
/// Of a check of deltabench's own statements: they differ from those of the tool that it is compared with.
pub const DIFFERENT: u8 = 1;
/// Bad input, or a host that cannot do it: nothing was started.
pub const REFUSED: u8 = 2;
/// There is no answer yet. Of a bisection: it named no culprit.
pub const INCONCLUSIVE: u8 = 3;
/// The host, the placebo or the set-up allow no answer.
pub const UNFIT: u8 = 4;
/// Something that was asked for could not be measured.
pub const NOT_MEASURED: u8 = 5;
/// The user stopped it. Shells have this code after a signal.
pub const INTERRUPTED: u8 = 130;

/// What the codes mean, as help and documents have it.
pub const MEANINGS: [(u8, &str); 7] = [
    (NO_REGRESSION, "no regression"),
    (REGRESSION, "regression"),
    (REFUSED, "bad request"),
    (INCONCLUSIVE, "inconclusive"),
    (UNFIT, "host unfit"),
    (NOT_MEASURED, "could not measure"),
    (INTERRUPTED, "interrupted"),
];
