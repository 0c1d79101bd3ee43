#include "lib/analysis/generated_inputs.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>

#include "lib/analysis/valid_sizes.h"
#include "lib/ir/port_index.h"
#include "lib/ir/random_tensor.h"
#include "lib/support/error.h"
#include "lib/support/philox.h"

namespace mlc::analysis {

namespace {

using Bounds = std::pair<double, double>;

constexpr double kWorkOfSamples = 2e9;
constexpr int kMostSamples = 16;
constexpr int64_t kLargestMultiple = 128;
constexpr int64_t kMostShuffled = int64_t{1} << 16;
// The streams of a seed: the lowest bits are the number of the input, then the sample, then the
// purpose.
constexpr uint64_t kSampleStride = uint64_t{1} << 20, kUseStride = uint64_t{1} << 40;

// Uniform random numbers of a stream, by index.
class Uniform {
 public:
  Uniform(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}
  // Returns a number in [0, 1).
  double Real(uint64_t index) const {
    PhiloxCounter words = Philox(seed_, stream_, index);
    return static_cast<double>(Bits(words) >> 11) * 0x1p-53;
  }
  // Returns a number in [0, n).
  uint64_t Below(uint64_t n, uint64_t index) const {
    return Bits(Philox(seed_, stream_, index)) % n;
  }

 private:
  static uint64_t Bits(const PhiloxCounter& words) { return uint64_t{words[0]} << 32 | words[1]; }
  uint64_t seed_, stream_;
};

// Returns 0 to n - 1 in random order.
std::vector<int64_t> Shuffled(int64_t n, const Uniform& random) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i, i)]);
  return order;
}

// Draws integers. A small range is permuted and used in order across elements and samples, so that
// every number occurs before one is repeated.
void DrawIntegers(const InputRange& range, const GeneratedInputOptions& options, uint64_t stream,
                  std::vector<double>& values) {
  size_t places = std::max<size_t>(range.parts.size(), 1);
  uint64_t own = stream + static_cast<uint64_t>(options.sample) * kSampleStride;
  for (size_t place = 0; place < places; ++place) {
    double low = range.low, high = range.high;
    if (!range.parts.empty()) std::tie(low, high) = range.parts[place];
    double span = std::min(high - low + 1, 0x1p62);
    Uniform order(options.seed, stream + (place + 2) * kUseStride), random(options.seed, own);
    std::vector<int64_t> shuffled;
    if (span <= static_cast<double>(kMostShuffled))
      shuffled = Shuffled(static_cast<int64_t>(span), order);
    uint64_t at = static_cast<uint64_t>(options.sample) * ((values.size() + places - 1) / places);
    for (size_t i = place; i < values.size(); i += places, ++at)
      values[i] =
          low + static_cast<double>(shuffled.empty()
                                        ? random.Below(static_cast<uint64_t>(span), i)
                                        : static_cast<uint64_t>(shuffled[at % shuffled.size()]));
  }
}

// In the mask of an attention each row is valid up to some length, or at random positions; any
// other mask is random.
void DrawMask(const InputRange& range, const GeneratedInputOptions& options, uint64_t stream,
              const Dims& dims, std::vector<double>& values) {
  uint64_t own = stream + static_cast<uint64_t>(options.sample) * kSampleStride;
  Uniform random(options.seed, own), choice(options.seed, own + kUseStride);
  size_t row = dims.empty() ? 1 : static_cast<size_t>(std::max<int64_t>(dims.back(), 1));
  if (range.valid < 0 && values.size() == 1) {  // both values occur
    values[0] = static_cast<double>(
        (Uniform(options.seed, stream).Below(2, 0) + static_cast<uint64_t>(options.sample)) % 2);
    return;
  }
  for (size_t begin = 0, r = 0; begin < values.size(); begin += row, ++r) {
    bool prefix = range.valid >= 0 && options.sample % 2 == 0;
    // The first row of a sample is entirely valid, so that distant positions are covered.
    size_t length = r == 0 ? row : 1 + choice.Below(row, 2 * r);
    size_t sure = choice.Below(row, 2 * r + 1);
    for (size_t i = 0; i < row; ++i) {
      bool taken = prefix ? i < length : random.Below(4, begin + i) != 0 || i == sure;
      if (range.valid < 0) taken = random.Below(2, begin + i) != 0;
      values[begin + i] = (taken ? 1 : 0) == (range.valid == 0 ? 0 : 1) ? 1 : 0;
    }
    if (range.valid < 0 && row > 1) {
      values[begin + sure] = 1;
      values[begin + (sure + 1) % row] = 0;
    }
  }
}

