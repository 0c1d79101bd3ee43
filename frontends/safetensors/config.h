// frontends/safetensors/config.h - typed access to the config.json of a Hugging Face folder.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mlc::safetensors {

// Returns the integer part of a number that was computed from members. Numbers beyond the range of
// Config::Int become its limits, and NaN becomes 0, which no network accepts as a size.
int64_t Truncated(double number);

// An object of the file: the top-level object or a nested one. A Config is a handle; copies share
// the data. A null member counts as missing, since transformers writes null for defaults.
//
// Getters without a fallback throw Error "bad-file" if the member is missing; all getters throw it
// if the member has another type. The error names the file, the key ("rope_scaling.factor") and
// what was found.
class Config {
 public:
  Config() = default;  // has no members
  // Reads a file. Errors "file-io", "bad-file", "resource-limit".
  static Config Read(const std::filesystem::path& file);
  // Reads a file with a list of objects.
  static std::vector<Config> ReadList(const std::filesystem::path& file);
  // Parses a string; errors refer to it as `file`.
  static Config Parse(std::string_view text, const std::string& file);
  // Returns a copy in which missing members are taken from `defaults`, a JSON object; null members
  // do not count as missing.
  Config WithDefaults(std::string_view defaults) const;
  // Returns a copy with the members of a JSON object, which replace others.
  Config With(std::string_view members) const;

  enum class Kind { kNone, kBool, kInt, kNumber, kText, kList, kObject };
  Kind kind(const std::string& key) const;
  bool has(const std::string& key) const { return kind(key) != Kind::kNone; }
  std::vector<std::string> keys() const;  // keys of all members except nulls, sorted

  // Accepts 4096.0, too. No size of a tensor and no token id is above INT32_MAX; the limit makes the
  // product of two such numbers fit int64.
  int64_t Int(const std::string& key) const;
  int64_t Int(const std::string& key, int64_t fallback) const {
    return has(key) ? Int(key) : fallback;
  }
  double Number(const std::string& key) const;
  double Number(const std::string& key, double fallback) const {
    return has(key) ? Number(key) : fallback;
  }
  bool Bool(const std::string& key) const;
  bool Bool(const std::string& key, bool fallback) const { return has(key) ? Bool(key) : fallback; }
  std::string Text(const std::string& key) const;
  std::string Text(const std::string& key, const std::string& fallback) const {
    return has(key) ? Text(key) : fallback;
  }
  std::vector<int64_t> Ints(const std::string& key) const;
  std::vector<std::vector<int64_t>> IntLists(const std::string& key) const;  // missing: empty
  std::vector<double> Numbers(const std::string& key) const;
  std::vector<bool> Bools(const std::string& key) const;
  std::vector<std::string> Texts(const std::string& key) const;
  std::map<std::string, std::string> TextMap(const std::string& key) const;
  Config Object(const std::string& key) const;
  std::string Json(const std::string& key) const;  // JSON text on one line

  const std::string& file() const { return file_; }
  // Returns a member's name for error messages: "rope_scaling.factor".
  std::string KeyPath(const std::string& key) const { return path_ + key; }
  // Throws Error "unsupported-architecture", which shows the member and what was expected.
  [[noreturn]] void Refuse(const std::string& key, const std::string& expected) const;

 private:
  std::shared_ptr<const void>
      object_;  // an object of the JSON library, which no header includes; null: no members
  std::string file_, path_;  // path_: "rope_scaling."; empty for the top-level object
};

}  // namespace mlc::safetensors
