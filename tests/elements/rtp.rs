//! Masks and results over RTP on loopback: `rtpgstpay` drops metas and keeps events.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use clinspect_opencl::ClContext;
use gst::prelude::*;
use gst_video::VideoFormat as Format;
use gstclinspect::results::DefectResult;

use crate::{
    defects::assert_regions,
    events::assert_same_bits,
    frames::{Frame, PLAIN, read},
    support::{Pipeline, buffer_at, caps_of, noise, start},
};

/// A mask of 38400 bytes: 28 packets of 1400.
const SIZE: [usize; 2] = [640, 480];
const RTP_HEADER: usize = 12;

/// A packet of `rtpgstpay`: an event by its index, or fragment `at` of a mask by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Packet {
    Event(u64),
    Mask(u64, u32),
}

/// Counts and classifies packets.
#[derive(Default)]
struct Names {
    events: u64,
    masks: u64,
}

impl Names {
    /// `None` for caps and stream-start, which are packets too.
    fn name(&mut self, packet: &[u8]) -> Option<Packet> {
        let marker = packet[1] & 0x80 != 0;
        let payload = &packet[RTP_HEADER..];
        let at = u32::from_be_bytes(payload[4..8].try_into().unwrap());
        match payload[1] {
            0 if marker && at == 0 => None,
            0 => {
                self.masks += u64::from(marker);
                Some(Packet::Mask(self.masks - u64::from(marker), at))
            }
            // Our event begins in this packet; its text may continue in later packets.
            2 => {
                self.events += u64::from(at == 0);
                Some(Packet::Event(self.events - 1))
            }
            _ => None,
        }
    }
}

/// A mask's pixels and its results.
type Sent = (Vec<u8>, DefectResult);
/// The same as received.
type Received = (Vec<u8>, Vec<DefectResult>);

/// A node and a station in this process, connected by loopback.
struct Link {
    node: Pipeline,
    station: Pipeline,
    device: Arc<ClContext>,
    sent: Arc<Mutex<Vec<Sent>>>,
    packets: Arc<Mutex<BTreeSet<Packet>>>,
}

impl Link {
    /// Packets in `lost` are dropped.
    fn new(device: &Arc<ClContext>, caps: &gst::Caps, more: &str, lost: &[Packet]) -> Self {
        let station = Pipeline::new(
            "udpsrc name=in address=127.0.0.1 port=0 buffer-size=4000000 \
             caps=application/x-rtp,media=application,clock-rate=90000,encoding-name=X-GST ! \
             rtpgstdepay ! clmaskunpack ! appsink name=out sync=false",
        );
        let packets = Arc::<Mutex<BTreeSet<Packet>>>::default();
        let (lost, arrived) = (lost.to_vec(), packets.clone());
        let names = Mutex::new(Names::default());
        let source: gst::Element = station.get("in");
        let pad = source.static_pad("src").unwrap();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            let buffer = info.buffer().unwrap();
            let name = names.lock().unwrap().name(&buffer.map_readable().unwrap());
            if let Some(name) = name {
                arrived.lock().unwrap().insert(name);
                if lost.contains(&name) {
                    return gst::PadProbeReturn::Drop;
                }
            }
            gst::PadProbeReturn::Ok
        });
        station.set_state(gst::State::Playing).unwrap();
        // The sink waits for a first mask; the socket is already open.
        let (changed, ..) = source.state(gst::ClockTime::from_seconds(20));
        changed.unwrap();
        let port: i32 = source.property("port");

        let node = Pipeline::new(&format!(
            "appsrc name=in format=time ! clpitchthreshold name=p PUBLISHED pitch-x=8 threshold=150 \
             reports=reports,events=true {more} ! video/x-bitmask ! \
             rtpgstpay config-interval=1 ! udpsink host=127.0.0.1 port={port} sync=false async=false"
        ));
        let sent = Arc::<Mutex<Vec<Sent>>>::default();
        let list = sent.clone();
        let pad = node.get::<gst::Element>("p").static_pad("src").unwrap();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            let mask = info.buffer().unwrap();
            let result = DefectResult::read(mask).remove(0);
            list.lock().unwrap().push((grey(&read(mask)), result));
            gst::PadProbeReturn::Ok
        });
        node.get::<gst_app::AppSrc>("in").set_caps(Some(caps));
        node.set_state(gst::State::Playing).unwrap();
        Self {
            node,
            station,
            device: device.clone(),
            sent,
            packets,
        }
    }

    /// Sends frames one by one, so that no socket overflows; returns the received masks. Frames with
    /// `is_lost` do not arrive.
    fn pass(&self, frames: &[Frame], is_lost: impl Fn(usize) -> bool) -> Vec<Option<Received>> {
        let input: gst_app::AppSrc = self.node.get("in");
        let output: gst_app::AppSink = self.station.get("out");
        let mut received = Vec::new();
        for (i, frame) in frames.iter().enumerate() {
            let buffer = buffer_at(frame, &self.device, 40 * i as u64);
            input.push_buffer(buffer).unwrap();
            if is_lost(i) {
                received.push(None);
                continue;
            }
            let sample = output.try_pull_sample(gst::ClockTime::from_seconds(20));
            let sample = sample.unwrap_or_else(|| panic!("frame {i} does not arrive"));
            let buffer = sample.buffer_owned().unwrap();
            let results = DefectResult::read(&buffer);
            for result in &results {
                assert_regions(&buffer, &result.defects);
            }
            received.push(Some((read(&buffer), results)));
        }
        assert!(output.try_pull_sample(gst::ClockTime::ZERO).is_none());
        received
    }
}

