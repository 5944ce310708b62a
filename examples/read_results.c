/* Reads histograms, defects and masks with GStreamer's C API alone.
 *
 *   cc -o read_results examples/read_results.c \
 *       $(pkg-config --cflags --libs gstreamer-1.0 gstreamer-app-1.0) -lm
 *   GST_PLUGIN_PATH=target/release ./read_results
 *   GST_PLUGIN_PATH=target/release ./read_results \
 *       "v4l2src ! videoconvert ! clhistogram ! clpitchthreshold output=frame"
 *
 * The argument is a pipeline as for gst-launch-1.0, without a sink. Without an argument the program
 * inspects a chessboard with one spot. docs/metas.md lists the fields.
 */
#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char pattern[] =
    "compositor name=mix sink_1::xpos=170 sink_1::ypos=122 "
    "! video/x-raw,format=I420,width=320,height=240,framerate=30/1 "
    "! clhistogram ! clpitchthreshold output=frame "
    "! appsink name=frames sync=false "
    "videotestsrc num-buffers=3 pattern=checkers-8 "
    "! video/x-raw,format=I420,width=320,height=240,framerate=30/1 ! mix. "
    "videotestsrc num-buffers=3 pattern=white "
    "! video/x-raw,format=I420,width=6,height=4,framerate=30/1 ! mix.";

static const char summary[] = "Reads histograms, defects and masks of a pipeline's frames. PIPELINE is "
    "one argument,\nas for gst-launch-1.0, without a sink; the default is a chessboard with one spot.";

/* Bytes of a record in defects-data; those of version 1 are the first 40 bytes of it. */
#define RECORD 64
#define RECORD_OF_VERSION_1 40
/* Numbers of the classes that have no name in the field classes. */
#define OTHER 0
#define PATTERN_MISSING 65535

/* Reads a little-endian word at any address, on machines of either byte order. */
static guint32
word (const guint8 *bytes)
{
  return GST_READ_UINT32_LE (bytes);
}

static gfloat
real (const guint8 *bytes)
{
  return GST_READ_FLOAT_LE (bytes);
}

static void
show_histogram (const GstStructure *fields)
{
  guint channels, bins;
  guint64 number;
  const GValue *medians = gst_structure_get_value (fields, "median");
  const GValue *value = gst_structure_get_value (fields, "bins-data");

  if (!gst_structure_get (fields, "channels", G_TYPE_UINT, &channels, "bins", G_TYPE_UINT, &bins,
          "frame-number", G_TYPE_UINT64, &number, NULL) || !medians || !value)
    return;

  gsize size;
  const guint8 *data = g_bytes_get_data (g_value_get_boxed (value), &size);
  if (size != (gsize) channels * bins * 4 || gst_value_array_get_size (medians) != channels)
    return;
  for (guint channel = 0; channel < channels; channel++) {
    guint64 samples = 0;
    for (guint bin = 0; bin < bins; bin++)
      samples += word (data + 4 * ((gsize) channel * bins + bin));
    printf ("frame %" G_GUINT64_FORMAT ": channel %u, %" G_GUINT64_FORMAT " samples, median %g\n",
        number, channel, samples, g_value_get_double (gst_value_array_get_value (medians, channel)));
  }
}

/* Number of marked pixels of a packed mask; padding bits are 0. */
static guint64
count_marked (GstBuffer *mask)
{
  GstMapInfo info;
  guint64 marked = 0;

  if (!gst_buffer_map (mask, &info, GST_MAP_READ))
    return 0;
  for (gsize i = 0; i < info.size; i++)
    for (guint bits = info.data[i]; bits; bits &= bits - 1)
      marked++;
  gst_buffer_unmap (mask, &info);
  return marked;
}

/* The class of a record, if the element has classes or the pattern is missing. */
static void
show_class (const GstStructure *fields, guint class)
{
  const char *classes = gst_structure_get_string (fields, "classes");
  char **names = g_strsplit (classes ? classes : "", ";", -1);

  if (class == PATTERN_MISSING)
    printf (", class pattern-missing");
  else if (class != OTHER && class <= g_strv_length (names))
    printf (", class %s", names[class - 1]);
  else if (classes || class != OTHER)
    printf (", class other");
  g_strfreev (names);
}

/* The place of a box, if the size of a pixel is known: in mm across and in m along a web. */
static void
show_position (const GstStructure *fields, gint x, gint y)
{
  gdouble mm_x = 0, mm_y = 0;
  guint64 first_line = 0;

  gst_structure_get (fields, "mm-per-pixel-x", G_TYPE_DOUBLE, &mm_x, "mm-per-pixel-y", G_TYPE_DOUBLE,
      &mm_y, "first-line", G_TYPE_UINT64, &first_line, NULL);
  if (mm_x > 0 && mm_y > 0)
    printf (", at %.1f mm, %.3f m", x * mm_x, ((gdouble) first_line + y) * mm_y / 1000);
}

