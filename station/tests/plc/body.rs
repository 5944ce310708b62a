//! Any writes of a PLC, answers of a camera, changes of the camera and times, against the rules of
//! docs/machine-reference.md: a `pass` only with a valid result that was given, and each queued answer shown once or counted as
//! missed, in order.
//!
//! `fuzz/targets/plc.rs` runs this under libFuzzer.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use arbitrary::{Result, Unstructured};
use machine::{
    answer::{Answer, Finding, Outcome},
    modbus::{
        handshake::{CameraSnapshot, Fault, Handshake, QUEUE},
        registers::{COMMANDS, Inputs, told, wanted},
    },
};

const TIMEOUT: Duration = Duration::from_millis(1000);

/// See the module.
pub fn run(data: &[u8]) {
    // Too few bytes for a case.
    let _ = body(&mut Unstructured::new(data));
}

/// What the rules say.
struct Rules {
    handshake: Handshake,
    now: CameraSnapshot,
    time: Instant,
    /// Every answer that was given, by its number, from 1.
    given: Vec<Answer>,
    /// Numbers that wait behind the registers.
    waiting: VecDeque<u64>,
    /// The number in the registers.
    shown: Option<u64>,
    missed: u16,
    /// The newest number when the PLC began, or began anew.
    begun_after: u64,
}

fn body(input: &mut Unstructured) -> Result<()> {
    let has_commands = !input.ratio(1_u8, 16_u8)?;
    let mut rules = Rules {
        handshake: Handshake::new(has_commands, TIMEOUT),
        now: CameraSnapshot::default(),
        time: Instant::now(),
        given: Vec::new(),
        waiting: VecDeque::new(),
        shown: None,
        missed: 0,
        begun_after: 0,
    };
    while !input.is_empty() {
        match input.int_in_range(0..=9_u8)? {
            0..=3 if has_commands => rules.write(input)?,
            4..=6 => rules.answer(input, has_commands)?,
            7 => {
                rules.time += Duration::from_millis(input.int_in_range(0..=1500)?);
                let was_enabled = rules.handshake.is_enabled();
                rules.handshake.expire(rules.time);
                rules.see_enable(was_enabled);
            }
            8 => rules.change(input)?,
            _ => {
                let results = [Ok(()), Err(Fault::NoRecipe), Err(Fault::SwitchFailed)];
                rules.handshake.switched(*input.choose(&results)?);
            }
        }
        rules.check(has_commands);
    }
    Ok(())
}

impl Rules {
    fn words(&self) -> Inputs {
        self.handshake.inputs(&self.now)
    }

    /// The camera changes.
    fn change(&mut self, input: &mut Unstructured) -> Result<()> {
        let bits: u8 = input.arbitrary()?;
        self.now = CameraSnapshot {
            // Mostly ready, so that triggers are taken.
            is_online: bits & 7 != 0,
            is_busy: bits & 8 != 0,
            has_trigger: bits & 16 != 0,
            can_arm: bits & 96 != 0,
            is_switching: bits & 128 != 0 && bits & 7 == 1,
            trouble: input.int_in_range(0..=3)?,
            recipe: input.arbitrary()?,
            heartbeat: input.arbitrary()?,
            epoch: input.arbitrary()?,
            // Frames may have arrived that have no outcome yet.
            newest: self.given.len() as u64 + input.int_in_range(0..=3)?,
            ..CameraSnapshot::default()
        };
        Ok(())
    }

