//! The handshake of one camera with the PLC: no clock, no lock, no thread.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::registers::{COMMANDS, Commands, INPUTS, Inputs, told, wanted, words_of};
use crate::answer::{Answer, CLASSES, Outcome};

/// Results that wait behind the one in the registers.
pub const QUEUE: usize = 8;

/// What went wrong with a request of the PLC. It stays in the register of errors until the PLC clears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A trigger came while the camera was not ready.
    NotReady = 10,
    /// The PLC's heartbeat stopped.
    HeartbeatLost = 11,
    /// A trigger came for a camera that has none.
    NoTrigger = 12,
    /// No recipe has the number.
    NoRecipe = 13,
    /// Several recipes have the number.
    TwoRecipes = 14,
    /// The switch to the recipe failed; all cameras are as before.
    SwitchFailed = 15,
    /// The request came while another recipe was coming into force.
    Switching = 16,
}

/// What the station knows of a camera at this moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CameraSnapshot {
    /// Frames come and are inspected.
    pub is_online: bool,
    /// A frame waits for its outcome, or a trigger for its frame.
    pub is_busy: bool,
    /// The camera has a trigger.
    pub has_trigger: bool,
    /// It would take a trigger.
    pub can_arm: bool,
    /// Another recipe comes into force.
    pub is_switching: bool,
    /// 1: camera lost, 2: device lost, 3: settings refused; else 0.
    pub trouble: u16,
    /// Number of the recipe in force; 0: none, or it has no number.
    pub recipe: u16,
    /// The station's heartbeat.
    pub heartbeat: u16,
    /// Tells this run of the station from others.
    pub epoch: u32,
    /// The page's address cannot be used.
    pub is_page_away: bool,
    /// The newest number of a frame or trigger; 0: none yet.
    pub newest: u64,
}

/// What is to be done after a write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteEffect {
    /// Take a trigger, and say through [`Handshake::armed`] what became of it.
    pub trigger: bool,
    /// Switch to the recipe with this number, and say through [`Handshake::switched`] what became of it.
    pub recipe: Option<u16>,
    /// Raise an alarm: the PLC's heartbeat has stopped.
    pub alarm: bool,
    /// Results of frames that arrived before are not wanted.
    pub begin: bool,
}

/// The words of one camera, and what follows from them.
#[derive(Debug, Clone)]
pub struct Handshake {
    /// Whether the PLC may write. Without, each result takes the place of the one before.
    has_commands: bool,
    timeout: Duration,
    commands: Commands,
    /// The number of the trigger that the PLC has not cleared.
    taken: Option<u64>,
    /// The result in the registers.
    result: Option<Answer>,
    queue: VecDeque<Answer>,
    /// Results up to this number are of frames from before the PLC began, or began anew: it does not get them.
    begun_after: u64,
    has_overrun: bool,
    missed: u16,
    fault: Option<Fault>,
    is_switching: bool,
    has_switch_failed: bool,
    /// When the PLC's heartbeat changed; `None`: it never did, and is not watched.
    beat: Option<Instant>,
    /// The heartbeat stopped, and the PLC has not written enable = 0 since it goes on.
    is_lost: bool,
}

impl Handshake {
    /// Nothing was written yet. `timeout`: the longest time between two beats of the PLC.
    pub fn new(has_commands: bool, timeout: Duration) -> Self {
        Self {
            has_commands,
            timeout,
            commands: [0; COMMANDS],
            taken: None,
            result: None,
            queue: VecDeque::new(),
            begun_after: 0,
            has_overrun: false,
            missed: 0,
            fault: None,
            is_switching: false,
            has_switch_failed: false,
            beat: None,
            is_lost: false,
        }
    }

    /// Whether the PLC wants results, and lives.
    pub fn is_enabled(&self) -> bool {
        self.wants(wanted::ENABLE) && !self.is_lost
    }

    /// Whether the PLC's heartbeat stopped and the PLC has not begun anew.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// The number of the part that the PLC names.
    pub fn part(&self) -> Option<u32> {
        let [_, _, high, low, _] = self.commands;
        let part = u32::from(high) << 16 | u32::from(low);
        (part != 0).then_some(part)
    }