/* The visibility of a defect as SEMU (SEMI D31-1102), if mean level and size of a pixel are known. */
static void
show_semu (const GstStructure *fields, guint area, gfloat difference)
{
  gdouble mm_x = 0, mm_y = 0, mean = 0;

  gst_structure_get (fields, "mm-per-pixel-x", G_TYPE_DOUBLE, &mm_x, "mm-per-pixel-y", G_TYPE_DOUBLE,
      &mm_y, NULL);
  /* Results of earlier versions lack this field, and gst_structure_get stops at a missing one. */
  gst_structure_get_double (fields, "mean-level", &mean);
  if (mm_x > 0 && mm_y > 0 && mean > 0)
    printf (", %.1f SEMU",
        100 * fabs (difference) / mean / (1.97 / pow (area * mm_x * mm_y, 0.33) + 0.72));
}

static void
show_defects (const GstStructure *fields)
{
  const char *verdict = gst_structure_get_string (fields, "verdict");
  const GValue *value = gst_structure_get_value (fields, "defects-data");
  const GValue *mask = gst_structure_get_value (fields, "mask");
  guint64 number, pixels;
  guint version;

  if (!gst_structure_get (fields, "frame-number", G_TYPE_UINT64, &number, "defect-pixels",
          G_TYPE_UINT64, &pixels, "version", G_TYPE_UINT, &version, NULL) || !verdict || !value)
    return;
  printf ("frame %" G_GUINT64_FORMAT ": %s, %" G_GUINT64_FORMAT " pixels", number, verdict, pixels);
  if (mask)
    printf (", %" G_GUINT64_FORMAT " in the mask", count_marked (gst_value_get_buffer (mask)));
  printf ("\n");

  gsize size, len = version > 1 ? RECORD : RECORD_OF_VERSION_1;
  const guint8 *record = g_bytes_get_data (g_value_get_boxed (value), &size);
  for (; size >= len; size -= len, record += len) {
    /* Negative if the defect began in an earlier strip of a web. */
    gint x = (gint) word (record), y = (gint) word (record + 4);
    printf ("  %ux%u at %d,%d: area %u, centre %.2f,%.2f, difference %.2f", word (record + 8),
        word (record + 12), x, y, word (record + 16), real (record + 20), real (record + 24),
        real (record + 28));
    show_position (fields, x, y);
    if (version > 1) {
      guint class = GST_READ_UINT16_LE (record + 44);
      /* Bits 8 to 12 of the flags: the finest level that marks a pixel of the defect. */
      guint level = GST_READ_UINT16_LE (record + 46) >> 8 & 31;

      printf (", id %u", word (record + 40));
      show_class (fields, class);
      if (level > 0)
        printf (", level %u", level);
      if (class != PATTERN_MISSING)
        show_semu (fields, word (record + 16), real (record + 28));
    }
    printf ("\n");
  }
}

/* Shows all metas of ours; several elements attach one each. */
static void
show (GstBuffer *buffer)
{
  gpointer state = NULL;
  GstMeta *meta;

  while ((meta = gst_buffer_iterate_meta (buffer, &state))) {
    if (!gst_meta_info_is_custom (meta->info))
      continue;
    GstCustomMeta *custom = (GstCustomMeta *) meta;
    if (gst_custom_meta_has_name (custom, "GstClHistogramMeta"))
      show_histogram (gst_custom_meta_get_structure (custom));
    else if (gst_custom_meta_has_name (custom, "GstClDefectMeta"))
      show_defects (gst_custom_meta_get_structure (custom));
  }
}

int
main (int argc, char **argv)
{
  GError *error = NULL;
  GstMessage *message;
  GstSample *sample;
  int status = 0;

  GOptionContext *options = g_option_context_new ("[PIPELINE]");
  g_option_context_set_summary (options, summary);
  g_option_context_add_group (options, gst_init_get_option_group ());
  if (!g_option_context_parse (options, &argc, &argv, &error)) {
    fprintf (stderr, "%s\n", error->message);
    return 2;
  }
  g_option_context_free (options);
  char *line = argc > 1 ? g_strdup_printf ("%s ! appsink name=frames sync=false", argv[1])
      : g_strdup (pattern);
  GstElement *pipeline = gst_parse_launch (line, &error);
  g_free (line);
  if (error) {
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  GstElement *frames = gst_bin_get_by_name (GST_BIN (pipeline), "frames");
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  while ((sample = gst_app_sink_pull_sample (GST_APP_SINK (frames)))) {
    show (gst_sample_get_buffer (sample));
    gst_sample_unref (sample);
  }
  GstBus *bus = gst_element_get_bus (pipeline);
  if ((message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR))) {
    gst_message_parse_error (message, &error, NULL);
    fprintf (stderr, "%s\n", error->message);
    g_error_free (error);
    gst_message_unref (message);
    status = 1;
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (frames);
  gst_object_unref (pipeline);
  return status;
}
