// test/backends/coreml/operator_samples.h - programs in MIL text with every operator in each of its
// forms.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/op_def.h"

namespace mlc::test {

// An operation that the targets from `since` to `until` can express. Its results are the outputs of
// the program unless `outputs` names others. Inputs: "x[2,3] i:int32[4] s:state[2]"; the default
// type is fp32, and fp16 for states.
struct OperatorCase {
  std::string_view op;
  Opset since, until;
  std::string_view inputs, body, outputs = "y";
};
inline constexpr Opset kLast = Opset::kIos26;

// Operators with one or two operands and no other parameters, each with x [2, 3] (and y of the same
// shape).
inline constexpr std::string_view kUnary =
    "abs acos argsort asin atan atanh ceil cos cosh cumsum erf exp exp2 floor gelu identity "
    "inverse log reduce_argmax reduce_argmin reduce_l1_norm reduce_l2_norm reduce_log_sum "
    "reduce_log_sum_exp reduce_max reduce_mean reduce_min reduce_prod reduce_sum "
    "reduce_sum_square relu relu6 reverse round rsqrt shape sigmoid sign silu sin sinh softmax "
    "softplus softsign sqrt square tan tanh band_part flatten2d non_zero";
inline constexpr std::string_view kBinary =
    "add floor_div maximum minimum mod mul pow real_div sub";
inline constexpr std::string_view kComparisons =
    "equal greater greater_equal less less_equal not_equal";
inline constexpr std::string_view kLogic = "logical_and logical_or logical_xor";

// clang-format off
inline constexpr OperatorCase kOperatorCases[] = {
    // The constant becomes an output through an identity; `const` is the tested operation.
    {"const", Opset::kIos15, kLast, "x[2]", "c = const()[val = tensor<fp32, [2]>([1.0, 2.0])]; y = add(x = x, y = c);"},
    {"identity", Opset::kIos15, kLast, "x:int32[2]", "y = identity(x = x);"},
    {"logical_not", Opset::kIos15, kLast, "x[2]", "b = cast(x = x, dtype = \"bool\"); n = logical_not(x = b); y = cast(x = n, dtype = \"fp32\");"},
    {"select", Opset::kIos15, kLast, "x[2,3]", "b = cast(x = x, dtype = \"bool\"); y = select(cond = b, a = x, b = 0.0);"},

    // iOS17 added element types and parameters to cast.
    {"cast", Opset::kIos15, kLast, "x[2]", "y = cast(x = x, dtype = \"int32\");"},
    {"cast", Opset::kIos17, kLast, "x[2]", "i = cast(x = x, dtype = \"uint8\"); y = cast(x = i, dtype = \"fp32\");"},

    // Activations. The second of each pair needs the separate type domain of the parameters in
    // iOS17.
    {"clamped_relu", Opset::kIos15, kLast, "x[2]", "y = clamped_relu(x = x, alpha = 0.5, beta = 2.0);"},
    {"clamped_relu", Opset::kIos17, kLast, "x[2]", "y = clamped_relu(x = x, alpha = const fp16(0.5), beta = const fp16(2.0));"},
    {"clip", Opset::kIos15, kLast, "x[2]", "y = clip(x = x, alpha = -1.0, beta = 2.0);"},
    {"elu", Opset::kIos15, kLast, "x[2]", "y = elu(x = x, alpha = 0.5);"},
    {"elu", Opset::kIos17, kLast, "x[2]", "y = elu(x = x, alpha = const fp16(0.5));"},
    {"gelu", Opset::kIos15, kLast, "x[2]", "y = gelu(x = x, mode = \"TANH_APPROXIMATION\");"},
    {"leaky_relu", Opset::kIos15, kLast, "x[2]", "y = leaky_relu(x = x, alpha = 0.5);"},
    {"leaky_relu", Opset::kIos17, kLast, "x[2]", "y = leaky_relu(x = x, alpha = const fp16(0.5));"},
    {"linear_activation", Opset::kIos15, kLast, "x[2]", "y = linear_activation(x = x, alpha = 0.5, beta = 2.0);"},
    {"linear_activation", Opset::kIos17, kLast, "x[2]", "y = linear_activation(x = x, alpha = const fp16(0.5), beta = const fp16(2.0));"},
    {"prelu", Opset::kIos15, kLast, "x[1,2,4,4]", "y = prelu(x = x, alpha = [0.5, 0.25]);"},
    {"prelu", Opset::kIos17, kLast, "x[1,2,4,4]", "y = prelu(x = x, alpha = const tensor<fp16, [2]>([0.5, 0.25]));"},
    {"scaled_tanh", Opset::kIos15, kLast, "x[2]", "y = scaled_tanh(x = x, alpha = 0.5, beta = 2.0);"},
    {"scaled_tanh", Opset::kIos17, kLast, "x[2]", "y = scaled_tanh(x = x, alpha = const fp16(0.5), beta = const fp16(2.0));"},
    {"sigmoid_hard", Opset::kIos15, kLast, "x[2]", "y = sigmoid_hard(x = x, alpha = 0.5, beta = 2.0);"},
    {"sigmoid_hard", Opset::kIos17, kLast, "x[2]", "y = sigmoid_hard(x = x, alpha = const fp16(0.5), beta = const fp16(2.0));"},
    {"softmax", Opset::kIos15, kLast, "x[2,3]", "y = softmax(x = x, axis = 0);"},
    {"softplus_parametric", Opset::kIos15, kLast, "x[1,2,4,4]", "y = softplus_parametric(x = x, alpha = [0.5, 0.25], beta = [1.0, 2.0]);"},
    {"softplus_parametric", Opset::kIos17, kLast, "x[1,2,4,4]", "y = softplus_parametric(x = x, alpha = const tensor<fp16, [2]>([0.5, 0.25]), beta = const tensor<fp16, [2]>([1.0, 2.0]));"},
    {"threshold", Opset::kIos15, kLast, "x[2]", "y = threshold(x = x, alpha = 0.5);"},
    {"thresholded_relu", Opset::kIos15, kLast, "x[2]", "y = thresholded_relu(x = x, alpha = 0.5);"},
    {"thresholded_relu", Opset::kIos17, kLast, "x[2]", "y = thresholded_relu(x = x, alpha = const fp16(0.5));"},
    {"inverse", Opset::kIos15, kLast, "x[2]", "y = inverse(x = x, epsilon = 0.125);"},
    {"inverse", Opset::kIos17, kLast, "x[2]", "y = inverse(x = x, epsilon = const fp16(0.125));"},
    {"log", Opset::kIos15, kLast, "x[2]", "y = log(x = x, epsilon = 0.125);"},
    {"log", Opset::kIos17, kLast, "x[2]", "y = log(x = x, epsilon = const fp16(0.125));"},
    {"rsqrt", Opset::kIos15, kLast, "x[2]", "y = rsqrt(x = x, epsilon = 0.125);"},
    {"rsqrt", Opset::kIos17, kLast, "x[2]", "y = rsqrt(x = x, epsilon = const fp16(0.125));"},

    // Constants: up to iOS17 all operands are attributes; from iOS18 they are literals or other
    // constants.
    {"constexpr_affine_dequantize", Opset::kIos16, kLast, "x[2,3]",
     "w = constexpr_affine_dequantize()[axis = int32(0), name = string(\"w\"), quantized_data = tensor<int8, [2, 3]>([[-128, 0, 127], [1, 2, 3]]), scale = tensor<fp32, [2]>([0.5, 2.0]), zero_point = tensor<int8, [2]>([-1, 1])]; y = add(x = x, y = w);"},
    {"constexpr_blockwise_shift_scale", Opset::kIos18, kLast, "x[1,2,4]",
     "w = constexpr_blockwise_shift_scale(data = tensor<int4, [1, 2, 4]>([[[2, 3, 5, 7], [6, 5, -3, -8]]]), offset = tensor<int4, [1, 1, 2]>([[[1, 0]]]), scale = tensor<fp32, [1, 1, 2]>([[[1.0, 2.0]]])); y = add(x = x, y = w);"},
    {"constexpr_cast", Opset::kIos16, kLast, "x[2]", "w = constexpr_cast()[name = string(\"w\"), output_dtype = string(\"fp32\"), source_val = tensor<fp16, [2]>([1.0, 2.0])]; y = add(x = x, y = w);"},
    {"constexpr_lut_to_dense", Opset::kIos16, Opset::kIos17, "x[5]",
     "w = constexpr_lut_to_dense()[indices = tensor<uint8, [2]>([108, 3]), lut = tensor<fp32, [4]>([10.0, 11.0, 12.0, 13.0]), name = string(\"w\"), shape = tensor<uint32, [1]>([5])]; y = add(x = x, y = w);"},
    {"constexpr_lut_to_dense", Opset::kIos16, Opset::kIos17, "x[3]",  // five bits each: 1, 31, 2
     "w = constexpr_lut_to_dense()[indices = tensor<uint8, [2]>([225, 11]), lut = tensor<fp16, [32]>([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0, 31.0]), name = string(\"w\"), shape = tensor<uint32, [1]>([3])]; v = cast(x = w, dtype = \"fp32\"); y = add(x = x, y = v);"},
    {"constexpr_lut_to_dense", Opset::kIos18, kLast, "x[8,1]",
     "w = constexpr_lut_to_dense(indices = tensor<uint1, [8, 1]>([[0], [1], [1], [0], [1], [0], [0], [1]]), lut = tensor<fp32, [1, 1, 2, 1]>([[[[0.5], [1.0]]]])); y = add(x = x, y = w);"},
    {"constexpr_lut_to_dense", Opset::kIos18, kLast, "x[2,2]",
     "w = constexpr_lut_to_dense(indices = tensor<uint1, [1, 2]>([[0, 1]]), lut = tensor<fp32, [1, 1, 2, 2]>([[[[0.5, 1.0], [2.0, 3.0]]]]), vector_axis = int32(0)); y = add(x = x, y = w);"},
    {"constexpr_lut_to_sparse", Opset::kIos18, kLast, "x[2,2]",
     "m, v = constexpr_lut_to_sparse(indices_mask = tensor<uint1, [2, 2]>([[0, 1], [1, 0]]), indices_nonzero_data = tensor<uint1, [2]>([0, 1]), lut = tensor<fp32, [1, 1, 2, 1]>([[[[0.5], [1.0]]]])); w = constexpr_sparse_to_dense(nonzero_data = v, mask = m); y = add(x = x, y = w);"},
    {"constexpr_sparse_blockwise_shift_scale", Opset::kIos18, kLast, "x[2,2]",
     "m, v = constexpr_sparse_blockwise_shift_scale(data_mask = tensor<uint1, [2, 2]>([[0, 1], [1, 0]]), nonzero_data = tensor<int8, [2]>([3, -4]), scale = tensor<fp32, [2, 1]>([[0.5], [1.0]]), offset = tensor<int8, [2, 1]>([[0], [1]])); w = constexpr_sparse_to_dense(nonzero_data = v, mask = m); y = add(x = x, y = w);"},
    {"constexpr_sparse_to_dense", Opset::kIos16, Opset::kIos17, "x[5]",
     "w = constexpr_sparse_to_dense()[mask = tensor<uint8, [1]>([18]), name = string(\"w\"), nonzero_data = tensor<fp32, [2]>([10.0, 11.0]), shape = tensor<uint32, [1]>([5])]; y = add(x = x, y = w);"},
    {"constexpr_sparse_to_dense", Opset::kIos18, kLast, "x[2,2]",
     "w = constexpr_sparse_to_dense(nonzero_data = tensor<fp32, [2]>([0.5, 1.0]), mask = tensor<uint1, [2, 2]>([[0, 1], [1, 0]])); y = add(x = x, y = w);"},

    // Up to iOS16, weight and bias have the type of x and are constant.
    {"conv", Opset::kIos15, kLast, "x[1,2,6,6]", "y = conv(x = x, weight = const tensor<fp32, [2, 2, 1, 1]>(fill(0.5)), bias = [1.0, 2.0], strides = [2, 2], pad_type = \"same\");"},
    {"conv", Opset::kIos17, kLast, "x[1,2,6,6]", "y = conv(x = x, weight = const tensor<fp16, [2, 2, 1, 1]>(fill(0.5)), bias = const tensor<fp16, [2]>([1.0, 2.0]));"},
    {"conv", Opset::kIos15, kLast, "x[1,2,6,6] w[2,2,1,1]", "y = conv(x = x, weight = w);"},
    {"conv", Opset::kIos17, kLast, "x[1,2,6,6] w[2,2,1,1] b[2]", "y = conv(x = x, weight = w, bias = b, pad_type = \"custom\", pad = [1, 0, 1, 0], dilations = [2, 2]);"},
    {"conv_transpose", Opset::kIos15, kLast, "x[1,2,6,6]", "y = conv_transpose(x = x, weight = const tensor<fp32, [2, 2, 2, 2]>(fill(0.5)), bias = [1.0, 2.0], strides = [2, 2], output_shape = [1, 2, 12, 12]);"},
    {"conv_transpose", Opset::kIos17, kLast, "x[1,2,6,6] b[2]", "y = conv_transpose(x = x, weight = const tensor<fp32, [2, 2, 2, 2]>(fill(0.5)), bias = b);"},
    {"conv_transpose", Opset::kIos17, kLast, "x[1,2,6,6]", "y = conv_transpose(x = x, weight = const tensor<fp16, [2, 2, 2, 2]>(fill(0.5)));"},

    // From iOS17, the boxes of crop_resize have another name and shape; iOS16 added pad_value.
    {"crop_resize", Opset::kIos15, Opset::kIos16, "x[1,1,4,4] r[2,1,4,1,1]", "y = crop_resize(x = x, roi = r, target_height = 2, target_width = 2, sampling_mode = \"ALIGN_CORNERS\");"},
    {"crop_resize", Opset::kIos16, Opset::kIos16, "x[1,1,4,4] r[2,1,4,1,1]", "y = crop_resize(x = x, roi = r, target_height = 2, target_width = 2, pad_value = 1.0);"},
    {"crop_resize", Opset::kIos15, Opset::kIos16, "x[2,1,4,4] r[2,1,4,1,1]", "y = crop_resize(x = x, roi = r, target_height = 2, target_width = 2);"},
    {"crop_resize", Opset::kIos15, Opset::kIos16, "x[2,1,4,4] r[2,1,5,1,1]", "y = crop_resize(x = x, roi = r, target_height = 2, target_width = 2);"},
    {"crop_resize", Opset::kIos17, kLast, "x[1,1,4,4] r[2,4]", "y = crop_resize(x = x, boxes = r, box_indices = [0, 0], target_height = 2, target_width = 2);"},
    {"affine", Opset::kIos15, kLast, "x[1,1,4,4] t[1,6]", "y = affine(x = x, transform_matrix = t, output_height = 2, output_width = 3, sampling_mode = \"bilinear\", padding_mode = \"constant\", padding_value = 0.0, coordinates_mode = \"normalized_minus_one_to_one\", align_corners = true);"},
    {"crop", Opset::kIos15, kLast, "x[1,1,4,4]", "y = crop(x = x, crop_height = [1, 0], crop_width = [0, 2]);"},
    {"resample", Opset::kIos15, kLast, "x[1,1,4,4] c[1,2,3,2]", "y = resample(x = x, coordinates = c, sampling_mode = \"bilinear\", padding_mode = \"border\", padding_value = 0.0, coordinates_mode = \"unnormalized\", align_corners = true);"},
    {"resample", Opset::kIos16, kLast, "x[1,1,4,4] c[1,2,3,2]", "h = cast(x = c, dtype = \"fp16\"); y = resample(x = x, coordinates = h, sampling_mode = \"bilinear\", padding_mode = \"border\", padding_value = 0.0, coordinates_mode = \"unnormalized\", align_corners = true);"},
    {"resample", Opset::kIos17, kLast, "x[1,1,4,4] c[1,2,3,2]", "h = cast(x = c, dtype = \"uint16\"); y = resample(x = x, coordinates = h, sampling_mode = \"nearest\", padding_mode = \"border\", padding_value = 0.0, coordinates_mode = \"unnormalized\", align_corners = true);"},
    {"resize", Opset::kIos17, kLast, "x[1,1,4,4]", "y = resize(x = x, shape = [8, 6], resized_dims = const uint32(2), interpolation_mode = \"NEAREST_NEIGHBOR\", sampling_mode = \"UNALIGN_CORNERS\");"},
    {"resize_bilinear", Opset::kIos15, kLast, "x[1,1,4,4]", "y = resize_bilinear(x = x, target_size_height = 8, target_size_width = 6, sampling_mode = \"ALIGN_CORNERS\");"},
    {"resize_nearest_neighbor", Opset::kIos15, kLast, "x[1,1,4,4]", "y = resize_nearest_neighbor(x = x, target_size_height = 8, target_size_width = 8);"},
    {"upsample_bilinear", Opset::kIos15, kLast, "x[1,1,4,4]", "y = upsample_bilinear(x = x, scale_factor_height = const int32(2), scale_factor_width = const int32(3), align_corners = false);"},
    {"upsample_bilinear", Opset::kIos16, kLast, "x[1,1,4,4]", "y = upsample_bilinear(x = x, scale_factor_height = 2.0, scale_factor_width = 1.5, align_corners = false, half_pixel_centers = true);"},
    {"upsample_nearest_neighbor", Opset::kIos15, kLast, "x[1,1,4,4]", "y = upsample_nearest_neighbor(x = x, scale_factor_height = const int32(2), scale_factor_width = const int32(3));"},

    {"einsum", Opset::kIos15, kLast, "a[1,2,3,4] b[1,4,3,5]", "y = einsum(values = (a, b), equation = \"nchw,nwhu->nchu\");"},
    {"linear", Opset::kIos15, kLast, "x[2,3]", "y = linear(x = x, weight = const tensor<fp32, [4, 3]>(fill(0.5)), bias = [1.0, 2.0, 3.0, 4.0]);"},
    {"linear", Opset::kIos17, kLast, "x[2,3]", "y = linear(x = x, weight = const tensor<fp16, [4, 3]>(fill(0.5)), bias = const tensor<fp16, [4]>(fill(1.0)));"},
    {"matmul", Opset::kIos15, kLast, "a[2,3] b[4,3]", "y = matmul(x = a, y = b, transpose_y = true);"},
    {"matmul", Opset::kIos17, kLast, "a[2,3]", "y = matmul(x = a, y = const tensor<fp16, [3, 4]>(fill(0.5)));"},
    {"scaled_dot_product_attention", Opset::kIos18, kLast, "q[1,2,3,4] k[1,2,5,4] v[1,2,5,4] m[3,5]", "y = scaled_dot_product_attention(query = q, key = k, value = v, attn_mask = m);"},

    {"avg_pool", Opset::kIos15, kLast, "x[1,2,6,6]", "y = avg_pool(x = x, kernel_sizes = [2, 2], strides = [2, 2], pad_type = \"custom\", pad = [0, 1, 0, 1], exclude_padding_from_average = true);"},
    {"l2_pool", Opset::kIos15, kLast, "x[1,2,6,6]", "y = l2_pool(x = x, kernel_sizes = [2, 2], pad_type = \"valid\");"},
    {"max_pool", Opset::kIos15, kLast, "x[1,2,6,6]", "y = max_pool(x = x, kernel_sizes = [2, 2], strides = [2, 2], pad_type = \"valid\", ceil_mode = true);"},

    {"batch_norm", Opset::kIos15, kLast, "x[1,2,4,4]", "y = batch_norm(x = x, mean = [0.5, 1.0], variance = [1.0, 2.0], gamma = [1.0, 3.0], beta = [0.0, 4.0], epsilon = 0.25);"},
    {"batch_norm", Opset::kIos17, kLast, "x[1,2,4,4]", "y = batch_norm(x = x, mean = const tensor<fp16, [2]>([0.5, 1.0]), variance = const tensor<fp16, [2]>([1.0, 2.0]));"},
    {"instance_norm", Opset::kIos15, kLast, "x[1,2,4,4]", "y = instance_norm(x = x, gamma = [1.0, 3.0], beta = [0.0, 4.0]);"},
    {"instance_norm", Opset::kIos17, kLast, "x[1,2,4,4]", "y = instance_norm(x = x, gamma = const tensor<fp16, [2]>([1.0, 3.0]), beta = const tensor<fp16, [2]>([0.0, 4.0]), epsilon = const fp16(0.25));"},
    {"l2_norm", Opset::kIos15, kLast, "x[1,2,4]", "y = l2_norm(x = x, epsilon = 0.25);"},
    {"l2_norm", Opset::kIos17, kLast, "x[1,2,4]", "y = l2_norm(x = x, epsilon = const fp16(0.25));"},
    {"layer_norm", Opset::kIos15, kLast, "x[2,3]", "y = layer_norm(x = x, axes = [-1], gamma = [1.0, 2.0, 3.0], epsilon = 0.25);"},
    {"layer_norm", Opset::kIos17, kLast, "x[2,3]", "y = layer_norm(x = x, axes = [-1], gamma = const tensor<fp16, [3]>(fill(2.0)), beta = const tensor<fp16, [3]>(fill(1.0)));"},
    {"local_response_norm", Opset::kIos15, kLast, "x[1,4,3]", "y = local_response_norm(x = x, size = 3, alpha = 0.5);"},
    {"local_response_norm", Opset::kIos17, kLast, "x[1,4,3]", "y = local_response_norm(x = x, size = 3, alpha = const fp16(0.5), beta = const fp16(0.75), k = const fp16(2.0));"},

    {"quantize", Opset::kIos17, kLast, "x[2,3]", "q = quantize(input = x, scale = 0.5, zero_point = const int8(3), output_dtype = \"int8\"); y = dequantize(input = q, scale = 0.5, zero_point = const int8(3));"},
    {"dequantize", Opset::kIos17, kLast, "x[2,3]", "q = quantize(input = x, scale = [0.5, 0.25], axis = 0, output_dtype = \"uint8\"); y = dequantize(input = q, scale = [0.5, 0.25], axis = 0);"},

    {"reduce_sum", Opset::kIos15, kLast, "x[2,3]", "y = reduce_sum(x = x, axes = [1], keep_dims = true);"},
    {"reduce_argmax", Opset::kIos15, kLast, "x[2,3]", "y = reduce_argmax(x = x, axis = 0, keep_dims = true);"},
    {"reduce_argmax", Opset::kIos17, kLast, "x[2,3]", "i = reduce_argmax(x = x, output_dtype = \"uint16\"); y = cast(x = i, dtype = \"int32\");"},
    {"reduce_argmin", Opset::kIos17, kLast, "x[2,3]", "i = reduce_argmin(x = x, output_dtype = \"uint16\"); y = cast(x = i, dtype = \"int32\");"},

    // iOS16 added batch_dims, iOS17 validate_indices.
    {"gather", Opset::kIos15, kLast, "x[4,3] i:int32[2]", "y = gather(x = x, indices = i, axis = 1);"},
    {"gather", Opset::kIos15, kLast, "x[4,3] i:int32[2]", "y = gather(x = x, indices = i, axis = 1, batch_dims = 0, validate_indices = false);"},
    {"gather", Opset::kIos16, kLast, "x[4,3] i:int32[4,2]", "y = gather(x = x, indices = i, axis = 1, batch_dims = 1);"},
    {"gather", Opset::kIos16, kLast, "x[4,3]", "y = gather(x = x, indices = const tensor<uint16, [2]>([2, 0]), axis = 0);"},
    {"gather", Opset::kIos17, kLast, "x[4,3] i:int32[2]", "y = gather(x = x, indices = i, axis = 1, validate_indices = true);"},
    {"gather_along_axis", Opset::kIos15, kLast, "x[4,3] i:int32[2,3]", "y = gather_along_axis(x = x, indices = i);"},
    {"gather_along_axis", Opset::kIos16, kLast, "x[4,3]", "y = gather_along_axis(x = x, indices = const tensor<int16, [1, 3]>([[2, 0, 1]]), axis = 0);"},
    {"gather_along_axis", Opset::kIos17, kLast, "x[4,3] i:int32[2,3]", "y = gather_along_axis(x = x, indices = i, validate_indices = true);"},
    {"gather_nd", Opset::kIos15, kLast, "x[4,3] i:int32[2,1]", "y = gather_nd(x = x, indices = i);"},
    {"gather_nd", Opset::kIos16, kLast, "x[4,3] i:int32[4,1]", "y = gather_nd(x = x, indices = i, batch_dims = 1);"},
    {"gather_nd", Opset::kIos17, kLast, "x[4,3] i:int32[2,1]", "y = gather_nd(x = x, indices = i, validate_indices = true);"},
    {"scatter", Opset::kIos15, kLast, "x[4,3] i:int32[2] u[2,3]", "y = scatter(data = x, indices = i, updates = u, mode = \"update\");"},
    {"scatter", Opset::kIos17, kLast, "x[4,3] i:int32[2] u[2,3]", "y = scatter(data = x, indices = i, updates = u, validate_indices = true);"},
    {"scatter_along_axis", Opset::kIos15, kLast, "x[4,3] i:int32[2,3] u[2,3]", "y = scatter_along_axis(data = x, indices = i, updates = u, mode = \"max\");"},
    {"scatter_along_axis", Opset::kIos17, kLast, "x[4,3] i:int32[2,3] u[2,3]", "y = scatter_along_axis(data = x, indices = i, updates = u, validate_indices = true);"},
    {"scatter_nd", Opset::kIos15, kLast, "x[4,3] i:int32[2,1] u[2,3]", "y = scatter_nd(data = x, indices = i, updates = u);"},
    {"scatter_nd", Opset::kIos17, kLast, "x[4,3] i:int32[2,1] u[2,3]", "y = scatter_nd(data = x, indices = i, updates = u, validate_indices = true);"},

    {"argsort", Opset::kIos15, kLast, "x[2,3]", "y = argsort(x = x, axis = 0, ascending = true);"},
    // Before iOS17: boxes [n, b, 4], a score_threshold and a fourth result.
    {"non_maximum_suppression", Opset::kIos15, Opset::kIos16, "b[1,6,4] s[1,6,2]", "p, q, r, t = non_maximum_suppression(boxes = b, scores = s, iou_threshold = 0.5, score_threshold = 0.25, max_boxes = 3, per_class_suppression = true);", "p, q, r, t"},
    {"non_maximum_suppression", Opset::kIos15, Opset::kIos16, "b[1,6,4] s[1,6,2]", "p, q, r, t = non_maximum_suppression(boxes = b, scores = s, iou_threshold = 0.5, score_threshold = 100.0, max_boxes = 8);", "q, t"},
    {"non_maximum_suppression", Opset::kIos17, kLast, "b[1,4,6] s[1,2,6]", "p, q, r = non_maximum_suppression(boxes = b, scores = s, iou_threshold = 0.5, max_boxes = 3);", "p, q, r"},
    // iOS16 added sort and return_indices; iOS15 always has two results. From iOS17, recurrent
    // layers also compute in fp16.
    {"gru", Opset::kIos15, kLast, "x[4,1,2] h[1,3]", "y, z = gru(x = x, initial_h = h, weight_ih = const tensor<fp32, [9, 2]>(fill(0.5)), weight_hh = const tensor<fp32, [9, 3]>(fill(0.25)), bias = const tensor<fp32, [9]>(fill(0.125)), direction = \"reverse\", output_sequence = true, recurrent_activation = \"hard_sigmoid\", activation = \"relu\");", "y, z"},
    {"gru", Opset::kIos17, kLast, "x:fp16[4,1,2] h:fp16[1,3]", "y, z = gru(x = x, initial_h = h, weight_ih = const tensor<fp16, [9, 2]>(fill(0.5)), weight_hh = const tensor<fp16, [9, 3]>(fill(0.25)));", "y, z"},
    {"gru", Opset::kIos18, kLast, "x[4,1,2] h[1,3]", "y, z = gru(x = x, initial_h = h, weight_ih = const tensor<fp32, [9, 2]>(fill(0.5)), weight_hh = const tensor<fp32, [9, 3]>(fill(0.25)), reset_after = true, input_bias = const tensor<fp32, [9]>(fill(0.125)));", "y, z"},
    {"lstm", Opset::kIos15, kLast, "x[4,1,2] h[1,3] c[1,3]", "y, z, t = lstm(x = x, initial_h = h, initial_c = c, weight_ih = const tensor<fp32, [12, 2]>(fill(0.5)), weight_hh = const tensor<fp32, [12, 3]>(fill(0.25)), bias = const tensor<fp32, [12]>(fill(0.125)), peephole = const tensor<fp32, [9]>(fill(0.125)), clip = 2.0);", "y, z, t"},
    {"lstm", Opset::kIos17, kLast, "x:fp16[4,1,2] h:fp16[1,6] c:fp16[1,6]", "y, z, t = lstm(x = x, initial_h = h, initial_c = c, weight_ih = const tensor<fp16, [12, 2]>(fill(0.5)), weight_hh = const tensor<fp16, [12, 3]>(fill(0.25)), weight_ih_back = const tensor<fp16, [12, 2]>(fill(0.5)), weight_hh_back = const tensor<fp16, [12, 3]>(fill(0.25)), direction = \"bidirectional\", output_sequence = true);", "y, z, t"},
    {"rnn", Opset::kIos15, kLast, "x[4,1,2] h[1,3]", "y, z = rnn(x = x, initial_h = h, weight_ih = const tensor<fp32, [3, 2]>(fill(0.5)), weight_hh = const tensor<fp32, [3, 3]>(fill(0.25)), activation = \"relu\");", "y, z"},
    {"rnn", Opset::kIos17, kLast, "x:fp16[4,1,2] h:fp16[1,3]", "y, z = rnn(x = x, initial_h = h, weight_ih = const tensor<fp16, [3, 2]>(fill(0.5)), weight_hh = const tensor<fp16, [3, 3]>(fill(0.25)), bias = const tensor<fp16, [3]>(fill(0.5)));", "y, z"},

    {"random_bernoulli", Opset::kIos15, kLast, "x[2,6]", "r = random_bernoulli(shape = [2, 6], prob = 0.25, seed = 3); y = add(x = x, y = r);"},
    {"random_categorical", Opset::kIos15, kLast, "x[2,6]", "y = random_categorical(x = x, mode = \"probs\", size = 4, seed = 3);"},
    {"random_normal", Opset::kIos15, kLast, "x[2,6]", "r = random_normal(shape = [2, 6], mean = 1.0, stddev = 2.0); y = add(x = x, y = r);"},
    {"random_uniform", Opset::kIos15, kLast, "x[2,6]", "s = shape(x = x); r = random_uniform(shape = s, low = 1.0, high = 2.0, seed = 3); y = add(x = x, y = r);"},
    {"topk", Opset::kIos15, kLast, "x[2,6]", "v, i = topk(x = x, k = 2, axis = 0, ascending = true);", "v, i"},
    {"topk", Opset::kIos15, kLast, "x[2,6]", "v = topk(x = x, k = 2, return_indices = false);", "v"},
    {"topk", Opset::kIos16, kLast, "x[2,6]", "v, i = topk(x = x, k = 3, sort = false);", "v, i"},
    {"topk", Opset::kIos17, kLast, "x[2,6]", "v, j = topk(x = x, k = 3, output_indices_dtype = \"uint16\"); i = cast(x = j, dtype = \"int32\");", "v, i"},

    {"concat", Opset::kIos15, kLast, "a[2,3] b[2,3]", "y = concat(values = (a, b), axis = 1, interleave = true);"},
    {"expand_dims", Opset::kIos15, kLast, "x[2]", "y = expand_dims(x = x, axes = [0, 2]);"},
    {"expand_dims", Opset::kIos17, kLast, "x[2]", "c = cast(x = x, dtype = \"int8\"); d = expand_dims(x = c, axes = [0]); y = cast(x = d, dtype = \"fp32\");"},
    {"pad", Opset::kIos15, kLast, "x[2,3]", "y = pad(x = x, pad = [0, 0, 1, 2], mode = \"constant\", constant_val = 0.5);"},
    {"reshape", Opset::kIos15, kLast, "x[2,3]", "y = reshape(x = x, shape = [3, -1]);"},
    {"reshape", Opset::kIos17, kLast, "x[2,3]", "y = reshape(x = x, shape = const tensor<int16, [2]>([3, 2]));"},
    {"reshape_like", Opset::kIos16, kLast, "x[2,3] r[3,2]", "y = reshape_like(x = x, ref_tensors = (r), begins = int32(0), ends = int32(2), end_masks = bool(false));"},
    {"reshape_like", Opset::kIos17, kLast, "x[2,3] r[3,2]", "q = cast(x = r, dtype = \"int8\"); y = reshape_like(x = x, ref_tensors = (q), begins = int32(0), ends = int32(2), end_masks = bool(false));"},
    {"reverse", Opset::kIos17, kLast, "x[2]", "c = cast(x = x, dtype = \"int8\"); d = reverse(x = c, axes = [0]); y = cast(x = d, dtype = \"fp32\");"},
    {"reverse_sequence", Opset::kIos15, kLast, "x[2,3] n:int32[2]", "y = reverse_sequence(x = x, lengths = n, seq_axis = 1, batch_axis = 0);"},
    {"reverse_sequence", Opset::kIos17, kLast, "x[2,3]", "y = reverse_sequence(x = x, lengths = const tensor<int8, [2]>([1, 3]), seq_axis = 1);"},
    {"split", Opset::kIos15, kLast, "x[2,6]", "a, b = split(x = x, num_splits = 2, axis = 1);", "a, b"},
    {"split", Opset::kIos15, kLast, "x[2,6]", "a, b = split(x = x, split_sizes = [2, 4], axis = 1);", "a, b"},
    {"squeeze", Opset::kIos15, kLast, "x[1,2,1]", "y = squeeze(x = x, axes = [0]);"},
    {"squeeze", Opset::kIos17, kLast, "x[1,2]", "c = cast(x = x, dtype = \"int8\"); d = squeeze(x = c); y = cast(x = d, dtype = \"fp32\");"},
    {"stack", Opset::kIos15, kLast, "a[2,3] b[2,3]", "y = stack(values = (a, b), axis = 1);"},
    {"tile", Opset::kIos15, kLast, "x[2,3]", "y = tile(x = x, reps = [2, 1]);"},
    {"transpose", Opset::kIos15, kLast, "x[2,3]", "y = transpose(x = x, perm = [1, 0]);"},
    {"transpose", Opset::kIos17, kLast, "x[2,3]", "c = cast(x = x, dtype = \"int8\"); d = transpose(x = c, perm = [1, 0]); y = cast(x = d, dtype = \"fp32\");"},
    {"slice_by_index", Opset::kIos15, kLast, "x[4,3]", "y = slice_by_index(x = x, begin = [1, 0], end = [0, 3], stride = [2, 1], end_mask = [true, false], squeeze_mask = [false, false]);"},
    {"slice_by_index", Opset::kIos17, kLast, "x[4,3]", "y = slice_by_index(x = x, begin = const tensor<int16, [2]>([1, 0]), end = const tensor<int16, [2]>([3, 3]));"},
    {"slice_by_size", Opset::kIos15, kLast, "x[4,3] b:int32[2]", "y = slice_by_size(x = x, begin = b, size = [2, -1]);"},
    {"slice_by_size", Opset::kIos17, kLast, "x[4,3]", "y = slice_by_size(x = x, begin = const tensor<int8, [2]>([1, 0]), size = const tensor<int8, [2]>([2, 2]));"},
    {"slice_update", Opset::kIos18, kLast, "x[4,3] u[2,3]", "y = slice_update(x = x, update = u, begin = [1, 0], end = [3, 3]);"},
    {"sliding_windows", Opset::kIos15, kLast, "x[6]", "y = sliding_windows(x = x, axis = 0, size = 3, stride = 2);"},
    {"sliding_windows", Opset::kIos17, kLast, "x[6]", "c = cast(x = x, dtype = \"int8\"); d = sliding_windows(x = c, axis = 0, size = 2); y = cast(x = d, dtype = \"fp32\");"},

    {"batch_to_space", Opset::kIos15, kLast, "x[4,1,2,2]", "y = batch_to_space(x = x, block_shape = [2, 2], crops = [[0, 0], [1, 0]]);"},
    {"space_to_batch", Opset::kIos15, kLast, "x[1,1,4,4]", "y = space_to_batch(x = x, block_shape = [2, 2], paddings = [[0, 0], [1, 1]]);"},
    {"depth_to_space", Opset::kIos15, kLast, "x[1,4,2,2]", "y = depth_to_space(x = x, block_size = 2);"},
    {"space_to_depth", Opset::kIos15, kLast, "x[1,1,4,4]", "y = space_to_depth(x = x, block_size = 2);"},
    {"pixel_shuffle", Opset::kIos15, kLast, "x[1,4,2,2]", "y = pixel_shuffle(x = x, upscale_factor = 2);"},
    {"pixel_unshuffle", Opset::kIos16, kLast, "x[1,1,4,4]", "y = pixel_unshuffle(x = x, downscale_factor = const uint32(2));"},

    {"band_part", Opset::kIos15, kLast, "x[3,3]", "y = band_part(x = x, lower = 1, upper = 0);"},
    {"cumsum", Opset::kIos15, kLast, "x[2,3]", "y = cumsum(x = x, axis = 1, exclusive = true, reverse = true);"},
    {"fill", Opset::kIos15, kLast, "s:int32[2]", "y = fill(shape = s, value = 2.0);"},
    {"fill_like", Opset::kIos16, kLast, "x[2,3]", "y = fill_like(ref_tensor = x, value = const int32(3));"},
    {"one_hot", Opset::kIos15, kLast, "i:int32[2]", "y = one_hot(indices = i, one_hot_vector_size = 4, axis = -1, on_value = 2.0, off_value = 0.5);"},
    {"cond", Opset::kIos15, kLast, "x[2] p[1]", "b = cast(x = p, dtype = \"bool\"); q = squeeze(x = b); y = cond(pred = q) () { d = add(x = x, y = 1.0); } -> (d) () { e = relu(x = x); } -> (e);"},
    {"while_loop", Opset::kIos15, kLast, "x[2]", "n, y = while_loop(loop_vars = (const int32(0), x)) (int32 i, tensor<fp32, [2]> a) { c = less(x = i, y = 3); } -> (c) (int32 j, tensor<fp32, [2]> b) { k = add(x = j, y = 1); d = mul(x = b, y = 2.0); } -> (k, d);"},
    {"make_list", Opset::kIos15, kLast, "x[2]", "l = make_list(init_length = 3, dynamic_length = false, elem_shape = (const int32(2)), dtype = \"fp32\"); y = list_read(ls = l, index = 1);"},
    {"make_list", Opset::kIos15, kLast, "x[1]", "l = make_list(init_length = 3, dynamic_length = false, dtype = \"fp32\"); y = list_gather(ls = l, indices = [1]);"},
    {"list_gather", Opset::kIos15, kLast, "x[2]", "l = make_list(init_length = 3, dynamic_length = false, elem_shape = (const int32(2))); y = list_gather(ls = l, indices = [1, 1]);"},
    {"list_length", Opset::kIos15, kLast, "x[2]", "l = make_list(init_length = 3, elem_shape = (const int32(2))); m = list_write(ls = l, index = 4, value = x); y = list_length(ls = m);"},
    {"list_read", Opset::kIos15, kLast, "x[2]", "l = make_list(init_length = 3, elem_shape = (const int32(2))); y = list_read(ls = l, index = 1);"},
    {"list_scatter", Opset::kIos15, kLast, "x[2,2]", "l = make_list(init_length = 3, dynamic_length = false, elem_shape = (const int32(2))); m = list_scatter(ls = l, indices = [0, 2], value = x); y = list_read(ls = m, index = 1);"},
    {"list_write", Opset::kIos15, kLast, "x[2]", "l = make_list(init_length = 3, dynamic_length = false, elem_shape = (const int32(2))); m = list_write(ls = l, index = 1, value = x); y = list_read(ls = m, index = 1);"},
    {"read_state", Opset::kIos18, kLast, "s:state[2]", "y = read_state(input = s);"},
    {"write_state", Opset::kIos18, kLast, "x:fp16[2] s:state[2]", "write_state(input = s, data = x); y = read_state(input = s);"},
    {"range_1d", Opset::kIos15, kLast, "s[1]", "e = squeeze(x = s, axes = [0]); y = range_1d(start = 0.0, end = e, step = 1.0);"},
};
// clang-format on

inline std::vector<std::string> Words(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

struct OperatorSample {
  std::string op;
  Opset since, until;
  std::string text;  // of a program
};

inline std::string ProgramText(const OperatorCase& c) {
  std::string inputs;
  for (const std::string& word : Words(c.inputs)) {
    size_t colon = word.find(':'), bracket = word.find('[');
    std::string name = word.substr(0, std::min(colon, bracket));
    std::string dtype =
        colon < bracket ? word.substr(colon + 1, bracket - colon - 1) : std::string("fp32");
    bool state = dtype == "state";
    std::string type =
        fmt::format("tensor<{}, {}>", state ? "fp16" : dtype, std::string(word.substr(bracket)));
    if (state) type = fmt::format("state<{}>", type);
    inputs += fmt::format("{}{} {}", inputs.empty() ? "" : ", ", type, name);
  }
  // The parser selects the newest form with these parameters, so iOS18 suits all cases.
  return fmt::format("func main<ios18>({}) {{ {} }} -> ({});", inputs, c.body, c.outputs);
}

// Returns at least one sample for every form of every operator, except for classify.
inline std::vector<OperatorSample> OperatorSamples() {
  std::vector<OperatorSample> samples;
  auto add = [&](const OperatorCase& c) {
    samples.push_back({std::string(c.op), c.since, c.until, ProgramText(c)});
  };
  auto simple = [&](std::string_view names, std::string_view inputs, const char* body) {
    for (const std::string& op : Words(names))
      add({op, Opset::kIos15, kLast, inputs, fmt::format(fmt::runtime(body), op)});
  };
  simple(kUnary, "x[2,3]", "y = {}(x = x);");
  simple(kBinary, "a[2,3] b[2,3]", "y = {}(x = a, y = b);");
  simple(kComparisons, "a[2,3] b[2,3]", "c = {}(x = a, y = b); y = cast(x = c, dtype = \"fp32\");");
  simple(kLogic, "a[2,3] b[2,3]",
         "c = cast(x = a, dtype = \"bool\"); d = cast(x = b, dtype = \"bool\"); "
         "e = {}(x = c, y = d); y = cast(x = e, dtype = \"fp32\");");
  for (const OperatorCase& c : kOperatorCases) add(c);
  return samples;
}

}  // namespace mlc::test
