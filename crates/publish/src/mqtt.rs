//! Reports to an MQTT broker (MQTT 3.1.1, QoS 1).

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use gst::glib;
use rumqttc::{
    AsyncClient, ConnectReturnCode, ConnectionError, Event, EventLoop, LastWill, MqttOptions,
    NetworkOptions, Outgoing, Packet, QoS, TlsConfiguration, Transport,
};
use tokio::{sync::Notify, time::sleep};

use crate::{
    broker::Broker,
    queue::Queue,
    report::Report,
    sender::{Notifier, Sender},
};

/// Reports that are sent before the broker has acknowledged the first of them.
const WINDOW: usize = 32;
/// A connection without traffic is checked after this time; the broker publishes the last will after one and a half.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Longest wait for the broker's answer to a new connection, seconds.
const CONNECT_LIMIT: u64 = 5;
/// Pause before a new connection: the first one, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];
/// A pause is longer by up to this part of it, so that the stations of a plant do not come back all at once.
const JITTER: f64 = 0.5;
/// Largest packet: what the broker may send, and a report.
const PACKETS: [usize; 2] = [64 << 10, 64 << 20];

/// What the retained topic `state` says.
const ONLINE: &str = "online";
const OFFLINE: &str = "offline";
const ENDED: &str = "the client library has ended";

/// Sends reports to a broker.
pub struct Mqtt {
    broker: Broker,
    /// `<topic>/<camera>`.
    topic: String,
    /// The client's name at the broker. A new connection with the same name replaces the old one; with another name,
    /// the old connection's last will would come later and overwrite the state.
    id: String,
}

/// A packet that the broker has not acknowledged: its number once it has one, and its report; none for a state.
type Unacknowledged = (Option<u16>, Option<Arc<Report>>);

/// What is known of a connection.
#[derive(Default)]
struct Connection {
    packets: Mutex<VecDeque<Unacknowledged>>,
    /// The broker has answered, or acknowledged a packet, or [`Self::is_closed`] is set.
    changed: Notify,
    /// The end was sent.
    is_closed: AtomicBool,
}

impl Connection {
    fn packets(&self) -> MutexGuard<'_, VecDeque<Unacknowledged>> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mqtt {
    /// A sender to the topics `<topic>/<camera>/result` and `<topic>/<camera>/state`.
    pub fn new(broker: Broker, topic: &str, camera: &str) -> Self {
        Self {
            broker,
            topic: format!("{topic}/{camera}"),
            // Brokers close the older one of two connections with the same name, so senders have different ones.
            id: format!(
                "clinspect-{:08x}{:08x}",
                glib::random_int(),
                glib::random_int()
            ),
        }
    }

    fn state_topic(&self) -> String {
        format!("{}/state", self.topic)
    }

    fn options(&self) -> MqttOptions {
        let mut options = MqttOptions::new(&self.id, self.broker.host.bare(), self.broker.port);
        options
            .set_keep_alive(KEEP_ALIVE)
            .set_max_packet_size(PACKETS[0], PACKETS[1])
            .set_last_will(LastWill::new(
                self.state_topic(),
                OFFLINE,
                QoS::AtLeastOnce,
                true,
            ));
        if let Some([user, password]) = &self.broker.credentials {
            options.set_credentials(user, password);
        }
        if let Some(tls) = &self.broker.tls {
            options.set_transport(Transport::tls_with_config(TlsConfiguration::Rustls(
                tls.clone(),
            )));
        }
        options
    }

    /// Connects and sends until the connection fails, which is the result, or the stop is carried out.
    async fn connection(&self, queue: &Queue, notifier: &Notifier) -> Result<(), String> {
        let connection = Connection::default();
        let (client, mut events) = AsyncClient::new(self.options(), WINDOW + 2);
        let mut network = NetworkOptions::new();
        network.set_connection_timeout(CONNECT_LIMIT);
        events.set_network_options(network);
        // Neither future is dropped before the end of the connection: the client library does not allow it.
        let result = tokio::select! {
            error = self.receive(&mut events, &connection, queue, notifier) => Err(error),
            done = self.send(&client, &connection, queue) => done,
        };
        // After `disconnect` the broker ends the connection; that is no failure.
        let is_closed = connection.is_closed.load(Relaxed);
        let result = result.or_else(|why| if is_closed { Ok(()) } else { Err(why) });
        let packets = std::mem::take(&mut *connection.packets());
        // Some may have arrived: at least once means that a receiver may see a frame twice.
        queue.put_back(packets.into_iter().filter_map(|(_, report)| report));
        result
    }