// Draws a few waves over rows and columns, weighted differently per channel, with a little noise.
void DrawPicture(const InputRange& range, const Dims& dims, const Uniform& random,
                 std::vector<double>& values) {
  constexpr int kWaves = 4;
  constexpr double kCycles = 3, kNoise = 0.05;
  const int64_t rows = dims[range.axis], columns = dims[range.axis + 1];
  int64_t outer = 1, inner = 1;  // channels come before or after
  for (int axis = 0; axis < std::ssize(dims); ++axis)
    if (axis != range.axis && axis != range.axis + 1)
      (axis < range.axis ? outer : inner) *= dims[axis];
  uint64_t drawn = values.size();  // indices after those of the noise
  struct Wave {
    std::vector<std::pair<double, double>> row, column;  // cosine and sine
  };
  auto circle = [&](double cycles, double phase, int64_t count) {
    std::vector<std::pair<double, double>> points;
    for (int64_t i = 0; i < count; ++i) {
      const double angle = 2 * std::numbers::pi *
                           (cycles * static_cast<double>(i) / static_cast<double>(count) + phase);
      points.emplace_back(std::cos(angle), std::sin(angle));
    }
    return points;
  };
  std::vector<Wave> waves;
  for (int i = 0; i < kWaves; ++i) {
    const double down = kCycles * random.Real(drawn++), across = kCycles * random.Real(drawn++);
    const double phase = random.Real(drawn++);
    waves.push_back({circle(down, phase, rows), circle(across, 0, columns)});
  }
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < inner; ++k) {
      double parts[kWaves], sum = 0;
      for (double& part : parts) sum += part = 0.2 + random.Real(drawn++);
      for (int64_t y = 0; y < rows; ++y)
        for (int64_t x = 0; x < columns; ++x) {
          double at = 0;
          for (int i = 0; i < kWaves; ++i) {
            const auto [rc, rs] = waves[i].row[y];
            const auto [cc, cs] = waves[i].column[x];
            at += parts[i] * (rc * cc - rs * cs);
          }
          const int64_t index = ((o * rows + y) * columns + x) * inner + k;
          const double noise = kNoise * (2 * random.Real(static_cast<uint64_t>(index)) - 1);
          const double share = std::clamp(0.5 + 0.5 * at / sum + noise, 0.0, 1.0);
          values[index] = range.low + (range.high - range.low) * share;
        }
    }
}

// Sets one element of each row along the axis to 1.
void DrawOneHot(const InputRange& range, const Dims& dims, const Uniform& random,
                std::vector<double>& values) {
  const int64_t count = dims[range.axis];
  int64_t inner = 1;
  for (int axis = range.axis + 1; axis < std::ssize(dims); ++axis) inner *= dims[axis];
  const int64_t rows = static_cast<int64_t>(values.size()) / count;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = static_cast<int64_t>(random.Below(static_cast<uint64_t>(count), row));
    values[(row / inner * count + at) * inner + row % inner] = 1;
  }
}

