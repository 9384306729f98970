//! Whether the client, and not the server, was what limited a measurement.

use deltabench_model::units::to_f64;
use std::fmt;

/// Share of its own cores at which a client counts as busy all the time. What is missing to 100 % is what a
/// client idles while the server's answers are on their way even when it is the bottleneck.
const BUSY_SHARE: f64 = 0.9;
/// Lag behind the schedule that is never held against a client, nanoseconds: one late timer.
const LAG_NS: u64 = 1_000_000;
/// The same as a share of the median latency: less than this moves no percentile that anybody reads.
const LAG_SHARE: f64 = 0.1;

/// What a client did in some slices, for [`client_limited`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLoad {
    /// Their time, nanoseconds.
    pub duration_ns: u64,
    /// CPU of the client's threads in it, nanoseconds.
    pub client_cpu_ns: u64,
    /// Cores that no server ran on, as far as the client has threads for them. 0: client and server take
    /// turns on one core, where both are busy by design.
    pub own_cores: u32,
    /// Open loop only: the client's own lag, nanoseconds; for several slices, a typical one or the largest,
    /// as the caller likes.
    pub schedule_lag_ns: Option<u64>,
    pub median_latency_ns: u64,
}

/// Why throughput or latency are those of the client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClientLimit {
    /// Its cores had no time left.
    Busy {
        /// Share of their time that it used.
        share: f64,
        cores: u32,
    },
    /// It sent late although a connection was free.
    Late {
        /// How late, nanoseconds.
        lag_ns: u64,
        /// What would have been overlooked, nanoseconds.
        allowed_ns: u64,
    },
}

/// Whether the client was the limit: on cores of its own, busy for more than 90 % of the time; or, with a
/// schedule, later than both 1 ms and 10 % of the median latency.
///
/// A server that is told to be slower than it is by a client without time to spare looks like every other
/// server behind that client: differences vanish.
pub fn client_limited(load: &ClientLoad) -> Option<ClientLimit> {
    if let Some(lag_ns) = load.schedule_lag_ns {
        let tenth = deltabench_model::units::to_u64(to_f64(load.median_latency_ns) * LAG_SHARE);
        let allowed_ns = LAG_NS.max(tenth);
        if lag_ns > allowed_ns {
            return Some(ClientLimit::Late { lag_ns, allowed_ns });
        }
    }
    let cores = load.own_cores;
    let each = to_f64(load.client_cpu_ns) / f64::from(cores.max(1));
    let share = each / to_f64(load.duration_ns.max(1));
    (cores > 0 && share > BUSY_SHARE).then_some(ClientLimit::Busy { share, cores })
}

impl fmt::Display for ClientLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { share, cores } => {
                let share = share * 1e2;
                write!(f, "the client was the limit: it used {share:.0} % of its ")?;
                match cores {
                    1 => f.write_str("core"),
                    _ => write!(f, "{cores} cores"),
                }
            }
            Self::Late { lag_ns, allowed_ns } => write!(
                f,
                "the client was the limit: it sent up to {:.1} ms after schedule (allowed: {:.1} ms)",
                to_f64(*lag_ns) / 1e6,
                to_f64(*allowed_ns) / 1e6
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: ClientLoad = ClientLoad {
        duration_ns: 1_000_000_000,
        client_cpu_ns: 300_000_000,
        own_cores: 1,
        schedule_lag_ns: None,
        median_latency_ns: 200_000,
    };

    #[test]
    fn a_client_without_time_to_spare_is_the_limit_on_its_own_core_only() {
        assert_eq!(client_limited(&IDLE), None);
        let busy = ClientLoad {
            client_cpu_ns: 950_000_000,
            ..IDLE
        };
        let found = client_limited(&busy).unwrap();
        assert!(found.to_string().contains("95 %"), "{found}");
        let shared = ClientLoad {
            own_cores: 0,
            ..busy
        };
        assert_eq!(client_limited(&shared), None);
        let threads = ClientLoad {
            own_cores: 2,
            ..busy
        };
        assert_eq!(client_limited(&threads), None, "half of each");
        let busy_threads = ClientLoad {
            client_cpu_ns: 1_900_000_000,
            ..threads
        };
        let found = client_limited(&busy_threads).unwrap().to_string();
        assert!(found.ends_with("it used 95 % of its 2 cores"), "{found}");
        let nothing = ClientLoad {
            duration_ns: 0,
            client_cpu_ns: 0,
            ..IDLE
        };
        assert_eq!(client_limited(&nothing), None);
    }

    #[test]
    fn lag_counts_when_it_is_more_than_a_millisecond_and_a_tenth_of_the_median() {
        let load = |schedule_lag_ns, median_latency_ns| ClientLoad {
            schedule_lag_ns: Some(schedule_lag_ns),
            median_latency_ns,
            ..IDLE
        };
        assert_eq!(client_limited(&load(900_000, 200_000)), None);
        assert_eq!(client_limited(&load(1_900_000, 20_000_000)), None);
        let late = ClientLimit::Late {
            lag_ns: 2_100_000,
            allowed_ns: 2_000_000,
        };
        assert_eq!(client_limited(&load(2_100_000, 20_000_000)), Some(late));
        assert!(late.to_string().contains("2.1 ms"));
    }
}
