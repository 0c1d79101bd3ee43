#include "lib/compress/quantise.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>

#include "lib/compress/assignment.h"
#include "lib/compress/block_sums.h"
#include "lib/compress/scales.h"
#include "lib/compress/sparsity.h"
#include "lib/compress/tables.h"
#include "lib/compress/vectors.h"
#include "lib/compress/weight_view.h"
#include "lib/ir/block_grid.h"
#include "lib/ir/encoding.h"
#include "lib/support/error.h"
#include "lib/support/threads.h"

namespace mlc::compress {

namespace {

using Values = Scheme::Values;

DType IndexType(int bits) {
  switch (bits) {
    case 1:
      return DType::kUint1;
    case 2:
      return DType::kUint2;
    case 3:
      return DType::kUint3;
    case 4:
      return DType::kUint4;
    case 6:
      return DType::kUint6;
    default:
      return DType::kUint8;
  }
}

double GreatestOf(std::span<const float> numbers) {
  double greatest = 0;
  for (const float x : numbers) greatest = std::max(greatest, std::fabs(static_cast<double>(x)));
  return greatest;
}

// How the inputs of a weight are used.
enum class Use : uint8_t { kNone, kImportance, kAssign };

class Quantiser {
 public:
  Quantiser(const Tensor& weight, const Request& request, Use use)
      : weight_(Dense(weight)),
        request_(request),
        use_(use),
        scheme_(LegalScheme(request.scheme, weight.dims(), request.axes, &result_.stepped)),
        axes_(LegalAxes(scheme_, weight.dims(), request.axes, request.target, &result_.stepped)) {
    result_.tensor = weight;
    result_.used = scheme_;
    if (weighted()) {
      double sum = 0;
      for (const float square : request.inputs->square) sum += static_cast<double>(square);
      least_importance_ = std::max(
          static_cast<float>(sum / static_cast<double>(request.inputs->square.size()) * 1e-4),
          1e-30F);
    }
    const bool narrow = weight.dtype() == DType::kFp16;
    stored_ = narrow ? Stored::kFp16 : request.half ? Stored::kFp16Digits : Stored::kFp32;
  }

  Quantised Run() {
    source_ = weight_;
    if (scheme_.sparse()) Prune();
    if (!result_.refused.empty()) return std::move(result_);
    std::optional<Encoding> values;
    switch (scheme_.values) {
      case Values::kKept:
      case Values::kAuto:  // its choice is made before
        return std::move(result_);
      case Values::kPlain:
        if (!scheme_.sparse()) {
          result_.tensor = weight_;
          result_.bytes = ByteCount(number_type(), weight_.size());
          return std::move(result_);
        }
        if (use_ == Use::kAssign) Compensate();
        break;
      case Values::kInteger:
        values = Integers();
        break;
      case Values::kPalette:
        values = scheme_.vector > 1 ? Vectors() : Palette();
        break;
    }
    if (!result_.refused.empty()) return std::move(result_);
    Finish(std::move(values));
    return std::move(result_);
  }

 private:
  DType number_type() const {
    return request_.half || weight_.dtype() == DType::kFp16 ? DType::kFp16 : DType::kFp32;
  }
  // The dtype of the scales and tables, and of the values that are computed from them.
  DType encoded_type() const { return stored_ == Stored::kFp16 ? DType::kFp16 : DType::kFp32; }
  int64_t number_bytes() const { return number_type() == DType::kFp16 ? 2 : 4; }

  bool weighted() const { return use_ != Use::kNone; }

  void Refuse() { result_.refused = "it contains NaN or infinity"; }

  // Returns the importance of the elements of whole rows, from one in the middle of the weight on.
  std::span<const float> ImportanceOf(int64_t first, int64_t count, int64_t columns,
                                      std::vector<float>& buffer) const {
    if (!weighted()) return {};
    const InputStatistics& inputs = *request_.inputs;
    const int64_t set_size = weight_.size() / inputs.sets;
    buffer.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = first + i, c = at / set_size * columns + at % columns;
      const float mean = request_.bias ? inputs.mean[c] : 0;
      // Inputs that were always 0 may be different some day.
      buffer[i] = std::max(inputs.square[c] - mean * mean, least_importance_);
    }
    return buffer;
  }

