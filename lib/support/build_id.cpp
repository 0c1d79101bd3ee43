#include "lib/support/build_id.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "lib/support/child_process.h"
#include "lib/support/hash.h"

#ifdef __APPLE__
#include <dlfcn.h>
#include <mach-o/loader.h>
#else
#include <elf.h>
#include <link.h>
#endif

namespace mlc {
namespace {

std::string Hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

#ifndef __APPLE__
struct Search {
  uintptr_t code;  // an address in this binary
  std::string id;
};

// elf(5): a note consists of a header, a name and a description; the latter two are padded to 4
// bytes.
std::string IdInNotes(const char* at, const char* end) {
  constexpr size_t kAlignment = 4;
  auto padded = [](size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; };
  while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const char* name = at + sizeof note;
    const char* description = name + padded(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof "GNU" &&
        std::memcmp(name, "GNU", sizeof "GNU") == 0)
      return Hex({reinterpret_cast<const unsigned char*>(description), note.n_descsz});
    at = description + padded(note.n_descsz);
  }
  return "";
}

int Look(dl_phdr_info* object, size_t, void* into) {
  auto* search = static_cast<Search*>(into);
  bool ours = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    ours = ours ||
           (part.p_type == PT_LOAD && search->code >= begin && search->code < begin + part.p_memsz);
  }
  for (int i = 0; ours && search->id.empty() && i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const char* notes = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
    search->id = IdInNotes(notes, notes + part.p_memsz);
  }
  return ours;
}
#endif

}  // namespace

std::string BuildId() {
#ifdef __APPLE__
  Dl_info object;
  if (dladdr(reinterpret_cast<const void*>(&BuildId), &object) == 0) return "";
  const auto* header = static_cast<const mach_header_64*>(object.dli_fbase);
  const auto* at = reinterpret_cast<const char*>(header + 1);
  for (uint32_t i = 0; i < header->ncmds; ++i) {
    const auto* command = reinterpret_cast<const load_command*>(at);
    if (command->cmd == LC_UUID) return Hex(reinterpret_cast<const uuid_command*>(command)->uuid);
    at += command->cmdsize;
  }
  return "";
#else
  Search search{reinterpret_cast<uintptr_t>(&BuildId), ""};
  dl_iterate_phdr(Look, &search);
  return search.id;
#endif
}

const std::string& BuildName() {
  static const std::string name = [] {
    std::string id = BuildId();
    return id.empty() ? Sha256OfFile(ThisExecutable()) : id;
  }();
  return name;
}

}  // namespace mlc
