//! The model of docs/sources/statistics.md#paired-log-ratios as a generator of slices.
//!
//! ln y = μ(server) + U(server, block) + D(t) + ε: U is the luck of one server start, D the drift of the
//! machine, which neighbours in time share, ε the noise of a slice.

use crate::builder::{BASE, CANDIDATE, PLACEBO, slice};
use deltabench_model::plan::ServerId;
use deltabench_model::slice::Slice;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Standard deviations on the log scale, and the shape of a run.
#[derive(Clone, Copy)]
pub struct Model {
    pub blocks: u32,
    pub rounds: u32,
    /// Of a server start.
    pub restart: f64,
    /// Of a slice's throughput.
    pub noise: f64,
    /// Of the machine's drift.
    pub drift: f64,
    /// Slices after which drift has forgotten 63 % of itself.
    pub memory: f64,
    /// Of a slice's CPU per operation; drift and restarts act on it like on throughput, turned round.
    pub cpu_noise: Option<f64>,
}

/// The planning case of docs/sources/statistics.md#blocks: a swamped shared machine, 8 × 12.
pub const NOISY: Model = Model {
    blocks: 8,
    rounds: 12,
    restart: 0.007,
    noise: 0.06,
    drift: 0.06,
    memory: 100.0,
    cpu_noise: None,
};

/// Short slices on a quiet machine: restarts are the larger part.
pub const QUIET: Model = Model {
    noise: 0.01,
    drift: 0.02,
    ..NOISY
};

pub struct Simulation {
    random: Xoshiro256PlusPlus,
}

impl Simulation {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// One run; `effect` is ln(candidate / base) of throughput, CPU per operation moves by −`effect`.
    pub fn run(&mut self, model: Model, effect: f64, servers: &[ServerId]) -> Vec<Slice> {
        let keep = (-1.0 / model.memory).exp();
        let mut drift = model.drift * self.normal();
        let mut slices = Vec::new();
        for block in 0..model.blocks {
            let luck: Vec<f64> = servers
                .iter()
                .map(|_| model.restart * self.normal())
                .collect();
            for round in 0..model.rounds {
                let mut order: Vec<usize> = (0..servers.len()).collect();
                for last in (1..order.len()).rev() {
                    order.swap(last, self.random.random_range(0..=last));
                }
                for at in order {
                    drift = keep * drift + (1.0 - keep * keep).sqrt() * model.drift * self.normal();
                    let change = if servers[at] == CANDIDATE {
                        effect
                    } else {
                        0.0
                    };
                    let speed = change + luck[at] + drift;
                    let rate = 1000.0 * (speed + model.noise * self.normal()).exp();
                    let cpu = model
                        .cpu_noise
                        .map(|noise| 10.0 * (noise * self.normal() - speed).exp());
                    slices.push(slice(servers[at], block, round, rate, cpu));
                }
            }
        }
        slices
    }

    /// A number between 0 and 1.
    pub fn uniform(&mut self) -> f64 {
        self.random.random()
    }

    /// A normal number, Box & Muller 1958.
    pub fn normal(&mut self) -> f64 {
        let (u, v): (f64, f64) = (1.0 - self.random.random::<f64>(), self.random.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

pub const TWO: [ServerId; 2] = [BASE, CANDIDATE];
pub const THREE: [ServerId; 3] = [BASE, PLACEBO, CANDIDATE];
