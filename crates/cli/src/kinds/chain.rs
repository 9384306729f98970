//! Steps that stand on each other.

/// The steps that are wanted, and those before them that make or change what they work on.
///
/// Shape: in their order; all of them where none is wanted.
pub fn needed<S: Copy>(
    steps: &[S],
    wanted: impl Fn(&S) -> bool,
    makes: impl Fn(&S) -> bool,
) -> Vec<S> {
    let Some(last) = steps.iter().rposition(&wanted) else {
        return steps.to_vec();
    };
    let up_to = steps.iter().take(last + 1);
    let kept = up_to.filter(|step| makes(step) || wanted(step));
    kept.copied().collect()
}
