#include "lib/analysis/input_ranges.h"

#include <algorithm>
#include <cmath>

#include "lib/analysis/constraint_propagation.h"
#include "lib/ir/port_index.h"
#include "lib/support/error.h"

namespace mlc::analysis {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Bounds = std::pair<double, double>;

// Returns the range of useful values of a type if the program does not restrict them.
Bounds Usual(DType dtype, bool opaque) {
  switch (dtype) {
    case DType::kUint8:
      return {0, 255};
    case DType::kInt8:
      return {-128, 127};
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
      return {0, 9};
    default:
      return {opaque ? 0 : -9, 9};
  }
}

InputRange IntegerRange(const OperandConstraint& constraint, DType dtype) {
  InputRange range;
  range.kind = InputRange::Kind::kInteger;
  range.why = constraint.why;
  range.parts = constraint.parts;
  for (Bounds& part : range.parts) part = {std::ceil(part.first), std::floor(part.second)};
  range.low = std::ceil(constraint.low);
  range.high = std::floor(constraint.high);
  if (std::isfinite(range.low) && std::isfinite(range.high)) {
    range.high = std::max(range.low, range.high);
    return range;
  }
  auto [low, high] = Usual(dtype, constraint.opaque);
  bool unsigned_type = low >= 0 && !constraint.opaque;
  // For 8-bit types without a larger scale, all values are generated.
  if (constraint.scale > (Bits(dtype) == 8 ? 1 : 0)) {
    low = std::floor(constraint.center - 2 * constraint.scale);
    high = std::ceil(constraint.center + 2 * constraint.scale);
  } else if (constraint.soft_low <= constraint.soft_high) {
    low = std::floor(constraint.soft_low);
    high = std::ceil(constraint.soft_high);
  } else if (!constraint.bounded()) {
    range.why.clear();
  }
  if (unsigned_type) low = std::max(low, 0.0);
  if (std::isfinite(range.low)) {
    range.high = std::max(range.low + 1, high);
  } else if (std::isfinite(range.high)) {
    range.low = std::min(low, range.high);
  } else {
    range.low = low;
    range.high = std::max(low, high);
  }
  return range;
}

// Returns whether scale and center are those of pixels: x / 255, (x - 127.5) / 128, x - 117.
bool AreImage(const OperandConstraint& constraint, int rank) {
  bool large = constraint.scale >= 32 && constraint.scale <= 300 && constraint.center >= -300 &&
               constraint.center <= 300;
  bool mean = constraint.scale < 32 && constraint.center >= 32 && constraint.center <= 200;
  return rank >= 3 && (large || mean);
}

InputRange FloatRange(const OperandConstraint& constraint, int rank) {
  InputRange range;
  range.why = constraint.why;
  range.low = constraint.low;
  range.high = constraint.high;
  if (std::isfinite(range.low) && std::isfinite(range.high)) {
    range.kind = InputRange::Kind::kReal;
    return range;
  }
  if (constraint.mask && !constraint.bounded()) {
    range.kind = InputRange::Kind::kMask;
    range.low = 0;
    range.high = 1;
    range.valid = constraint.valid;
    return range;
  }
  double low = kInfinity, high = -kInfinity;
  if (constraint.scale > 0) {
    bool image = AreImage(constraint, rank);
    low = image ? 0 : constraint.center - 2 * constraint.scale;
    high = image ? 255 : constraint.center + 2 * constraint.scale;
    if (image) range.why = "an image, according to its scale factor";
    if (range.why.empty()) range.why = "its scale factor";
  } else if (constraint.soft_low <= constraint.soft_high &&
             (constraint.soft_low < -3 || constraint.soft_high > 3)) {
    // Thresholds that N(0, 1) rarely reaches.
    low = std::max(-1e30, std::min(constraint.soft_low, constraint.soft_high - 2));
    high = std::min(1e30, constraint.soft_high);
  }
  if (low <= high) {
    range.kind = InputRange::Kind::kReal;
    range.low = std::max(range.low, low);
    range.high = std::max(range.low, std::min(range.high, high));
  } else if (!constraint.bounded()) {
    range.why.clear();
  }
  return range;
}

// Returns the first of the two spatial dimensions of an image: [.., channels, rows, columns] or
// [.., rows, columns, channels] with a plausible number of channels; -1 for other shapes.
int PictureAxis(const Dims& dims) {
  constexpr int64_t kLeastSide = 16;
  const auto rank = static_cast<int>(dims.size());
  if (rank < 3 || rank > 5) return -1;
  // [1, tokens, features] is not an image.
  auto channels = [&](int64_t size) { return (size == 1 && rank > 3) || size == 3 || size == 4; };
  auto sides = [&](int axis) { return dims[axis] >= kLeastSide && dims[axis + 1] >= kLeastSide; };
  if (channels(dims[rank - 3]) && sides(rank - 2)) return rank - 2;
  if (channels(dims[rank - 1]) && sides(rank - 3)) return rank - 3;
  return -1;
}

// Returns the dimension of frequencies, whose size is that of a Fourier transform of 2^n samples;
// -1 if there is none.
int SpectrumAxis(const Dims& dims) {
  constexpr int64_t kLeast = 65, kMost = 2049;
  for (int axis = std::ssize(dims) - 1; axis > 0; --axis)
    if (const int64_t size = dims[axis];
        size >= kLeast && size <= kMost && ((size - 1) & (size - 2)) == 0)
      return axis;
  return -1;
}

// Returns the dimension of size four in a one-hot encoded DNA sequence; -1 if there is none.
int OneHotAxis(const Dims& dims) {
  constexpr int64_t kLetters = 4, kLeastPlaces = 64;
  if (dims.size() != 3) return -1;
  if (dims[2] == kLetters && dims[1] >= kLeastPlaces) return 2;
  if (dims[1] == kLetters && dims[2] >= kLeastPlaces) return 1;
  return -1;
}

// Sets the correlation of elements, and a default range if the program restricts it too little.
void SetLook(const Dims& dims, const OperandConstraint& constraint, InputRange& range) {
  using Kind = InputRange::Kind;
  if (range.kind == Kind::kMask || !range.parts.empty()) return;
  if (const int axis = PictureAxis(dims); axis >= 0) {
    if (range.kind == Kind::kInteger && range.high - range.low < 200) return;
    range.look = InputRange::Look::kPicture;
    range.axis = axis;
    if (range.kind == Kind::kInteger || AreImage(constraint, static_cast<int>(dims.size()))) return;
    if (range.kind == Kind::kReal && constraint.bounded()) return;
    // Use [0, 1] for a mean and deviation such as those of ImageNet, otherwise a symmetric range.
    const bool unit = constraint.scale > 0 && constraint.scale <= 1 && constraint.center > 0.2 &&
                      constraint.center < 0.8;
    if (range.kind == Kind::kReal && !unit) return;
    range.kind = Kind::kReal;
    range.low = unit || std::isfinite(range.low) ? std::max(0.0, range.low) : -1;
    range.high = std::min(range.high, range.low + 2);
    if (unit) range.high = 1;
    return;
  }
  if (range.kind != Kind::kNormal || constraint.bounded()) return;
  if (const int axis = OneHotAxis(dims); axis >= 0) {
    range = {
        .kind = Kind::kReal, .low = 0, .high = 1, .look = InputRange::Look::kOneHot, .axis = axis};
  } else if (const int frequencies = SpectrumAxis(dims); frequencies >= 0) {
    range.look = InputRange::Look::kSpectrum;
    range.axis = frequencies;
  }
}

}  // namespace

