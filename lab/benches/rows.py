"""The comparisons: sections of rows. A row is a job that several contestants do in turn."""

from dataclasses import replace

from plan import (
    CHAIN, FEW_KINDS, GREY_12M, GREY_268M, GREY_HD, GROWTH, KINDS, LONG_LINES, ONE_THREAD,
    ONE_THREAD_NOTE, PACE, PITCH, PLAIN_CHAIN, PUBLISHED, RECOMMENDED, RGB_34M, RGB_4K, STRIP_4K, WEB_CHAIN, WEB_PITCH,
    SURFACE, TEXTURE, Contestant, Row, Section, by_kind, cpu_peers, gpu_peers, layouts, ours, size_name,
)
from published import published_sections


def operator_sections(gpu):
    peers = gpu_peers if gpu else cpu_peers
    against = {
        "histogram": "CUB" if gpu else "cv2, 2 threads",
        "gaussian": "NPP" if gpu else "cv2, 2 threads",
        "pitch_threshold": "one pixel a work-item" if gpu else "cv2, 2 threads",
    }
    cv_cuda = [("ours", "CV-CUDA")] * gpu
    large = [(GREY_268M, FEW_KINDS)] if gpu else []
    colour = KINDS + ["R=G=B"]
    sections = [
        Section(
            "Histogram",
            "256 bins a channel. cv2: `calcHist`, a call per channel. "
            + ("CUB: `HistogramEven`, `MultiHistogramEven`. CV-CUDA counts grey frames; it gets colours as planes."
               if gpu else "numpy: `bincount`."),
            by_kind("histogram", [
                (GREY_HD, FEW_KINDS), (GREY_12M, KINDS), (RGB_4K, FEW_KINDS), (RGB_34M, colour),
                (LONG_LINES, FEW_KINDS), *large,  # others of this size are in the tables of growth
            ]) + layouts("histogram"),
            [ours(), *peers("histogram")],
            [("ours", against["histogram"]), *cv_cuda],
        )
    ]
    for title, settings, pairs in [
        ("Gaussian 3x3", {"kernel-size": 3}, [
            (GREY_HD, FEW_KINDS), (GREY_12M, FEW_KINDS), (RGB_4K, ["panel"]), (RGB_34M, ["panel"]),
            (LONG_LINES, ["panel"]),
        ]),
        ("Gaussian 5x5", {"kernel-size": 5}, [
            (GREY_HD, ["panel"]), (GREY_12M, ["panel"]), (RGB_34M, ["panel"]),
        ]),
        ("Gaussian 13x13, sigma 2", {"kernel-size": 13, "sigma": 2.0}, [
            (GREY_HD, ["panel"]), (GREY_12M, ["panel"]), (RGB_4K, ["panel"]),
        ]),
    ]:
        contestants = [ours(), *peers("gaussian")]
        rows = by_kind("gaussian", pairs, settings)
        if settings["kernel-size"] == 3:
            rows += layouts("gaussian", settings)
            if gpu:
                contestants.insert(1, ours("output at words", **{"output-at-words": True}))
        note = "Borders repeat the edge pixel."
        if gpu and settings["kernel-size"] <= 5:
            # Measured: results differ by 3 levels on panels and by 13 on random samples.
            note += " NPP uses other weights, so its results are not compared."
        if gpu and settings["kernel-size"] == 3:
            note += (" `ours` writes rows that lie like those that it reads. `output at words`: rows of the output start at"
                     " multiples of four bytes, as in the pool of clgaussian.")
        if gpu:
            note += " CV-CUDA's results are not compared either: it computes in floats."
        sections.append(Section(title, note, rows, contestants, [("ours", against["gaussian"]), *cv_cuda]))
    sections.append(
        Section(
            "Pitch comparison, average",
            "Pitch 7.35 px along rows, threshold 10, packed mask."
            + ("" if gpu else " cv2: `filter2D`, `inRange`, `packbits`."),
            by_kind("pitch_threshold", [(GREY_HD, FEW_KINDS), (GREY_12M, KINDS), (LONG_LINES, ["panel"])],
                    PITCH) + layouts("pitch_threshold", PITCH),
            [ours(), *peers("pitch_threshold")],
            ("ours", against["pitch_threshold"]),
        )
    )
    sections.append(
        Section(
            "Pitch comparison, recommended settings",
            "Minimum with matched centre, pitches 7.35 along both axes, multiples 1 and 4, borders "
            "inward, minimum contrast 5. `along vectors`: the same pitches, turned by 7 degrees.",
            by_kind("pitch_threshold", [(GREY_HD, ["panel"]), (GREY_12M, ["panel", "random"])], RECOMMENDED),
            [
                ours(),
                Contestant("without presence", "ours", {"min-contrast": 0}, None),
                Contestant("borders skipped", "ours", {"inward": False}, None),
                Contestant("along vectors", "ours", {"turned": 7}, None),
                Contestant("sequential", "reference", most=13_000_000),
            ],
            ("ours", "sequential"),
        )
    )
    matched = {"pitch-x": 7.35, "minimum": True, "match-center": True, "threshold": 8}
    sections.append(
        Section(
            "Pitch comparison, minimum with matched centre",
            "Minimum with matched centre, pitch 7.35 along x, multiple 1.",
            by_kind("pitch_threshold", [(GREY_HD, ["panel"]), (GREY_12M, ["panel", "random"]),
                              *([(GREY_268M, ["panel"])] * gpu)], matched),
            [
                ours(),
                *([Contestant("read limit", "limit:read", tolerance=None)] * gpu),
                Contestant("sequential", "reference", most=13_000_000),
            ],
            ("ours", "sequential"),
        )
    )
    scales = {**RECOMMENDED, "scales": 3}
    sections.append(
        Section(
            "Pitch comparison across scales",
            "The recommended settings with scales=3."
            + ("" if gpu else " cv2: `filter2D` for each side of each comparison, `pyrDown`, `min`, `inRange`, "
               "`resize`, `packbits`; its means are weighted, so results are not compared, and it does not look "
               "for the pattern."),
            by_kind("pitch_threshold", [(GREY_HD, ["panel"]), (GREY_12M, ["panel", "random"])], scales)
            # Nothing is marked, as in most frames of a line.
            + by_kind("pitch_threshold", [(GREY_HD, ["constant 128"]), (GREY_12M, ["constant 128"])],
                      {**scales, "min-contrast": 0}),
            [
                ours(),
                Contestant("pixels only", "ours", {"scales": 0}, None),
                *([] if gpu else [Contestant("cv2, 2 threads", "cv2", {"threads": 2}, None)]),
                Contestant("sequential", "reference", most=13_000_000),
            ],
            (("ours", "pixels only"), *([] if gpu else [("ours", "cv2, 2 threads")])),
        )
    )
    sections.append(
        Section(
            "Texture comparison",
            "Pitches 7.35 along both axes, thresholds of 40, so that hardly anything is marked."
            + ("" if gpu else " cv2: `sepFilter2D`, `warpAffine`, `boxFilter`, `resize`, `packbits`, in floats, so "
               "results are not compared."),
            by_kind("texture", [(GREY_HD, ["panel", "random"]), (GREY_12M, ["panel", "random"])], TEXTURE),
            [
                ours(),
                *([Contestant("read limit", "limit:read", tolerance=None)] if gpu
                  else [Contestant("cv2, 2 threads", "cv2", {"threads": 2}, None)]),
                Contestant("sequential", "reference", most=3_000_000),
            ],
            (("ours", "read limit") if gpu else ("ours", "cv2, 2 threads")),
        )
    )
    sections.append(
        Section(
            "Surface comparison",
            "The model is that of the frame, and the threshold 40, so that hardly anything is marked.",
            by_kind("surface", [(GREY_HD, ["panel", "random"]), (GREY_12M, ["panel", "random"])], SURFACE),
            [
                ours(),
                Contestant("with dark lines", "ours", {"variant": "lines"}, None),
                *([Contestant("read limit", "limit:read", tolerance=None)] if gpu else []),
            ],
            (("with dark lines", "ours"),),
        )
    )
    return sections


