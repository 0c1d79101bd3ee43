// tools/runtime/program.h - a program under construction.
//
// Handles of blocks belong to the program and stay valid as long as it exists; a block whose
// operation was dropped, or whose program was rewritten, is recognised and refused. A value is an
// index into a table of the program, with a serial number of the program above it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/program.h"
#include "tools/runtime/call.h"

namespace mlc::abi {

struct ProgramParts;

}  // namespace mlc::abi

struct mlc_block {
  mlc::abi::ProgramParts* program = nullptr;
  mlc_block* around = nullptr;    // null for the body of a function
  mlc::Block* block = nullptr;    // null: dropped
  bool open = true;               // whether operations can be added
  std::vector<mlc_value> values;  // those defined here
};

namespace mlc::abi {

// What handles of operations and of the program share.
struct ProgramParts : std::enable_shared_from_this<ProgramParts> {
  explicit ProgramParts(Program made);
  Program program;
  Diagnostics diagnostics;  // of building, e.g. of lowering
  const uint32_t serial;
  struct Known {
    Value* value = nullptr;  // null: dropped
    mlc_block* block = nullptr;
  };
  std::vector<Known> values;
  std::vector<std::unique_ptr<mlc_block>> blocks;
  std::optional<Opset> target;            // of all functions; absent: the lowest possible
  std::vector<std::string> symbol_names;  // by number: dim -1 is the first
  std::vector<const Function*> symbol_functions;

  mlc_value Add(Value* value, mlc_block* block);
  mlc_block* AddBlock(mlc_block* around, Block* block);
  // Error "usage" for a value of another program, or one that was dropped.
  const Known& At(mlc_value value) const;
  const Known* Find(mlc_value value) const;  // null instead of an error
  // The value, which must be visible in `block`.
  Value* Visible(mlc_value value, const mlc_block* block) const;
  // Drops a block that is not part of the program, and everything in it.
  void Drop(mlc_block* block);
  // After the program was rewritten: drops all values and blocks.
  void Seal();
  // Error "bad-graph" if the program cannot be used as it is: no function, or one without outputs.
  void RequireComplete() const;
};

// Error "usage" for a block that cannot be changed any more.
ProgramParts& Open(mlc_block* block);
}  // namespace mlc::abi

struct mlc_program {
  std::shared_ptr<mlc::abi::ProgramParts> parts;
};
