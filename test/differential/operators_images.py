"""Random nodes that sample images or select boxes and regions."""
import numpy as np

from graph import Unfit


def trim(inputs):
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def resize(g, op):
    if g.opset == 10:
        return upsample(g, op)
    rank = g.one_of(1, 2, 2, 2, 3)
    mode = g.one_of("nearest", "nearest", "linear", "linear", *(["cubic"] if rank == 2 else []))
    x = g.input("f", (g.integer(1, 2), g.integer(1, 2), *g.sizes(rank, 1 if mode == "nearest" else 2, 5)))
    transform = g.one_of("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                         *(["half_pixel_symmetric"] if g.opset >= 19 else []))
    attributes = {} if transform == "half_pixel" and g.chance(0.5) else {"coordinate_transformation_mode": transform}
    if mode != "nearest" or g.chance(0.5):
        attributes["mode"] = mode
    if mode == "nearest":
        attributes.update(g.some(nearest_mode=g.one_of("round_prefer_floor", "floor", "ceil", "round_prefer_ceil")))
    if mode == "cubic":
        attributes.update(g.some(cubic_coeff_a=g.one_of(-0.75, -0.5)))
        if g.chance(0.2):
            attributes["exclude_outside"] = 1
    if g.opset >= 18 and mode != "nearest" and g.chance(0.25):
        attributes["antialias"] = 1
    spatial = list(range(2, x.rank))
    axes = spatial if g.opset >= 18 and g.chance(0.3) else list(range(x.rank))
    if len(axes) < x.rank:
        attributes["axes"] = [a - x.rank if g.opset >= 19 and g.chance(0.3) else a for a in axes]
    if g.chance(0.5):
        scales = [1.0, 1.0] + [g.one_of(0.5, 1.0, 1.5, 2.0, 3.0, 0.75) for _ in spatial]
        size = [int(np.floor(n * s)) for n, s in zip(x.shape, scales)]
        inputs = [x, None, g.constant(np.array(scales[x.rank - len(axes):], "<f4"))]
        if transform in ("align_corners", "half_pixel_symmetric") and any(n * s != d for n, s, d in zip(x.shape, scales, size)):
            g.known.add("Resize")
    else:
        size = [*x.shape[:2], *g.dims(rank, 1, 8)]
        wanted = size[x.rank - len(axes):]
        if g.opset >= 18 and len(axes) < x.rank and g.chance(0.3):
            policy = g.one_of("not_larger", "not_smaller")
            attributes["keep_aspect_ratio_policy"] = policy
            if min(attributes["axes"]) < 0 or transform in ("align_corners", "half_pixel_symmetric"):
                g.known.add("Resize")
            ratios = [np.float32(w) / np.float32(n) for w, n in zip(wanted, x.shape[2:])]
            scale = min(ratios) if policy == "not_larger" else max(ratios)
            size = [*x.shape[:2], *[int(np.floor(scale * n + 0.5)) for n in x.shape[2:]]]
        inputs = [x, None, None, g.ints(wanted)]
    if transform == "half_pixel_symmetric" and mode == "nearest" and size != list(x.shape):
        g.known.add("Resize")
    if min(size) < 1:
        raise Unfit
    if g.opset < 13:  # roi and scales were required inputs
        inputs[1] = g.constant(np.zeros(0, "<f4"))
        inputs[2] = inputs[2] or g.constant(np.zeros(0, "<f4"))
    if len(axes) == x.rank and "antialias" not in attributes and "keep_aspect_ratio_policy" not in attributes and g.chance(0.08):
        attributes["coordinate_transformation_mode"] = "tf_crop_and_resize"
        begin, end = [[0.0, 0.0] + [g.one_of(*values) for _ in spatial] for values in ((0.0, 0.21, -0.13), (1.0, 0.83, 1.17))]
        inputs[1] = g.constant(np.array(begin + [1.0, 1.0] + end[2:], "<f4"))
        attributes.update(g.some(extrapolation_value=g.one_of(0.0, 2.5)))
        if any(a == b for a, b in zip(size[2:], x.shape[2:])):
            g.known.add("Resize")
    low, high = (x.low, x.high) if mode == "nearest" else (-6, 6)
    g.node(op, inputs, ("f", size, low, high, mode == "nearest"), **attributes)


def upsample(g, op):
    rank = g.one_of(1, 2, 2)
    x = g.input("f", (g.integer(1, 2), g.integer(1, 3), *g.sizes(rank, 1, 5)))
    mode = g.one_of("nearest", "linear")
    scales = [1.0, 1.0] + [g.one_of(1.0, 2.0, 3.0, *((1.5, 0.5) if op == "Resize" else ())) for _ in range(rank)]
    size = [int(np.floor(n * s)) for n, s in zip(x.shape, scales)]
    result = ("f", size, x.low, x.high, mode == "nearest")
    attributes = g.some(0.8, mode=mode)
    if g.opset < 9:
        return g.node(op, [x], result, scales=scales, **attributes)
    g.node(op, [x, g.constant(np.array(scales, "<f4"))], result, **attributes)


def off_ties(g, x, bound):
    """Makes values that are not close to ties."""
    return g.node("Mul", [x, g.constant(np.array(0.93, "<f4"))], ("f", x.shape, -bound, bound, False))


def grid_sample(g, op):
    rank = g.one_of(2, 2, 3) if g.opset >= 20 else 2
    linear, cubic = ("linear", "cubic") if g.opset >= 20 else ("bilinear", "bicubic")
    mode = g.one_of(linear, linear, "nearest", *([cubic] if rank == 2 else []))
    n, c = g.integer(1, 2), g.integer(1, 2)
    x = g.input("f", (n, c, *g.sizes(rank, 2, 5)))
    grid = off_ties(g, g.input("f", (n, *g.sizes(rank, 1, 4), rank), -1.25, 1.25), 1.25)
    g.node(op, [x, grid], ("f", (n, c, *grid.shape[1:-1]), -6, 6, False),
           **g.some(0.85, mode=mode, padding_mode=g.one_of("zeros", "border", "reflection"), align_corners=g.integer(0, 1)))


def affine_grid(g, op):
    n, rank = g.integer(1, 2), g.one_of(2, 2, 3)
    theta = g.either("f", (n, rank, rank + 1), -2, 2, constant=0.2)
    sizes, corners = g.sizes(rank, 1, 4), g.integer(0, 1)
    if corners and 1 in sizes:
        g.known.add(op)
    g.node(op, [theta, g.ints([n, g.integer(1, 2), *sizes])], ("f", (n, *sizes, rank), -8, 8, False),
           **({"align_corners": corners} if corners else g.some(align_corners=0)))


def boxes_of(g, count, size):
    corner = g.rng.randint(0, 2 * size - 3, (count, 2)) / 2 + 0.125
    return np.concatenate([corner, corner + g.rng.randint(1, 7, (count, 2)) / 2], 1).astype("<f4")


def roi_align(g, op):
    n, count = g.integer(1, 2), g.integer(1, 3)
    x = g.input("f", (n, g.integer(1, 2), *g.sizes(2, 4, 7)))
    boxes = boxes_of(g, count, 6)
    boxes = g.constant(boxes) if g.chance(0.5) else g.given("f", boxes)
    h, w = g.dims(2, 1, 3)
    ratio = g.integer(1, 3)
    mode = g.one_of("avg", "avg", "max") if ratio == 1 or g.chance(0.5) else "avg"
    if mode == "max" and ratio != 1:
        g.known.add(op)
    attributes = g.some(0.8, output_height=h, output_width=w, spatial_scale=g.one_of(1.0, 0.5), mode=mode)
    if g.opset >= 16:
        attributes.update(g.some(coordinate_transformation_mode=g.one_of("half_pixel", "output_half_pixel")))
    g.node(op, [x, boxes, g.constant(g.rng.randint(0, n, count).astype("<i8"))],
           ("f", (count, x.shape[1], attributes.get("output_height", 1), attributes.get("output_width", 1)), -2, 2, False),
           sampling_ratio=ratio, **attributes)


def deform_conv(g, op):
    group, offset_group = g.one_of(1, 1, 2), g.one_of(1, 2)
    n, c, out = g.integer(1, 2), 2 * g.integer(1, 2), 2 * g.integer(1, 2)
    kernel, strides, dilations = [list(g.dims(2, 1, high)) for high in (3, 2, 2)]
    pads = list(g.dims(4, 0, 1))
    x = g.input("f", (n, c, *g.sizes(2, 3, 6)))
    size = [(d + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i, d in enumerate(x.shape[2:])]
    if min(size) < 1:
        raise Unfit
    taps = kernel[0] * kernel[1]
    offset = off_ties(g, g.input("f", (n, offset_group * taps * 2, *size), -1.5, 1.5), 1.5)
    inputs = [x, g.either("f", (out, c // group, *kernel), constant=0.8), offset, g.weights(out) if g.chance(0.5) else None,
              g.input("f", (n, offset_group * taps, *size), 0, 1) if g.chance(0.5) else None]
    bound = 2 * c * taps + 1
    g.node(op, trim(inputs), ("f", (n, out, *size), -bound, bound, False), group=group, offset_group=offset_group,
           **g.some(1 if [*strides, *dilations, *pads] != [1, 1, 1, 1, 0, 0, 0, 0] else 0.5, kernel_shape=kernel, strides=strides,
                    dilations=dilations, pads=pads))


def non_max_suppression(g, op):
    batches, classes, count = g.integer(1, 2), g.integer(1, 2), g.integer(2, 6)
    boxes = np.stack([boxes_of(g, count, 5) for _ in range(batches)])
    centers = g.chance(0.3)
    if centers:
        boxes = np.concatenate([boxes[..., :2] / 2 + boxes[..., 2:] / 2, boxes[..., 2:] - boxes[..., :2]], -1)
    elif g.chance(0.3):
        boxes = boxes[..., [2, 3, 0, 1]]
        g.known.add(op)
    scores = g.rng.permutation(batches * classes * count).reshape(batches, classes, count) / 64
    inputs = [g.given("f", boxes), g.given("f", scores), g.scalar("l", g.one_of(1, 2, 10)) if g.chance(0.85) else None,
              g.scalar("f", g.one_of(0.0, 0.3, 0.55)) if g.chance(0.8) else None,
              g.scalar("f", g.one_of(0.0, 0.1, 0.2)) if g.chance(0.6) else None]
    most = 0 if inputs[2] is None else int(inputs[2].constant)
    expected = suppressed(boxes, scores, centers, most, *[0.0 if v is None else float(v.constant) for v in inputs[3:4]],
                          None if inputs[4] is None else float(inputs[4].constant))
    if expected == 0:
        raise Unfit
    g.unknown(g.node(op, trim(inputs), ("l", (expected, 3), 0, 6, True), **g.some(center_point_box=int(centers)) if not centers else
                     {"center_point_box": 1}))


def suppressed(boxes, scores, centers, most, threshold, least):
    """Returns the number of boxes that are kept."""
    total = 0
    for b, per_class in enumerate(scores):
        for row in per_class:
            chosen = []
            for i in np.argsort(-row, kind="stable"):
                if (least is None or row[i] > least) and len(chosen) < most and all(
                        overlap(boxes[b, i], boxes[b, j], centers) <= threshold for j in chosen):
                    chosen.append(i)
            total += len(chosen)
    return total


def overlap(a, b, centers):
    def corners(box):
        if centers:
            return box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2, box[1] + box[3] / 2
        return min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])

    (ax, ay, au, av), (bx, by, bu, bv) = corners(a), corners(b)
    both = max(min(au, bu) - max(ax, bx), 0) * max(min(av, bv) - max(ay, by), 0)
    return both / ((au - ax) * (av - ay) + (bu - bx) * (bv - by) - both)


def det(g, op):
    n = g.integer(1, 5)
    x = g.input("f", (*g.sizes(g.integer(0, 2), 1, 3), n, n))
    g.node(op, [x], ("f", x.shape[:-2], -1000, 1000, False))


def max_unpool(g, op):
    n, c, rank = g.integer(1, 2), g.integer(1, 2), g.one_of(1, 2, 2)
    small = g.dims(rank, 1, 3)
    kernel, strides = [2] * rank, [g.one_of(1, 2) if g.chance(0.3) else 2 for _ in range(rank)]
    size = [(d - 1) * s + k for d, s, k in zip(small, strides, kernel)]
    x = g.input("f", (n, c, *small))
    given = [n, c, *[d + g.integer(0, 1) for d in size]] if g.chance(0.3) else None
    if given and given[2:] != size:
        g.known.add(op)
    full = (n, c, *size)
    places = int(np.prod(full))
    index = np.sort(g.rng.permutation(places)[:x.size]).reshape(x.shape)
    if places < x.size:
        raise Unfit
    inputs = [x, g.ints(index) if g.chance(0.5) else g.given("l", index)] + ([g.ints(given)] if given else [])
    g.node(op, inputs, ("f", given or full, -2, 2, True), kernel_shape=kernel, strides=strides)


def max_roi_pool(g, op):
    x = g.input("f", (1, 2, 6, 6))
    boxes = g.constant(np.array([[0, 0, 0, 3, 3], [0, 1, 2, 5, 5]], "<f4"))
    g.node(op, [x, boxes], ("f", (2, 2, 2, 2), -2, 2, True), pooled_shape=[2, 2])


ROWS = {
    "Resize": resize, "Upsample": upsample, "GridSample": grid_sample, "AffineGrid": affine_grid, "RoiAlign": roi_align,
    "DeformConv": deform_conv, "NonMaxSuppression": non_max_suppression, "Det": det, "MaxUnpool": max_unpool,
    "MaxRoiPool": max_roi_pool,
}