def flat_section(gpu):
    """The flat field beside copies that move the same bytes: frame, gains and dark values, read and written."""
    rows = []
    grey16 = (2 * 4096, 3072, 1)
    for title, size, settings, moved in [
        ("1080p GRAY, dark and white", GREY_HD, {"dark": True}, 6 / 2),
        ("4096x3072 GRAY, dark and white", GREY_12M, {"dark": True}, 6 / 2),
        ("4096x3072 GRAY, white only", GREY_12M, {}, 4 / 2),
        ("4096x3072 GRAY, by the column", GREY_12M, {"dark": True, "line": True}, 1),
        ("4096x3072 GRAY16, dark and white", grey16, {"dark": True, "words": True}, 10 / 4),
        ("4096x3072 GRAY16, white only", grey16, {"words": True}, 6 / 4),
        ("4K RGB, dark and white", RGB_4K, {"dark": True}, 6 / 2),
    ]:
        rows.append(Row(title, "panel", size, "flat", {**settings, "copied": moved}))
    return Section(
        "Flat field",
        "clflatfield's kernel. `copy of the same bytes`: a copy on the device that moves as many bytes as the frame, "
        "its gains, its dark values and the corrected frame have. cv2: `subtract` and `multiply` by floats, within a "
        "grey level.",
        rows,
        [
            ours(),
            Contestant("copy of the same bytes", "limit:copy", {}, None),
            *([] if gpu else [Contestant("cv2, 2 threads", "cv2", {"threads": 2}, 1),
                              Contestant("cv2, 1 thread", "cv2", {"threads": 1}, 1)]),
            Contestant("numpy", "numpy", most=13_000_000),
            *(ours(f"items {n}", variant=f"items {n}") for n in ((1, 2, 4) if gpu else (2,))),
        ],
        ("ours", "copy of the same bytes"),
    )


