#include "lib/compress/points.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mlc::compress {

namespace {

constexpr uint16_t kSign = 0x8000, kInfinity = 0x7C00;  // of fp16
constexpr size_t kFew = 2048;  // fewer numbers are sorted, more are counted in a histogram

// The position of an fp16 number in ascending order; -0 and 0 are equal.
uint16_t KeyOf(uint16_t bits) {
  if (bits == kSign) bits = 0;
  return bits & kSign ? static_cast<uint16_t>(~bits) : static_cast<uint16_t>(bits | kSign);
}

}  // namespace

int ExponentFor(double greatest) {
  // Below 2^-10, the rounding error of fp16's smallest numbers is significant relative to the
  // largest number.
  constexpr double kSmall = 0x1p-10, kGreat = 65504;
  constexpr int kComfortable = 14;
  if (!(greatest > 0) || !std::isfinite(greatest) || (greatest >= kSmall && greatest < kGreat))
    return 0;
  return kComfortable - std::ilogb(greatest);
}

void PointCounter::Count(uint16_t key, double number, double weight) {
  Sum& sum = sums_[key];
  sum.weight += weight;
  sum.sum += weight * number;
  sum.squares += weight * number * number;
}

void PointCounter::Add(std::span<const float> numbers, std::span<const float> importance) {
  const float factor = std::ldexp(1.0F, exponent_);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const float number = numbers[i], weight = importance.empty() ? 1 : importance[i];
    if (!std::isfinite(number)) finite_ = false;
    greatest_ = std::max(greatest_, std::fabs(static_cast<double>(number)));
    if ((number == 0 && !with_zeros_) || !(weight > 0)) continue;
    const uint16_t key = KeyOf(Half(number * factor).bits);
    if (sums_.empty() && few_.size() < kFew) {
      few_.push_back({key, number, weight});
      continue;
    }
    if (sums_.empty()) Sort();
    Count(key, static_cast<double>(number), static_cast<double>(weight));
  }
}

void PointCounter::AddHalves(std::span<const uint16_t> numbers) {
  if (halves_.empty()) halves_.resize(size_t{1} << 16);
  for (const uint16_t bits : numbers) {
    ++halves_[bits];
    greatest_half_ = std::max(greatest_half_, static_cast<uint16_t>(bits & ~kSign));
  }
}

void PointCounter::Add(PointCounter other) {
  finite_ = finite_ && other.finite_;
  greatest_ = std::max(greatest_, other.greatest_);
  if (!other.halves_.empty()) {
    halves_.resize(size_t{1} << 16);
    for (size_t i = 0; i < halves_.size(); ++i) halves_[i] += other.halves_[i];
    greatest_half_ = std::max(greatest_half_, other.greatest_half_);
  }
  if (other.sums_.empty() && other.few_.empty()) return;
  if (sums_.empty()) Sort();
  if (other.sums_.empty()) other.Sort();
  for (size_t i = 0; i < sums_.size(); ++i) {
    sums_[i].weight += other.sums_[i].weight;
    sums_[i].sum += other.sums_[i].sum;
    sums_[i].squares += other.sums_[i].squares;
  }
}

// Moves the few numbers into a histogram.
void PointCounter::Sort() {
  sums_.assign(size_t{1} << 16, Sum());
  for (const Few& one : few_)
    Count(one.key, static_cast<double>(one.number), static_cast<double>(one.weight));
  few_.clear();
}

Points PointCounter::TakeHalves() {
  Points points{.finite = greatest_half_ < kInfinity,
                .greatest = static_cast<double>(Half::FromBits(greatest_half_))};
  const uint32_t zeros = halves_[0] + halves_[kSign];
  halves_[0] = with_zeros_ ? zeros : 0;
  halves_[kSign] = 0;
  // Most numbers do not occur in a small group, so that blocks without any are skipped. The numbers
  // of a block have one exponent, and so one distance. Whether one occurs cannot be predicted.
  constexpr int kBlock = 16;
  auto append = [&](int block, int from, int by) {
    uint32_t* counts = halves_.data() + block;
    uint32_t any = 0;
    for (int i = 0; i < kBlock; ++i) any |= counts[i];
    if (any == 0) return;
    const auto number = [&](int i) {
      return static_cast<double>(Half::FromBits(static_cast<uint16_t>(block + i)));
    };
    const double first = number(0), step = number(1) - first;
    double values[kBlock], weights[kBlock];
    int size = 0;
    for (int i = from; i >= 0 && i < kBlock; i += by) {
      values[size] = first + i * step;
      weights[size] = counts[i];
      size += counts[i] != 0;
    }
    points.values.insert(points.values.end(), values, values + size);
    points.weights.insert(points.weights.end(), weights, weights + size);
    std::fill_n(counts, kBlock, 0U);
  };
  if (points.finite) {
    const int last = greatest_half_ / kBlock * kBlock;
    for (int block = last; block >= 0; block -= kBlock) append(kSign + block, kBlock - 1, -1);
    for (int block = 0; block <= last; block += kBlock) append(block, 0, 1);
  } else {
    std::ranges::fill(halves_, 0U);
  }
  greatest_half_ = 0;
  return points;
}

Points PointCounter::Take() {
  if (!halves_.empty()) return TakeHalves();
  Points points{.finite = finite_, .greatest = greatest_};
  auto append = [&](const Sum& sum) {
    if (sum.weight == 0) return;
    points.values.push_back(sum.sum / sum.weight);
    points.weights.push_back(sum.weight);
    points.inside += std::max(sum.squares - sum.sum * points.values.back(), 0.0);
  };
  if (!finite_) {
    few_.clear();
  } else if (!sums_.empty()) {
    for (const Sum& sum : sums_) append(sum);
  } else {
    std::ranges::stable_sort(few_, {}, &Few::key);
    for (size_t i = 0; i < few_.size();) {
      Sum sum;
      for (const uint16_t key = few_[i].key; i < few_.size() && few_[i].key == key; ++i) {
        const double weight = static_cast<double>(few_[i].weight),
                     number = static_cast<double>(few_[i].number);
        sum.weight += weight;
        sum.sum += weight * number;
        sum.squares += weight * number * number;
      }
      append(sum);
    }
  }
  // Numbers that are equal leave rounding errors only.
  const double energy = points.greatest * points.greatest;
  if (points.inside < 1e-14 * energy) points.inside = 0;
  few_.clear();
  sums_.clear();
  finite_ = true;
  greatest_ = 0;
  return points;
}

}  // namespace mlc::compress