  void Prune() {
    const WeightView view(weight_, axes_, false);
    std::vector<float> roots;
    if (weighted() && request_.inputs->sets == 1) {
      ImportanceOf(0, view.columns(), view.columns(), roots);
      for (float& root : roots) root = std::sqrt(root);
    }
    Tensor mask = MaskOfLargest(view, scheme_, roots);
    if (use_ == Use::kAssign) {
      const Tensor bytes = mask.Cast(DType::kUint8);
      kept_in_view_.resize(static_cast<size_t>(bytes.size()));
      bytes.Read(0, bytes.size(), reinterpret_cast<std::byte*>(kept_in_view_.data()));
    }
    mask_ = view.Stored(mask).InMemory();
    source_ = Masked(weight_, mask_);
    const Tensor masked = view.tensor();
    const Sums sums =
        ForCells(masked, 1, request_.threads, [&](int64_t first, std::span<const float> numbers) {
          std::vector<std::byte> set(numbers.size());
          std::vector<float> zeroed(numbers.begin(), numbers.end()), buffer;
          const Tensor kept = Masked(masked, mask);
          const std::vector<float> left =
              ReadFloats(kept, first, static_cast<int64_t>(numbers.size()));
          for (size_t i = 0; i < left.size(); ++i) zeroed[i] -= left[i];
          const auto importance =
              ImportanceOf(first, static_cast<int64_t>(numbers.size()), view.columns(), buffer);
          return Sums{.error = SumOfSquares(zeroed, importance),
                      .energy = SumOfSquares(numbers, importance),
                      .finite = AllFinite(numbers)};
        });
    pruned_ = sums.error;
    whole_ = sums.energy;
    if (!sums.finite) Refuse();
    kept_ = CountSet(mask_, 0, mask_.size());
  }

  // The grid of the view: one cell per `block` inputs (0: all) of each `group` rows (0: all).
  Dims GridOf(const WeightView& view, int64_t group, int64_t block, bool whole) const {
    Dims grid(view.tensor().rank(), 1);
    if (whole) return grid;
    const int batch = view.batch();
    for (int d = 0; d < batch; ++d) grid[d] = view.size(d);
    grid[batch] = view.size(batch) / group;
    if (block > 0) grid[batch + 1] = view.size(batch + 1) / block;
    return grid;
  }

  // ---- integers