def unpack_section(gpu):
    """Bayer to RGB, and packed samples to 16 bits, beside a copy on the device that moves the same bytes."""
    rows = []
    for width, height in ((1920, 1080), (4096, 3072)):
        name = "1080p" if height == 1080 else f"{width}x{height}"
        for title, row, moved, output, settings in [
            ("Bayer to RGB", width, 4 / 2, (1, 3), {"packing": "rggb"}),
            ("Bayer to RGB, gradient", width, 4 / 2, (1, 3), {"packing": "rggb", "demosaic": "gradient"}),
            ("Mono12p to GRAY16", width * 3 // 2, 3.5 / 3, (4 / 3, 1), {"packing": "mono12p"}),
        ]:
            rows.append(Row(f"{name} {title}", "panel", (row, height, 1), "unpack",
                            {**settings, "copied": moved, "output": output}))
    copy = "copy of the same bytes"
    against = ["NPP"] if gpu else ["cv2, 2 threads"]
    return Section(
        "Unpacking",
        "What cameras send, GB/s of it. `" + copy + "`: a copy on the device that moves as many bytes as the frame and its "
        "result have. "
        + ("NPP: `nppiCFAToRGB`, whose weights differ, so that its results are not compared." if gpu else
           "cv2: `cvtColor`, bilinear; its result is compared but for the samples at the edge, which it repeats. It has no "
           "packed samples; numpy unpacks them."),
        rows,
        [
            ours(),
            Contestant(copy, "limit:copy", {}, None),
            *([Contestant("NPP", "npp", tolerance=None)] if gpu else
              [Contestant("cv2, 2 threads", "cv2", {"threads": 2}, edge=1),
               Contestant("cv2, 1 thread", "cv2", {"threads": 1}, edge=1),
               Contestant("numpy", "numpy", most=30_000_000)]),
            *(ours(variant, variant=variant) for variant in ("rows", "items")),
        ],
        [("ours", copy), *(("ours", other) for other in against)],
    )


def reference_sections(gpu):
    """The comparison with a trained picture, and its alignment."""
    pairs = [(GREY_HD, ["panel"]), (GREY_12M, ["panel", "random"])]
    cv2 = [] if gpu else [Contestant(f"cv2, {n} thread{'s' * (n > 1)}", "cv2", {"threads": n}) for n in (2, 1)]
    limit = [Contestant("read limit", "limit:read", tolerance=None)] if gpu else []
    against = "read limit" if gpu else "cv2, 2 threads"
    aligned = [replace(contestant, tolerance=None) for contestant in cv2]
    return [
        Section(
            "Comparison with a reference",
            "Threshold 20, no deviations, packed mask; every 64th row is marked. Each pixel needs its sample and two "
            "limits of the same size, which the rate does not count."
            + ("" if gpu else " cv2: `absdiff`, `inRange`, `packbits`."),
            by_kind("reference", pairs, {"threshold": 20}),
            [ours(), *cv2, *limit],
            ("ours", against),
        ),
        Section(
            "Alignment with a reference",
            "The shift within 16 pixels, in 1/4 pixel." + ("" if gpu else " cv2: `phaseCorrelate` with a window."),
            by_kind("align", pairs[:1] + [(GREY_12M, ["panel"])], {"threshold": 20}),
            [ours(), *aligned, *limit],
            ("ours", against),
            shown="time",
        ),
    ]


def list_section():
    rows = [Row(f"1080p GRAY, {share} % marked", "random", GREY_HD, "list",
                {**PITCH, "threshold": threshold})
            for share, threshold in ((53, 61), (9, 137), (1, 190))]
    return Section(
        "List of defects of noise",
        "The 100 largest defects of random samples, with their features and differences. cv2: "
        "`connectedComponentsWithStats` on the same mask, unpacked, without differences.",
        rows,
        [ours(), Contestant("cv2, 2 threads", "cv2", {"threads": 2}),
         Contestant("cv2, 1 thread", "cv2", {"threads": 1})],
        ("ours", "cv2, 2 threads"),
        shown="time",
    )


def variant_sections(gpu):
    gaussian = [ours()]
    if not gpu:
        gaussian.append(ours("rows", variant="rows"))
    # Columns of four pixels (one work-item each), and rows.
    tiles = ["32x4", "64x4", "64x8", "128x4", "128x8", "128x12"]
    gaussian += [ours(f"tile {t}", variant=f"tile {t}") for t in tiles]
    gaussian += [ours("direct", variant="direct"), ours("image", image=True)]
    rows = []
    for title, arithmetic in [("integer", False), ("float", True)]:
        for taps in (3, 5):
            rows.append(Row(f"{title}, {taps}x{taps}", "panel", GREY_12M, "gaussian",
                            {"kernel-size": taps, "float": arithmetic}))
    return [
        Section(
            "Histogram strategies",
            "`strategy` is forced; `-`: not possible on this device or with this format.",
            by_kind("histogram", [(GREY_12M, FEW_KINDS), (RGB_34M, FEW_KINDS)]),
            [ours(), *(ours(s, variant=s) for s in ("pairs", "private", "local", "banked"))],
        ),
        Section(
            "Gaussian variants",
            "All read buffers, except the last column. `tile COLUMNSxROWS`: columns of four pixels, "
            "halo included.",
            rows,
            gaussian,
        ),
        *published_sections(gpu),
    ]


def memory_section(gpu):
    sizes = [GREY_HD, GREY_12M, RGB_34M] + ([GREY_268M] if gpu else [])
    contestants = [
        Contestant("host copy, 1 thread", "limit:memcpy", {"threads": 1}, None),
        Contestant("host copy, 2 threads", "limit:memcpy", {"threads": 2}, None),
        Contestant("device read", "limit:read", {}, None),
        Contestant("device copy", "limit:copy", {}, None),
    ]
    note = ("The limits that memory sets. GB/s of input; a copy moves twice as much. Small frames are "
            "read from caches.")
    return Section("Memory", note, by_kind("limit", [(s, ["random"]) for s in sizes]), contestants)


def pipeline(title, size, text, **settings):
    options = {k.replace("_", "-"): v for k, v in settings.items()}
    return Row(title, "clean panel", size, "pipeline", {"pipeline": text, **options})


def element_on_one_thread(source):
    settings = {"source": source, **ONE_THREAD["settings"]}
    return Contestant("element, one thread", "pipeline", settings, None, most=ONE_THREAD["most"])


def overhead_section(source, gpu):
    rows = []
    for task, element, settings in [
        ("gaussian", "clgaussian", {"kernel-size": 3}),
        ("histogram", "clhistogram", {}),
        ("pitch_threshold", f"{PUBLISHED} threshold=255", {**PITCH, "threshold": 255}),
    ]:
        for size in ((320, 240, 1), GREY_HD, GREY_12M):
            settings = {**settings, "pipeline": element}
            title = f"{element.split()[0]}, {size[0]}x{size[1]}"
            rows.append(Row(title, "clean panel", size, task, settings))
    return Section(
        "Element overhead",
        "Wall time of a frame through `appsrc ! element ! appsink`, with default settings except for a "
        "threshold that no pixel reaches, and of the operator alone (kernels, launch and wait). The "
        "difference is statistics, metas, messages and GStreamer's own overhead, which `identity` in "
        "the element's place shows alone."
        + ("" if gpu else " cv2: the same work on the same frame, without a pipeline. " + ONE_THREAD_NOTE),
        rows,
        [
            Contestant("element", "pipeline", {"source": source}, None),
            *([] if gpu else [element_on_one_thread(source)]),
            ours("operator"),
            Contestant("identity", "pipeline", {"source": source, "pipeline": "identity"}, None),
            *([] if gpu else [Contestant("cv2, 2 threads", "cv2", {"threads": 2}, None)]),
        ],
        ("element", "operator"),
        shown="difference",
    )


def bus_section(source):
    rows = []
    for size in (GREY_HD, (3840, 2160, 1), GREY_12M):
        row = pipeline(size_name(size), size, "")
        row.settings["own"] = PLAIN_CHAIN
        row.settings["theirs"] = "identity"
        rows.append(row)
    own = {"side": "own", "source": source}
    alone = {"side": "theirs", "source": source}
    return Section(
        "Chain against the bus",
        f"`{PLAIN_CHAIN}` on frames in which no pixel is marked, against the transfer of the same "
        "frames to the device.",
        rows,
        [
            Contestant("chain", "pipeline", own, None),
            Contestant("chain, masks read", "pipeline", {**own, "variant": "read"}, None),
            Contestant("transfer alone", "pipeline", alone, None),
        ],
        ("chain", "transfer alone"),
        shown="frames",
    )


def web_section(gpu):
    rows, contestants, ratios = [], [], []
    sources = [(", in place", "proposed"), (", plain memory", "system")] if gpu else [("", "system")]
    for where, source in sources:
        web, alone = f"web{where}", f"strips alone{where}"
        contestants += [
            Contestant(web, "pipeline", {"side": "own", "source": source, "web": True}, None),
            Contestant(alone, "pipeline", {"side": "theirs", "source": source}, None),
        ]
        ratios.append((web, alone))
    sources_note = (" `in place`: the source writes into the pool that the first element proposes. "
                    "`plain memory`: it uses memory of its own.")
    for title, size, text in [
        ("clpitchthreshold, 4096-pixel lines", STRIP_4K, WEB_PITCH),
        ("chain, 4096-pixel lines", STRIP_4K, WEB_CHAIN),
        ("chain, 16384-pixel lines", LONG_LINES, WEB_CHAIN),
    ]:
        row = Row(title, "clean panel, pitch 16.35", size, "pipeline", {"variant": "read"})
        row.settings["own"], row.settings["theirs"] = (text.format(web=w) for w in ("true", "false"))
        rows.append(row)
    return Section(
        "Web of a line camera",
        "Lines per second, GRAY8, strips of 1024 lines, pitch 16.35 px along both axes, multiples 1 and 4; "
        "masks are read. The chain is that of \"Inspection chain\". `web`: with `line-scan=true` on "
        "clgaussian and clpitchthreshold. `strips alone`: the same strips, each judged as a frame. "
        "No pixel is marked." + sources_note * gpu,
        rows,
        contestants,
        ratios,
        shown="lines",
    )


def gpus_section():
    rows = [pipeline(size_name(s), s, CHAIN.format(p=""), variant="read")
            for s in (GREY_HD, (3840, 2160, 1), GREY_12M)]
    on = lambda pipelines, gpus: {"source": "system", "pipelines": pipelines, "gpus": gpus}
    return Section(
        "Two GPUs",
        "The chain on frames in memory of their source, frames/s of all pipelines of the process together. "
        "Two GPUs of one host, which may be another host than that of the other sections.",
        rows,
        [
            Contestant("1 pipeline", "pipeline", on(1, 1), None),
            Contestant("2 pipelines, one GPU", "pipeline", on(2, 1), None),
            Contestant("2 pipelines, a GPU each", "pipeline", on(2, 2), None),
        ],
        ("2 pipelines, a GPU each", "1 pipeline"),
        shown="frames",
    )


def cameras_section(gpu, chain):
    rows = [pipeline(f"{size_name(size)}, {n}", size, chain, pipelines=n, variant="read")
            for size in (GREY_HD, GREY_12M) for n in (1, 2, 4, 8, 16)]
    places = [("in place", "proposed"), ("plain memory", "system")]
    contestants = [Contestant(label, "cameras", {"source": source}, None) for label, source in places]
    contestants += [Contestant(f"{label}, {PACE}/s each", "cameras", {"source": source, "rate": PACE}, None)
                    for label, source in places]
    if gpu:
        contestants.append(Contestant("bus limit", "limit:upload", tolerance=None))
    return Section(
        "Pipelines in a process",
        "The chain of \"Inspection chain\", frames/s of all pipelines together; masks are read. `in place`: frames lie in the "
        "pool that the first element proposes, and are mapped for writing each time, as a camera's driver writes them; the "
        "writing itself is not included. `plain memory`: other memory, which is not written either. At full speed, "
        "`fair` is the frames of the slowest pipeline over the mean. "
        f"`{PACE}/s each`: live sources, one frame after the other within a period; then the median and the 99th "
        "percentile of the time from the chain's sink pad to its source pad, and of that to the mask on the host. A source "
        "whose frames are not taken drops them, so that fewer arrive."
        + " `bus limit`: copies of such frames from pinned memory to the device." * gpu,
        rows,
        contestants,
        shown="cameras",
    )


def pipeline_sections(gpu):
    source = "pool" if gpu else "system"
    plain = CHAIN.format(p="")
    sections = [
        Section(
            "Inspection chain",
            "clgaussian (5x5, sigma 0.8), clhistogram, clpitchthreshold with the recommended "
            "settings; masks are read. `written in place`: the source writes into our memory. `plain "
            "memory`: the source uses memory of its own. `wrapped`: memory of its own in a new "
            "GstMemory for each frame. `on the device`: frames are on the device "
            "already. The panel has no defects except by noise; a long list of defects costs more.",
            [pipeline(size_name(s), s, plain, variant="read")
             for s in (GREY_HD, (3840, 2160, 1), GREY_12M)],
            [
                Contestant("written in place", "pipeline", {"source": "pool"}, None),
                Contestant("plain memory", "pipeline", {"source": "system"}, None),
                *([Contestant("wrapped", "pipeline", {"source": "wrapped"}, None)] * gpu),
                *([Contestant("on the device", "pipeline", {"source": "resident"}, None)] * gpu),
            ],
            shown="frames",
        ),
        web_section(gpu),
        *([bus_section(source)] * gpu),
        overhead_section("resident" if gpu else "system", gpu),
        Section(
            "Latency of the chain",
            "From a frame's arrival to its mask on the host, one frame at a time.",
            [pipeline(size_name(s), s, plain, variant="read", latency=True)
             for s in (GREY_HD, (3840, 2160, 1), GREY_12M)],
            [Contestant("chain", "pipeline", {"source": source}, None)],
            shown="latency",
        ),
        Section(
            "Start",
            "From PLAYING to the first result at 1080p: devices are listed, programs are built and run once "
            "on a small frame. `warm cache`: programs come from the driver's cache. `empty cache`: a new "
            "process compiles them.",
            [pipeline(title, GREY_HD, text, variant="read", start=True)
             for title, text in (("clgaussian", "clgaussian"), ("clhistogram", "clhistogram"),
                                 ("clpitchthreshold, published settings", PUBLISHED),
                                 ("clpitchthreshold, defaults", "clpitchthreshold"),
                                 ("clpitchthreshold, scales=3", "clpitchthreshold scales=3"),
                                 ("chain", plain))],
            [Contestant("warm cache", "pipeline", {"source": "system"}, None),
             Contestant("empty cache", "pipeline:fresh", {"source": "system"}, None)],
            shown="time",
        ),
        Section(
            "Steps",
            "`stats` with `profile=true`, MB/s of upload, kernel and download by element.",
            [pipeline(f"{size_name(s)}, chain", s, CHAIN.format(p="profile=true"), variant="read")
             for s in (GREY_HD, GREY_12M)]
            + [pipeline(f"{size_name(GREY_12M)}, {e.split()[0]}", GREY_12M, f"{e} profile=true",
                        variant="read")
               for e in ("clgaussian", "clhistogram", PUBLISHED)],
            [Contestant("element", "pipeline", {"source": source}, None)],
            shown="steps",
        ),
        cameras_section(gpu, plain),
        *([gpus_section()] * gpu),
    ]
    peers = []
    rgbx = "capsfilter caps=video/x-raw,format=RGBx"
    for title, form, own, theirs in [
        ("videoanalyse (luma mean and variance)", "I420", "clhistogram reports=reports,messages=false",
         "videoanalyse message=false"),
        ("cvsmooth, Gaussian 3x3, GRAY8", "GRAY8", "clgaussian",
         "cvsmooth type=gaussian kernel-width=3 kernel-height=3"),
        ("cvsmooth, Gaussian 5x5, RGB", "RGB", "clgaussian kernel-size=5",
         "cvsmooth type=gaussian kernel-width=5 kernel-height=5"),
        ("gaussianblur (sigma 1.2) and clgaussian 7x7, AYUV", "AYUV",
         "clgaussian kernel-size=7 sigma=1.2", "gaussianblur sigma=1.2"),
        ("bayer2rgb, RGBx", "bayer rggb", f"clunpack ! {rgbx}", f"bayer2rgb ! {rgbx}"),
    ]:
        row = pipeline(f"1080p {title}", GREY_HD, "", format=form)
        row.settings["own"], row.settings["theirs"] = own, theirs
        peers.append(row)
    sections.append(
        Section(
            "GStreamer's own elements",
            "Equal pipelines, frames/s: appsrc with filled buffers, the element, appsink.",
            peers,
            [
                Contestant("ours", "pipeline", {"side": "own", "source": source}, None),
                Contestant("GStreamer's", "pipeline", {"side": "theirs"}, None),
            ],
            ("ours", "GStreamer's"),
            shown="frames",
        )
    )
    return sections


def growth_sections(gpu):
    sections = []
    for task, settings in [("histogram", {}), ("gaussian", {"kernel-size": 3}), ("pitch_threshold", PITCH)]:
        rows = [Row(f"{w}x{h}", "panel", (w, h, 1), task, dict(settings)) for w, h in GROWTH]
        peer = {"histogram": "cub", "gaussian": "npp"}.get(task) if gpu else "cv2"
        contestants = [ours()]
        if gpu:
            limit = "copy" if task == "gaussian" else "read"
            contestants.append(Contestant(f"{limit} limit", f"limit:{limit}", tolerance=None))
        if peer:
            label = peer.upper() if gpu else "cv2, 2 threads"
            threads = {} if gpu else {"threads": 2}
            tolerance = None if peer == "npp" else 0
            contestants.insert(1, Contestant(label, peer, threads, tolerance))
        ratio = [("ours", contestants[1].label)] if peer else []
        note = ""
        if not gpu:
            contestants.insert(1, Contestant(who="ours", **ONE_THREAD))
            ratio.append(("one thread", "cv2, 2 threads"))
            note = ONE_THREAD_NOTE
        sections.append(Section(f"Growth with the frame: {task}", note, rows, contestants, ratio))
    return sections


def all_sections(gpu):
    return [
        memory_section(gpu),
        *operator_sections(gpu),
        flat_section(gpu),
        unpack_section(gpu),
        # The host makes most of a list, so the device's time of a GPU says nothing.
        *([] if gpu else [list_section()]),
        *reference_sections(gpu),
        *variant_sections(gpu),
        *pipeline_sections(gpu),
        *growth_sections(gpu),
    ]


def tiny_sections():
    """Every kind of contestant, on small frames; for the tests."""
    sections = []
    for section in variant_sections(False) + operator_sections(False) + [memory_section(False)]:
        row = section.rows[0]
        channels = 3 if section.rows[-1].size[2] == 3 else 1
        task_size = (130, 67, channels)
        row.title, row.kind, row.size = f"{row.title} (tiny)", "panel", task_size
        row.stride, row.base = task_size[0] * channels + 13, 1
        if section.contestants[-1].label != "sequential" and row.task != "limit":
            section.contestants.append(Contestant("sequential", "reference"))
        section.rows = [row]
        sections.append(section)
    small = (320, 240, 1)
    for section in [flat_section(False), unpack_section(False), list_section(), *reference_sections(False),
                    *pipeline_sections(False)]:
        section.rows = section.rows[:1]
        section.rows[0].size = small
        sections.append(section)
    return sections
