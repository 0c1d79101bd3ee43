// test/fuzz/file_parts.h - support for fuzzing readers of several files: an input that is a list of
// parts, a mutator for such inputs, and a scratch folder.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// libFuzzer's in-place mutation of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace mlc {

// Every part except the last begins with its size (4 bytes, little-endian); missing parts are
// empty.
inline std::vector<std::string> SplitParts(const uint8_t* data, size_t size, size_t count) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> parts;
  while (parts.size() + 1 < count) {
    uint32_t length = 0;
    size_t head = std::min(sizeof length, rest.size());
    std::memcpy(&length, rest.data(), head);
    rest.remove_prefix(head);
    parts.emplace_back(rest.substr(0, length));
    rest.remove_prefix(parts.back().size());
  }
  parts.emplace_back(rest);
  return parts;
}

// Writes the inverse of SplitParts to `data`, cut at `max_size`, and returns its size.
inline size_t JoinParts(const std::vector<std::string>& parts, uint8_t* data, size_t max_size) {
  std::string whole;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto length = static_cast<uint32_t>(parts[i].size());
    if (i + 1 < parts.size()) whole.append(reinterpret_cast<const char*>(&length), sizeof length);
    whole += parts[i];
  }
  size_t written = std::min(whole.size(), max_size);
  std::memcpy(data, whole.data(), written);
  return written;
}

// Mutates one part and keeps the others. For LLVMFuzzerCustomMutator.
inline size_t MutateParts(uint8_t* data, size_t size, size_t max_size, unsigned seed,
                          size_t count) {
  std::vector<std::string> parts = SplitParts(data, size, count);
  std::minstd_rand random(seed);
  std::string& changed = parts[random() % count];
  size_t others = 4 * (count - 1);
  for (const std::string& part : parts) others += &part == &changed ? 0 : part.size();
  if (others >= max_size) return LLVMFuzzerMutate(data, size, max_size);
  size_t old_size = changed.size(), room = std::max(old_size, max_size - others);
  changed.resize(room);
  changed.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(changed.data()), old_size, room));
  return JoinParts(parts, data, max_size);
}

// A scratch folder of this process, in memory if the system has such a file system; removed at the
// end.
class ScratchFolder {
 public:
  explicit ScratchFolder(std::string_view name) {
    std::filesystem::path memory = "/dev/shm";
    if (!std::filesystem::exists(memory)) memory = std::filesystem::temp_directory_path();
    path_ = memory / (std::string(name) + "-" + std::to_string(getpid()));
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  void Write(const std::filesystem::path& name, std::string_view data) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary)
        .write(data.data(), static_cast<std::streamsize>(data.size()));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace mlc
