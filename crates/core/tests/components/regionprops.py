"""Compares features of defects with those of scikit-image's regionprops.

Standard input: a line with width and height, a line of 0 and 1 per row, then a line per defect: x, y, width,
height, area, major axis, minor axis, orientation, boundary length. Exits with 77 without scikit-image.
"""

import sys

try:
    import numpy as np
    from skimage.measure import label, regionprops
except ImportError as why:
    print(why)
    sys.exit(77)


def sides(pixels):
    """Pixel sides on the boundary of a region, holes included."""
    padded = np.pad(pixels, 1).astype(int)
    return int(sum(np.abs(np.diff(padded, axis=axis)).sum() for axis in (0, 1)))


def features(region):
    top, left, bottom, right = region.bbox
    # regionprops measures from the rows' axis towards the columns'.
    orientation = np.pi / 2 - region.orientation
    return [left, top, right - left, bottom - top, region.area, region.axis_major_length,
            region.axis_minor_length, orientation, sides(region.image),
            region.inertia_tensor[0, 0] == region.inertia_tensor[1, 1]]


def main():
    lines = sys.stdin.read().split("\n")
    height = int(lines[0].split()[1])
    mask = np.array([[int(c) for c in row] for row in lines[1 : 1 + height]])
    ours = [[float(v) for v in line.split()] for line in lines[1 + height :] if line]
    theirs = {tuple(f[:5]): f for f in map(features, regionprops(label(mask, connectivity=2)))}
    assert len(ours) == len(theirs), f"{len(ours)} defects, regionprops has {len(theirs)}"
    for found in ours:
        expected = theirs[tuple(found[:5])]
        major, minor, orientation, boundary = found[5:]
        assert boundary == expected[8], (found, expected)
        # Both round the moments, so errors are relative to the larger eigenvalue.
        near = 1e-9 * (1 + major**2)
        assert abs(major**2 - expected[5] ** 2) <= near, (found, expected)
        assert abs(minor**2 - expected[6] ** 2) <= near, (found, expected)
        # Opposite directions are the same; a round region has none.
        turn = 2 * (orientation - expected[7])
        assert abs((major**2 - minor**2) * np.sin(turn)) <= near, (found, expected)
        # Where both variances are equal, scikit-image 0.19 has the other diagonal.
        if not expected[9]:
            assert (major**2 - minor**2) * np.cos(turn) >= -near, (found, expected)
    print(f"{len(ours)} defects equal regionprops")


if __name__ == "__main__":
    main()
