//! Reports to an MQTT broker (MQTT 3.1.1, QoS 1).

use std::{
    cell::RefCell,
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use clinspect_results::report::Report;
use rumqttc::{AsyncClient, Event, EventLoop, Incoming, LastWill, MqttOptions, Outgoing, QoS};
use tokio::{sync::Notify, time::sleep};

use crate::{
    broker::{self, Broker, ENDED, PAUSES},
    queue::Queue,
    sender::{Notifier, Sender},
    trial::{Advice, Trial, Verdict},
};

/// Reports that are sent before the broker has acknowledged the first of them.
const WINDOW: usize = 32;
/// Their memory, bytes; one report may take more.
const MOST_BYTES: u64 = 8 << 20;
/// A packet without an acknowledgement for so long, while the broker answers, is one that the broker does not accept.
const UNANSWERED: Duration = Duration::from_secs(25);
/// Pause instead while a packet is found that the broker does not accept, so that a stop has time for all others; and most such
/// pauses in a row.
const TRIAL_PAUSE: Duration = Duration::from_millis(50);
const TRIAL_PAUSES: u32 = 16;

/// What the retained topic `state` says.
const ONLINE: &str = "online";
const OFFLINE: &str = "offline";

/// Sends reports to a broker.
pub struct Mqtt {
    broker: Broker,
    /// `<topic>/<camera>`.
    topic: String,
    /// The client's name at the broker. A new connection with the same name replaces the old one; with another name,
    /// the old connection's last will would come later and overwrite the state.
    id: String,
}

/// A packet that the broker has not acknowledged.
struct Packet {
    /// Once the packet has one.
    number: Option<u16>,
    content: Content,
    since: Instant,
}

/// What a packet holds.
#[derive(Clone)]
enum Content {
    /// `online` or not.
    State(bool),
    /// The report, its JSON's bytes, and whether it was set aside before.
    Report(Arc<Report>, usize, bool),
}

/// What is known of a connection.
#[derive(Default)]
struct Connection {
    packets: Mutex<VecDeque<Packet>>,
    /// The broker has answered, or acknowledged a packet, or [`Self::is_closed`] is set.
    changed: Notify,
    /// The end was sent.
    is_closed: AtomicBool,
    /// The broker has accepted the connection.
    is_accepted: AtomicBool,
    /// The broker has acknowledged a packet.
    has_answered: AtomicBool,
    /// The broker has acknowledged a report.
    has_delivered: AtomicBool,
}

impl Packet {
    fn into_report(self) -> Option<Arc<Report>> {
        match self.content {
            Content::Report(report, ..) => Some(report),
            Content::State(_) => None,
        }
    }
}

impl Connection {
    fn packets(&self) -> MutexGuard<'_, VecDeque<Packet>> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of the reports on their way, bytes.
    fn bytes(&self) -> u64 {
        let packets = self.packets();
        let memory = packets.iter().map(|packet| match &packet.content {
            Content::Report(report, ..) => report.memory() as u64,
            Content::State(_) => 0,
        });
        memory.sum()
    }

    /// Whether the broker answers, but has left a packet without an acknowledgement for long.
    fn is_stuck(&self) -> bool {
        let packets = self.packets();
        packets
            .front()
            .is_some_and(|packet| packet.since.elapsed() > UNANSWERED)
    }
}

/// How a connection ended.
struct End {
    why: String,
    /// The broker accepted the connection.
    is_accepted: bool,
    /// The broker acknowledged a packet.
    was_there: bool,
    /// Which packet the broker does not accept is found out; nothing to tell of this end.
    is_trial: bool,
}

impl Mqtt {
    /// A sender to the topics `<topic>/<camera>/result` and `<topic>/<camera>/state`.
    pub fn new(broker: Broker, topic: &str, camera: &str) -> Self {
        Self {
            broker,
            topic: format!("{topic}/{camera}"),
            id: broker::new_id(),
        }
    }

    fn state_topic(&self) -> String {
        format!("{}/state", self.topic)
    }

    fn options(&self) -> Result<MqttOptions, String> {
        let mut options = self.broker.options(&self.id)?;
        options.set_last_will(LastWill::new(
            self.state_topic(),
            OFFLINE,
            QoS::AtLeastOnce,
            true,
        ));
        Ok(options)
    }

    /// Connects and sends until the connection fails, which is the result, or the stop is carried out.
    async fn connection(
        &self,
        queue: &Queue,
        notifier: &Notifier,
        trial: &RefCell<Trial>,
    ) -> Result<(), End> {
        let options = self.options().map_err(|why| End {
            why,
            is_accepted: false,
            was_there: false,
            is_trial: false,
        })?;
        let connection = Connection::default();
        let (client, mut events) = AsyncClient::new(options, WINDOW + 2);
        events.set_network_options(broker::network());
        // Neither future is dropped before the end of the connection: the client library does not allow it.
        let result = tokio::select! {
            error = self.receive(&mut events, &connection, queue, notifier, trial) => Err(error),
            done = self.send(&client, &connection, queue, trial) => done,
        };
        // After `disconnect` the broker ends the connection; that is no failure.
        let is_closed = connection.is_closed.load(Relaxed);
        let Err(why) = result.or_else(|why| if is_closed { Ok(()) } else { Err(why) }) else {
            let packets = std::mem::take(&mut *connection.packets());
            queue.put_back(packets.into_iter().filter_map(Packet::into_report));
            return Ok(());
        };
        let is_trial = self.judge(&connection, queue, notifier, &mut trial.borrow_mut());
        Err(End {
            why,
            is_accepted: connection.is_accepted.load(Relaxed),
            was_there: connection.has_answered.load(Relaxed),
            is_trial,
        })
    }

    /// Decides what becomes of the packets of a connection that has failed. Returns whether the broker is there and this
    /// connection told something about a single packet.
    fn judge(
        &self,
        connection: &Connection,
        queue: &Queue,
        notifier: &Notifier,
        trial: &mut Trial,
    ) -> bool {
        let mut packets = std::mem::take(&mut *connection.packets());
        if !connection.is_accepted.load(Relaxed) {
            trial.away();
        }
        if !trial.is_single() || packets.len() != 1 {
            let is_barren = connection.is_accepted.load(Relaxed)
                && !connection.has_delivered.load(Relaxed)
                && !packets.is_empty();
            if is_barren {
                trial.be_single();
            }
            // Some may have arrived: at least once means that a receiver may see a frame twice.
            queue.put_back(packets.into_iter().filter_map(Packet::into_report));
            return false;
        }
        let place = self.broker.place();
        match packets.pop_front().map(|packet| packet.content) {
            Some(Content::Report(report, bytes, was_aside)) => {
                let has_answered = connection.has_answered.load(Relaxed);
                match trial.ended(&report, bytes, was_aside, has_answered) {
                    Verdict::Again => queue.put_back(std::iter::once(report)),
                    Verdict::SetAside => queue.set_aside(report),
                    Verdict::Drop => {
                        queue.count_dropped();
                        let more = match trial.limit() {
                            Some(limit) => format!(
                                " Results of {limit} bytes and more are dropped from now on."
                            ),
                            None => String::new(),
                        };
                        notifier.refused(format!(
                            "the broker {place} ends the connection at a result of {bytes} bytes (frame {}), so the result \
                             is dropped; raise the broker's limit (mosquitto: max_packet_size), or list fewer defects \
                             (limits, max-defects).{more}",
                            report.frame.unwrap_or_default()
                        ));
                    }
                }
            }
            Some(Content::State(_)) => {
                let is_given_up = trial.state_ended();
                if is_given_up {
                    notifier.refused(format!(
                        "the broker {place} ends the connection at the topic {}, so the state is not sent any more; allow \
                         this client to publish retained messages there",
                        self.state_topic()
                    ));
                }
            }
            None => {}
        }
        true
    }

    /// Follows the connection until it fails.
    async fn receive(
        &self,
        events: &mut EventLoop,
        connection: &Connection,
        queue: &Queue,
        notifier: &Notifier,
        trial: &RefCell<Trial>,
    ) -> String {
        loop {
            match events.poll().await {
                Ok(Event::Incoming(Incoming::ConnAck(_))) => {
                    connection.is_accepted.store(true, Relaxed);
                    notifier.works(
                        queue,
                        &format!("results go to {} again", self.broker.place()),
                    );
                    connection.changed.notify_one();
                }
                Ok(Event::Outgoing(Outgoing::Publish(number))) => {
                    let mut packets = connection.packets();
                    if let Some(packet) = packets.iter_mut().find(|of| of.number.is_none()) {
                        packet.number = Some(number);
                    }
                }
                Ok(Event::Incoming(Incoming::PubAck(ack))) => {
                    let mut packets = connection.packets();
                    let at = packets.iter().position(|of| of.number == Some(ack.pkid));
                    let packet = at.and_then(|at| packets.remove(at));
                    drop(packets);
                    connection.has_answered.store(true, Relaxed);
                    match packet.map(|packet| packet.content) {
                        Some(Content::Report(_, bytes, _)) => {
                            connection.has_delivered.store(true, Relaxed);
                            trial.borrow_mut().taken(bytes, queue.has_aside());
                            notifier.sent(queue, "");
                        }
                        Some(Content::State(_)) => trial.borrow_mut().state_taken(),
                        None => {}
                    }
                    connection.changed.notify_one();
                }
                // The broker is there, so a packet without an acknowledgement is one that it does not accept.
                Ok(Event::Incoming(Incoming::PingResp)) if connection.is_stuck() => {
                    return format!(
                        "the broker {} does not acknowledge a packet",
                        self.broker.place()
                    );
                }
                Ok(Event::Outgoing(Outgoing::Disconnect)) => {
                    connection.is_closed.store(true, Relaxed);
                    connection.changed.notify_one();
                }
                Ok(_) => {}
                Err(error) => return self.broker.in_words(&error),
            }
        }
    }

    /// Sends reports as they come. Ends when a stop is carried out.
    async fn send(
        &self,
        client: &AsyncClient,
        connection: &Connection,
        queue: &Queue,
        trial: &RefCell<Trial>,
    ) -> Result<(), String> {
        connection.changed.notified().await;
        // The state that the broker has.
        let mut published = None;
        loop {
            while let Some((content, payload)) = self.next(connection, queue, trial, published) {
                if let Content::State(is_online) = content {
                    published = Some(is_online);
                }
                self.publish(client, connection, content, payload).await?;
            }
            if queue.is_stopping() && connection.packets().is_empty() {
                break;
            }
            let until_again = trial.borrow().until_again();
            tokio::select! {
                () = queue.changed(), if !queue.is_stopping() => {}
                () = connection.changed.notified() => {}
                () = sleep(until_again), if queue.has_aside() && !until_again.is_zero() => {}
            }
        }
        let has_delivered = connection.has_delivered.load(Relaxed);
        if published != Some(false) && trial.borrow().may_send_state(has_delivered) {
            self.publish(client, connection, Content::State(false), OFFLINE.into())
                .await?;
        }
        while !connection.packets().is_empty() {
            connection.changed.notified().await;
        }
        // Without it the broker would publish the last will too.
        let asked = client.disconnect().await;
        asked.map_err(|_| ENDED.to_owned())?;
        while !connection.is_closed.load(Relaxed) {
            connection.changed.notified().await;
        }
        Ok(())
    }

    /// The next packet and its payload, if one may be sent now. The broker has the state `published`.
    fn next(
        &self,
        connection: &Connection,
        queue: &Queue,
        trial: &RefCell<Trial>,
        published: Option<bool>,
    ) -> Option<(Content, Vec<u8>)> {
        let mut trial = trial.borrow_mut();
        let has_delivered = connection.has_delivered.load(Relaxed);
        loop {
            let on_their_way = connection.packets().len();
            if on_their_way >= WINDOW || (trial.is_single() && on_their_way > 0) {
                return None;
            }
            let is_online = queue.is_online();
            // `offline` goes behind the results of the frames that came before.
            if published != Some(is_online)
                && (is_online || (!queue.has_next() && !queue.is_stopping()))
                && trial.may_send_state(has_delivered)
            {
                let text = if is_online { ONLINE } else { OFFLINE };
                return Some((Content::State(is_online), text.into()));
            }
            if trial.is_single()
                && trial.may_try_aside(has_delivered, queue.has_next())
                && let Some(report) = queue.take_aside()
            {
                let json = json(&report);
                if trial.advice(json.len()) == Advice::Drop {
                    queue.count_dropped();
                    continue;
                }
                return Some((Content::Report(report, json.len(), true), json));
            }
            let room = MOST_BYTES.saturating_sub(connection.bytes());
            let report = queue.take_if(|bytes| on_their_way == 0 || bytes <= room)?;
            let json = json(&report);
            match trial.advice(json.len()) {
                Advice::Send => return Some((Content::Report(report, json.len(), false), json)),
                Advice::SetAside => {
                    trial.be_single();
                    queue.set_aside(report);
                }
                Advice::Drop => queue.count_dropped(),
            }
        }
    }

    /// Hands a packet to the client.
    async fn publish(
        &self,
        client: &AsyncClient,
        connection: &Connection,
        content: Content,
        payload: Vec<u8>,
    ) -> Result<(), String> {
        let (topic, retain) = match content {
            Content::Report(..) => (format!("{}/result", self.topic), false),
            Content::State(_) => (self.state_topic(), true),
        };
        // Before the client has it: its number may come at once.
        connection.packets().push_back(Packet {
            number: None,
            content,
            since: Instant::now(),
        });
        let sent = client
            .publish(topic, QoS::AtLeastOnce, retain, payload)
            .await;
        sent.map_err(|_| ENDED.to_owned())
    }
}

/// The JSON of a report, without the end of the line.
fn json(report: &Report) -> Vec<u8> {
    let mut json = report.to_line();
    json.pop();
    json
}

impl Sender for Mqtt {
    async fn run(self, queue: &Queue, notifier: &Notifier) {
        // There is nothing to send, and no connection to end.
        let is_idle = async {
            queue.stopping().await;
            while queue.has_next()
                || queue.has_aside()
                || queue.numbers().is_connected.load(Relaxed)
            {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let work = async {
            let [first, longest] = PAUSES;
            let mut pause = first;
            let trial: RefCell<Trial> = RefCell::default();
            let mut short_pauses = TRIAL_PAUSES;
            loop {
                let begun = Instant::now();
                let Err(end) = self.connection(queue, notifier, &trial).await else {
                    return;
                };
                // A broker that closes each connection at once is not asked more often.
                if begun.elapsed() > longest || end.was_there {
                    pause = first;
                }
                if begun.elapsed() > longest {
                    short_pauses = TRIAL_PAUSES;
                }
                let is_short = short_pauses > 0 && end.is_accepted && trial.borrow().is_single();
                if end.is_trial {
                    notifier.lost(queue);
                } else {
                    notifier.failed(queue, &end.why);
                }
                let jitter = broker::jitter();
                if is_short {
                    short_pauses -= 1;
                    sleep(TRIAL_PAUSE.mul_f64(jitter)).await;
                    continue;
                }
                sleep(pause.mul_f64(jitter)).await;
                pause = (2 * pause).min(longest);
            }
        };
        tokio::select! {
            () = is_idle => {}
            () = work => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_on_their_way_are_bounded_in_bytes() {
        let report = |megabytes: usize| {
            let mut report = Report {
                version: 1,
                camera: None,
                frame: Some(0),
                outcome: None,
                time: String::new(),
                recipe: None,
                corrupted: false,
                verdict: "pass",
                inspections: Vec::new(),
                histograms: Vec::new(),
            };
            // Memory without contents.
            let bytes = megabytes << 20;
            report.histograms = vec![clinspect_results::report::Histogram {
                element: String::new(),
                format: String::new(),
                alarms: Vec::new(),
                channels: Vec::with_capacity(
                    bytes / size_of::<clinspect_results::report::Channel>(),
                ),
            }];
            Arc::new(report)
        };
        for (megabytes, expected) in [(0, WINDOW), (1, 7), (3, 2), (20, 1)] {
            let mqtt = Mqtt::new(Broker::new("mqtt://broker", "", "").unwrap(), "a", "b");
            let queue = Queue::new(100, u64::MAX);
            (0..40).for_each(|_| queue.push(report(megabytes)));
            let (connection, trial) = (Connection::default(), RefCell::default());
            let mut sent = 0;
            while let Some((content, _)) = mqtt.next(&connection, &queue, &trial, Some(true)) {
                sent += 1;
                connection.packets().push_back(Packet {
                    number: None,
                    content,
                    since: Instant::now(),
                });
            }
            assert_eq!(sent, expected, "{megabytes} MiB");
        }
    }
}
