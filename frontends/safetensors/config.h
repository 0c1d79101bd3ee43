// frontends/safetensors/config.h - config.json of a Hugging Face folder, one typed question at a time.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mlc {

// An object of the file: the whole, or one inside it. A handle; copies share. A member that is null is
// as good as none: transformers writes null where a default holds.
//
// Each getter without a fallback is Error "bad-file" where the member is missing, each one where it is
// of another type; the error names file, key ("rope_scaling.factor") and what was found.
class Config {
 public:
  Config();  // without members
  // Error "file-io", "bad-file", "resource-limit".
  static Config Read(const std::filesystem::path& file);
  // Of a file that is a list of objects.
  static std::vector<Config> ReadList(const std::filesystem::path& file);
  // `file` is what errors name.
  static Config Parse(std::string_view text, const std::string& file);
  // The same with the members of `defaults`, an object as JSON, that it lacks; null is not lacking.
  Config WithDefaults(std::string_view defaults) const;

  enum class Kind { kNone, kBool, kInt, kNumber, kText, kList, kObject };
  Kind kind(const std::string& key) const;
  bool has(const std::string& key) const { return kind(key) != Kind::kNone; }
  std::vector<std::string> keys() const;  // of what is not null, sorted

  int64_t Int(const std::string& key) const;  // 4096.0 is one, too
  int64_t Int(const std::string& key, int64_t fallback) const;
  double Number(const std::string& key) const;
  double Number(const std::string& key, double fallback) const;
  bool Bool(const std::string& key) const;
  bool Bool(const std::string& key, bool fallback) const;
  std::string Text(const std::string& key) const;
  std::string Text(const std::string& key, const std::string& fallback) const;
  std::vector<int64_t> Ints(const std::string& key) const;
  std::vector<double> Numbers(const std::string& key) const;
  std::vector<std::string> Texts(const std::string& key) const;
  std::map<std::string, std::string> TextMap(const std::string& key) const;
  Config Object(const std::string& key) const;
  std::string Json(const std::string& key) const;  // as JSON on one line

  const std::string& file() const { return file_; }
  // As errors name a member: "rope_scaling.factor".
  std::string KeyPath(const std::string& key) const { return path_ + key; }

 private:
  std::shared_ptr<const void>
      object_;               // of the JSON library, which no header includes; null: no members
  std::string file_, path_;  // path_: "rope_scaling.", empty for the whole
};

}  // namespace mlc