  std::optional<Encoding> Integers() {
    const compress::Integers integers{scheme_.bits, scheme_.asymmetric};
    const WeightView view(source_, axes_, false);
    const bool whole = scheme_.block == Scheme::kTensor;
    const Dims grid = GridOf(view, 1, scheme_.block, whole);
    const int64_t cells = ElementCount(grid), cell = weight_.size() / cells;
    std::vector<float> scales(static_cast<size_t>(cells)), zeros, narrow;
    if (scheme_.asymmetric) zeros.resize(scales.size());
    const bool undecided = stored_ == Stored::kFp16Digits;
    if (undecided) narrow.resize(scales.size());
    Sums sums;
    if (whole) {
      sums = WholeScale(view, integers, scales[0], zeros);
      if (undecided) narrow[0] = RoundedScale(Stored::kFp16, scales[0]);
      sums.other_error = narrow.empty() || narrow[0] == scales[0] ? sums.error : 1e300;
    } else {
      sums = ForCells(
          view.tensor(), cell, request_.threads,
          [&](int64_t first, std::span<const float> numbers) {
            Sums sum{.finite = AllFinite(numbers)};
            if (!sum.finite) return sum;
            std::vector<float> buffer;
            const auto importance =
                ImportanceOf(first * cell, std::ssize(numbers), view.columns(), buffer);
            const auto size = static_cast<size_t>(cell);
            std::vector<Scale> best(numbers.size() / size);
            BestScales(numbers, importance, size, integers, stored_, best);
            sum.energy = SumOfSquares(numbers, importance);
            for (size_t i = 0; i < best.size(); ++i) {
              scales[first + i] = best[i].scale;
              if (!zeros.empty()) zeros[first + i] = best[i].zero;
              sum.error += best[i].error;
              if (!undecided) continue;
              // The precision of fp16 is chosen for all scales or for none.
              const Scale half{RoundedScale(Stored::kFp16, best[i].scale), best[i].zero};
              narrow[first + i] = half.scale;
              auto block = [&](std::span<const float> of) {
                return of.empty() ? of : of.subspan(i * size, size);
              };
              sum.other_error += half.scale == best[i].scale
                                     ? best[i].error
                                     : ErrorOf(block(numbers), block(importance), half, integers);
            }
            return sum;
          });
    }
    if (!sums.finite) return Refuse(), std::nullopt;
    if (undecided) {
      constexpr double kTolerated = 1.05;
      const bool fits = std::ranges::all_of(narrow, [&](float scale) {
        return std::fabs(scale) * (integers.high() - integers.low()) < kGreatestHalf;
      });
      if (fits && sums.other_error <= kTolerated * sums.error) {
        stored_ = Stored::kFp16;
        scales.swap(narrow);
        sums.error = sums.other_error;
      }
    }
    std::optional<Assigned> assigned;
    if (use_ == Use::kAssign) {
      Levels levels{.cells_per_row = whole ? 1 : std::max<int64_t>(cells / view.rows(), 1),
                    .rows_per_cell = whole ? view.rows() : 1,
                    .integers = integers,
                    .scales = std::move(scales),
                    .zeros = zeros};
      assigned = AssignIn(view, levels);
      scales = std::move(levels.scales);
    }
    result_.error = sums.error;
    result_.energy = sums.energy;
    const DType data_type = scheme_.asymmetric ? (scheme_.bits == 8 ? DType::kUint8 : DType::kUint4)
                                               : (scheme_.bits == 8 ? DType::kInt8 : DType::kInt4);
    const DType held = scheme_.asymmetric ? DType::kUint8 : DType::kInt8;
    Encoding e{.form = Encoding::Form::kAffine, .dtype = encoded_type()};
    e.scale = view.Stored(Tensor::Of(grid, scales).Cast(encoded_type())).InMemory();
    if (scheme_.asymmetric)
      e.offset = view.Stored(Tensor::Of(grid, zeros).Cast(DType::kUint8)).InMemory();
    // Scales of small blocks are numerous, and stay in fp16.
    const Tensor scale = e.scale.Cast(DType::kFp32),
                 offset = e.offset ? e.offset.Cast(DType::kFp32) : Tensor();
    const BlockGrid blocks(weight_.dims(), e.scale.dims());
    const Tensor source = source_;
    const Tensor data = Tensor::Lazy(
        held, weight_.dims(),
        [=](int64_t first, int64_t count, std::byte* out) {
          constexpr int64_t kCells = 256;
          std::array<float, kCells> cell_scales = {}, cell_zeros = {};
          const std::vector<float> numbers = ReadFloats(source, first, count);
          blocks.Rows(first, count, [&](int64_t i, int64_t n, int64_t at, int64_t used) {
            const int64_t block = blocks.block();
            while (n > 0) {
              const int64_t cells = std::min((used + n + block - 1) / block, kCells),
                            run = std::min(n, cells * block - used);
              scale.Read(at, cells, reinterpret_cast<std::byte*>(cell_scales.data()));
              if (offset) offset.Read(at, cells, reinterpret_cast<std::byte*>(cell_zeros.data()));
              ToIntegers(
                  {&numbers[i - first], static_cast<size_t>(run)},
                  {cell_scales, cell_zeros, static_cast<size_t>(block), static_cast<size_t>(used)},
                  integers, out + (i - first));
              i += run, n -= run, at += cells, used = 0;
            }
          });
        },
        source);
    if (e.offset) e.offset = e.offset.Cast(data_type);
    SetData(e, assigned ? CodesIn(view, *assigned, held) : data, data_type);
    result_.bytes += static_cast<uint64_t>(cells * number_bytes()) +
                     (e.offset ? ByteCount(data_type, cells) : 0);
    return e;
  }

  // One scale for the weight, chosen from its distinct values.
  Sums WholeScale(const WeightView& view, const compress::Integers& integers, float& scale,
                  std::vector<float>& zeros) {
    const Points points = PointsOfAll(view);
    std::vector<float> numbers(points.values.begin(), points.values.end()),
        weights(points.weights.begin(), points.weights.end());
    if (!points.finite) return {.finite = false};
    Scale best;
    BestScales(numbers, weights, numbers.size(), integers, stored_, {&best, 1});
    scale = best.scale;
    if (!zeros.empty()) zeros[0] = best.zero;
    return {.error = points.inside + best.error, .energy = SumOfSquares(numbers, weights)};
  }

  // ---- palettes

  // The distinct values of the whole weight.
  Points PointsOfAll(const WeightView& view) const {
    const Tensor& tensor = view.tensor();
    const bool halves = tensor.dtype() == DType::kFp16 && !weighted();
    const int exponent = tensor.dtype() == DType::kFp16 ? 0 : ExponentFor(Greatest(tensor));
    constexpr int64_t kParts = 4, kChunk = int64_t{1} << 16;
    const int64_t part = (tensor.size() + kParts - 1) / kParts;
    std::vector<PointCounter> counters(kParts, PointCounter(exponent, !scheme_.sparse()));
    ParallelFor(kParts, request_.threads, [&](int64_t p) {
      const int64_t end = std::min((p + 1) * part, tensor.size());
      const int64_t chunk = std::max(tensor.BlockElements(kChunk * 4), kChunk);
      std::vector<uint16_t> bits;
      std::vector<float> buffer;
      for (int64_t first = p * part; first < end; first += chunk) {
        const int64_t count = std::min(chunk, end - first);
        if (halves) {
          bits.resize(static_cast<size_t>(count));
          tensor.Read(first, count, reinterpret_cast<std::byte*>(bits.data()));
          counters[p].AddHalves(bits);
        } else {
          counters[p].Add(ReadFloats(tensor, first, count),
                          ImportanceOf(first, count, view.columns(), buffer));
        }
        tensor.Release(first, count);
      }
    });
    for (int64_t p = 1; p < kParts; ++p) counters[0].Add(std::move(counters[p]));
    return counters[0].Take();
  }

