// tools/driver/build_emit.h - the actions of recipes as input for other engines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/driver/build.h"

namespace mlc::driver {

// Returns the variants of recipes that match `options.only`, one action each:
//   list    one command a line, for xargs, GNU parallel and arrays of Slurm
//   ninja   a build file, in which the variants share the processors and large ones run alone
//   bazel   a BUILD file for scripts/bazel/mlc.bzl, in the folder that has all files
// `program` is the path of mlc in the commands. Throws Errors of all recipes; "usage" for another
// format, and for files outside of the folder with bazel.
std::string EmitBuild(const std::vector<std::string>& recipes, const BuildOptions& options,
                      std::string_view format, const std::string& program);

}  // namespace mlc::driver
