//! After how many turns a damaged roller is found.

use clinspect_testkit::marks::{Chance, Place, Roller};
use plan::RepeatSettings;
use run::repeats::News;

use crate::web::{add, finder, known, web};

/// Webs of a cell of the table.
const WEBS: u64 = 100;
/// Turns of the table.
const TURNS: [u32; 6] = [4, 5, 6, 8, 12, 16];
/// Where the roller begins to mark, m.
const FROM: u64 = 60;

const CLEAN: Roller = Roller {
    period: 628.3,
    across: 700.0,
    stretch: 0.004,
    varies: 0.0,
    jitter: 0.2,
    drift: 0.0,
    missing: 0.0,
};

/// Webs on which the roller was found within each number of turns of [`TURNS`], and found with the wrong period.
fn found(roller: &Roller, settings: &RepeatSettings, per_m: f64) -> ([u64; 6], u64) {
    let mut within = [0; 6];
    let mut wrong = 0;
    for seed in 1..=WEBS {
        let from = FROM as f64 * 1000.0 + 3.7 * seed as f64;
        let turns = TURNS[TURNS.len() - 1];
        let marks = web(seed).roller(roller, from, turns);
        let until = FROM + (f64::from(turns) * roller.period / 1000.0).ceil() as u64;
        let chance = web(seed).chance(Chance::Single, per_m, 0..until);
        let mut places: Vec<(Place, Option<u32>)> =
            chance.into_iter().map(|place| (place, None)).collect();
        let planted = marks.into_iter().zip(1..);
        places.extend(planted.filter_map(|(place, turn)| Some((place?, Some(turn)))));
        places.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
        let mut finder = finder(settings);
        let news = places
            .into_iter()
            .find_map(|(place, turn)| Some((add(&mut finder, place)?, turn)));
        if let Some((News::Found(row), turn)) = news {
            let period = roller.period * (1.0 + roller.stretch) / crate::web::PIXEL;
            let is_right = (row.period / period - 1.0).abs() < 0.01 && turn.is_some();
            wrong += u64::from(!is_right);
            for (within, turns) in within.iter_mut().zip(TURNS) {
                *within += u64::from(is_right && turn <= Some(turns));
            }
        }
    }
    (within, wrong)
}

#[test]
fn damaged_rollers_are_found() {
    let rollers = [
        ("as a ruler", CLEAN),
        (
            "stretch varies by 0.1 %",
            Roller {
                varies: 0.001,
                ..CLEAN
            },
        ),
        (
            "drifts 1 mm a turn",
            Roller {
                drift: 1.0,
                ..CLEAN
            },
        ),
        (
            "1 of 4 turns without",
            Roller {
                missing: 0.25,
                ..CLEAN
            },
        ),
        (
            "period 0.19 m",
            Roller {
                period: 190.0,
                ..CLEAN
            },
        ),
        (
            "period 2.5 m",
            Roller {
                period: 2500.0,
                ..CLEAN
            },
        ),
    ];
    println!("webs of {WEBS} on which the roller was found, by turns since the first mark");
    print!("{:26} {:8} {:>12}", "roller", "period", "defects/m");
    println!("{}", TURNS.map(|turns| format!("{turns:6}")).concat());
    for (name, roller) in rollers {
        let ways = [
            ("found", RepeatSettings::default()),
            ("known", known(&[roller.period / 1000.0])),
        ];
        for (way, settings) in ways {
            for per_m in [0.0, 1.0, 5.0] {
                let (within, wrong) = found(&roller, &settings, per_m);
                let counts = within.map(|count| format!("{count:6}")).concat();
                println!("{name:26} {way:8} {per_m:12}{counts}");
                // Turns without a mark may double the period, until the marks between come.
                assert!(
                    wrong <= WEBS / 20,
                    "{name}, {way}, {per_m}: {wrong} wrong rows"
                );
                let [.., last] = within;
                assert!(last >= WEBS * 9 / 10, "{name}, {way}, {per_m}: {within:?}");
            }
        }
    }
}
