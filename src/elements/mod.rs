//! The GStreamer elements, one folder each.

mod arrays;
pub mod base_filter;
pub mod gaussian;
pub mod histogram;
pub mod mask_unpack;
pub mod pitch_threshold;

/// Pad templates of an element that sends what it takes.
fn same_caps_templates(formats: &[gst_video::VideoFormat]) -> Vec<gst::PadTemplate> {
    let caps = gst_video::VideoCapsBuilder::new()
        .format_list(formats.iter().copied())
        .build();
    pad_templates(&caps, &caps)
}

/// Pad templates `sink` and `src`.
fn pad_templates(sink: &gst::Caps, src: &gst::Caps) -> Vec<gst::PadTemplate> {
    [
        ("sink", gst::PadDirection::Sink, sink),
        ("src", gst::PadDirection::Src, src),
    ]
    .into_iter()
    .filter_map(|(name, direction, caps)| {
        gst::PadTemplate::new(name, direction, gst::PadPresence::Always, caps).ok()
    })
    .collect()
}

/// Answers an allocation query with our own pool: another's memory could not be written without
/// a copy.
fn use_pool(
    query: &mut gst::query::Allocation,
    pool: &gst::BufferPool,
    size: u32,
    min_buffers: u32,
) {
    if query.allocation_pools().next().is_some() {
        query.set_nth_allocation_pool(0, Some(pool), size, min_buffers, 0);
    } else {
        query.add_allocation_pool(Some(pool), size, min_buffers, 0);
    }
}