  static double Greatest(const Tensor& tensor) {
    const Tensor::Range range = tensor.range();
    return std::max(std::fabs(range.low), std::fabs(range.high));
  }

  std::optional<Encoding> Palette() {
    Tensor row_scales;
    if (scheme_.row_scale) {
      row_scales = RowScales();
      if (!result_.refused.empty()) return std::nullopt;
    }
    const WeightView view(source_, axes_, scheme_.input_groups);
    const bool whole = scheme_.group == 0;
    const Dims grid = GridOf(view, std::max<int64_t>(scheme_.group, 1), 0, whole);
    const int64_t cells = ElementCount(grid), cell = weight_.size() / cells,
                  entries = int64_t{1} << scheme_.bits;
    std::vector<Table> tables(static_cast<size_t>(cells));
    const auto size = static_cast<int>(entries);
    Sums sums;
    if (whole && !scheme_.row_scale) {
      const Points points = PointsOfAll(view);
      sums.finite = points.finite;
      if (sums.finite) tables[0] = BestTable(points, size, scheme_.int8_table, StoredFor(points));
      for (size_t i = 0; i < points.values.size(); ++i)
        sums.energy += points.weights[i] * points.values[i] * points.values[i];
      sums.energy += points.inside;
    } else {
      const int64_t line = view.columns();
      const Pin<float> scale = row_scales ? row_scales.data<float>() : Pin<float>();
      sums = ForCells(
          view.tensor(), cell, request_.threads,
          [&](int64_t first, std::span<const float> numbers) {
            Sums sum{.finite = AllFinite(numbers)};
            std::vector<float> importance, buffer;
            std::vector<uint16_t> bits;
            PointCounter of_halves(0, !scheme_.sparse());
            for (int64_t i = 0; sum.finite && i < std::ssize(numbers) / cell; ++i) {
              const auto block =
                  numbers.subspan(static_cast<size_t>(i * cell), static_cast<size_t>(cell));
              std::span<const float> weights =
                  scheme_.input_groups ? std::span<const float>()
                                       : ImportanceOf((first + i) * cell, cell, line, buffer);
              if (!scale.empty()) {
                // The error of a number counts as much as its scale, squared.
                importance.assign(block.size(), 1);
                for (int64_t k = 0; k < cell; ++k) {
                  const float s = scale[((first + i) * cell + k) / line];
                  importance[k] = s * s * (weights.empty() ? 1 : weights[k]);
                }
                weights = importance;
              }
              const bool halves = weight_.dtype() == DType::kFp16 && weights.empty();
              Points points;
              if (halves) {
                bits.resize(block.size());
                ConvertElements(DType::kFp32, reinterpret_cast<const std::byte*>(block.data()),
                                DType::kFp16, reinterpret_cast<std::byte*>(bits.data()), cell);
                of_halves.AddHalves(bits);
                points = of_halves.Take();
              } else {
                const bool narrow = weight_.dtype() == DType::kFp16 && scale.empty();
                PointCounter counter(narrow ? 0 : ExponentFor(GreatestOf(block)),
                                     !scheme_.sparse());
                counter.Add(block, weights);
                points = counter.Take();
              }
              tables[first + i] = BestTable(points, size, scheme_.int8_table, StoredFor(points));
              sum.energy += SumOfSquares(block, weights);
            }
            return sum;
          });
    }
    if (!sums.finite) return Refuse(), std::nullopt;
    for (const Table& table : tables) result_.error += table.error;
    result_.energy = sums.energy;
    return Assemble(view, grid, tables, row_scales);
  }

  // Entries of numbers outside the range of fp16 keep its precision.
  Stored StoredFor(const Points& points) const {
    return stored_ == Stored::kFp16Digits && ExponentFor(points.greatest) == 0 ? Stored::kFp16
                                                                               : stored_;
  }

