#include "tools/driver/errors.h"

#include <new>
#include <system_error>

#include "lib/support/memory_limits.h"

namespace mlc {

std::vector<Error> CurrentErrors() {
  try {
    throw;
  } catch (const Errors& errors) {
    return errors.errors();
  } catch (const Error& error) {
    return {error};
  } catch (const std::bad_alloc&) {
    return {OutOfMemory("not enough memory for this model")};
  } catch (const std::system_error& error) {  // names that are too long, a full disk, ...
    return {Error("file-io", error.what())};
  } catch (const std::exception& bug) {
    return {Error("internal", bug.what())
                .Help("this is a bug in mlc: please report the model and this text")};
  }
}

}  // namespace mlc
