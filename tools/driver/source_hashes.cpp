#include "tools/driver/source_hashes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/coreml/package_layout.h"
#include "lib/support/byte_window.h"

namespace fs = std::filesystem;

namespace mlc::driver {

std::vector<SourceFile> SourceFiles(const fs::path& model, const SourceFacts& facts) {
  std::map<std::string, fs::path> data;
  for (const SourceFacts::File& file : facts.files) data[file.name] = file.path;
  std::vector<SourceFile> files;
  if (fs::is_directory(model)) {
    if (data.empty()) data = coreml::PackageFiles(model);
  } else {
    files.push_back({.name = model.filename().string(), .path = model});
  }
  for (const auto& [name, path] : data) files.push_back({.name = name, .path = path});
  return files;
}

namespace {
template <class Hash>
std::string Combined(const std::vector<SourceFile>& files, std::string SourceFile::*hex) {
  if (files.size() == 1) return files[0].*hex;
  Hash hash;
  for (const SourceFile& file : files) {
    if ((file.*hex).empty()) return "";
    hash.Update(fmt::format("{}  {}\n", file.*hex, file.name));
  }
  return hash.Hex();
}
}  // namespace

std::string CombinedSha256(const std::vector<SourceFile>& files) {
  return Combined<Sha256>(files, &SourceFile::sha256);
}
std::string CombinedXxh3(const std::vector<SourceFile>& files) {
  return Combined<Xxh3>(files, &SourceFile::xxh3_128);
}

SourceHashes::SourceHashes(std::vector<SourceFile> files, bool sha256) : sha256_(sha256) {
  for (SourceFile& file : files) states_.emplace_back().file = std::move(file);
}

void SourceHashes::Update(State& state, std::span<const std::byte> bytes) {
  state.xxh3.Update(bytes);
  if (sha256_) state.sha256.Update(bytes);
  state.at += bytes.size();
}

void SourceHashes::Read(State& state, const MappedFile& file, uint64_t end) {
  constexpr uint64_t kWindow = 2 << 20;
  ByteWindow bytes(file);
  while (state.at < end) {
    const uint64_t at = state.at, count = std::min(kWindow, end - at);
    Update(state, bytes.At(at, count));
    file.Release(at, count);
  }
}
void SourceHashes::Pass(const MappedFile& file, uint64_t end) {
  // Nearby skipped bytes are hashed now, because layers may be read out of order. Large gaps are
  // left to Finish(), because hashing them here would delay the output.
  constexpr uint64_t kFar = 256 << 20;
  for (State& state : states_)
    if (file.path() == state.file.path && end > state.at && end - state.at <= kFar)
      Read(state, file, end);
}

std::vector<SourceFile> SourceHashes::Finish() {
  std::vector<SourceFile> files;
  for (State& state : states_) {
    std::shared_ptr<const MappedFile> file = MappedFile::Open(state.file.path);
    Read(state, *file, file->size());
    state.file.bytes = file->size();
    state.file.xxh3_128 = state.xxh3.Hex();
    if (sha256_) state.file.sha256 = state.sha256.Hex();
    files.push_back(std::move(state.file));
  }
  return files;
}

}  // namespace mlc::driver