  // Divides the rows of the weight by their root mean square, which makes them alike.
  Tensor RowScales() {
    const WeightView view(source_, axes_, false);
    std::vector<float> scales(static_cast<size_t>(view.rows()));
    const int64_t line = view.columns();
    const Sums sums = ForCells(
        view.tensor(), line, request_.threads, [&](int64_t first, std::span<const float> numbers) {
          for (int64_t i = 0; i < std::ssize(numbers) / line; ++i) {
            const auto row =
                numbers.subspan(static_cast<size_t>(i * line), static_cast<size_t>(line));
            const double mean = SumOfSquares(row, {}) / static_cast<double>(line);
            const Stored stored = stored_ == Stored::kFp32 ? Stored::kFp32 : Stored::kFp16;
            scales[first + i] = RoundedScale(stored, static_cast<float>(std::sqrt(mean)));
            if (scales[first + i] == 0) scales[first + i] = 1;
          }
          return Sums{.finite = AllFinite(numbers)};
        });
    if (!sums.finite) return Refuse(), Tensor();
    const Dims grid = GridOf(view, 1, 0, false);
    const Tensor stored = view.Stored(Tensor::Of(grid, scales)).InMemory();
    const BlockGrid blocks(weight_.dims(), stored.dims());
    const Tensor numbers = source_;
    source_ = Tensor::Lazy(
        DType::kFp32, weight_.dims(),
        [=, scale = stored.data<float>()](int64_t first, int64_t count, std::byte* out) {
          std::vector<float> values = ReadFloats(numbers, first, count);
          blocks.Rows(first, count, [&](int64_t i, int64_t n, int64_t at, int64_t used) {
            for (; n > 0; --n, ++i) {
              values[i - first] /= scale[at];
              if (++used == blocks.block()) ++at, used = 0;
            }
          });
          std::memcpy(out, values.data(), values.size() * sizeof(float));
        },
        numbers);
    return stored;
  }

  std::optional<Encoding> Assemble(const WeightView& view, const Dims& grid,
                                   const std::vector<Table>& tables, const Tensor& row_scales) {
    const int64_t entries = int64_t{1} << scheme_.bits;
    std::vector<float> all;
    std::vector<int8_t> integers;
    std::vector<float> scales;
    for (const Table& table : tables) {
      all.insert(all.end(), table.entries.begin(), table.entries.end());
      integers.insert(integers.end(), table.integers.begin(), table.integers.end());
      scales.push_back(table.scale);
    }
    if (stored_ == Stored::kFp16Digits &&
        std::ranges::all_of(
            all, [](float x) { return static_cast<float>(Half(x)) == x && std::isfinite(x); }) &&
        (!scheme_.int8_table || std::ranges::all_of(scales, [](float x) {
          return x >= kLeastNormalHalf && x < kGreatestHalf / 128;
        })))
      stored_ = Stored::kFp16;
    const auto cells = static_cast<int64_t>(tables.size());
    std::optional<Assigned> assigned;
    if (use_ == Use::kAssign && !scheme_.input_groups) {
      Levels levels{.rows_per_cell = view.rows() / cells,
                    .entries = entries,
                    .tables = std::move(all),
                    .fixed = scheme_.int8_table};
      if (row_scales) {
        const Tensor in_view = WeightView(row_scales, axes_, false).tensor();
        levels.row_scales = ReadFloats(in_view, 0, in_view.size());
      }
      assigned = AssignIn(view, levels);
      all = std::move(levels.tables);
    }
    Encoding e{.form = Encoding::Form::kPalette, .dtype = encoded_type()};
    Dims dims = grid;
    dims.insert(dims.end(), {entries, 1});
    if (scheme_.int8_table) {
      Dims alone = grid;
      alone.insert(alone.end(), {1, 1});
      e.table = Tensor::Encoded(
          {.dtype = encoded_type(),
           .data = view.Stored(Tensor::Of(dims, integers)).InMemory(),
           .scale = view.Stored(Tensor::Of(alone, scales).Cast(encoded_type())).InMemory()});
    } else {
      e.table = view.Stored(Tensor::Of(dims, all).Cast(encoded_type())).InMemory();
    }
    // Tables by cell in the order of the weight.
    const Pin<float> decoded = Dense(e.table).Cast(DType::kFp32).data<float>();
    auto middles = std::make_shared<std::vector<float>>();
    for (int64_t at = 0; at < cells; ++at) {
      const std::vector<float> of = MiddlesOf(
          decoded.span().subspan(static_cast<size_t>(at * entries), static_cast<size_t>(entries)));
      middles->insert(middles->end(), of.begin(), of.end());
    }
    const Dims stored_grid(e.table.dims().begin(), e.table.dims().end() - 2);
    const BlockGrid blocks(weight_.dims(), stored_grid);
    const Tensor source = source_;
    const auto steps = static_cast<size_t>(entries - 1);
    Tensor::ReadFn read = [=](int64_t first, int64_t count, std::byte* out) {
      const std::vector<float> numbers = ReadFloats(source, first, count);
      blocks.Rows(first, count, [&](int64_t i, int64_t n, int64_t at, int64_t used) {
        for (; n > 0; ++at, used = 0) {
          const int64_t run = std::min(n, blocks.block() - used);
          AssignNearest(
              std::span(*middles).subspan(static_cast<size_t>(at) * steps, steps),
              std::span(numbers).subspan(static_cast<size_t>(i - first), static_cast<size_t>(run)),
              out + (i - first));
          i += run, n -= run;
        }
      });
    };
    if (cells == 1 && source.dtype() == DType::kFp16) read = ByBits(source, *middles);
    SetData(e,
            assigned ? CodesIn(view, *assigned, DType::kUint8)
                     : Tensor::Lazy(DType::kUint8, weight_.dims(), std::move(read), source),
            IndexType(scheme_.bits));
    // Before iOS26, row scales are multiplied into tables, one per row.
    const bool folded = row_scales && request_.target < Opset::kIos26;
    result_.bytes += static_cast<uint64_t>((folded ? row_scales.size() : cells) * entries *
                                           (scheme_.int8_table ? 1 : number_bytes()));
    if (scheme_.int8_table) result_.bytes += static_cast<uint64_t>(cells * number_bytes());
    if (!row_scales) return e;
    Encoding scaled{.form = Encoding::Form::kAffine, .dtype = encoded_type()};
    scaled.data = Tensor::Encoded(std::move(e));
    scaled.scale = row_scales.Cast(encoded_type());
    if (!folded) result_.bytes += static_cast<uint64_t>(row_scales.size() * number_bytes());
    return scaled;
  }

