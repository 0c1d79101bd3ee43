#include "tools/driver/errors.h"

#include <algorithm>
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

}  // namespace mlc::driver
