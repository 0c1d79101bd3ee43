#include "frontends/safetensors/folder_weights.h"

#include <charconv>
#include <optional>

#include "lib/networks/check_weights.h"

namespace mlc::safetensors {

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the name with the beginning that matches `row.ours` replaced by `row.theirs`.
std::optional<std::string> Renamed(const TensorName& row, std::string_view name) {
  std::vector<std::string_view> numbers;
  size_t at = 0;
  for (size_t i = 0; i < row.ours.size(); ++i) {
    if (row.ours.substr(i, 2) != "{}") {
      if (at == name.size() || name[at++] != row.ours[i]) return std::nullopt;
      continue;
    }
    const size_t first = at;
    while (at < name.size() && IsDigit(name[at])) ++at;
    if (at == first) return std::nullopt;
    numbers.push_back(name.substr(first, at - first));
    ++i;
  }
  if (at < name.size() && name[at] != '.') return std::nullopt;
  std::string result;
  size_t number = 0;
  for (size_t i = 0; i < row.theirs.size(); ++i) {
    constexpr std::string_view kNext = "{+1}";
    if (row.theirs.substr(i, kNext.size()) == kNext) {
      int64_t value = 0;
      const std::string_view digits = numbers.at(number++);
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
      result += std::to_string(value + 1);
      i += kNext.size() - 1;
    } else if (row.theirs.substr(i, 2) == "{}") {
      result += numbers.at(number++);
      ++i;
    } else {
      result += row.theirs[i];
    }
  }
  return result.append(name.substr(at));
}

}  // namespace

FolderWeights::FolderWeights(const Folder& folder, std::vector<std::string> prefixes,
                             std::vector<TensorName> names)
    : folder_(folder), prefixes_(std::move(prefixes)), names_(std::move(names)) {}

std::vector<std::string> FolderWeights::Possible(const std::string& ours) const {
  std::vector<std::string> inner, possible;
  for (const TensorName& row : names_)
    if (std::optional<std::string> name = Renamed(row, ours)) inner.push_back(*name);
  if (inner.empty()) inner.push_back(ours);
  for (const std::string& prefix : prefixes_)
    for (const std::string& name : inner) possible.push_back(prefix + name);
  return possible;
}

std::string FolderWeights::Stored(const std::string& ours) const {
  for (const std::string& name : Possible(ours))
    if (folder_.has(name)) return name;
  return "";
}

std::string FolderWeights::Name(const std::string& ours) const {
  const std::string stored = Stored(ours);
  return stored.empty() ? Possible(ours).front() : stored;
}

Tensor FolderWeights::Find(const std::string& ours) {
  const std::string stored = Stored(ours);
  if (stored.empty()) return {};
  Use(stored);
  return folder_.tensor(stored);
}

networks::NetworkWeights FolderWeights::ForNetwork() {
  return {.find = [this](const std::string& ours) { return Find(ours); },
          .name = [this](const std::string& ours) { return Name(ours); }};
}

void FolderWeights::CheckAllUsed(bool (*is_left_over)(std::string_view name)) const {
  std::set<std::string> used = used_;
  for (const std::string& name : folder_.names())
    if (name.ends_with("position_ids") || name.ends_with("num_batches_tracked") ||
        (is_left_over && is_left_over(name)) ||
        (!used.contains(name) && folder_.tensor(name).size() == 0))
      used.insert(name);
  networks::CheckAllUsed(folder_.architecture(), folder_.names(), used);
}

}  // namespace mlc::safetensors