  // Looks up the index of every fp16 number.
  static Tensor::ReadFn ByBits(const Tensor& source, std::span<const float> middles) {
    auto index = std::make_shared<std::vector<std::byte>>(size_t{1} << 16);
    std::vector<float> all(index->size());
    for (size_t bits = 0; bits < all.size(); ++bits)
      all[bits] = Half::ToFloat(static_cast<uint16_t>(bits));
    AssignNearest(middles, all, index->data());
    return [=](int64_t first, int64_t count, std::byte* out) {
      std::vector<uint16_t> bits(static_cast<size_t>(count));
      source.Read(first, count, reinterpret_cast<std::byte*>(bits.data()));
      for (size_t i = 0; i < bits.size(); ++i) out[i] = (*index)[bits[i]];
    };
  }

  // ---- palettes of vectors along the output axis

  std::optional<Encoding> Vectors() {
    constexpr int64_t kSample = int64_t{1} << 15;
    const int64_t vector = scheme_.vector, entries = int64_t{1} << scheme_.bits;
    const WeightView view(source_, axes_, false);
    const int batch = view.batch(), rank = view.tensor().rank();
    // [..., outputs / vector, inputs ..., vector]
    Dims split = view.tensor().dims(), shape = split;
    split[batch] /= vector;
    shape[batch] /= vector;
    split.insert(split.begin() + batch + 1, vector);
    std::vector<int> order;
    for (int d = 0; d <= rank; ++d)
      if (d != batch + 1) order.push_back(d);
    order.push_back(batch + 1);
    const Tensor vectors = view.tensor().Reshaped(split).Transposed(order);
    const Dims grid = GridOf(view, std::max<int64_t>(scheme_.group, 1), 0, scheme_.group == 0);
    const int64_t cells = ElementCount(grid), cell = weight_.size() / cells;
    std::vector<float> all(static_cast<size_t>(cells * entries * vector));
    // A sample of each cell, evenly spaced. The rows of a vector have the same inputs.
    const int64_t columns = view.columns();
    std::vector<float> importance;
    if (weighted() && request_.inputs->sets == 1) ImportanceOf(0, columns, columns, importance);
    std::atomic<bool> finite = true;
    ParallelFor(cells, request_.threads, [&](int64_t c) {
      const int64_t count = cell / vector, step = std::max<int64_t>(count / kSample, 1);
      constexpr int64_t kRun = 1024;  // vectors
      std::vector<float> sample, weights;
      for (int64_t at = 0; at < count; at += kRun * step) {
        const int64_t first = c * cell + at * vector, taken = std::min(kRun, count - at);
        const std::vector<float> run = ReadFloats(vectors, first, taken * vector);
        sample.insert(sample.end(), run.begin(), run.end());
        for (int64_t i = 0; !importance.empty() && i < taken; ++i)
          weights.push_back(importance[(first / vector + i) % columns]);
      }
      if (!AllFinite(sample)) return finite.store(false);
      const std::vector<float> table = VectorTable(sample, weights, vector, entries);
      std::ranges::transform(table, all.begin() + c * entries * vector, [&](float x) {
        return RoundedTo(stored_ == Stored::kFp32 ? stored_ : Stored::kFp16, x);
      });
    });
    if (!finite) return Refuse(), std::nullopt;
    if (stored_ == Stored::kFp16Digits) stored_ = Stored::kFp16;
    std::optional<Assigned> assigned;
    if (use_ == Use::kAssign && view.rows() / request_.inputs->sets % vector == 0) {
      Levels levels{.rows_per_cell = view.rows() / cells,
                    .entries = entries,
                    .vector = vector,
                    .tables = std::move(all)};
      assigned = AssignIn(view, levels);
      all = std::move(levels.tables);
    }
    Encoding e{
        .form = Encoding::Form::kPalette, .dtype = encoded_type(), .vector_axis = axes_.output};
    Dims dims = grid;
    dims.insert(dims.end(), {entries, vector});
    e.table = view.Stored(Tensor::Of(dims, all).Cast(encoded_type())).InMemory();
    auto tables = std::make_shared<const std::vector<float>>(std::move(all));
    auto table_of = [=](int64_t vector_at) {
      return std::span(*tables).subspan(
          static_cast<size_t>(vector_at * vector / cell * entries * vector),
          static_cast<size_t>(entries * vector));
    };
    const Sums sums = ForCells(
        vectors, vector, request_.threads, [&](int64_t first, std::span<const float> numbers) {
          Sums sum{.energy = SumOfSquares(numbers, {}), .finite = AllFinite(numbers)};
          for (int64_t i = 0; sum.finite && i < std::ssize(numbers) / vector; ++i) {
            const std::span<const float> table = table_of(first + i);
            const float* at = &numbers[i * vector];
            sum.error +=
                SquaredDistance(at, &table[NearestVector(table, at, vector) * vector], vector);
          }
          return sum;
        });
    if (!sums.finite) return Refuse(), std::nullopt;
    result_.error = sums.error;
    result_.energy = sums.energy;
    Tensor indices = assigned ? Tensor::Of(shape, assigned->codes)
                              : Tensor::Lazy(
                                    DType::kUint8, shape,
                                    [=](int64_t first, int64_t count, std::byte* out) {
                                      const std::vector<float> numbers =
                                          ReadFloats(vectors, first * vector, count * vector);
                                      for (int64_t i = 0; i < count; ++i)
                                        out[i] = static_cast<std::byte>(NearestVector(
                                            table_of(first + i), &numbers[i * vector], vector));
                                    },
                                    vectors);
    e.data = view.Stored(indices).Cast(IndexType(scheme_.bits));
    result_.bytes += ByteCount(e.data.dtype(), e.data.size()) +
                     static_cast<uint64_t>(cells * entries * vector * number_bytes());
    return e;
  }

