#include "lib/support/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "lib/support/error.h"
#include "lib/support/regular_file.h"
#include "lib/support/sources.h"

namespace mlc {

namespace {

Error Failed(const char* what, const std::filesystem::path& path) {
  return Error("file-io",
               fmt::format("cannot {} \"{}\": {}", what, path.string(), strerror(errno)));
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
};
// Never destroyed: tensors that live as long as the process hold files.
Mappings& AllMappings() {
  static auto* mappings = new Mappings;
  return *mappings;
}

}  // namespace

int OpenRegular(const std::filesystem::path& path) {
  // Opening a device can have effects, a pipe waits for its writer: they are not even opened.
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
    throw Error("file-io", fmt::format("\"{}\" is {}", path.string(), KindOf(info.st_mode)))
        .Expected("a regular file");
  }
  Sources::AddFile(path, info);
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

std::shared_ptr<const MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  int fd = OpenRegular(path);
  struct stat info;
  void* data = nullptr;
  size_t size = 0;
  if (fstat(fd, &info) == 0) size = static_cast<size_t>(info.st_size);
  if (size > 0) {
    data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      const bool no_room = errno == ENOMEM;
      Error error = Failed("map", path);
      if (no_room)
        error.Help(
            fmt::format("files are mapped whole, which takes {} MB of addresses but little "
                        "memory: raise the limit of those (ulimit -v), or limit memory by "
                        "ulimit -d or a control group",
                        size / 1'000'000 + 1));
      close(fd);
      throw error;
    }
  }
  close(fd);
  std::shared_ptr<const MappedFile> file(
      new MappedFile(path, static_cast<const std::byte*>(data), size));
  std::lock_guard lock(AllMappings().mutex);
  if (size > 0) AllMappings().by_address[file->data_] = {size, path};
  return file;
}

MappedFile::~MappedFile() {
  if (size_ == 0) return;
  {
    std::lock_guard lock(AllMappings().mutex);
    AllMappings().by_address.erase(data_);
  }
  munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::Release(size_t offset, size_t size) const {
  size_t page = PageSize(), begin = (offset + page - 1) / page * page;
  size_t end = (offset + size) / page * page;
  if (begin < end) madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
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