std::string Describe(const InputRange& range) {
  if (range.look == InputRange::Look::kPicture)
    return fmt::format("pictures in {:g}..{:g}", range.low, range.high);
  if (range.look == InputRange::Look::kOneHot) return "one-hot rows";
  if (range.look == InputRange::Look::kSpectrum) return "spectra";
  if (range.kind == InputRange::Kind::kMask) return "0 or 1";
  if (range.kind != InputRange::Kind::kNormal)
    return fmt::format("{:g}..{:g}", range.low, range.high);
  if (std::isfinite(range.low)) return fmt::format("{:g} + |N(0, 1)|", range.low);
  if (std::isfinite(range.high)) return fmt::format("{:g} - |N(0, 1)|", range.high);
  return "N(0, 1)";
}

std::map<std::string, InputRange> InputRanges(const Function& function, const SymbolSizes& sizes) {
  std::unordered_map<const Value*, OperandConstraint> constraints =
      PropagateConstraints(function, sizes);
  auto want_of = [&](const Value* input) -> const OperandConstraint& { return constraints[input]; };
  std::map<std::string, InputRange> ranges;
  const PortIndex ports(function.inputs);
  for (const auto& input : function.body.inputs) {
    if (!input->type.is_tensor()) continue;
    InputRange& range = ranges[input->name];
    const Port* port = ports.Find(input->name);
    if (port && port->feature != Port::Feature::kMultiArray) {
      range = {.kind = InputRange::Kind::kInteger, .low = 0, .high = 255, .why = "an image"};
      SetLook(StaticDims(Sized(input->type, sizes).shape), want_of(input.get()), range);
      continue;
    }
    const OperandConstraint& constraint = want_of(input.get());
    DType dtype =
        port && port->source_dtype != DType::kNone ? port->source_dtype : input->type.dtype;
    bool truth = dtype == DType::kBool;
    if (truth || (constraint.mask && !constraint.bounded() && !IsFloat(dtype))) {
      range = {.kind = InputRange::Kind::kMask,
               .low = 0,
               .high = 1,
               .valid = constraint.valid,
               .why = constraint.why};
      if (truth && !constraint.mask) range.why.clear();
    } else {
      range = IsFloat(dtype) ? FloatRange(constraint, input->type.rank())
                             : IntegerRange(constraint, dtype);
      SetLook(StaticDims(Sized(input->type, sizes).shape), constraint, range);
    }
  }
  return ranges;
}

}  // namespace mlc::analysis
