#include "tools/driver/errors.h"

#include <algorithm>
#include <cctype>
#include <new>
#include <system_error>

#include "lib/support/memory_limits.h"

namespace mlc::driver {

std::vector<Error> CurrentErrors() {
  try {
    throw;
  } catch (const Errors& errors) {
    return errors.errors();
  } catch (const Error& error) {
    return {error};
  } catch (const std::bad_alloc&) {
    return {OutOfMemory("not enough memory for this model")};
  } catch (const std::system_error& error) {  // e.g. a file name that is too long, a full disk
    return {Error("file-io", error.what())};
  } catch (const std::exception& bug) {
    return {Error("internal", bug.what())
                .Help("this is a bug in mlc: please report the model and this text")};
  }
}

std::string WithFlags(std::string_view text) {
  constexpr std::string_view kOption = "option '";
  std::string with;
  for (size_t at; (at = text.find(kOption)) != text.npos;) {
    const size_t name = at + kOption.size(), end = std::min(text.find('\'', name), text.size());
    with += fmt::format("{}--{}", text.substr(0, at), text.substr(name, end - name));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return with.append(text);
}

namespace {

// Flags as fields, in a text without commands.
std::string FieldsIn(std::string_view text) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-';
  };
  std::string with;
  for (size_t at; (at = text.find("--")) != text.npos;) {
    size_t end = at + 2;
    while (end < text.size() && is_word(text[end])) ++end;
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const bool named = end > at + 2 && std::islower(static_cast<unsigned char>(text[at + 2]));
    with += begins && named ? fmt::format("{}option '{}'", text.substr(0, at),
                                          text.substr(at + 2, end - at - 2))
                            : std::string(text.substr(0, end));
    text.remove_prefix(end);
  }
  return with.append(text);
}

}  // namespace

std::string WithFields(std::string_view text) {
  std::string with;
  if (text.starts_with("-o: ")) {
    with = "output: ";
    text.remove_prefix(4);
  }
  // A command in backquotes stays one.
  for (bool command = false;; command = !command) {
    const size_t end = std::min(text.find('`'), text.size());
    with += command ? WithFlags(text.substr(0, end)) : FieldsIn(text.substr(0, end));
    if (end == text.size()) return with;
    with += '`';
    text.remove_prefix(end + 1);
  }
}

}  // namespace mlc::driver