    /// What the PLC wrote.
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    fn wants(&self, bit: u16) -> bool {
        self.commands[0] & bit != 0
    }

    fn is_ready(&self, now: &CameraSnapshot) -> bool {
        self.is_enabled()
            && now.is_online
            && !now.is_switching
            && !self.is_switching
            && self.queue.len() < QUEUE
            && (!now.has_trigger || now.can_arm)
    }

    /// The PLC writes these words, from the word `first` on.
    pub fn write(
        &mut self,
        first: usize,
        words: &[u16],
        now: &CameraSnapshot,
        time: Instant,
    ) -> WriteEffect {
        let alarm = self.expire(time);
        // The PLC must have seen it: a write of enable and trigger together triggers nothing.
        let was_ready = self.is_ready(now);
        let was_enabled = self.is_enabled();
        let before = self.commands;
        let places = self.commands.iter_mut().skip(first);
        places.zip(words).for_each(|(place, word)| *place = *word);
        if self.commands[4] != before[4] {
            self.beat = Some(time);
        }
        if self.is_lost && !self.wants(wanted::ENABLE) && self.is_beating(time) {
            self.is_lost = false;
        }
        let rises = |of: &Self, bit| before[0] & bit == 0 && of.wants(bit);
        if was_enabled && !self.is_enabled() {
            self.withdraw();
        }
        if rises(self, wanted::CLEAR) {
            self.clear();
        }
        let begin = rises(self, wanted::CLEAR) || rises(self, wanted::ENABLE);
        if begin {
            self.begun_after = now.newest;
        }
        if !self.wants(wanted::TRIGGER) {
            self.taken = None;
        }
        let mut asked = WriteEffect {
            alarm,
            begin,
            ..WriteEffect::default()
        };
        if rises(self, wanted::TRIGGER) {
            asked.trigger = now.has_trigger && was_ready && self.is_enabled();
            if !asked.trigger {
                // Of a camera that does not run nobody knows whether it has a trigger.
                self.refuse(match now.is_online && !now.has_trigger {
                    true => Fault::NoTrigger,
                    false => Fault::NotReady,
                });
            }
        }
        if rises(self, wanted::RECIPE_REQUEST) {
            if self.is_switching || now.is_switching {
                self.has_switch_failed = true;
                self.fault = Some(Fault::Switching);
            } else {
                // Set within the write: no read may see the end of the request before.
                self.is_switching = true;
                self.has_switch_failed = false;
                asked.recipe = Some(self.commands[1]);
            }
        }
        self.show_next();
        asked
    }

    /// What became of the trigger: its number, if it was taken.
    pub fn armed(&mut self, sequence: Option<u64>) {
        self.taken = sequence;
        if sequence.is_none() {
            self.refuse(Fault::NotReady);
        }
    }

    /// What became of the request for a recipe.
    pub fn switched(&mut self, result: Result<(), Fault>) {
        self.is_switching = false;
        if let Err(fault) = result {
            self.has_switch_failed = true;
            self.fault = Some(fault);
        }
    }

    /// A frame or a trigger of the camera has its outcome.
    pub fn answer(&mut self, answer: &Answer) {
        if !answer.is_asked_for {
            return;
        }
        if !self.has_commands {
            self.result = Some(*answer);
        } else if !self.is_enabled() || answer.sequence <= self.begun_after {
            // Nobody wants it.
        } else if self.queue.len() < QUEUE {
            self.queue.push_back(*answer);
            self.show_next();
        } else {
            self.has_overrun = true;
            self.missed = self.missed.saturating_add(1);
        }
    }

    /// Whether the PLC's heartbeat has stopped just now.
    pub fn expire(&mut self, time: Instant) -> bool {
        let stops = self.beat.is_some() && !self.is_beating(time) && !self.is_lost;
        if stops {
            self.is_lost = true;
            self.fault = Some(Fault::HeartbeatLost);
            self.withdraw();
        }
        stops
    }

