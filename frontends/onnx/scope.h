// frontends/onnx/scope.h - the value names of one graph (or function call), and the lowering of its
// nodes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontends/onnx/model/order.h"
#include "frontends/onnx/node.h"
#include "frontends/onnx/onnx.h"

namespace mlc::onnx {

struct NodeRow;

// Flexible input sizes that were narrowed by requirements of operators (shape_guard.h).
struct NarrowedSizes {
  struct Note {
    std::string what, why;
  };
  std::map<std::string, Symbol> sizes;      // by the name that --dim accepts
  std::map<std::string, std::string> same;  // sizes that must equal another size, by name
  std::vector<Note> notes;
  bool again = false;  // a size became constant or equal to another: the import must restart
};

// State shared by all scopes of one import.
struct ImportState {
  const Model& model;
  const ImportOptions& options;
  Diagnostics& diagnostics;
  Program& program;
  std::string file;
  NarrowedSizes& narrowed;
  std::map<std::string, std::string> open =
      {};              // symbols of flexible input dimensions and their names
  size_t lowered = 0;  // number of nodes lowered so far, including those of function bodies
  std::unordered_set<const Value*> named;  // values that carry the name of an ONNX value
  std::vector<bool> replaced;              // whether each of options.replacements was applied
  bool trial = false;  // errors are not reported because an alternative lowering follows
  std::set<const Error*> said =
      {};  // errors of constants that have been reported (outside of trials)

  // Returns the constant's tensor. Throws its error the first time, and Skipped after that.
  const Tensor& Get(const Constant& constant);
};

// Thrown when a value is unavailable and the error behind it has already been reported.
struct Skipped {};

class Scope {
 public:
  // `outer` is the enclosing scope, in which names missing from this graph are looked up; null for
  // the main graph and for functions.
  Scope(ImportState& import, Scope* outer, Builder& builder, const Opsets& opsets,
        std::string prefix = "", int depth = 0)
      : import_(import),
        outer_(outer),
        builder_(builder),
        opsets_(opsets),
        prefix_(std::move(prefix)),
        depth_(depth) {}

  // Declares a constant, which becomes an operation when a node first reads it. `constant` must
  // outlive the scope.
  void Declare(const Constant& constant);
  void Bind(const std::string& name, Bound bound);  // throws "bad-graph" when the name is taken
  // Throws "bad-graph" when there is no such value, and Skipped when the node that produces it
  // failed.
  Bound Find(const std::string& name);
  bool Uses(const std::string& name) const { return used_.contains(name); }
  std::optional<Opset> target() const { return import_.options.target; }

  // Lowers the nodes on which `wanted` depends and binds their outputs. Errors are added to the
  // diagnostics; nodes that depend on a failed node are skipped.
  void Lower(const std::vector<NodeDef>& nodes, const std::vector<std::string>& wanted);
  // Implements Node::Inline.
  std::vector<Bound> Inline(const Graph& graph, const std::vector<Bound>& inputs, Builder& into);
  // Implements Node::Apply. `def` has one output; its inputs are set here.
  Value* Apply(NodeDef def, int opset, const std::vector<Bound>& inputs);

  ImportState& import() { return import_; }

 private:
  void LowerNode(const NodeDef& def);
  std::vector<Bound> Call(const FunctionDef& function, const NodeDef& call);
  std::vector<Bound> Handle(const NodeDef& def, int opset);
  // Runs the row's handler, checks that it read all attributes, and returns its results.
  std::vector<Bound> Invoke(const NodeDef& def, const NodeRow& row, int opset);
  int OpsetOf(const std::string& domain) const;
  void Report(Error error, const NodeDef& def, int opset);
  NodeDef WithReplacements(const NodeDef& def);

  ImportState& import_;
  Scope* outer_;
  Builder& builder_;
  const Opsets& opsets_;
  std::string prefix_;  // prefix of node names inside a function: "call/"
  int depth_;           // nesting depth of function calls and subgraphs
  std::unordered_map<std::string, Bound> bound_;
  std::unordered_map<std::string, const Constant*> constants_;
  std::unordered_set<std::string> used_;
};

}  // namespace mlc::onnx