// Scales values by 1 at the first frequency down to a thousandth at the last.
void Decay(const InputRange& range, const Dims& dims, std::vector<double>& values) {
  const int64_t count = dims[range.axis];
  int64_t inner = 1;
  for (int axis = range.axis + 1; axis < std::ssize(dims); ++axis) inner *= dims[axis];
  std::vector<double> sizes;
  for (int64_t i = 0; i < count; ++i)
    sizes.push_back(std::exp2(-10.0 * static_cast<double>(i) / static_cast<double>(count)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] *= sizes[static_cast<size_t>(static_cast<int64_t>(i) / inner % count)];
}

Tensor Draw(DType dtype, const Dims& dims, const InputRange& range,
            const GeneratedInputOptions& options, uint64_t stream) {
  if (dtype == DType::kString || Bits(dtype) % 8 != 0)
    throw Error("unsupported-dtype", "cannot generate random values of type {}", Name(dtype));
  uint64_t own = stream + static_cast<uint64_t>(options.sample) * kSampleStride;
  if (range.look != InputRange::Look::kNoise) {
    std::vector<double> values(static_cast<size_t>(ElementCount(dims)));
    const Uniform random(options.seed, own);
    if (range.look == InputRange::Look::kPicture) {
      DrawPicture(range, dims, random, values);
      if (range.kind == InputRange::Kind::kInteger)
        for (double& value : values) value = std::nearbyint(value);
    } else if (range.look == InputRange::Look::kOneHot) {
      DrawOneHot(range, dims, random, values);
    } else {
      values = RandomTensor(DType::kFp32, dims, options.seed, own).Doubles();
      Decay(range, dims, values);
    }
    return Tensor::Of<double>(dims, values).Cast(dtype);
  }
  if (range.kind == InputRange::Kind::kNormal && !std::isfinite(range.low) &&
      !std::isfinite(range.high))
    return RandomTensor(dtype, dims, options.seed, own);
  std::vector<double> values(static_cast<size_t>(ElementCount(dims)));
  switch (range.kind) {
    case InputRange::Kind::kNormal: {
      Tensor normal = RandomTensor(DType::kFp32, dims, options.seed, own);
      bool up = std::isfinite(range.low);
      for (size_t i = 0; i < values.size(); ++i) {
        double size = std::fabs(normal.Double(static_cast<int64_t>(i)));
        values[i] = up ? range.low + size : range.high - size;
      }
      break;
    }
    case InputRange::Kind::kReal: {
      Uniform random(options.seed, own);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = range.low + (range.high - range.low) * random.Real(i);
      break;
    }
    case InputRange::Kind::kInteger:
      DrawIntegers(range, options, stream, values);
      break;
    case InputRange::Kind::kMask:
      DrawMask(range, options, stream, dims, values);
      break;
  }
  return Tensor::Of<double>(dims, values).Cast(dtype);
}

// A dynamic dimension of an input.
struct Open {
  std::string name;
  int64_t low, high;
  std::vector<int64_t> listed;
  // Returns the size at a fraction of the way from low to high, on a logarithmic scale.
  int64_t At(double fraction) const {
    if (!listed.empty())
      return listed[static_cast<size_t>(fraction * static_cast<double>(listed.size() - 1))];
    double ratio = static_cast<double>(high) / static_cast<double>(low);
    double size = static_cast<double>(low) * std::pow(ratio, fraction);
    return std::clamp(static_cast<int64_t>(size), low, high);
  }
};

// Returns the input with enumerated shapes, or null.
const Port* Listed(const Function& function) {
  for (const Port& port : function.inputs)
    if (!port.enumerated_shapes.empty()) return &port;
  return nullptr;
}

// Returns the caller's setting for an input, by either of its names, or null.
template <class T>
const T* Said(const std::map<std::string, T>& said, const Value& input, const Port* port) {
  auto it = said.find(input.name);
  if (it == said.end() && port) it = said.find(port->source_name);
  return it == said.end() ? nullptr : &it->second;
}

// The sizes of all symbols of a function: those of inputs depend on the sample, others have their
// lower bounds.
class Sizes {
 public:
  Sizes(const Function& function, const std::map<std::string, Tensor>& given,
        const GeneratedInputOptions& options)
      : function_(function) {
    for (const auto& [name, symbol] : function.symbols) low_[name] = symbol.low;
    const PortIndex ports(function.inputs);
    for (const auto& input : function.body.inputs) {
      if (!input->type.is_tensor()) continue;
      if (const Dims* shape = Said(options.shapes, *input, ports.Find(input->name)))
        Fix(input->type.shape, *shape, low_);
      if (auto it = given.find(input->name); it != given.end())
        Fix(input->type.shape, it->second.dims(), low_);
    }
    if (fixed_.empty())
      for (const auto& [name, size] :
           options.smallest.empty() ? SmallestSizes(function) : options.smallest)
        low_[name] = size;
    for (const auto& input : function.body.inputs) {
      if (!input->type.is_tensor() || given.contains(input->name)) continue;
      std::vector<std::string> names;
      for (const Dim& dim : input->type.shape) dim.CollectSymbols(names);
      for (const std::string& name : names) {
        if (fixed_.contains(name) || !seen_.insert(name).second) continue;
        auto known = function.symbols.find(name);
        if (known == function.symbols.end()) continue;
        open_.push_back(
            {name, low_[name], std::max(low_[name], known->second.high), known->second.enumerated});
      }
    }
    if (const Port* port = Listed(function); port && !given.contains(port->name)) shapes_ = port;
  }

  SymbolSizes Of(const GeneratedInputOptions& options) {
    if (open_.empty()) return low_;
    if (options.sample == 0) return At(std::vector<double>(open_.size(), 0));
    double most = 0, step = 1;
    if (Fits(At(std::vector<double>(open_.size(), 1)), options.most_work))
      most = 1;
    else
      for (int i = 0; i < 12; ++i) {
        step /= 2;
        if (Fits(At(std::vector<double>(open_.size(), most + step)), options.most_work))
          most += step;
      }
    std::vector<double> fractions(open_.size(), most);
    Uniform random(options.seed, 3 * kUseStride + static_cast<uint64_t>(options.sample));
    for (size_t i = 0; options.sample > 1 && i < open_.size(); ++i) fractions[i] *= random.Real(i);
    SymbolSizes sizes = At(fractions), least = At(std::vector<double>(open_.size(), 0));
    for (int64_t multiple = 1; multiple <= kLargestMultiple; multiple *= 2) {
      for (const Open& open : open_)
        if (open.listed.empty())
          sizes[open.name] = std::max(sizes[open.name] / multiple * multiple, open.low);
      if (Computes(sizes)) return sizes;
    }
    return least;
  }

 private:
  // Derives symbols that form a dimension alone, or with an offset, from the tensor's sizes.
  void Fix(const Shape& shape, const Dims& dims, SymbolSizes& sizes) {
    if (shape.size() != dims.size()) return;
    for (size_t d = 0; d < dims.size(); ++d)
      if (auto open = shape[d].symbol_and_offset()) {
        sizes[open->first] = dims[d] - open->second;
        fixed_.insert(open->first);
      }
  }

  SymbolSizes At(const std::vector<double>& fractions) {
    SymbolSizes sizes = low_;
    for (size_t i = 0; i < open_.size(); ++i) sizes[open_[i].name] = open_[i].At(fractions[i]);
    if (!shapes_) return sizes;
    std::vector<Dims> listed = shapes_->enumerated_shapes;
    std::sort(listed.begin(), listed.end(),
              [](const Dims& a, const Dims& b) { return ElementCount(a) < ElementCount(b); });
    const Dims& dims =
        listed[static_cast<size_t>(fractions[0] * static_cast<double>(listed.size() - 1))];
    for (const auto& input : function_.body.inputs)
      if (input->name == shapes_->name) Fix(input->type.shape, dims, sizes);
    return sizes;
  }

  // Checks that the sizes are valid: down- and upsampling requires multiples.
  bool Computes(SymbolSizes sizes) const {
    std::erase_if(sizes, [&](const auto& size) {
      return !seen_.contains(size.first) && !fixed_.contains(size.first);
    });
    return !SizeError(function_, sizes);
  }

  bool Fits(const SymbolSizes& sizes, double most_work) const {
    Cost cost = CostOf(function_, sizes);
    return cost.multiply_adds < most_work &&
           kWorkOfElement * (cost.elements + cost.inputs) < most_work;
  }

  const Function& function_;
  SymbolSizes low_;
  std::set<std::string> fixed_, seen_;
  std::vector<Open> open_;
  const Port* shapes_ = nullptr;
};

Dims DimsOf(const Value& input, const Port* port, const SymbolSizes& sizes) {
  Dims dims;
  for (const Dim& dim : input.type.shape) {
    std::optional<int64_t> size = dim.Evaluate(sizes);
    if (!size)
      throw Error("input-shape", "input \"{}\" has an unknown size",
                  port ? port->source_name : input.name);
    dims.push_back(*size);
  }
  return dims;
}

}  // namespace

