#include "lib/support/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "lib/support/atomic_install.h"
#include "lib/support/error.h"
#include "lib/support/input_registry.h"
#include "lib/support/memory_limits.h"
#include "lib/support/regular_file.h"
#include "lib/support/work_scope.h"

namespace mlc {

namespace {

Error Failed(const char* what, const std::filesystem::path& path) {
  const bool too_many = errno == EMFILE;
  Error error("file-io", "cannot {} \"{}\": {}", what, path.string(), strerror(errno));
  return too_many ? error.Help("raise the limit of open files (ulimit -n)") : error;
}

const char* KindOf(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

struct Mappings {
  std::mutex mutex;
  std::map<const std::byte*, std::pair<size_t, std::filesystem::path>> by_address;
  size_t bytes = 0;
};
// Never destroyed: tensors with static lifetime hold files.
Mappings& AllMappings() {
  static auto* mappings = new Mappings;
  return *mappings;
}

}  // namespace

Error CutShort(const std::filesystem::path& path) {
  return Error("file-io", "the file was truncated while it was being read, or its disk failed")
      .At({path.string(), ""})
      .Help("run again when no other process writes to it");
}

int OpenRegular(const std::filesystem::path& path) {
  // Special files are not opened: opening a device can have side effects, and opening a pipe blocks
  // until there is a writer.
  struct stat info;
  if (stat(path.c_str(), &info) != 0) throw Failed("open", path);
  int fd = S_ISREG(info.st_mode) ? open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  if (S_ISREG(info.st_mode) && (fd < 0 || fstat(fd, &info) != 0)) {
    Error error = Failed("open", path);
    if (fd >= 0) close(fd);
    throw error;
  }
  if (!S_ISREG(info.st_mode)) {
    if (fd >= 0) close(fd);
    throw Error("file-io", "\"{}\" is {}", path.string(), KindOf(info.st_mode))
        .Expected("a regular file");
  }
  InputRegistry::AddFile(path, info);
  return fd;
}

namespace {
size_t PageSize() {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page;
}
}  // namespace

void Touch(std::span<const std::byte> bytes) {
  for (size_t at = 0; at < bytes.size(); at += PageSize())
    static_cast<void>(*static_cast<const volatile std::byte*>(&bytes[at]));
  if (!bytes.empty()) static_cast<void>(*static_cast<const volatile std::byte*>(&bytes.back()));
}

namespace {
// The address space limit applies to the whole process, so mapped files may use only a small part
// of it.
bool LeavesAddresses(size_t size) {
  constexpr size_t kShare = 4;
  std::lock_guard lock(AllMappings().mutex);
  return AllMappings().bytes + size <= AddressLimit() / kShare;
}
}  // namespace

std::shared_ptr<const MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  int fd = OpenRegular(path);
  struct stat info;
  size_t size = fstat(fd, &info) == 0 ? static_cast<size_t>(info.st_size) : 0;
  std::shared_ptr<MappedFile> file(new MappedFile(path, fd, size));
  file->reads_ = !WorkScope::Current().map_files;
  if (size == 0 || (!file->reads_ && LeavesAddresses(size) && file->Map())) {
    close(fd);
    file->descriptor_ = -1;
  }
  return file;
}

bool MappedFile::Map() const {
  std::lock_guard lock(AllMappings().mutex);
  if (data_) return true;
  const int anonymous = reads_ ? MAP_ANONYMOUS : 0;
  void* data = mmap(nullptr, size_, PROT_READ | (reads_ ? PROT_WRITE : 0), MAP_PRIVATE | anonymous,
                    reads_ ? -1 : descriptor_, 0);
  if (data == MAP_FAILED) return false;
  if (reads_) {
    try {
      ReadParts(0, {static_cast<std::byte*>(data), size_});
    } catch (...) {
      munmap(data, size_);
      throw;
    }
  }
  data_ = static_cast<const std::byte*>(data);
  AllMappings().by_address[data_] = {size_, path_};
  AllMappings().bytes += size_;
  return true;
}

std::span<const std::byte> MappedFile::bytes() const {
  if (size_ > 0 && !data_ && !Map())
    throw OutOfMemory(fmt::format("not enough address space to map a file of {} bytes: {}", size_,
                                  strerror(errno)))
        .At({path_.string(), ""});
  return mapped();
}

void MappedFile::Read(uint64_t offset, std::span<std::byte> out) const {
  if (out.empty()) return;  // without memory, perhaps
  if (std::span<const std::byte> all = mapped(); !all.empty()) {
    std::memcpy(out.data(), all.data() + offset, out.size());
    return;
  }
  ReadParts(offset, out);
}

void MappedFile::ReadParts(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    ssize_t count = pread(descriptor_, out.data(), std::min(out.size(), kMostAtOnce),
                          static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Failed("read", path_);
    if (count == 0) throw CutShort(path_);
    offset += static_cast<uint64_t>(count);
    out = out.subspan(static_cast<size_t>(count));
  }
}

MappedFile::~MappedFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!data_) return;
  {
    std::lock_guard lock(AllMappings().mutex);
    AllMappings().by_address.erase(data_);
    AllMappings().bytes -= size_;
  }
  munmap(const_cast<std::byte*>(data_.load()), size_);
}

void MappedFile::MapIn([[maybe_unused]] size_t offset, [[maybe_unused]] size_t size) const {
#ifdef MADV_POPULATE_READ
  size_t begin = offset / PageSize() * PageSize(), end = std::min(offset + size, size_);
  std::byte* data = const_cast<std::byte*>(data_.load());
  if (!data || reads_ || begin >= end) return;
  // The kernel reads ahead in the file meanwhile, unless it is cached.
  constexpr size_t kAhead = 8 << 20;
  if (size_t next = begin + kAhead; next < size_)
    madvise(data + next, std::min(end - begin, size_ - next), MADV_WILLNEED);
  madvise(data + begin, end - begin, MADV_POPULATE_READ);
#endif
}

void MappedFile::Release(size_t offset, size_t size) const {
  size_t page = PageSize(), begin = (offset + page - 1) / page * page;
  size_t end = (offset + size) / page * page;
  std::byte* data = const_cast<std::byte*>(data_.load());
  if (data && !reads_ && begin < end) madvise(data + begin, end - begin, MADV_DONTNEED);
}

std::filesystem::path MappedAt(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  std::lock_guard lock(AllMappings().mutex);
  auto after = AllMappings().by_address.upper_bound(byte);
  if (after == AllMappings().by_address.begin()) return {};
  const auto& [begin, file] = *std::prev(after);
  return byte < begin + file.first ? file.second : std::filesystem::path();
}

}  // namespace mlc
