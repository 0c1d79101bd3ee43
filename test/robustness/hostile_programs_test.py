"""Programs with invalid operands: indices out of range, sizes that overflow or exceed memory, inconsistent parameters. Each is
rejected when it is read or when it runs; merely unusual programs may run, but must not crash.
"""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hostile_test  # noqa: E402

# Bodies in MIL text. The integers are given, because generated integers would be valid operands.
HEAD = "func main<%s>(tensor<fp32, [2, 4]> x, tensor<int32, [3]> i, tensor<int32, [1]> n) {\n%s;\n} -> (y);\n"

REFUSED = [
    ("ios17", 'j = mul(x = i, y = 1000000); y = gather(x = x, indices = j, axis = 0)'),
    ("ios17", 'j = sub(x = i, y = 1000000); y = gather(x = x, indices = j, axis = 0)'),
    ("ios17", 'y = gather(x = x, indices = [99], axis = 0)'),
    ("ios17", 'j = mul(x = i, y = 1000000); k = expand_dims(x = j, axes = [1]); y = gather_nd(x = x, indices = k)'),
    ("ios17", 'y = gather_along_axis(x = x, indices = tensor<int32, [2, 1]>([[5], [-9]]), axis = 1)'),
    ("ios17", 'j = add(x = i, y = 777777); u = fill(shape = [3, 4], value = 1.0); y = scatter(data = x, indices = '
              'j, updates = u, axis = 0, mode = "update")'),
    ("ios17", 'j = expand_dims(x = i, axes = [1]); k = add(x = j, y = 777777); u = fill(shape = [3, 4], value = '
              '1.0); y = scatter_nd(data = x, indices = k, updates = u, mode = "add")'),
    ("ios17", 'y = scatter_along_axis(data = x, indices = tensor<int32, [2, 1]>([[5], [-9]]), updates = '
              'tensor<fp32, [2, 1]>([[1], [2]]), axis = 1, mode = "add")'),
    ("ios17", 'y = slice_by_index(x = x, begin = [0, 0], end = [2, 4], stride = [0, 0])'),
    ("ios17", 'c = concat(values = (n, n), axis = 0); d = mul(x = c, y = 1000000); y = slice_by_size(x = x, begin '
              '= d, size = [1, 1])'),
    ("ios18", 'c = concat(values = (n, n), axis = 0); d = mul(x = c, y = 1000000); y = slice_update(x = x, update '
              '= x, begin = d, end = [2, 4])'),
    ("ios17", 'c = mul(x = n, y = 1000000); d = concat(values = (c, c), axis = 0); y = reshape(x = x, shape = d)'),
    ("ios17", 'c = add(x = n, y = 2147483647); d = concat(values = (c, c), axis = 0); y = fill(shape = d, value = '
              '1.0)'),
    ("ios17", 'c = add(x = n, y = 2000000000); d = concat(values = (c, c, c), axis = 0); y = fill(shape = d, value '
              '= 1.0)'),
    ("ios17", 'c = add(x = n, y = 2000000000); d = concat(values = (c, c), axis = 0); y = tile(x = x, reps = d)'),
    ("ios17", 'y = pad(x = x, pad = [2000000000, 2000000000, 2000000000, 2000000000], mode = "constant", '
              'constant_val = 0.0)'),
    ("ios17", 'y = pad(x = x, pad = [-2, -2, -3, -3], mode = "constant", constant_val = 0.0)'),
    ("ios17", 'y = pad(x = x, pad = [0, 0, 9, 9], mode = "reflect", constant_val = 0.0)'),
    ("ios17", 'a = squeeze(x = n, axes = [0]); b = mul(x = a, y = 0); y = range_1d(start = 0, end = 10, step = b)'),
    ("ios17", 'y, z = topk(x = x, k = 99, axis = 1)'),
    ("ios17", 'a = squeeze(x = n, axes = [0]); b = add(x = a, y = 99); y, z = topk(x = x, k = b, axis = 1)'),
    ("ios16", 'w = constexpr_lut_to_dense(indices = tensor<uint8, [1]>([1]), lut = tensor<fp32, [4]>([1, 2, 3, '
              '4]), shape = tensor<uint32, [2]>([4294967295, 4294967295])); y = add(x = x, y = w)'),
    ("ios18", 'w = constexpr_lut_to_dense(indices = tensor<uint2, [2, 4]>([[0, 1, 2, 3], [3, 3, 3, 3]]), lut = '
              'tensor<fp32, [1, 1, 2, 1]>([[[[1], [2]]]])); y = add(x = x, y = w)'),
    ("ios18", 'w = constexpr_lut_to_dense(indices = tensor<uint1, [2, 4]>([[0, 1, 0, 1], [0, 0, 0, 0]]), lut = '
              'tensor<fp32, [3, 1, 2, 1]>([[[[1], [2]]], [[[1], [2]]], [[[1], [2]]]])); y = add(x = x, y = w)'),
    ("ios16", 'w = constexpr_sparse_to_dense(mask = tensor<uint8, [1]>([255]), nonzero_data = tensor<fp32, '
              '[2]>([1, 2]), shape = tensor<uint32, [2]>([2, 4])); y = add(x = x, y = w)'),
    ("ios16", 'w = constexpr_sparse_to_dense(mask = tensor<uint8, [0]>([]), nonzero_data = tensor<fp32, [2]>([1, '
              '2]), shape = tensor<uint32, [2]>([2, 4])); y = add(x = x, y = w)'),
    ("ios18", 'w = constexpr_sparse_to_dense(nonzero_data = tensor<fp32, [2]>([1, 2]), mask = tensor<uint1, [2, '
              '4]>([[1, 1, 1, 1], [1, 1, 1, 1]])); y = add(x = x, y = w)'),
    ("ios18", 'w = constexpr_blockwise_shift_scale(data = tensor<int8, [2, 4]>([[1, 2, 3, 4], [1, 2, 3, 4]]), '
              'scale = tensor<fp32, [2, 3]>([[1, 1, 1], [1, 1, 1]])); y = add(x = x, y = w)'),
    ("ios18", 'w = constexpr_blockwise_shift_scale(data = tensor<int8, [2, 4]>([[1, 2, 3, 4], [1, 2, 3, 4]]), '
              'scale = tensor<fp32, [2, 0]>([[], []])); y = add(x = x, y = w)'),
    ("ios16", 'w = constexpr_affine_dequantize(quantized_data = tensor<uint8, [2, 4]>([[1, 2, 3, 4], [1, 2, 3, '
              '4]]), zero_point = tensor<uint8, [9]>([1,2,3,4,5,6,7,8,9]), scale = tensor<fp32, '
              '[9]>([1,2,3,4,5,6,7,8,9]), axis = 0); y = add(x = x, y = w)'),
    ("ios16", 'w = constexpr_affine_dequantize(quantized_data = tensor<uint8, [2, 4]>([[1, 2, 3, 4], [1, 2, 3, '
              '4]]), zero_point = tensor<uint8, [2]>([1,2]), scale = tensor<fp32, [2]>([1,2]), axis = 77); y = '
              'add(x = x, y = w)'),
    ("ios17", 'y = while_loop(loop_vars = (x, i))  (tensor<fp32, [2, 4]> a) { c = const()[val = true]; } -> (c)  '
              '(tensor<fp32, [2, 4]> b) { d = add(x = b, y = 1.0); } -> (d)'),
    ("ios18", 'write_state(data = x, input = x); y = relu(x = x)'),
    ("ios18", 'y = read_state(input = x)'),
    ("ios17", 'l = make_list(init_length = 2000000000, elem_shape = [2000000000], dtype = "fp32", dynamic_length = '
              'true); y = list_read(ls = l, index = 5)'),
    ("ios17", 'l = make_list(init_length = 2, elem_shape = [4], dtype = "fp32", dynamic_length = true); y = '
              'list_read(ls = l, index = 1000000)'),
    ("ios17", 'l = make_list(init_length = 2, elem_shape = [4], dtype = "fp32", dynamic_length = true); m = '
              'list_scatter(ls = l, indices = [-5, 100], value = x); y = list_gather(ls = m, indices = [0, 77])'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); w = const()[val = tensor<fp32, [2, 2, 3, 3]>(fill(1))]; '
              'y = conv(x = x4, weight = w, pad_type = "custom", pad = [2000000000, 0, 0, 2000000000], strides = '
              '[1, 1], dilations = [1, 1], groups = 1)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); w = const()[val = tensor<fp32, [2, 2, 3, 3]>(fill(1))]; '
              'y = conv(x = x4, weight = w, pad_type = "same", strides = [1, 1], dilations = [2000000000, '
              '2000000000], groups = 1)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); w = const()[val = tensor<fp32, [2, 2, 1, 1]>(fill(1))]; '
              'y = conv(x = x4, weight = w, pad_type = "valid", strides = [1, 1], dilations = [1, 1], groups = 0)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); w = const()[val = tensor<fp32, [2, 2, 1, 1]>(fill(1))]; '
              'y = conv_transpose(x = x4, weight = w, pad_type = "valid", strides = [2000000000, 2000000000], '
              'dilations = [1, 1], groups = 1)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = max_pool(x = x4, kernel_sizes = [2000000000, 1], '
              'pad_type = "valid", strides = [1, 1], pad = [0, 0, 0, 0], ceil_mode = false)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = avg_pool(x = x4, kernel_sizes = [0, 0], pad_type = '
              '"valid", strides = [0, 0], pad = [0, 0, 0, 0], exclude_padding_from_average = true, ceil_mode = '
              'false)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = upsample_nearest_neighbor(x = x4, '
              'scale_factor_height = 1000000000, scale_factor_width = 1000000000)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = upsample_bilinear(x = x4, scale_factor_height = '
              '1e30, scale_factor_width = nan, align_corners = false)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = resize_bilinear(x = x4, target_size_height = '
              '1000000000, target_size_width = 1000000000, sampling_mode = "DEFAULT")'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = crop(x = x4, crop_height = [5, 5], crop_width = [5, '
              '5])'),
    ("ios17", 'b = const()[val = tensor<fp32, [1, 2, 4]>([[[nan, inf, 1, 1], [1e30, 1, 2, 3]]])]; s = const()[val '
              '= tensor<fp32, [1, 2, 1]>([[[nan], [inf]]])]; y, p, q, r = non_maximum_suppression(boxes = b, '
              'scores = s, iou_threshold = 0.5, score_threshold = 0.1, max_boxes = 1000000000, '
              'per_class_suppression = false)'),
    ("ios17", 'z = mul(x = i, y = 0); a = floor_div(x = -2147483648, y = -1); b = sub(x = z, y = 1); c = sub(x = '
              'z, y = 2147483648); y = floor_div(x = c, y = b)'),
    ("ios17", 'y = cumsum(x = x, axis = 99)'),
    ("ios17", 'y = argsort(x = x, axis = -99)'),
    ("ios17", 'y = transpose(x = x, perm = [0, 0])'),
    ("ios17", 'y = einsum(values = (x, x), equation = "ab,ab->zz")'),
    ("ios17", 'y = matmul(x = x, y = x)'),
    ("ios17", 'x3 = reshape(x = x, shape = [1, 2, 4]); h = const()[val = tensor<fp32, [2, 3]>(fill(0))]; w = '
              'const()[val = tensor<fp32, [8, 4]>(fill(0))]; y, a, b = lstm(x = x3, initial_h = h, initial_c = h, '
              'weight_ih = w, weight_hh = w, direction = "forward", output_sequence = true)'),
    ("ios17", 'x3 = reshape(x = x, shape = [1, 2, 4]); h = const()[val = tensor<fp32, [7, 1]>(fill(0))]; w = '
              'const()[val = tensor<fp32, [3, 4]>(fill(0))]; y, a = gru(x = x3, initial_h = h, weight_ih = w, '
              'weight_hh = w, direction = "forward", output_sequence = true)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 8, 1, 1]); y = pixel_shuffle(x = x4, upscale_factor = 0)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 8, 1, 1]); y = space_to_batch(x = x4, block_shape = [0, 0], '
              'paddings = [[0, 0], [0, 0]])'),
    ("ios17", 'x4 = reshape(x = x, shape = [8, 1, 1, 1]); y = batch_to_space(x = x4, block_shape = [2, 2], crops = '
              '[[5, 5], [5, 5]])'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 8, 1, 1]); y = depth_to_space(x = x4, block_size = -2)'),
    ("ios17", 'y = sliding_windows(x = x, axis = 1, size = 99, stride = 0)'),
    ("ios17", 'y, z = split(x = x, split_sizes = [-1, 5], axis = 1)'),
    ("ios17", 'y = quantize(input = x, scale = tensor<fp32, [7]>([1,2,3,4,5,6,7]), axis = 1, output_dtype = "int8")'),
    ("ios18", 'q = reshape(x = x, shape = [1, 2, 4]); y = scaled_dot_product_attention(query = q, key = q, value = '
              'q, attn_mask = tensor<fp32, [9, 9]>(fill(0)))'),
    ("ios17", 's = shape(x = x); t = mul(x = s, y = 2000000000); y = reshape(x = x, shape = t)'),
    ("ios17", 'y = flatten2d(x = x, axis = 99)'),
    ("ios17", 'y = stack(values = (x, x), axis = 99)'),
    ("ios17", 'y = concat(values = (x, x), axis = 99)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = concat(values = (x4, x4, x), axis = -3, interleave = '
              'true)'),
    ("ios17", 'y = reduce_log_sum_exp(x = x, axes = [99], keep_dims = false)'),
    ("ios17", 'y = reverse_sequence(x = x, lengths = [1000, -4], seq_axis = 1, batch_axis = 0)'),
    ("ios17", 'y = reverse(x = x, axes = [99])'),
    ("ios17", 'y = select(cond = true, a = x, b = tensor<fp32, [3, 3]>(fill(1)))'),
    ("ios17", 'y = tile(x = x, reps = [-1, 2000000000])'),
    ("ios17", 'y = expand_dims(x = x, axes = [0, 0, 99])'),
    ("ios17", 'p = softmax(x = x, axis = 1); y, z = classify(probabilities = p, classes = ["a"])'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = batch_norm(x = x4, mean = [1.0], variance = [-1.0], '
              'epsilon = 0.0)'),
    ("ios17", 'y = layer_norm(x = x, axes = [99], epsilon = 0.0)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = instance_norm(x = x4, gamma = [1.0, 1.0, 1.0], beta '
              '= [1.0], epsilon = 0.0)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = prelu(x = x4, alpha = [1.0, 2.0, 3.0])'),
    ("ios17", 'c = slice_by_size(x = n, begin = [0], size = [0]); y = reshape(x = x, shape = c)'),
]

ODD = [
    ("ios17", 'b = mul(x = n, y = -100000); c = concat(values = (b, b), axis = 0); e = concat(values = (n, n), '
              'axis = 0); y = slice_by_index(x = x, begin = c, end = e)'),
    ("ios17", 'y = reshape(x = x, shape = [0, -1])'),
    ("ios17", 'j = mul(x = i, y = 1000000); y = one_hot(indices = j, one_hot_vector_size = 4, axis = -1, on_value '
              '= 1, off_value = 0)'),
    ("ios16", 'w = constexpr_lut_to_dense(indices = tensor<uint8, [2]>([255, 255]), lut = tensor<fp32, [4]>([1, 2, '
              '3, 4]), shape = tensor<uint32, [2]>([2, 4])); y = add(x = x, y = w)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = crop_resize(x = x4, boxes = tensor<fp32, [1, '
              '4]>([[1e30, nan, inf, -inf]]), target_height = 3, target_width = 3, normalized_coordinates = false, '
              'spatial_scale = 1e20, box_coordinate_mode = "CORNERS_HEIGHT_FIRST", sampling_mode = "DEFAULT")'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = resample(x = x4, coordinates = tensor<fp32, [1, 1, '
              '2, 2]>([[[[1e30, nan], [inf, -inf]]]]), sampling_mode = "bilinear", padding_mode = "border", '
              'padding_value = 0.0, coordinates_mode = "unnormalized", align_corners = false)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = resample(x = x4, coordinates = tensor<fp32, [1, 1, '
              '2, 2]>([[[[1e30, nan], [inf, -3e38]]]]), sampling_mode = "nearest", padding_mode = "reflection", '
              'padding_value = 0.0, coordinates_mode = "unnormalized", align_corners = false)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 2, 2, 2]); y = affine(x = x4, transform_matrix = tensor<fp32, [1, '
              '6]>([[nan, inf, 1e30, 1, 1, 1]]), output_height = 3, output_width = 3, sampling_mode = "bilinear", '
              'padding_mode = "constant", padding_value = 0.0, coordinates_mode = "normalized_minus_one_to_one", '
              'align_corners = true)'),
    ("ios17", 'a = mul(x = x, y = inf); b = mul(x = a, y = 0.0); c = cast(x = b, dtype = "int32"); y = gather(x = '
              'x, indices = 0, axis = 0); z = mod(x = c, y = 0)'),
    ("ios17", 'a = mod(x = i, y = 0); b = floor_div(x = i, y = 0); c = real_div(x = i, y = 0); d = floor_div(x = '
              '-2147483648, y = -1); e = mod(x = -2147483648, y = -1); y = add(x = a, y = b)'),
    ("ios17", 'x4 = reshape(x = x, shape = [1, 8, 1, 1]); y = local_response_norm(x = x4, size = 2000000000, alpha '
              '= 1.0, beta = 1.0, k = 1.0)'),
    ("ios17", 'y = quantize(input = x, scale = 0.0, output_dtype = "int8")'),
    ("ios17", 'y = band_part(x = x, lower = -2000000000, upper = 2000000000)'),
    ("ios17", 'y = non_zero(x = x)'),
    ("ios17", 'y = clip(x = x, alpha = nan, beta = -inf)'),
]


def commands(folder):
    given = []
    for name, values in (("i", [0, 1, 1]), ("n", [1])):
        np.save(folder / f"{name}.npy", np.array(values, np.int32))
        given += ["--input", f"{name}={folder / name}.npy"]
    for strict, bodies in ((True, REFUSED), (False, ODD)):
        for number, (opset, body) in enumerate(bodies):
            file = folder / f"{'refused' if strict else 'odd'}{number}.mil"
            file.write_text(HEAD % (opset, body))
            yield body, strict, ["run", file, *given, "--json"]


if __name__ == "__main__":
    sys.exit(hostile_test.main("hostile programs", commands))