/// A packed mask's pixels; no row is padded at this size.
fn grey(packed: &[u8]) -> Vec<u8> {
    let pixel = |i: usize| packed[i / 8] >> (7 - i % 8) & 1;
    (0..8 * packed.len()).map(|i| 255 * pixel(i)).collect()
}

/// Frames with different masks and more defects than are listed.
fn frames(count: usize) -> Vec<Frame> {
    let frame = |i: usize| {
        let mut frame = noise(Format::Gray8, SIZE, PLAIN);
        frame.bytes.rotate_left(101 * i);
        frame
    };
    (0..count).map(frame).collect()
}

#[test]
fn results_arrive_with_their_masks_over_rtp() {
    let Some(device) = start() else { return };
    let frames = frames(6);
    let caps = caps_of(&frames[0]);
    let link = Link::new(&device, &caps, "", &[]);
    let received = link.pass(&frames, |_| false);
    let sent = link.sent.lock().unwrap();
    assert_eq!(sent.len(), frames.len());
    for (i, ((mask, result), received)) in sent.iter().zip(&received).enumerate() {
        let (pixels, results) = received.as_ref().unwrap();
        assert!(pixels == mask, "frame {i}");
        if i == 0 {
            // Buffers before the first mask may be lost.
            assert!(results.is_empty());
            continue;
        }
        assert_eq!(results.len(), 1, "frame {i}");
        assert_eq!(results[0].defects.len(), 100);
        assert_same_bits(&results[0], result);
    }
    let packets = link.packets.lock().unwrap();
    let of_a_mask = packets.iter().filter(|p| matches!(p, Packet::Mask(3, _)));
    assert!(of_a_mask.count() >= 28, "masks travel in fragments");
}

#[test]
fn results_stay_away_without_send_events() {
    let Some(device) = start() else { return };
    let frames = frames(3);
    let link = Link::new(&device, &caps_of(&frames[0]), "reports=reports", &[]);
    let received = link.pass(&frames, |_| false);
    for ((mask, _), received) in link.sent.lock().unwrap().iter().zip(received) {
        let (pixels, results) = received.unwrap();
        assert!(pixels == *mask && results.is_empty());
    }
}

#[test]
fn lost_packets_put_no_result_onto_another_mask() {
    let Some(device) = start() else { return };
    let frames = frames(6);
    let caps = caps_of(&frames[0]);
    // Lost packets, received masks, and received masks with results.
    let cases: [(&[Packet], &[usize], &[usize]); 4] = [
        // An event.
        (&[Packet::Event(2)], &[0, 1, 2, 3, 4, 5], &[1, 3, 4, 5]),
        // A fragment of a mask: the next mask follows a gap.
        (&[Packet::Mask(2, 1380 * 5)], &[0, 1, 3, 4, 5], &[1, 4, 5]),
        // The first fragment of a mask, and the event of the next mask.
        (
            &[Packet::Mask(2, 0), Packet::Event(3)],
            &[0, 1, 3, 4, 5],
            &[1, 4, 5],
        ),
        // An event and its mask.
        (
            &[Packet::Event(3), Packet::Mask(3, 1380)],
            &[0, 1, 2, 4, 5],
            &[1, 2, 5],
        ),
    ];
    for (lost, arrive, with_results) in cases {
        let link = Link::new(&device, &caps, "", lost);
        let received = link.pass(&frames, |i| !arrive.contains(&i));
        let sent = link.sent.lock().unwrap();
        for (i, received) in received.iter().enumerate() {
            let Some((pixels, results)) = received else {
                continue;
            };
            assert!(*pixels == sent[i].0, "{lost:?}: frame {i}");
            let expected = with_results.contains(&i).then(|| sent[i].1.clone());
            assert_eq!(results.first(), expected.as_ref(), "{lost:?}: frame {i}");
        }
        let packets = link.packets.lock().unwrap();
        assert!(
            lost.iter().all(|p| packets.contains(p)),
            "{lost:?} were sent"
        );
    }
}