GeneratedInputs GenerateInputs(const Function& function, const std::map<std::string, Tensor>& given,
                               const GeneratedInputOptions& options) {
  SymbolSizes sizes = Sizes(function, given, options).Of(options);
  std::map<std::string, InputRange> ranges = InputRanges(function, sizes);
  GeneratedInputs made;
  const PortIndex ports(function.inputs);
  uint64_t number = 0;
  for (const auto& input : function.body.inputs) {
    if (!input->type.is_tensor()) continue;
    uint64_t stream = number++;
    if (given.contains(input->name)) continue;
    const Port* port = ports.Find(input->name);
    Dims dims = DimsOf(*input, port, sizes);
    InputRange range = ranges.at(input->name);
    DType dtype =
        port && port->source_dtype != DType::kNone ? port->source_dtype : input->type.dtype;
    if (const Bounds* said = Said(options.ranges, *input, port)) {
      bool whole = !IsFloat(dtype) || (port && port->feature != Port::Feature::kMultiArray);
      range = {
          .kind = whole ? InputRange::Kind::kInteger : InputRange::Kind::kReal,
          .low = said->first,
          .high = said->second,
          .look = range.look == InputRange::Look::kPicture ? range.look : InputRange::Look::kNoise,
          .axis = range.axis,
          .why = "as requested"};
    } else if (port && port->default_value && options.sample % 2 == 0) {
      made.tensors[input->name] = Tensor::Full(input->type.dtype, dims, *port->default_value);
      continue;
    }
    made.tensors[input->name] = Draw(dtype, dims, range, options, stream).Cast(input->type.dtype);
    made.ranges[input->name] = std::move(range);
  }
  return made;
}

std::map<std::string, Dims> GeneratedShapes(const Function& function,
                                            const std::map<std::string, Tensor>& given,
                                            const GeneratedInputOptions& options) {
  SymbolSizes sizes = Sizes(function, given, options).Of(options);
  std::map<std::string, Dims> shapes;
  const PortIndex ports(function.inputs);
  for (const auto& input : function.body.inputs)
    if (input->type.is_tensor() && !given.contains(input->name))
      shapes[input->name] = DimsOf(*input, ports.Find(input->name), sizes);
  return shapes;
}

SymbolSizes GeneratedSizes(const Function& function, const std::map<std::string, Tensor>& given,
                           const GeneratedInputOptions& options) {
  return Sizes(function, given, options).Of(options);
}

int DefaultSamples(const Function& function) {
  double work = CostOf(function, GeneratedSizes(function, {}, {})).multiply_adds;
  return static_cast<int>(
      std::clamp(kWorkOfSamples / std::max(work, 1.0), 2.0, double{kMostSamples}));
}

}  // namespace mlc::analysis
