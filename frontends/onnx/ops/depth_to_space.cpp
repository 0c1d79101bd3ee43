// DepthToSpace, SpaceToDepth and Col2Im.

#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"

namespace mlc::onnx {

namespace {

int64_t BlockSize(Node& node) {
  int64_t size = node.Int("blocksize");
  constexpr int64_t kSane = 1 << 15;
  if (node.rank() != 4)
    node.Fail("bad-operand", "the input is {}, expected 4 dimensions", ToString(node.shape()));
  if (size < 1 || size > kSane) node.Fail("bad-attribute", "invalid blocksize {}", size);
  return size;
}

void DepthToSpace(Node& node) {
  int64_t size = BlockSize(node);
  std::string mode = node.opset() >= 11 ? node.String("mode", "DCR") : "DCR";
  if (mode != "DCR" && mode != "CRD") node.Unsupported("mode", "unknown mode \"{}\"", mode);
  node.SetAlike(mode == "DCR"
                    ? node.Make("depth_to_space", {{"x", node.In(0)}, {"block_size", size}})
                    : node.Make("pixel_shuffle", {{"x", node.In(0)}, {"upscale_factor", size}}));
}

void SpaceToDepth(Node& node) {
  int64_t size = BlockSize(node);
  node.SetAlike(node.Make("space_to_depth", {{"x", node.In(0)}, {"block_size", size}}));
}

// Sums overlapping blocks [n, c * block, positions] into images [n, c, image...]. The positions of
// all elements in the flat image are constant, so this is one scatter. Elements in the padding go
// to an additional last element, which is cut off.
void Col2Im(Node& node) {
  node.WantConstants({{1, "image_shape"}, {2, "block_shape"}});
  std::vector<int64_t> image = node.ConstantInts(1, "image_shape");
  std::vector<int64_t> block = node.ConstantInts(2, "block_shape");
  size_t spatial = image.size();
  std::vector<int64_t> strides = node.Ints("strides", std::vector<int64_t>(spatial, 1));
  std::vector<int64_t> dilations = node.Ints("dilations", std::vector<int64_t>(spatial, 1));
  std::vector<int64_t> pads = node.Ints("pads", std::vector<int64_t>(2 * spatial, 0));
  const Shape& shape = node.shape(0);
  if (shape.size() != 3 || !IsStatic(shape))
    node.Fail("bad-operand", "the input is {}, expected three constant dimensions",
              ToString(shape));
  if (spatial == 0 || block.size() != spatial || strides.size() != spatial ||
      dilations.size() != spatial || pads.size() != 2 * spatial)
    node.Fail("bad-operand",
              "image_shape, block_shape and the attributes have different numbers of dimensions");
  Dims counts, columns = StaticDims(shape);
  constexpr int64_t kSane = 1 << 24;
  for (size_t i = 0; i < spatial; ++i) {
    for (int64_t value : {image[i], block[i], strides[i], dilations[i]})
      if (value < 1 || value > kSane)
        node.Fail("bad-operand", "invalid size {} in image_shape, block_shape or the attributes",
                  value);
    int64_t room = image[i] + pads[i] + pads[spatial + i] - dilations[i] * (block[i] - 1) - 1;
    if (room < 0) node.Fail("bad-operand", "the block is larger than the padded image");
    counts.push_back(room / strides[i] + 1);
  }
  int64_t pixels = ElementCount(image), taps = ElementCount(block);
  if (columns[1] % taps != 0 || columns[2] != ElementCount(counts))
    node.Fail("bad-operand", "the input is {}, expected blocks of {} elements at {} positions",
              ToString(shape), taps, ElementCount(counts));
  std::vector<int64_t> places;
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t position = 0; position < columns[2]; ++position) {
      int64_t place = 0, stride = 1, t = tap, p = position;
      for (size_t i = spatial; i-- > 0; stride *= image[i]) {
        int64_t at = p % counts[i] * strides[i] + t % block[i] * dilations[i] - pads[i];
        if (place == pixels || at < 0 || at >= image[i])
          place = pixels;
        else
          place += at * stride;
        p /= counts[i];
        t /= block[i];
      }
      places.push_back(place);
    }
  int64_t channels = columns[1] / taps;
  Value* updates = WithShape(node, node.In(0), {columns[0], channels, taps * columns[2]});
  Value* zeros =
      node.Const(Tensor::Full(updates->type.dtype, {columns[0], channels, pixels + 1}, 0));
  Value* sums = node.Make("scatter", {{"data", zeros},
                                      {"indices", Tensor::Vector(places)},
                                      {"updates", updates},
                                      {"axis", 2},
                                      {"mode", "add"}});
  Value* flat = SliceOfSize(node, sums, {0, 0, 0}, {columns[0], channels, pixels});
  std::vector<int64_t> result = {columns[0], channels};
  result.insert(result.end(), image.begin(), image.end());
  node.SetAlike(node.Make("reshape", {{"x", flat}, {"shape", Tensor::Vector(result)}}));
}

constexpr NodeRow kDepthToSpaceRows[] = {
    {"Col2Im", Col2Im, 18},
    NodeRow("DepthToSpace", DepthToSpace).Direct(),
    NodeRow("SpaceToDepth", SpaceToDepth).Direct(),
};

}  // namespace

std::span<const NodeRow> DepthToSpaceRows() { return kDepthToSpaceRows; }

}  // namespace mlc::onnx
