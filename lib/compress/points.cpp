#include "lib/compress/points.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mlc::compress {

namespace {

constexpr size_t kFew = 2048;  // fewer numbers are sorted, more are counted in a histogram

// The position of an fp16 number in ascending order; -0 and 0 are equal.
uint16_t KeyOf(uint16_t bits) {
  if (bits == 0x8000) bits = 0;
  return bits & 0x8000 ? static_cast<uint16_t>(~bits) : static_cast<uint16_t>(bits | 0x8000);
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
  for (const uint16_t bits : numbers) ++halves_[bits];
}

void PointCounter::Add(PointCounter other) {
  finite_ = finite_ && other.finite_;
  greatest_ = std::max(greatest_, other.greatest_);
  if (!other.halves_.empty()) {
    halves_.resize(size_t{1} << 16);
    for (size_t i = 0; i < halves_.size(); ++i) halves_[i] += other.halves_[i];
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

Points PointCounter::Take() {
  if (!halves_.empty()) {
    constexpr uint16_t kSign = 0x8000, kInfinity = 0x7C00;
    Points points;
    auto append = [&](uint16_t bits) {
      if ((bits & kInfinity) == kInfinity) points.finite = false;
      const double value(Half::FromBits(bits));
      points.greatest = std::max(points.greatest, std::fabs(value));
      if (bits == 0 && !with_zeros_) return;
      points.values.push_back(value);
      points.weights.push_back(static_cast<double>(halves_[bits]));
    };
    halves_[0] += std::exchange(halves_[kSign], 0U);
    // Most numbers do not occur in a small group, so that blocks without any are skipped.
    constexpr int kBlock = 16;
    auto occurs = [&](int block) {
      uint32_t any = 0;
      for (int i = 0; i < kBlock; ++i) any |= halves_[block + i];
      return any != 0;
    };
    for (int block = 0x10000 - kBlock; block >= kSign; block -= kBlock) {
      if (!occurs(block)) continue;
      for (int bits = block + kBlock - 1; bits >= block; --bits)
        if (halves_[bits] != 0) append(static_cast<uint16_t>(bits));
    }
    for (int block = 0; block < kSign; block += kBlock) {
      if (!occurs(block)) continue;
      for (int bits = block; bits < block + kBlock; ++bits)
        if (halves_[bits] != 0) append(static_cast<uint16_t>(bits));
    }
    halves_.clear();
    return points;
  }
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
