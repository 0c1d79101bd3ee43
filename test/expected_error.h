// test/expected_error.h - the errors with which a function rejects its input.
#pragma once

#include <string>
#include <vector>

#include "lib/support/error.h"
#include "test/catch.h"

namespace mlc::test {

// The errors that work() throws, all of them faults of the input or of a request; none when it
// succeeds.
template <class F>
std::vector<Error> Refusals(F&& work) {
  std::vector<Error> errors;
  try {
    work();
  } catch (const Errors& several) {
    errors = several.errors();
  } catch (const Error& error) {
    errors = {error};
  }
  for (const Error& error : errors) CHECK(ExitCode(error.id()) != 70);
  return errors;
}

// Their texts; empty when it succeeds.
template <class F>
std::string Refusal(F&& work) {
  std::string text;
  for (const Error& error : Refusals(work))
    text += (text.empty() ? "" : "\n") + std::string(error.what());
  return text;
}

// The id of the first; empty when it succeeds.
template <class F>
std::string RefusalId(F&& work) {
  std::vector<Error> errors = Refusals(work);
  return errors.empty() ? "" : errors[0].id();
}

}  // namespace mlc::test
