//! Draws: what they depend on, other tries, distributions.

use super::*;
use deltabench_model::units::{count, signed_to_f64, to_f64};

const SCRIPT: &str = "\\set n :n + 1\n\\set x random(1, 1000000)\n\\set y random_gaussian(1, 1000000, 3)\n\
                      select :n, :x, :y;";

#[test]
fn an_operation_depends_on_seed_and_number_only() {
    let script = "\\set x random(1, 1000000)\nselect :x;";
    let other = "\\set x random(1, 9)\n\\set y random(1, 9)\n\\set z random(1, 9)\nselect :z, 0;";
    let mixed = mix(&[(script, 3), (other, 1), ("select 'never';", 0)]);
    let program = Program::parse(&setup(QueryMode::Simple, &[]), &mixed).unwrap();
    let mut alone = Player::new(&program, 0);
    let mut draws = Draws::new(9, 0);
    let mut expected = Vec::new();
    let mut drawn = [0; 3];
    for _ in 0..4000 {
        alone.begin(&program, &mut draws);
        drawn[alone.script()] += 1;
        expected.push(rest(&mut alone, &program).unwrap());
    }
    // 4000 draws with p = 3/4: standard deviation 27.
    assert!((2860..3140).contains(&drawn[0]), "{drawn:?}");
    assert_eq!(drawn[2], 0);
    let mut draws = Draws::new(9, 0);
    let mut players: Vec<Player> = (0..3).map(|client| Player::new(&program, client)).collect();
    for (number, expected) in expected.iter().enumerate() {
        // Whoever is free takes it; another one is still at its first command.
        let player = &mut players[number * 7 % 3];
        player.begin(&program, &mut draws);
        assert_eq!(&rest(player, &program).unwrap(), expected);
    }
    let mut other_seed = Player::new(&program, 0);
    other_seed.begin(&program, &mut Draws::new(10, 0));
    assert_ne!(rest(&mut other_seed, &program).unwrap(), expected[0]);
}

#[test]
fn another_try_repeats_everything() {
    let given = setup(QueryMode::Simple, &[("n", "0")]);
    let program = Program::parse(&given, &mix(&[(SCRIPT, 1), (SCRIPT, 1)])).unwrap();
    let mut player = Player::new(&program, 0);
    let mut draws = Draws::new(5, 0);
    for number in 1..100 {
        player.begin(&program, &mut draws);
        let script = player.script();
        let first = rest(&mut player, &program).unwrap();
        assert!(
            first[0].starts_with(&format!("select {number}, ")),
            "{first:?}"
        );
        for _ in 0..3 {
            player.retry(&program);
            assert_eq!(rest(&mut player, &program).unwrap(), first);
            assert_eq!(player.script(), script);
        }
    }
}

#[test]
fn another_try_restores_what_a_row_set() {
    let script = "\\if :x = 1\nselect 1;\n\\endif\nselect 2 as x \\gset\n";
    let given = setup(QueryMode::Simple, &[("x", "1")]);
    let program = Program::parse(&given, &mix(&[(script, 1)])).unwrap();
    let mut player = Player::new(&program, 0);
    player.begin(&program, &mut Draws::new(1, 0));
    for _ in 0..2 {
        assert_eq!(player.next(&program), Ok(Action::Send(0)));
        assert_eq!(player.next(&program), Ok(Action::Send(1)));
        player.capture(&program, 0, &[b"x"], &[Some(b"2")]).unwrap();
        player.retry(&program);
    }
}

fn numbers(expression: &str, count: u64) -> Vec<i64> {
    let script = format!("\\set x {expression}\nselect :x;");
    let program = parse(QueryMode::Simple, &script).unwrap();
    let mut player = Player::new(&program, 0);
    let mut draws = Draws::new(2026, 0);
    let next = |_| {
        player.begin(&program, &mut draws);
        player.next(&program).unwrap();
        player.value(&program, "x").unwrap().integer().unwrap()
    };
    (0..count).map(next).collect()
}

/// Share of the numbers for which something holds.
fn share(numbers: &[i64], holds: impl Fn(i64) -> bool) -> f64 {
    let holding = numbers.iter().filter(|&&number| holds(number)).count();
    to_f64(count(holding)) / to_f64(count(numbers.len()))
}

fn near(share: f64, expected: f64, count: f64) {
    let deviation = (expected * (1.0 - expected) / count).sqrt();
    assert!(
        (share - expected).abs() < 4.5 * deviation,
        "{share}, expected {expected}"
    );
}

const COUNT: u64 = 200_000;

#[test]
fn uniform_numbers_are_uniform() {
    let drawn = numbers("random(-3, 6)", COUNT);
    for value in -3..=6 {
        near(share(&drawn, |x| x == value), 0.1, to_f64(COUNT));
    }
    let keys = numbers("random(1, 100000 * :scale)", COUNT);
    let mean = signed_to_f64(keys.iter().sum()) / to_f64(COUNT);
    // Standard deviation of the mean: 10^6 / sqrt(12 * 200000).
    assert!((mean - 500_000.5).abs() < 3000.0, "{mean}");
    assert!(keys.iter().all(|key| (1..=1_000_000).contains(key)));
}

#[test]
fn exponential_numbers_have_the_tail_the_manual_gives() {
    // For value i of 1..=n: exp(-p (i-1)/n) (1 - exp(-p/n)) / (1 - exp(-p)).
    let drawn = numbers("random_exponential(1, 10, 5.0)", COUNT);
    for value in 1..=10 {
        let place = f64::from(i32::try_from(value).unwrap() - 1) / 10.0;
        let expected = (-5.0 * place).exp() * (1.0 - (-0.5_f64).exp()) / (1.0 - (-5.0_f64).exp());
        near(share(&drawn, |x| x == value), expected, to_f64(COUNT));
    }
}

#[test]
fn gaussian_numbers_have_the_middle_the_manual_gives() {
    // With parameter 4: two thirds of the numbers in the middle quarter (0.6827), 95 % in the middle half.
    let drawn = numbers("random_gaussian(1, 1000, 4.0)", COUNT);
    let within = 0.682_689 / 0.999_937;
    near(
        share(&drawn, |x| (376..=625).contains(&x)),
        within,
        to_f64(COUNT),
    );
    let within = 0.954_500 / 0.999_937;
    near(
        share(&drawn, |x| (251..=750).contains(&x)),
        within,
        to_f64(COUNT),
    );
    assert!(drawn.iter().all(|x| (1..=1000).contains(x)));
    near(share(&drawn, |x| x <= 500), 0.5, to_f64(COUNT));
}

#[test]
fn zipfian_numbers_are_as_frequent_as_their_rank_says() {
    for exponent in [1.1, 1.5, 3.0] {
        let drawn = numbers(&format!("random_zipfian(11, 30, {exponent})"), COUNT);
        let all: f64 = (1..=20).map(|rank| f64::from(rank).powf(-exponent)).sum();
        for rank in 1..=20 {
            let expected = f64::from(rank).powf(-exponent) / all;
            let value = i64::from(rank) + 10;
            near(share(&drawn, |x| x == value), expected, to_f64(COUNT));
        }
    }
}

#[test]
fn a_permutation_hits_each_place_once() {
    for size in [1, 2, 3, 7, 64, 1000] {
        let mut hit = vec![false; usize::try_from(size).unwrap()];
        for value in 0..size {
            let place = crate::pgbench::hash::permute(value, size, 42);
            let place = usize::try_from(place).unwrap();
            assert!(!hit[place], "{size}: {value}");
            hit[place] = true;
        }
    }
}