    fn is_beating(&self, time: Instant) -> bool {
        let since = |beat| time.saturating_duration_since(beat);
        self.beat.is_some_and(|beat| since(beat) <= self.timeout)
    }

    fn refuse(&mut self, fault: Fault) {
        self.fault = Some(fault);
        self.missed = self.missed.saturating_add(1);
    }

    /// Results from before must not be taken for those that come after the next enable.
    fn withdraw(&mut self) {
        let waiting = u16::try_from(self.queue.len()).unwrap_or(u16::MAX);
        self.missed = self.missed.saturating_add(waiting);
        self.queue.clear();
        self.result = None;
    }

    fn clear(&mut self) {
        self.queue.clear();
        self.result = None;
        self.has_overrun = false;
        self.missed = 0;
        self.fault = None;
        self.has_switch_failed = false;
    }

    /// Levels: acknowledged results go, and the next one comes when the PLC has taken the acknowledgement back.
    fn show_next(&mut self) {
        if !self.has_commands {
            return;
        }
        if self.wants(wanted::RESULT_ACK) {
            self.result = None;
        } else if self.result.is_none() {
            self.result = self.queue.pop_front();
        }
    }

    /// The words for the PLC, all of this moment.
    pub fn inputs(&self, now: &CameraSnapshot) -> Inputs {
        let error = match (now.trouble, self.fault) {
            (0, fault) => fault.map_or(0, |fault| fault as u16),
            (trouble, _) => trouble,
        };
        let result = self.result.as_ref();
        let has_outcome = |outcome| result.is_some_and(|result| result.outcome == outcome);
        let bits = [
            (told::ONLINE, now.is_online),
            (told::READY, self.is_ready(now)),
            (told::BUSY, now.is_busy),
            (told::TRIGGER_ACK, self.taken.is_some()),
            (told::RESULT_VALID, result.is_some()),
            (told::PASS, has_outcome(Outcome::Pass)),
            (told::REJECT, result.is_some_and(|result| result.is_reject)),
            (told::LATE, has_outcome(Outcome::Late)),
            (told::OVERRUN, self.has_overrun),
            (told::RECIPE_BUSY, self.is_switching || now.is_switching),
            (told::RECIPE_FAILED, self.has_switch_failed),
            (told::ERROR, error != 0),
            (told::PAGE_AWAY, now.is_page_away),
        ];
        let bits = bits.iter().filter(|(_, is_set)| *is_set);
        let mut words = [0; INPUTS];
        words[0] = bits.fold(0, |word, (bit, _)| word | bit);
        words[1] = now.heartbeat;
        set(&mut words, 2, &words_of(low(self.taken.unwrap_or(0))));
        if let Some(result) = result {
            set(&mut words, 4, &words_of(low(result.sequence)));
            words[6] = result.outcome.code();
            words[7] = bounded(result.finding.defects.into());
            words[10] = bounded(result.latency.as_micros() / 100);
            let by_class: [u16; CLASSES] = result.finding.by_class.map(|of| bounded(of.into()));
            set(&mut words, 12, &by_class);
            let parts = &result.finding.parts;
            words[22] = parts.count;
            words[23] = parts.failed;
            let [x, y, angle] = parts.first;
            // Negative numbers are two's complements.
            set(&mut words, 24, &words_of(x as u32));
            set(&mut words, 26, &words_of(y as u32));
            words[28] = angle as u16;
        }
        words[8] = now.recipe;
        words[9] = error;
        words[11] = self.missed;
        set(&mut words, 20, &words_of(now.epoch));
        words
    }
}

fn set(words: &mut Inputs, first: usize, these: &[u16]) {
    let places = words.iter_mut().skip(first);
    places.zip(these).for_each(|(place, word)| *place = *word);
}

/// The registers hold the low 32 bits of a number.
fn low(sequence: u64) -> u32 {
    (sequence & u64::from(u32::MAX)) as u32
}

fn bounded(number: u128) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