  // ---- integers and indices for the least error of the output

  // Changes the elements of a sparse weight that stay.
  void Compensate() {
    const WeightView view(weight_, axes_, false);
    const std::vector<float> made =
        Compensated(ReadFloats(view.tensor(), 0, weight_.size()), kept_in_view_, view.rows(),
                    *request_.inputs, request_.bias, request_.threads);
    source_ = view.Stored(Tensor::Of(view.tensor().dims(), made)).Cast(weight_.dtype()).InMemory();
  }

  // Completes the levels of the elements of a view, and chooses those of the least error.
  Assigned AssignIn(const WeightView& view, Levels& levels) const {
    levels.rows = view.rows();
    levels.columns = view.columns();
    levels.kept = kept_in_view_;
    levels.stored = stored_;
    const Tensor weight = WeightView(weight_, axes_, false).tensor();
    return Assign(ReadFloats(weight, 0, weight.size()), levels, *request_.inputs, request_.bias,
                  request_.threads);
  }

  static Tensor CodesIn(const WeightView& view, Assigned& assigned, DType dtype) {
    const Dims& dims = view.tensor().dims();
    if (dtype == DType::kUint8) return view.Stored(Tensor::Of(dims, assigned.codes)).InMemory();
    const std::vector<int8_t> codes(assigned.codes.begin(), assigned.codes.end());
    return view.Stored(Tensor::Of(dims, codes)).InMemory();
  }

  // ---- results

  // Sets the data of an encoding from integers for all elements, of which a sparse one keeps some.
  void SetData(Encoding& e, const Tensor& data, DType dtype) {
    e.data = (mask_ ? Taken(data, mask_) : data).Cast(dtype);
    e.mask = mask_;
    result_.bytes += ByteCount(dtype, e.data.size());
  }

