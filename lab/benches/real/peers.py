"""What a user composes of OpenCV in an hour: the peers of `real`. Answers each line of JSON with one."""

import json
import sys
from functools import lru_cache

import cv2
import numpy

# Cloth: lines of the spectrum this many times above their surroundings are the weave.
WEAVE = 3.0
# Standard deviations of the three maps, px.
MAPS = (1.0, 3.0, 9.0)
BORDER = 4

# Boards: what differs by less is noise.
LEAST = 100
# Smaller blobs are edges.
LEAST_AREA = 9
SEARCH = 16


@lru_cache(maxsize=2)
def notch_maps(path, part, scale, light):
    """The frame without its weave, as three maps of differences.

    The frame is the part (x, y, width, height) of the picture, enlarged. `light`: frequencies that are light, not weave, in
    half cycles a frame along x and along y.
    """
    x, y, width, height = part
    picture = cv2.imread(path, cv2.IMREAD_GRAYSCALE)[y:y + height, x:x + width]
    if scale > 1:
        picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    picture = picture.astype(numpy.float32)
    picture -= cv2.GaussianBlur(picture, (0, 0), 16)
    height, width = picture.shape
    # The mirrored frame has no jump at its edges. Row `height` of the shifted spectrum is the frequency 0.
    spectrum = numpy.fft.rfft2(cv2.copyMakeBorder(picture, 0, height, 0, width, cv2.BORDER_REFLECT))
    size = cv2.GaussianBlur(numpy.abs(numpy.fft.fftshift(spectrum, 0)).astype(numpy.float32), (0, 0), 1)
    is_weave = size > WEAVE * cv2.blur(size, (65, 33))
    is_weave[height - light[1]:height + light[1] + 1, :light[0] + 1] = False
    is_weave = cv2.dilate(is_weave.astype(numpy.uint8), numpy.ones((3, 5), numpy.uint8)) > 0
    spectrum[numpy.fft.ifftshift(is_weave, 0)] = 0
    rest = numpy.fft.irfft2(spectrum, (2 * height, 2 * width))[:height, :width].astype(numpy.float32)
    maps = [numpy.abs(cv2.GaussianBlur(rest, (0, 0), sigma)) for sigma in MAPS]
    for each in maps:
        each[:BORDER] = each[-BORDER:] = each[:, :BORDER] = each[:, -BORDER:] = 0
    return maps


def found(mask, boxes, least_area=1):
    """Which boxes a mark touches, and how many blobs touch no box."""
    _, labels, blobs, _ = cv2.connectedComponentsWithStats(mask.astype(numpy.uint8), connectivity=8)
    is_kept = blobs[:, cv2.CC_STAT_AREA] >= least_area
    is_kept[0] = False
    labels = numpy.where(is_kept[labels], labels, 0)
    inside = [numpy.unique(labels[y0:y1, x0:x1]) for x0, y0, x1, y1 in boxes]
    true = {label for each in inside for label in each if label}
    return {"found": [bool((each > 0).any()) for each in inside], "false": int(is_kept.sum()) - len(true)}


def maps_of(request):
    return notch_maps(request["picture"], tuple(request["part"]), request["scale"], tuple(request["light"]))


def notch(request):
    maps = maps_of(request)
    boxes = [[float(each[y0:y1, x0:x1].max()) for each in maps] for x0, y0, x1, y1 in request["boxes"]]
    deviations = [float(each.std()) for each in maps]
    return {"peaks": [float(each.max()) for each in maps], "deviations": deviations, "boxes": boxes}


def notch_false(request):
    maps = maps_of(request)
    mask = numpy.any([each > limit for each, limit in zip(maps, request["limits"])], axis=0)
    return found(mask, request["boxes"])


def shifted(template, picture):
    """absdiff behind phaseCorrelate."""
    (dx, dy), _ = cv2.phaseCorrelate(template.astype(numpy.float64), picture.astype(numpy.float64))
    if max(abs(dx), abs(dy)) > SEARCH:
        dx = dy = 0.0
    move = numpy.float32([[1, 0, dx], [0, 1, dy]])
    size = template.shape[::-1]
    return cv2.absdiff(cv2.warpAffine(template, move, size, borderMode=cv2.BORDER_REPLICATE), picture) > LEAST


def affine(template, picture):
    """A tolerance of two pixels behind findTransformECC."""
    move = numpy.eye(2, 3, dtype=numpy.float32)
    stop = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 50, 1e-5)
    try:
        _, move = cv2.findTransformECC(picture, template, move, cv2.MOTION_AFFINE, stop, None, 5)
    except cv2.error:
        move = numpy.eye(2, 3, dtype=numpy.float32)
    size = template.shape[::-1]
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    template = cv2.warpAffine(template, move, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    around = numpy.ones((5, 5), numpy.uint8)
    above = cv2.subtract(picture, cv2.dilate(template, around))
    below = cv2.subtract(cv2.erode(template, around), picture)
    return cv2.max(above, below) > LEAST


def board(request):
    template = cv2.imread(request["template"], cv2.IMREAD_GRAYSCALE)
    picture = cv2.imread(request["picture"], cv2.IMREAD_GRAYSCALE)
    if request["method"] == "phase-correlate":
        mask = shifted(template, picture).astype(numpy.uint8)
        mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, numpy.ones((3, 3), numpy.uint8))
        return found(mask, request["boxes"])
    return found(affine(template, picture), request["boxes"], LEAST_AREA)


OPS = {"notch": notch, "notch-false": notch_false, "board": board}

if __name__ == "__main__":
    cv2.setNumThreads(1)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(OPS[asked["op"]](asked)), flush=True)
