// The file has a line with a magic word and a version, a line of JSON, the packed sums of the weights
// in order of their names, and the hash of everything before it.
#include "lib/calibration/statistics.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/support/atomic_install.h"
#include "lib/support/counted.h"
#include "lib/support/hash.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"

namespace fs = std::filesystem;

namespace mlc::calibration {

namespace {

using compress::Fixed;
using compress::Histogram;
using compress::InputSums;
__extension__ using Unsigned = unsigned __int128;

constexpr std::string_view kMagic = "mlc-statistics 1\n";
constexpr size_t kHashDigits = 32;

// A number is 0, or 1 + the number of zero bits below the lowest set bit, and a magnitude of 7 bits
// per byte, whose lowest bit, which would be 1, is the sign. Sums of a few floats have few set bits.
void Pack(std::span<const Fixed> numbers, std::vector<std::byte>& to) {
  for (const Fixed number : numbers) {
    if (number == 0) {
      to.push_back(std::byte{0});
      continue;
    }
    const bool negative = number < 0;
    Unsigned u = negative ? -static_cast<Unsigned>(number) : static_cast<Unsigned>(number);
    const auto low = static_cast<uint64_t>(u);
    const int zeros = low ? std::countr_zero(low) : 64 + std::countr_zero(uint64_t(u >> 64));
    to.push_back(static_cast<std::byte>(zeros + 1));
    u = (u >> zeros & ~Unsigned{1}) | Unsigned{negative};
    do {
      to.push_back(static_cast<std::byte>((u & 127) | (u >> 7 ? 128 : 0)));
      u >>= 7;
    } while (u);
  }
}

[[noreturn]] void Damaged() {
  throw Error("bad-input", "the statistics are damaged")
      .Help("write them again with mlc calibrate");
}

void Unpack(std::span<const std::byte>& from, std::span<Fixed> numbers) {
  auto next = [&] {
    if (from.empty()) Damaged();
    const auto byte = static_cast<uint8_t>(from[0]);
    from = from.subspan(1);
    return byte;
  };
  for (Fixed& number : numbers) {
    const int zeros = next() - 1;
    if (zeros < 0) {
      number = 0;
      continue;
    }
    Unsigned u = 0;
    for (int shift = 0;; shift += 7) {
      const uint8_t byte = next();
      if (shift > 119) Damaged();
      u |= Unsigned(byte & 127) << shift;
      if (byte < 128) break;
    }
    const bool negative = (u & 1) != 0;
    u |= 1;
    if (zeros > 126 || u > (~Unsigned{0} >> 1) >> zeros) Damaged();
    const auto magnitude = static_cast<Fixed>(u << zeros);
    number = negative ? -magnitude : magnitude;
  }
}

std::array<uint64_t, 2> HashOfSample(const std::string& function, const Sample& sample) {
  Xxh3 hash;
  hash.Update(function);
  for (const verify::StepInputs& inputs : sample) {
    for (const auto& [name, tensor] : inputs) {
      hash.Update(fmt::format("\n{} {} {}", name, Name(tensor.dtype()), tensor.size()));
      hash.Update(tensor.hash());
    }
    hash.Update("\n.");
  }
  const std::string hex = hash.Hex();
  std::array<uint64_t, 2> numbers = {};
  for (size_t i = 0; i < 2; ++i)
    std::from_chars(hex.data() + 16 * i, hex.data() + 16 * (i + 1), numbers[i], 16);
  return numbers;
}

}  // namespace

std::string HashOf(const Value& weight) {
  return weight.is_constant() ? weight.constant().hash() : "";
}

PackedSums::PackedSums(InputSums& sums)
    : sets_(sums.sets()),
      columns_(sums.columns()),
      products_(sums.has_products()),
      counts_(sums.counts().begin(), sums.counts().end()) {
  const auto packed = std::make_shared<std::vector<std::byte>>();
  Pack(sums.sums(), *packed);
  Pack(sums.square_sums(), *packed);
  Pack(sums.products(), *packed);
  packed->shrink_to_fit();
  bytes_ = *packed;
  owner_ = packed;
}

InputSums PackedSums::Unpack() const {
  InputSums sums(sets_, columns_, products_);
  std::ranges::copy(counts_, sums.counts().begin());
  std::span<const std::byte> left = bytes_;
  calibration::Unpack(left, sums.sums());
  calibration::Unpack(left, sums.square_sums());
  calibration::Unpack(left, sums.products());
  if (!left.empty()) Damaged();
  return sums;
}

bool PackedSums::HasShapeOf(const PackedSums& other) const {
  return sets_ == other.sets_ && columns_ == other.columns_ && products_ == other.products_;
}

void PackedSums::Add(const PackedSums& other) {
  InputSums sums = Unpack();
  sums.Add(other.Unpack());
  *this = PackedSums(sums);
}

Statistics Statistics::Collect(const Program& program, const Samples& samples,
                               const std::set<const Value*>& weights,
                               const std::set<const Value*>& values, const Progress& progress) {
  Statistics statistics;
  statistics.samples_ = samples.count();
  statistics.generated_ = samples.generated;
  for (const auto& [function, of] : samples.functions)
    for (const Sample& sample : of) {
      const std::array<uint64_t, 2> hash = HashOfSample(function, sample);
      for (size_t i = 0; i < 2; ++i) statistics.inputs_[i] += hash[i];
    }
  // The weights of each run; the values are observed in the first one.
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  std::vector<std::set<const Value*>> runs(1);
  uint64_t bytes = 0;
  for (const Value* weight : weights) {
    uint64_t elements = 1, outputs = 1;
    for (const Dim& dim : weight->type.shape) elements *= static_cast<uint64_t>(dim.constant());
    if (weight->type.rank() > 0)
      outputs = static_cast<uint64_t>(std::max<int64_t>(weight->type.shape[0].constant(), 1));
    const uint64_t columns = elements / outputs;
    const bool products = columns <= static_cast<uint64_t>(compress::kMostColumnsWithProducts);
    const uint64_t own = products ? columns * columns * sizeof(Fixed) / 2 : columns;
    if (bytes + own > kMostBytes && !runs.back().empty()) {
      runs.emplace_back();
      bytes = 0;
    }
    runs.back().insert(weight);
    bytes += own;
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto count = static_cast<uint64_t>(samples.count());
    uint64_t done = i * count;
    const auto after = [&] {
      if (progress)
        progress(StepOf("observing inputs", std::min(++done, runs.size() * count),
                        runs.size() * count, "samples"));
    };
    Observed observed =
        Observe(program, samples, runs[i], i == 0 ? values : std::set<const Value*>(), 0, after);
    for (auto& [weight, sums] : observed.inputs) {
      const Weight made{HashOf(*weight), PackedSums(sums)};
      auto [at, added] = statistics.weights_.try_emplace(weight->name, made);
      if (added) continue;
      // A weight of another function that has the same name and elements adds to it; of weights with
      // other elements, one is kept, whatever their order.
      if (at->second.hash == made.hash && at->second.sums.HasShapeOf(made.sums))
        at->second.sums.Add(made.sums);
      else if (made.hash < at->second.hash)
        at->second = made;
    }
    for (auto& [value, histogram] : observed.values) statistics.values_[value->name].Add(histogram);
  }
  return statistics;
}

void Statistics::Add(const Statistics& other) {
  if (!weights_.empty() && !other.weights_.empty() &&
      std::ranges::none_of(other.weights_,
                           [&](const auto& weight) { return weights_.contains(weight.first); }))
    throw Error("bad-input",
                "the statistics are those of different models: they have no weight in "
                "common")
        .Expected("statistics of one model, made with the same options");
  samples_ += other.samples_;
  generated_ = generated_ || other.generated_;
  for (size_t i = 0; i < 2; ++i) inputs_[i] += other.inputs_[i];
  for (const auto& [name, weight] : other.weights_) {
    const auto found = weights_.find(name);
    if (found == weights_.end()) {
      weights_.emplace(name, weight);
      continue;
    }
    if (found->second.hash != weight.hash || !found->second.sums.HasShapeOf(weight.sums))
      throw Error("bad-input",
                  "the statistics are those of different models: weight \"{}\" differs", name)
          .Expected("statistics of one model, made with the same options");
    found->second.sums.Add(weight.sums);
  }
  for (const auto& [name, histogram] : other.values_) values_[name].Add(histogram);
}

void Statistics::AddSquares(const std::string& weight, int64_t sets, int64_t columns,
                            const std::vector<float>& squares, const std::vector<int64_t>& counts) {
  InputSums sums(sets, columns, false);
  for (int64_t set = 0; set < sets; ++set) {
    const int64_t count = std::max<int64_t>(counts[set], 1);
    sums.counts()[set] = count;
    for (int64_t c = set * columns; c < (set + 1) * columns; ++c)
      sums.square_sums()[c] =
          compress::ToFixed(static_cast<double>(squares[c]) * static_cast<double>(count));
  }
  weights_.emplace(weight, Weight{"", PackedSums(sums)});
}

std::string Statistics::Description() const {
  if (!description_.empty()) return description_;
  return "statistics of " + Counted(samples_, generated_ ? "generated sample" : "sample");
}

void Statistics::Write(const fs::path& path) const {
  nlohmann::ordered_json header{{"samples", samples_},
                                {"generated", generated_},
                                {"inputs", fmt::format("{:016x}{:016x}", inputs_[0], inputs_[1])},
                                {"weights", nlohmann::ordered_json::array()},
                                {"values", nlohmann::ordered_json::array()}};
  for (const auto& [name, weight] : weights_)
    header["weights"].push_back({{"name", name},
                                 {"hash", weight.hash},
                                 {"sets", weight.sums.sets()},
                                 {"columns", weight.sums.columns()},
                                 {"products", weight.sums.has_products()},
                                 {"counts", weight.sums.counts()},
                                 {"bytes", weight.sums.bytes().size()}});
  for (const auto& [name, histogram] : values_) {
    nlohmann::ordered_json bins = nlohmann::ordered_json::array();
    for (int64_t bin = 0; bin < Histogram::kBins; ++bin)
      if (const int64_t count = histogram.counts()[bin]) bins.push_back({bin, count});
    header["values"].push_back({{"name", name},
                                {"low", histogram.low()},
                                {"high", histogram.high()},
                                {"bins", std::move(bins)}});
  }
  Staging staging(path, Staging::kFile);
  std::ofstream out(staging.path(), std::ios::binary);
  Xxh3 hash;
  auto write = [&](std::span<const std::byte> bytes) {
    hash.Update(bytes);
    out.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  };
  write(std::as_bytes(std::span(kMagic)));
  const std::string line = JsonText(header) + "\n";
  write(std::as_bytes(std::span(line)));
  for (const auto& [name, weight] : weights_) write(weight.sums.bytes());
  out << hash.Hex();
  out.close();
  if (!out) throw Error("file-io", "cannot write \"{}\"", path.string());
  staging.Commit();
}

bool Statistics::IsFile(const fs::path& path) {
  if (!fs::is_regular_file(path) || fs::file_size(path) < kMagic.size()) return false;
  std::string head(kMagic.size(), '\0');
  std::ifstream(path, std::ios::binary).read(head.data(), std::ssize(head));
  // Other versions are recognised too, so that the error can say so.
  const size_t word = kMagic.find(' ') + 1;
  return head.compare(0, word, kMagic, 0, word) == 0;
}

Statistics Statistics::Read(const fs::path& path) try {
  const auto file = MappedFile::Open(path);
  std::span<const std::byte> bytes = file->bytes();
  const std::string_view text = AsText(bytes);
  if (!text.starts_with(kMagic))
    throw Error("bad-input", "the statistics are of another version of mlc")
        .Help("write them again with mlc calibrate");
  const size_t end = text.find('\n', kMagic.size());
  if (end == std::string_view::npos || text.size() < end + 1 + kHashDigits) Damaged();
  Xxh3 hash;
  hash.Update(bytes.first(bytes.size() - kHashDigits));
  if (hash.Hex() != text.substr(text.size() - kHashDigits)) Damaged();
  const nlohmann::ordered_json header = ParseJson(text.substr(kMagic.size(), end - kMagic.size()));
  Statistics statistics;
  statistics.samples_ = header.at("samples");
  statistics.generated_ = header.at("generated");
  const std::string inputs = header.at("inputs");
  if (inputs.size() != kHashDigits) Damaged();
  for (size_t i = 0; i < 2; ++i)
    std::from_chars(inputs.data() + 16 * i, inputs.data() + 16 * (i + 1), statistics.inputs_[i],
                    16);
  std::span<const std::byte> left = bytes.subspan(end + 1, bytes.size() - end - 1 - kHashDigits);
  for (const auto& weight : header.at("weights")) {
    const int64_t sets = weight.at("sets"), columns = weight.at("columns");
    const bool products = weight.at("products");
    std::vector<int64_t> counts = weight.at("counts");
    const size_t size = weight.at("bytes");
    // Each number takes a byte or more, so that the memory of the sums is bounded by the file's size.
    const auto most = static_cast<int64_t>(std::min(size, left.size()));
    if (sets < 1 || columns < 1 || size > left.size() || sets > most / columns ||
        std::ssize(counts) != sets || 2 * sets * columns > most ||
        (products && sets * columns > 2 * most / (columns + 1)))
      Damaged();
    statistics.weights_.emplace(
        weight.at("name"),
        Weight{weight.at("hash"),
               PackedSums(sets, columns, products, std::move(counts), left.first(size), file)});
    left = left.subspan(size);
  }
  if (!left.empty()) Damaged();
  for (const auto& value : header.at("values")) {
    Histogram& histogram = statistics.values_[value.at("name")];
    histogram.SetRange(value.at("low"), value.at("high"));
    for (const auto& bin : value.at("bins")) {
      const int64_t index = bin.at(0);
      if (index < 0 || index >= Histogram::kBins) Damaged();
      histogram.counts()[index] = bin.at(1);
    }
  }
  return statistics;
} catch (const nlohmann::json::exception&) {
  throw Error("bad-input", "the statistics are damaged")
      .At({path.string(), ""})
      .Help("write them again with mlc calibrate");
} catch (Error& error) {
  error.At({path.string(), ""});
  throw;
}

}  // namespace mlc::calibration
