//! A value that a broker keeps for others, and that others may ask to change.

use std::time::{Duration, Instant};

use rumqttc::{AsyncClient, Event, EventLoop, Incoming, QoS};
use tokio::{
    sync::{Notify, watch},
    time::sleep,
};

use crate::{
    broker::{self, Broker, ENDED, PAUSES},
    publisher::check_topic,
    sender::{Notice, Reasons},
};

/// Packets that may wait: the value, and the subscription.
const WAITING: usize = 10;

/// The retained topic of a value, and the topic below it, `/set`, on which others ask for another value.
pub struct SharedValue {
    broker: Broker,
    topic: String,
    id: String,
}

impl SharedValue {
    /// Checks the settings and reads the files that they name; an empty name stands for no file.
    ///
    /// # Errors
    /// A sentence that says what to do, without a secret.
    pub fn new(
        uri: &str,
        credentials_file: &str,
        ca_file: &str,
        topic: &str,
    ) -> Result<Self, String> {
        check_topic("topic", topic)?;
        Ok(Self {
            broker: Broker::new(uri, credentials_file, ca_file)?,
            topic: topic.to_owned(),
            id: broker::new_id(),
        })
    }

    /// Publishes `text` of the value at each change, and calls `asked` with each payload that comes on the topic `/set`.
    /// Connects again after a failure. A request that the broker kept for us is refused: nobody knows how old it is. Ends
    /// when the sender of the values is dropped.
    pub async fn run<T>(
        self,
        mut values: watch::Receiver<T>,
        text: impl Fn(&T) -> String,
        asked: impl Fn(&[u8]),
        notify: impl Fn(Notice),
    ) {
        let [first, longest] = PAUSES;
        let mut pause = first;
        let mut reasons = Reasons::default();
        loop {
            let begun = Instant::now();
            let connection = async {
                let accepted = Notify::new();
                let options = self.broker.options(&self.id)?;
                let (client, mut events) = AsyncClient::new(options, WAITING);
                events.set_network_options(broker::network());
                let on_accepted = || {
                    accepted.notify_one();
                    if reasons.clear() {
                        let place = self.broker.place();
                        notify(Notice::Recovered(format!(
                            "the broker {place} answers again"
                        )));
                    }
                };
                // Neither future is dropped before the end of the connection: the client library does not allow it.
                tokio::select! {
                    why = self.receive(&mut events, on_accepted, &asked, &notify) => Err(why),
                    sent = self.send(&client, &accepted, &mut values, &text) => sent,
                }
            };
            let Err(why) = connection.await else { return };
            if reasons.is_new(&why) {
                notify(Notice::Failed(why));
            }
            if begun.elapsed() > longest {
                pause = first;
            }
            sleep(pause.mul_f64(broker::jitter())).await;
            pause = (2 * pause).min(longest);
        }
    }

    fn set_topic(&self) -> String {
        format!("{}/set", self.topic)
    }

    /// Follows the connection until it fails.
    async fn receive(
        &self,
        events: &mut EventLoop,
        mut on_accepted: impl FnMut(),
        asked: &impl Fn(&[u8]),
        notify: &impl Fn(Notice),
    ) -> String {
        loop {
            match events.poll().await {
                Ok(Event::Incoming(Incoming::ConnAck(_))) => on_accepted(),
                Ok(Event::Incoming(Incoming::Publish(request))) if request.retain => {
                    notify(Notice::Refused(format!(
                        "a retained message on the topic {} is refused, because nobody knows how old it is; send it without \
                         the flag retain",
                        self.set_topic()
                    )));
                }
                Ok(Event::Incoming(Incoming::Publish(request))) => asked(&request.payload),
                Ok(_) => {}
                Err(error) => return self.broker.in_words(&error),
            }
        }
    }

    /// Sends the value, now and at each change. Ends when no value comes any more.
    async fn send<T>(
        &self,
        client: &AsyncClient,
        accepted: &Notify,
        values: &mut watch::Receiver<T>,
        text: &impl Fn(&T) -> String,
    ) -> Result<(), String> {
        accepted.notified().await;
        let ended = |_| ENDED.to_owned();
        let subscribed = client.subscribe(self.set_topic(), QoS::AtLeastOnce).await;
        subscribed.map_err(ended)?;
        loop {
            let value = text(&values.borrow_and_update());
            let sent = client.publish(&self.topic, QoS::AtLeastOnce, true, value);
            sent.await.map_err(ended)?;
            if values.changed().await.is_err() {
                // The last value leaves in this time.
                sleep(Duration::from_millis(100)).await;
                return Ok(());
            }
        }
    }
}
