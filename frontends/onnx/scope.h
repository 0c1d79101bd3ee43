// frontends/onnx/scope.h - the names of one graph (or function call) and the lowering of its nodes.
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

// Open sizes of inputs that needs of operators narrowed (need.h).
struct NarrowedSizes {
  struct Note {
    std::string what, why;
  };
  std::map<std::string, Symbol> sizes;      // by the name that --dim knows
  std::map<std::string, std::string> same;  // names of sizes that must be those of others
  std::vector<Note> notes;
  bool again = false;  // one is a number or another one now: the import should begin anew
};

// What all scopes of one import share.
struct ImportState {
  const Model& model;
  const ImportOptions& options;
  Diagnostics& diagnostics;
  Program& program;
  std::string file;
  NarrowedSizes& narrowed;
  std::map<std::string, std::string> open = {};  // symbols of inputs' open sizes, and their names
  size_t lowered = 0;                            // nodes so far, those of function bodies included
  std::unordered_set<const Value*> named;        // values that have the name of an ONNX value
  std::vector<bool> replaced;                    // which of options.replacements applied somewhere
  bool trial = false;                // errors are not reported: there is another way to try
  std::set<const Error*> said = {};  // errors of constants that were thrown outside of trials

  // The constant's tensor; its error once, then Skipped.
  const Tensor& Get(const Constant& constant);
};

// Thrown where a value is missing whose own error has been reported.
struct Skipped {};

class Scope {
 public:
  // `outer` is where names are looked up that this graph lacks; null for the main graph and for
  // functions.
  Scope(ImportState& import, Scope* outer, Builder& builder, const Opsets& opsets,
        std::string prefix = "", int depth = 0)
      : import_(import),
        outer_(outer),
        builder_(builder),
        opsets_(opsets),
        prefix_(std::move(prefix)),
        depth_(depth) {}

  // Constants become operations when a node first reads them. `constant` must live as long as the
  // scope.
  void Declare(const Constant& constant);
  void Bind(const std::string& name, Bound bound);  // Error "bad-graph" when the name is taken
  // Error "bad-graph" when there is no such value; Skipped when the node that makes it failed.
  Bound Find(const std::string& name);
  bool Uses(const std::string& name) const { return used_.contains(name); }
  std::optional<Opset> target() const { return import_.options.target; }

  // Lowers the nodes on which `wanted` depends and binds their outputs. Errors go to the
  // diagnostics; what depends on a failed node is skipped.
  void Lower(const std::vector<NodeDef>& nodes, const std::vector<std::string>& wanted);
  // See Node::Inline.
  std::vector<Bound> Inline(const Graph& graph, const std::vector<Bound>& inputs, Builder& into);
  // See Node::Apply. `def` has one output; its inputs are set here.
  Value* Apply(NodeDef def, int opset, const std::vector<Bound>& inputs);

  ImportState& import() { return import_; }

 private:
  void LowerNode(const NodeDef& def);
  std::vector<Bound> Call(const FunctionDef& function, const NodeDef& call);
  std::vector<Bound> Handle(const NodeDef& def, int opset);
  // What the row's handler sets, after checking that it read all attributes.
  std::vector<Bound> Invoke(const NodeDef& def, const NodeRow& row, int opset);
  int OpsetOf(const std::string& domain) const;
  void Report(Error error, const NodeDef& def, int opset);
  NodeDef WithReplacements(const NodeDef& def);

  ImportState& import_;
  Scope* outer_;
  Builder& builder_;
  const Opsets& opsets_;
  std::string prefix_;  // of node names inside a function: "call/"
  int depth_;           // of function calls and subgraphs
  std::unordered_map<std::string, Bound> bound_;
  std::unordered_map<std::string, const Constant*> constants_;
  std::unordered_set<std::string> used_;
};

}  // namespace mlc::onnx
