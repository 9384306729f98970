//! Arrays: Slurm numbers their elements from 0 up to a limit, and an execution may have more lanes.

/// An array, as this engine calls it: `17`, or `17+1001` if its element 0 is our element 1001.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Array<'a> {
    /// Slurm's name of it.
    pub(super) id: &'a str,
    from: u32,
}

/// The engine's name of an array of Slurm whose element 0 is our element `from`.
pub fn named(id: &str, from: u32) -> String {
    match from {
        0 => id.to_owned(),
        from => format!("{id}+{from}"),
    }
}

impl<'a> Array<'a> {
    /// The array of this name.
    pub(super) fn of(job: &'a str) -> Self {
        let numbered = job.split_once('+');
        let numbered = numbered.and_then(|(id, from)| Some((id, from.parse().ok()?)));
        let (id, from) = numbered.unwrap_or((job, 0));
        Self { id, from }
    }

    /// Slurm's number of our element.
    pub(super) fn number(self, element: u32) -> u32 {
        element.saturating_sub(self.from)
    }

    /// Our element with Slurm's number.
    pub(super) fn element(self, number: u32) -> u32 {
        number.saturating_add(self.from)
    }

    /// Slurm's name of an element.
    pub(super) fn name_of(self, element: u32) -> String {
        format!("{}_{}", self.id, self.number(element))
    }
}

/// The array with this identifier, of those that somebody asks for.
pub(super) fn with_id<'a>(jobs: &'a [String], id: &str) -> Option<(&'a String, Array<'a>)> {
    let mut arrays = jobs.iter().map(|job| (job, Array::of(job)));
    arrays.find(|(_, array)| array.id == id)
}

/// Slurm's names of arrays, as its commands take them.
pub(super) fn ids(jobs: &[String]) -> String {
    let ids: Vec<&str> = jobs.iter().map(|job| Array::of(job).id).collect();
    ids.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_that_begins_later_is_known_by_its_name() {
        assert_eq!(named("17", 0), "17");
        let name = named("17", 1001);
        let array = Array::of(&name);
        assert_eq!(
            (array.id, array.number(1003), array.element(2)),
            ("17", 2, 1003)
        );
        assert_eq!(array.name_of(1001), "17_0");
        assert_eq!(Array::of("17").name_of(3), "17_3");
        let jobs = [name, "18".to_owned()];
        assert_eq!(ids(&jobs), "17,18");
        assert_eq!(with_id(&jobs, "18").unwrap().0, "18");
        assert_eq!(with_id(&jobs, "17").unwrap().1.element(0), 1001);
        assert!(with_id(&jobs, "1").is_none());
    }
}