  void Finish(std::optional<Encoding> values) {
    const DType dtype = weight_.dtype();
    if (!mask_) {
      result_.tensor = Tensor::Encoded(*std::move(values)).Cast(dtype);
      return;
    }
    Encoding sparse{.form = Encoding::Form::kSparse, .dtype = dtype, .mask = mask_};
    if (values) {
      sparse.dtype = values->dtype;
      sparse.data = Tensor::Encoded(*std::move(values));
    } else {
      sparse.data = Taken(source_, mask_);
      result_.bytes += static_cast<uint64_t>(kept_ * number_bytes());
    }
    result_.bytes += mask_.byte_size();
    result_.error += pruned_;
    result_.energy = whole_;
    result_.tensor = Tensor::Encoded(std::move(sparse)).Cast(dtype);
  }

  Quantised result_;
  const Tensor weight_;
  const Request& request_;
  const Use use_;
  float least_importance_ = 0;
  const Scheme scheme_;
  const WeightOperand axes_;
  Stored stored_;
  Tensor source_;  // the weight, or what is quantised instead: with zeros, or with scaled rows
  Tensor mask_;
  std::vector<uint8_t> kept_in_view_;  // the mask in the order of the view, for assignment
  int64_t kept_ = 0;
  double pruned_ = 0, whole_ = 0;
};

}  // namespace

double SnrOf(double energy, double error) {
  if (!(error > 0)) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(energy / error);
}

namespace {

// Measures a result for the inputs.
void Measure(const Tensor& weight, const Request& request, Quantised& result) {
  if (!result.refused.empty()) return;
  const WeightView view(Dense(weight), request.axes, false),
      made(Dense(result.tensor), request.axes, false);
  const std::vector<float> numbers = ReadFloats(view.tensor(), 0, weight.size()),
                           decoded = ReadFloats(made.tensor(), 0, weight.size());
  const InputStatistics& inputs = *request.inputs;
  // An estimate takes evenly spaced rows of each set.
  constexpr int64_t kEstimated = 64;
  const int64_t columns = view.columns(), set_rows = view.rows() / inputs.sets,
                step = request.estimate ? std::max<int64_t>(set_rows / kEstimated, 1) : 1,
                taken = (set_rows + step - 1) / step;
  OutputError output;
  if (step == 1) {
    output = OutputErrorOf(numbers, decoded, view.rows(), inputs, request.bias, request.threads);
  } else {
    std::vector<float> some, some_decoded;
    for (int64_t row = 0; row < view.rows(); ++row) {
      if (row % set_rows % step != 0) continue;
      some.insert(some.end(), &numbers[row * columns], &numbers[row * columns] + columns);
      some_decoded.insert(some_decoded.end(), &decoded[row * columns],
                          &decoded[row * columns] + columns);
    }
    output = OutputErrorOf(some, some_decoded, taken * inputs.sets, inputs, request.bias,
                           request.threads);
  }
  result.output_error = output.error;
  result.output_energy = output.energy;
  result.error = result.energy = 0;
  if (request.bias) result.bias.assign(static_cast<size_t>(view.rows()), 0);
  for (int64_t row = 0; row < view.rows(); ++row) {
    const float* mean = &inputs.mean[row * inputs.sets / view.rows() * inputs.columns];
    double sum = 0;
    for (int64_t c = 0; c < view.columns(); ++c) {
      const auto x = static_cast<double>(numbers[row * view.columns() + c]);
      const double error = x - static_cast<double>(decoded[row * view.columns() + c]);
      result.error += error * error;
      result.energy += x * x;
      sum += error * static_cast<double>(mean[c]);
    }
    if (request.bias) result.bias[row] = static_cast<float>(sum);
  }
}

}  // namespace

Quantised Quantise(const Tensor& weight, const Request& request) {
  if (!request.inputs || !*request.inputs) return Quantiser(weight, request, Use::kNone).Run();
  // Each technique is used only if it lowers the error of the output.
  std::vector<Use> uses = {Use::kNone, Use::kImportance};
  const bool encodes = request.scheme.values == Values::kInteger || request.scheme.sparse() ||
                       request.scheme.values == Values::kPalette;
  if (!request.inputs->products.empty() && encodes && !request.estimate) uses.back() = Use::kAssign;
  Quantised best;
  for (const Use use : uses) {
    Quantised made = Quantiser(weight, request, use).Run();
    if (!made.refused.empty()) return made;
    Measure(weight, request, made);
    if (use == uses.front() || made.output_error < best.output_error) best = std::move(made);
  }
  return best;
}

}  // namespace mlc::compress