    /// Follows the connection until it fails.
    async fn receive(
        &self,
        events: &mut EventLoop,
        connection: &Connection,
        queue: &Queue,
        notifier: &Notifier,
    ) -> String {
        loop {
            match events.poll().await {
                Ok(Event::Incoming(Packet::ConnAck(_))) => {
                    notifier.works(
                        queue,
                        &format!("results go to {} again", self.broker.place()),
                    );
                    connection.changed.notify_one();
                }
                Ok(Event::Outgoing(Outgoing::Publish(number))) => {
                    let mut packets = connection.packets();
                    if let Some(packet) = packets.iter_mut().find(|(known, _)| known.is_none()) {
                        packet.0 = Some(number);
                    }
                }
                Ok(Event::Incoming(Packet::PubAck(ack))) => {
                    let mut packets = connection.packets();
                    let at = packets
                        .iter()
                        .position(|(number, _)| *number == Some(ack.pkid));
                    if let Some((_, Some(_))) = at.and_then(|at| packets.remove(at)) {
                        notifier.sent(queue, "");
                    }
                    drop(packets);
                    connection.changed.notify_one();
                }
                Ok(Event::Outgoing(Outgoing::Disconnect)) => {
                    connection.is_closed.store(true, Relaxed);
                    connection.changed.notify_one();
                }
                Ok(_) => {}
                Err(error) => return self.in_words(&error),
            }
        }
    }

    /// Sends reports as they come. Ends when a stop is carried out.
    async fn send(
        &self,
        client: &AsyncClient,
        connection: &Connection,
        queue: &Queue,
    ) -> Result<(), String> {
        connection.changed.notified().await;
        let result = format!("{}/result", self.topic);
        // The state that the broker has.
        let mut published = None;
        loop {
            let is_online = queue.is_online();
            if is_online && published != Some(true) {
                self.publish(client, connection, None, ONLINE.into())
                    .await?;
                published = Some(true);
            }
            while connection.packets().len() < WINDOW
                && let Some(report) = queue.take()
            {
                let mut json = report.to_line();
                json.pop();
                self.publish(client, connection, Some((&result, report)), json)
                    .await?;
            }
            let is_done = queue.len() == 0 && connection.packets().is_empty();
            if queue.is_stopping() && is_done {
                break;
            }
            // Behind the results of the frames that came before.
            if !is_online && queue.len() == 0 && published != Some(false) {
                self.publish(client, connection, None, OFFLINE.into())
                    .await?;
                published = Some(false);
            }
            tokio::select! {
                () = queue.changed(), if !queue.is_stopping() => {}
                () = connection.changed.notified() => {}
            }
        }
        if published != Some(false) {
            self.publish(client, connection, None, OFFLINE.into())
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

    /// Hands a packet to the client: a report, or the retained state.
    async fn publish(
        &self,
        client: &AsyncClient,
        connection: &Connection,
        report: Option<(&str, Arc<Report>)>,
        payload: Vec<u8>,
    ) -> Result<(), String> {
        let (topic, report, retain) = match report {
            Some((topic, report)) => (topic.to_owned(), Some(report), false),
            None => (self.state_topic(), None, true),
        };
        // Before the client has it: its number may come at once.
        connection.packets().push_back((None, report));
        let sent = client
            .publish(topic, QoS::AtLeastOnce, retain, payload)
            .await;
        sent.map_err(|_| ENDED.to_owned())
    }

    /// What an error means; without a secret.
    fn in_words(&self, error: &ConnectionError) -> String {
        let place = self.broker.place();
        match error {
            ConnectionError::ConnectionRefused(
                ConnectReturnCode::BadUserNamePassword | ConnectReturnCode::NotAuthorized,
            ) => format!(
                "the broker {place} refuses user and password; set those that it knows in credentials-file"
            ),
            ConnectionError::NetworkTimeout => format!("the broker {place} does not answer"),
            error => format!("the broker {place} cannot be used: {error}"),
        }
    }
}

impl Sender for Mqtt {
    async fn run(self, queue: &Queue, notifier: &Notifier) {
        // There is nothing to send, and no connection to end.
        let is_idle = async {
            queue.stopping().await;
            while queue.len() > 0 || queue.numbers().is_connected.load(Relaxed) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let work = async {
            let [first, longest] = PAUSES;
            let mut pause = first;
            loop {
                let begun = Instant::now();
                let Err(why) = self.connection(queue, notifier).await else {
                    return;
                };
                // A broker that closes each connection at once is not asked more often.
                if begun.elapsed() > longest {
                    pause = first;
                }
                notifier.failed(queue, &why);
                sleep(pause.mul_f64(1.0 + JITTER * glib::random_double())).await;
                pause = (2 * pause).min(longest);
            }
        };
        tokio::select! {
            () = is_idle => {}
            () = work => {}
        }
    }
}
