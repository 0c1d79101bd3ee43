// Mlc.swift - libmlc in Swift: models, predictions, text. mlc.h is the manual.
import CMlc

public struct MlcError: Error, CustomStringConvertible {
  public let code: Int32
  public let id: String
  public let description: String
}

/// Calls a function that stores an error record.
func call(_ body: (UnsafeMutablePointer<OpaquePointer?>) -> Int32) throws {
  var error: OpaquePointer?
  let code = body(&error)
  guard code != MLC_OK else { return }
  defer { mlc_error_free(error) }
  throw MlcError(
    code: code, id: String(cString: mlc_error_id(error)),
    description: String(cString: mlc_error_text(error)))
}

/// A loaded function of a model. Several threads may predict at once.
public final class Model: @unchecked Sendable {
  let handle: OpaquePointer

  public init(path: String, options: String? = nil) throws {
    var made: OpaquePointer?
    try call { mlc_model_load(nil, path, options, &made, $0) }
    handle = made!
  }
  deinit { mlc_model_free(handle) }

  public var schema: String { String(cString: mlc_model_schema(handle)) }

  /// Predicts fp32 outputs from fp32 inputs: name, elements, sizes.
  public func predict(_ inputs: [(name: String, values: [Float], dims: [Int64])], timeoutMs: Int64 = 0)
    throws -> [String: [Float]]
  {
    var request: OpaquePointer?
    try call { mlc_request_new(handle, &request, $0) }
    defer { mlc_request_free(request) }
    for input in inputs {
      try input.values.withUnsafeBytes { bytes in
        try input.dims.withUnsafeBufferPointer { dims in
          var tensor = mlc_tensor()
          tensor.struct_size = MemoryLayout<mlc_tensor>.size
          tensor.data = UnsafeMutableRawPointer(mutating: bytes.baseAddress)
          tensor.dtype = MLC_FP32
          tensor.rank = Int32(dims.count)
          tensor.dims = dims.baseAddress
          try call { mlc_request_set_input(request, input.name, &tensor, $0) }
        }
      }
    }
    var results: OpaquePointer?
    try call { mlc_request_run(request, timeoutMs, &results, $0) }
    defer { mlc_results_free(results) }
    var found: [String: [Float]] = [:]
    for index in 0..<mlc_results_count(results) {
      var tensor = mlc_tensor()
      tensor.struct_size = MemoryLayout<mlc_tensor>.size
      try call { mlc_results_tensor(results, index, &tensor, $0) }
      guard tensor.dtype == MLC_FP32, let name = mlc_results_name(results, index) else { continue }
      let count = (0..<Int(tensor.rank)).reduce(1) { $0 * Int(tensor.dims[$1]) }
      let floats = tensor.data.assumingMemoryBound(to: Float.self)
      found[String(cString: name)] = Array(UnsafeBufferPointer(start: floats, count: count))
    }
    return found
  }
}

/// Continues a text with a language model, piece by piece.
public final class Generator: Sequence, IteratorProtocol {
  private let handle: OpaquePointer
  private var done = false
  public private(set) var error: Error?

  public init(model: Model, tokenizerPath: String, options: String? = nil) throws {
    var tokenizer: OpaquePointer?
    try call { mlc_tokenizer_load(nil, tokenizerPath, &tokenizer, $0) }
    defer { mlc_tokenizer_free(tokenizer) }
    var made: OpaquePointer?
    try call { mlc_generator_new(model.handle, tokenizer, options, &made, $0) }
    handle = made!
  }
  deinit { mlc_generator_free(handle) }

  public func feed(_ text: String) throws {
    done = false
    try call { mlc_generator_feed(handle, text, text.utf8.count, $0) }
  }
  public func next() -> String? {
    guard !done else { return nil }
    var piece: UnsafePointer<CChar>?
    var ended: Int32 = 0
    do {
      try call { mlc_generator_next(handle, nil, &piece, &ended, $0) }
    } catch {
      self.error = error
      return nil
    }
    done = ended != 0
    return piece.map { String(cString: $0) }
  }
}
