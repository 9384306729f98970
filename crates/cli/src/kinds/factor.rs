//! Sizes of tables that files and commands give as a factor, or as a share of the memory.

use deltabench_experiment::Part;
use deltabench_experiment::kinds::ScaleFactor;
use deltabench_model::problem::Problem;
use deltabench_model::units::{to_f64, to_u64};
use deltabench_observe::read_host;

/// How tables grow with their factor.
#[derive(Debug, Clone, Copy)]
pub struct Growth {
    /// Bytes of tables and indexes for each unit.
    pub unit_bytes: f64,
    /// The largest factor.
    pub most: u32,
}

/// The factor of a scale on a server with so much memory (absent: that of the machine).
///
/// Errors: a machine whose memory cannot be read.
pub fn factor(
    scale: ScaleFactor,
    memory_bytes: Option<u64>,
    growth: Growth,
) -> Result<u32, Problem> {
    let times = match scale {
        ScaleFactor::Factor(factor) => return Ok(factor),
        share => share.times_memory().unwrap_or(1.0),
    };
    let machine = || read_host().memory_bytes;
    let memory = memory_bytes.or_else(machine).ok_or_else(|| {
        Problem::new(format!("cannot tell how much {scale} is"))
            .detail("deltabench cannot read how much memory this machine has")
            .hint("write a number, or limit the memory of the servers")
    })?;
    Ok(growth.of_bytes(times * to_f64(memory)))
}

impl Growth {
    /// The factor at which the tables with their indexes are nearest to so many bytes.
    fn of_bytes(self, bytes: f64) -> u32 {
        let factor = to_u64(bytes / self.unit_bytes).clamp(1, u64::from(self.most));
        u32::try_from(factor).unwrap_or(self.most)
    }
}

/// Axes of such factors.
const AXES: [&str; 2] = ["scale", "warehouses"];

/// The coordinates of a part, with its factor after the word of the file. Not where memory is an axis too:
/// there the word is what parts have in common.
pub fn coordinates(part: &Part, factor: Option<u32>) -> Vec<(String, String)> {
    let by_memory = part.coordinates.iter().any(|(axis, _)| axis == "memory");
    let told = |(axis, value): &(String, String)| match factor {
        Some(factor)
            if AXES.contains(&axis.as_str())
                && !by_memory
                && part.scale.times_memory().is_some() =>
        {
            (axis.clone(), format!("{value} ({factor})"))
        }
        _ => (axis.clone(), value.clone()),
    };
    part.coordinates.iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deltabench_experiment::Experiment;

    const GB: u64 = 1 << 30;

    #[test]
    fn half_and_twice_the_memory_are_tables_of_that_size() {
        let growth = Growth {
            unit_bytes: 15e6,
            most: 90_000,
        };
        let scale = |scale| factor(scale, Some(8 * GB), growth).unwrap();
        assert_eq!(scale(ScaleFactor::Factor(7)), 7);
        assert_eq!(scale(ScaleFactor::HalfMemory), 286);
        assert_eq!(scale(ScaleFactor::TwiceMemory), 1145);
        assert_eq!(growth.of_bytes(0.0), 1);
        assert_eq!(growth.of_bytes(f64::INFINITY), 90_000);
    }

    #[test]
    fn a_word_for_a_factor_is_told_with_its_number_unless_memory_varies_too() {
        let told = |rest: &str| {
            let text = format!(
                "format = \"deltabench.experiment\"\nversion = 1\nname = \"x\"\n\
                 servers = [{{ target = \"postgres:18\", configuration = \"cx10a\" }}]\n{rest}"
            );
            let study = Experiment::read("x.toml", &text, None).unwrap();
            let parts = study.parts();
            coordinates(parts.last().unwrap(), Some(99))
                .pop()
                .unwrap()
                .1
        };
        let scale = "[pgbench]\nscale = [10, \"half-memory\"]\n";
        assert_eq!(told(scale), "half-memory (99)");
        assert_eq!(told("[pgbench]\nscale = [\"half-memory\", 20]\n"), "20");
        let warehouses = "[orders]\nwarehouses = [10, \"twice-memory\"]\n";
        assert_eq!(told(warehouses), "twice-memory (99)");
        let memory = "[limits]\nmemory = [\"1GB\", \"2GB\"]\n";
        assert_eq!(told(&format!("{memory}{scale}")), "half-memory");
    }
}
