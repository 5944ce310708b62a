//! When a frame was captured.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gst::glib;

/// From 1900, where NTP begins, to 1970.
const NTP_TO_UNIX: Duration = Duration::from_secs(2_208_988_800);

/// When a frame was captured: its reference timestamp, if the source gave one as `timestamp/x-unix` or
/// `timestamp/x-ntp`; else the wall clock's time now, less the age of the frame on the pipeline's clock.
pub fn captured(
    buffer: &gst::BufferRef,
    segment: Option<&gst::FormattedSegment<gst::ClockTime>>,
    running_time_now: Option<gst::ClockTime>,
) -> SystemTime {
    if let Some(time) = reference_time(buffer) {
        return time;
    }
    let captured = segment.and_then(|segment| segment.to_running_time(buffer.pts()));
    let age = running_time_now
        .zip(captured)
        .and_then(|(now, then)| now.checked_sub(then));
    let now = SystemTime::now();
    age.and_then(|age| now.checked_sub(age.into()))
        .unwrap_or(now)
}

fn reference_time(buffer: &gst::BufferRef) -> Option<SystemTime> {
    buffer
        .iter_meta::<gst::ReferenceTimestampMeta>()
        .find_map(|meta| {
            let time = Duration::from(meta.timestamp());
            match meta.reference().structure(0)?.name().as_str() {
                "timestamp/x-unix" => UNIX_EPOCH.checked_add(time),
                "timestamp/x-ntp" => UNIX_EPOCH.checked_add(time.checked_sub(NTP_TO_UNIX)?),
                _ => None,
            }
        })
}

/// A time as ISO 8601: UTC, microseconds.
pub fn iso_8601(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let date = glib::DateTime::from_unix_utc(seconds);
    let date = date.and_then(|date| date.format("%Y-%m-%dT%H:%M:%S"));
    let date = date.map(String::from).unwrap_or_default();
    format!("{date}.{:06}Z", since.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_the_reference_timestamp_else_the_age_before_now() {
        gst::init().unwrap();
        let mut buffer = gst::Buffer::new();
        let frame = buffer.get_mut().unwrap();
        frame.set_pts(gst::ClockTime::from_mseconds(1500));
        let mut segment = gst::FormattedSegment::new();
        segment.set_start(gst::ClockTime::from_mseconds(500));
        let now = Some(gst::ClockTime::from_seconds(3));
        let age = |frame: &gst::BufferRef| {
            let time = captured(frame, Some(&segment), now);
            SystemTime::now()
                .duration_since(time)
                .unwrap()
                .as_secs_f64()
        };
        assert!((2.0..2.5).contains(&age(frame)));

        let ntp = gst::Caps::new_empty_simple("timestamp/x-ntp");
        let since_1900 = NTP_TO_UNIX + Duration::from_micros(1_764_000_000_123_456);
        let time = gst::ClockTime::try_from(since_1900).unwrap();
        gst::ReferenceTimestampMeta::add(frame, &ntp, time, gst::ClockTime::NONE);
        let time = iso_8601(captured(frame, Some(&segment), now));
        assert_eq!(time, "2025-11-24T16:00:00.123456Z");
    }
}