    fn write(&mut self, input: &mut Unstructured) -> Result<()> {
        let before = *self.handshake.commands();
        let (first, words) = if input.ratio(3_u8, 4_u8)? {
            // A PLC changes one bit at a time, and beats.
            let bit = 1 << input.int_in_range(0..=4_u8)?;
            let beat = before[4].wrapping_add(input.arbitrary::<bool>()?.into());
            (
                0,
                vec![before[0] ^ bit, before[1], before[2], before[3], beat],
            )
        } else {
            let count = input.int_in_range(1..=COMMANDS)?;
            let first = input.int_in_range(0..=COMMANDS - count)?;
            let words = (0..count).map(|_| input.arbitrary());
            (first, words.collect::<Result<_>>()?)
        };
        let was_ready = self.words()[0] & told::READY != 0;
        let was_enabled = self.handshake.is_enabled();
        let asked = self.handshake.write(first, &words, &self.now, self.time);
        let after = self.handshake.commands();
        assert_eq!(
            after[first..][..words.len()],
            words,
            "what was written is read"
        );
        let rises = |bit| before[0] & bit == 0 && after[0] & bit != 0;
        let [clears, triggers, enables] =
            [wanted::CLEAR, wanted::TRIGGER, wanted::ENABLE].map(rises);
        assert!(!asked.trigger || (was_ready && triggers && self.now.has_trigger));
        assert!(asked.recipe.is_none_or(|number| number == after[1]));
        self.see_enable(was_enabled);
        if clears || enables {
            self.begun_after = self.now.newest;
        }
        if clears {
            self.waiting.clear();
            self.shown = None;
            self.missed = 0;
        }
        self.missed += u16::from(triggers && !asked.trigger);
        if asked.trigger {
            let taken = input.arbitrary::<bool>()?.then_some(77);
            self.handshake.armed(taken);
            self.missed += u16::from(taken.is_none());
            let is_told = self.words()[0] & told::TRIGGER_ACK != 0;
            assert_eq!(is_told, taken.is_some());
        }
        assert!(
            triggers || self.handshake.commands()[0] & wanted::TRIGGER != 0 || {
                self.words()[0] & told::TRIGGER_ACK == 0
            }
        );
        Ok(())
    }

    /// Results go with enable; those that waited are missed.
    fn see_enable(&mut self, was_enabled: bool) {
        if was_enabled && !self.handshake.is_enabled() {
            self.missed += self.waiting.len() as u16;
            self.waiting.clear();
            self.shown = None;
        }
    }

    fn answer(&mut self, input: &mut Unstructured, has_commands: bool) -> Result<()> {
        let sequence = self.given.len() as u64 + 1;
        let outcome = *input.choose(&Outcome::ALL)?;
        let answer = Answer {
            sequence,
            outcome,
            is_asked_for: !input.ratio(1_u8, 8_u8)?,
            is_reject: outcome != Outcome::Pass,
            finding: Finding::NOTHING,
            part: None,
            arrived: self.time,
            piece_at: self.time,
            latency: Duration::from_micros(input.arbitrary::<u32>()?.into()),
        };
        self.given.push(answer);
        if !has_commands {
            if answer.is_asked_for {
                self.shown = None;
                self.waiting = [sequence].into();
            }
        } else if answer.is_asked_for && self.handshake.is_enabled() && sequence > self.begun_after
        {
            // One that finds the queue full is missed.
            if self.waiting.len() < QUEUE {
                self.waiting.push_back(sequence);
            } else {
                self.missed += 1;
            }
        }
        self.handshake.answer(&answer);
        Ok(())
    }

    fn check(&mut self, has_commands: bool) {
        let words = self.words();
        let has = |bit| words[0] & bit != 0;
        let sequence = u64::from(words[4]) << 16 | u64::from(words[5]);
        if has(told::RESULT_VALID) {
            if self.shown != Some(sequence) {
                assert_eq!(self.waiting.pop_front(), Some(sequence), "the next one");
                self.shown = Some(sequence);
            }
            let given = &self.given[sequence as usize - 1];
            assert!(given.is_asked_for);
            assert_eq!(words[6], given.outcome.code());
            assert_eq!(has(told::PASS), given.outcome == Outcome::Pass);
            assert_eq!(has(told::LATE), given.outcome == Outcome::Late);
            assert_eq!(has(told::REJECT), given.is_reject);
        } else {
            assert!(!has(told::PASS) && !has(told::REJECT) && !has(told::LATE));
            assert!(words[4..8].iter().all(|word| *word == 0));
            assert!(words[10] == 0 && words[12..20].iter().all(|word| *word == 0));
            // The PLC has seen it, or has cleared it.
            self.shown = None;
            let acks = self.handshake.commands()[0] & wanted::RESULT_ACK != 0;
            assert!(acks || self.waiting.is_empty(), "a result is held back");
        }
        assert_eq!(words[11], self.missed);
        let is_able = self.handshake.is_enabled() && self.now.is_online && !self.now.is_switching;
        assert!(!has(told::READY) || is_able);
        assert!(has_commands || !has(told::READY) && !has(told::OVERRUN));
        assert_eq!(has(told::ERROR), words[9] != 0);
    }
}
