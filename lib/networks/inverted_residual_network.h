// lib/networks/inverted_residual_network.h - MobileNet (V1 to V4) and EfficientNet (V1, V2): blocks
// that expand channels, convolve each by itself, and reduce channels again (Sandler et al. 2018).
#pragma once

#include "lib/networks/picture_network.h"

namespace mlc::networks {

// Each layer of a block is left out if its width is 0.
struct InvertedBlock {
  int64_t start_kernel = 0;                    // a convolution of each channel before them; 0: none
  int64_t expanded = 0, expansion_kernel = 1;  // a convolution that expands the channels
  int64_t depthwise_kernel = 0;                // 0: none
  bool squeeze = false;                        // squeeze and excitation
  int64_t out = 0;                             // a convolution of 1 x 1 that reduces the channels
  bool activated = false;                      // it is followed by the activation
  // The depthwise convolution has them, or else the first convolution.
  int64_t stride = 1, dilation = 1;
  bool residual = false;  // the input is added to the output
  // Attention of so many queries per place with one key takes the place of all convolutions
  // (MobileNetV4); keys and values are those of a map smaller by the stride.
  int64_t heads = 0, key_stride = 1;
  Activation activation = Activation::kRelu6;
  PictureWindow::Padding padding = PictureWindow::Padding::kHalf;  // of the depthwise convolution
};

struct InvertedResidualConfig {
  int64_t stem = 0;  // width of a convolution of 3 x 3 with stride 2
  std::vector<InvertedBlock> blocks;
  int64_t head = 0;  // width of the last convolution, of 1 x 1; 0: there is none
  // The last convolution follows the mean, and has no norm (MobileNetV3), or has one (MobileNetV4).
  bool pooled_head = false, pooled_norm = false;
  bool pools_maximum = false;
  Activation activation = Activation::kRelu6;  // of stem and head
  Activation squeeze = Activation::kNone;  // inside of squeeze and excitation; kNone: the block's
  Activation gate = Activation::kSigmoid;  // behind it
  PictureWindow::Padding padding = PictureWindow::Padding::kHalf;  // of all but the blocks'
  double epsilon = 1e-5;
  PictureInput picture;
  int64_t labels = 0;     // 0: no classifier
  bool segments = false;  // the labels are those of segments (DeepLabV3+, Chen et al. 2018)
};

// Tensors: stem; block.N.start, .expand, .depthwise and .project; head: each has .conv and .norm
// (PictureNetwork::ConvNorm), but for a pooled head without a norm; block.N.squeeze.reduce and .expand;
// block.N.scale [C], if there is one, for the output; classifier. Attention has block.N.attention_norm,
// .query, .key, .value and .output, with a stride also .key_down, .key_norm, .value_down and .value_norm.
// Segments: segments.pool, segments.map and segments.join, with .conv and .norm; segments.classifier.
// Outputs of segments: logits [1, labels, h, w]; without a classifier: last_hidden_state [1, C, h, w],
// pooler_output [1, C].
Program BuildInvertedResidualNetwork(const InvertedResidualConfig& config,
                                     const NetworkWeights& weights, Diagnostics& diagnostics);

Value* InvertedResidual(PictureNetwork& net, const std::string& name, const InvertedBlock& block,
                        const InvertedResidualConfig& config, Value* x);

// Rounds a width to a multiple of the divisor, at least `least`, but not below `limit` of it
// (tensorflow/models, slim/nets/mobilenet, _make_divisible).
int64_t MakeDivisible(double width, int64_t divisor = 8, int64_t least = 0, double limit = 0.9);

}  // namespace mlc::networks
