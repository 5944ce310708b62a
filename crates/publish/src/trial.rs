//! Finds the packets that a broker never accepts, because each of them ends the connection.
//!
//! A broker says nothing when it refuses a packet in MQTT 3.1.1: it ends the connection, or never acknowledges. A packet
//! that is sent again for ever would keep all others from the broker. After a connection that brought no report to the broker,
//! packets are therefore sent one by one. A report is dropped only if it ended [`STRIKES`] connections alone, the last of
//! them after the broker had acknowledged something, and if the broker took another report since the last drop (at most
//! [`MOST_VOUCHERS`] of them count). Otherwise the report is set aside: others are tried first. So a broker that is away, or
//! that takes no report at all, loses none.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use clinspect_results::report::Report;

/// Packets that are sent one by one after a loss, once nothing is set aside.
const SINGLE: u32 = 32;
/// Connections that a packet must have ended alone.
const STRIKES: u32 = 3;
/// Reports that the broker took count for so many drops.
const MOST_VOUCHERS: u32 = 4;
/// After so many drops of larger reports than any that the broker takes, size is the reason.
const SURE: u32 = 2;
/// A report that is too large by experience is sent after this time, because the broker's limit may have changed.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Pause before a report that was set aside is sent although no other one came: the first pause, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(300)];

/// What to do with a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Send it.
    Send,
    /// Try others first.
    SetAside,
    /// It is too large for the broker.
    Drop,
}

/// What is known of the packets that ended connections.
pub struct Trial {
    /// Packets are sent one by one for so many more acknowledgements.
    single: u32,
    /// The report that ended the last connection alone, and how many connections it ended.
    suspect: Option<(Arc<Report>, u32)>,
    /// Connections that the state ended alone.
    state: u32,
    vouchers: u32,
    /// The largest report that the broker took since it was away, bytes.
    taken: usize,
    /// The smallest report that was dropped or set aside, bytes, and how many such reports were dropped.
    limit: Option<(usize, u32)>,
    /// When a report of that size was sent.
    looked: Instant,
    /// When reports that were set aside may be sent although no other one came, and the pause behind that.
    again: (Instant, Duration),
}

impl Default for Trial {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            single: 0,
            suspect: None,
            state: 0,
            vouchers: 0,
            taken: 0,
            limit: None,
            looked: now,
            again: (now, PAUSES[0]),
        }
    }
}

impl Trial {
    /// Whether packets are sent one by one.
    pub fn is_single(&self) -> bool {
        self.single > 0
    }

    /// Whether the state may be sent. `has_delivered`: in this connection the broker took a report.
    pub fn may_send_state(&self, has_delivered: bool) -> bool {
        self.state < STRIKES || (self.state == STRIKES && has_delivered)
    }

    /// What to do with a report of this size.
    pub fn advice(&self, bytes: usize) -> Advice {
        match self.limit {
            Some((limit, drops)) if bytes >= limit => {
                match drops < SURE || self.looked.elapsed() >= LOOK_AGAIN {
                    true => Advice::SetAside,
                    false => Advice::Drop,
                }
            }
            _ => Advice::Send,
        }
    }

    /// Packets are sent one by one from now on.
    pub fn be_single(&mut self) {
        self.single = SINGLE;
    }

    /// Whether a report that was set aside may be sent: the broker took a report in this connection, or no other one waits and
    /// there is a voucher, or a pause is over.
    pub fn may_try_aside(&self, has_delivered: bool, has_next: bool) -> bool {
        has_delivered || (!has_next && (self.vouchers > 0 || self.until_again().is_zero()))
    }

    /// How long that pause is.
    pub fn until_again(&self) -> Duration {
        self.again.0.saturating_duration_since(Instant::now())
    }

    /// The broker took the state.
    pub fn state_taken(&mut self) {
        self.state = 0;
    }

    /// The broker took a report of this size. `is_aside`: others are set aside.
    pub fn taken(&mut self, bytes: usize, is_aside: bool) {
        self.suspect = None;
        self.vouchers = (self.vouchers + 1).min(MOST_VOUCHERS);
        self.taken = self.taken.max(bytes);
        self.limit = self.limit.filter(|(limit, _)| bytes < *limit);
        self.again = (Instant::now() + PAUSES[0], PAUSES[0]);
        if !is_aside {
            self.single = self.single.saturating_sub(1);
        }
    }

    /// No connection came about. The broker may have other limits when it is back.
    pub fn away(&mut self) {
        self.taken = 0;
    }

    /// The state, sent alone, ended a connection. Returns whether it is given up now.
    pub fn state_ended(&mut self) -> bool {
        self.be_single();
        self.state += 1;
        self.state == STRIKES + 1
    }

    /// A report of this size, sent alone, ended a connection. `was_aside`: it did so [`STRIKES`] times before, or is too large
    /// by experience. `has_answered`: in this connection the broker acknowledged something before.
    pub fn ended(
        &mut self,
        report: &Arc<Report>,
        bytes: usize,
        was_aside: bool,
        has_answered: bool,
    ) -> Verdict {
        self.be_single();
        let before = match &self.suspect {
            Some((suspect, strikes)) if Arc::ptr_eq(suspect, report) => *strikes,
            _ if was_aside => STRIKES - 1,
            _ => 0,
        };
        let strikes = before + 1;
        self.suspect = Some((report.clone(), strikes));
        if strikes < STRIKES {
            return Verdict::Again;
        }
        self.suspect = None;
        let drops = u32::from(self.vouchers > 0 && has_answered);
        if bytes > self.taken {
            let (limit, before) = self.limit.unwrap_or((bytes, 0));
            self.limit = Some((limit.min(bytes), before + drops));
        }
        if drops == 0 {
            let pause = (2 * self.again.1).min(PAUSES[1]);
            self.again = (Instant::now() + self.again.1, pause);
            return Verdict::SetAside;
        }
        self.vouchers -= 1;
        self.looked = Instant::now();
        Verdict::Drop
    }

    /// The size from which on reports are dropped without being sent, bytes.
    pub fn limit(&self) -> Option<usize> {
        let sure = self.limit.filter(|(_, drops)| *drops >= SURE);
        sure.map(|(limit, _)| limit)
    }
}

/// What becomes of a report that ended a connection alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is sent again.
    Again,
    /// Others are tried first.
    SetAside,
    /// It is dropped.
    Drop,
}
