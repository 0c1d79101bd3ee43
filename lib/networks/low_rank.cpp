#include "lib/networks/low_rank.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "lib/support/error.h"

namespace mlc::networks {

namespace {

int64_t RowsOf(const Dims& dims) { return dims.empty() ? 1 : dims[0]; }

std::vector<float> Floats(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.size()));
  tensor.Cast(DType::kFp32).Read(0, tensor.size(), reinterpret_cast<std::byte*>(values.data()));
  return values;
}

// The parts of a change in memory.
class Change {
 public:
  Change(Tensor weight, const LowRank& pair)
      : weight_(std::move(weight)),
        columns_(weight_.size() / RowsOf(weight_.dims())),
        rank_(pair.down.dims()[0]),
        down_(Floats(pair.down)),
        up_(Floats(pair.up)) {
    for (float& value : up_) value *= static_cast<float>(pair.scale);
    if (!pair.magnitude) return;
    magnitude_ = Floats(pair.magnitude);
    by_column_ = pair.outputs_are_columns;
    if (by_column_) ScaleColumns();
  }

  void Read(int64_t first, int64_t count, std::byte* out) const {
    std::vector<float> sums;
    while (count > 0) {
      const int64_t row = first / columns_, at = first % columns_,
                    part = std::min(count, columns_ - at);
      // The length of a row needs all of its elements.
      const bool whole = !magnitude_.empty() && !by_column_;
      const int64_t begin = whole ? 0 : at;
      sums.resize(static_cast<size_t>(whole ? columns_ : part));
      Sum(row, begin, sums);
      if (whole) {
        const float factor = OverLength(magnitude_[static_cast<size_t>(row)], Squares(sums));
        for (float& sum : sums) sum *= factor;
      } else if (by_column_) {
        for (size_t c = 0; c < sums.size(); ++c) sums[c] *= magnitude_[static_cast<size_t>(at) + c];
      }
      const size_t bytes = static_cast<size_t>(part) * sizeof(float);
      std::memcpy(out, sums.data() + (at - begin), bytes);
      first += part;
      out += bytes;
      count -= part;
    }
  }

 private:
  // Computes columns [at, at + sums.size()) of a row of weight + scale * up * down.
  void Sum(int64_t row, int64_t at, std::vector<float>& sums) const {
    weight_.Read(row * columns_ + at, static_cast<int64_t>(sums.size()),
                 reinterpret_cast<std::byte*>(sums.data()));
    for (int64_t r = 0; r < rank_; ++r) {
      const float factor = up_[static_cast<size_t>(row * rank_ + r)];
      const float* down = down_.data() + r * columns_ + at;
      for (size_t c = 0; c < sums.size(); ++c) sums[c] += factor * down[c];
    }
  }

  static double Squares(const std::vector<float>& values) {
    double squares = 0;
    for (float value : values) squares += static_cast<double>(value) * value;
    return squares;
  }
  static float OverLength(float magnitude, double squares) {
    return static_cast<float>(magnitude / std::sqrt(squares));
  }

  // Replaces the magnitudes by the factors of columns.
  void ScaleColumns() {
    const int64_t rows = weight_.size() / columns_;
    std::vector<float> row(static_cast<size_t>(columns_));
    std::vector<double> squares(static_cast<size_t>(columns_), 0);
    for (int64_t r = 0; r < rows; ++r) {
      Sum(r, 0, row);
      for (size_t c = 0; c < row.size(); ++c) squares[c] += static_cast<double>(row[c]) * row[c];
    }
    for (size_t c = 0; c < row.size(); ++c) magnitude_[c] = OverLength(magnitude_[c], squares[c]);
  }

  Tensor weight_;  // fp32
  int64_t columns_, rank_;
  std::vector<float> down_, up_;  // up_ is multiplied by the scale
  std::vector<float> magnitude_;  // of rows, or the factors of columns; empty: none
  bool by_column_ = false;
};

}  // namespace

void CheckLowRank(const LowRank& pair, const Dims& dims, const std::string& subject) {
  const int64_t rows = RowsOf(dims), columns = rows == 0 ? 0 : ElementCount(dims) / rows;
  const int64_t rank = pair.down.rank() == 2 ? pair.down.dims()[0] : 0;
  auto refuse = [&](std::string_view which, const Tensor& tensor, const Dims& wanted) {
    throw Error("bad-tensor", "{}: {} is {} [{}]", subject, which, Name(tensor.dtype()),
                fmt::join(tensor.dims(), ", "))
        .Expected("floats [{}] for the weight [{}]", fmt::join(wanted, ", "), fmt::join(dims, ", "))
        .Help("check that the adapter was trained on this model");
  };
  if (columns == 0 || rank == 0 || pair.down.dims() != Dims{rank, columns} ||
      !IsFloat(pair.down.dtype()))
    refuse("the matrix of the lower side", pair.down, {std::max<int64_t>(rank, 1), columns});
  if (pair.up.dims() != Dims{rows, rank} || !IsFloat(pair.up.dtype()))
    refuse("the matrix of the upper side", pair.up, {rows, rank});
  const Dims lengths = {pair.outputs_are_columns ? columns : rows};
  if (pair.magnitude && (pair.magnitude.dims() != lengths || !IsFloat(pair.magnitude.dtype())))
    refuse("the vector of magnitudes", pair.magnitude, lengths);
}

Tensor Changed(const Tensor& weight, const LowRank& pair) {
  const Tensor base = weight.Cast(DType::kFp32);
  auto change = std::make_shared<const Change>(base, pair);
  Tensor changed = Tensor::Lazy(
      DType::kFp32, weight.dims(),
      [change](int64_t first, int64_t count, std::byte* out) { change->Read(first, count, out); },
      base);
  return changed.From({{pair.weight}, false});
}

std::map<std::string, Tensor> Merged(const Adapter& adapter, const ImportOptions::Lora& lora,
                                     const std::function<Tensor(const std::string&)>& find,
                                     Diagnostics& diagnostics) {
  std::map<std::string, Tensor> tensors = adapter.whole;
  const size_t whole = tensors.size();
  size_t merged = 0, encoded = 0;
  for (const LowRank& pair : adapter.pairs) {
    if (lora.apart.contains(pair.weight)) continue;
    const auto replaced = tensors.find(pair.weight);
    const Tensor base = replaced != tensors.end() ? replaced->second : find(pair.weight);
    encoded += base.encoding() != nullptr;
    ++merged;
    tensors.insert_or_assign(pair.weight, Changed(base, pair));
  }
  std::string what =
      fmt::format("{} {} changed in fp32", merged, merged == 1 ? "weight is" : "weights are");
  if (whole > 0) what += fmt::format(", {} {} replaced", whole, whole == 1 ? "is" : "are");
  if (encoded > 0)
    what += fmt::format(
        "; {} of them, quantised in the source, become dense, unless option 'compress' "
        "quantises them again",
        encoded);
  diagnostics.Decide("adapter", NameOf(lora), what);
  if (encoded > 0) diagnostics.Note("adapter {}: {}", NameOf(lora), what);
  return tensors;
}

std::string NameOf(const ImportOptions::Lora& lora) {
  const std::filesystem::path path = lora.path.lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace mlc::networks
