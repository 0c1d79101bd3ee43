// Loads and calls fixed.mlpackage. Made by mlc inspect --swift (mlc 0.1.0).
//
// Add fixed.mlpackage and this file to the target of the app: Xcode compiles the package to
// fixed.mlmodelc in the bundle.
//
//     let predictor = try await FixedPredictor.load()
//     let tokenizer = try await AutoTokenizer.from(modelFolder: folder)
//     let answer = try await predictor.generate(
//         tokenizer.encode(text: "Once upon a time"), tokenizer: tokenizer)
import CoreML
import Foundation
import Tokenizers  // product of https://github.com/huggingface/swift-transformers

@available(iOS 18.0, macOS 15.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
final class FixedPredictor {
    struct Input {
        /// int32 [1, tokens]: one of [1, 1], [1, 16].
        var inputIds: MLShapedArray<Int32>
        /// float16 [1, 1, tokens, 96]: one of [1, 1, 1, 96], [1, 1, 16, 96].
        /// MLMultiArray(MLShapedArray<Float16>(scalars: ..., shape: ...)) makes one.
        var causalMask: MLMultiArray

        func features() throws -> MLFeatureProvider {
            let values: [String: MLFeatureValue] = [
                "inputIds": MLFeatureValue(shapedArray: inputIds),
                "causalMask": MLFeatureValue(multiArray: causalMask),
            ]
            return try MLDictionaryFeatureProvider(dictionary: values)
        }
    }

    struct Output {
        /// float16 [1, tokens, 50]: tokens in 1|16. MLShapedArray<Float>(converting: ...) reads it
        /// as Float.
        let logits: MLMultiArray

        init(_ features: MLFeatureProvider) {
            logits = features.featureValue(for: "logits")!.multiArrayValue!
        }
    }

    let model: MLModel

    init(model: MLModel) { self.model = model }

    /// Loads a compiled model, by default fixed.mlmodelc in the bundle of this class. The first time
    /// takes long for a large model, since the system prepares it for the device.
    static func load(
        contentsOf url: URL? = nil, configuration: MLModelConfiguration = MLModelConfiguration()
    ) async throws -> FixedPredictor {
        let bundled = Bundle(for: FixedPredictor.self).url(forResource: "fixed", withExtension: "mlmodelc")
        guard let url = url ?? bundled else { throw CocoaError(.fileNoSuchFile) }
        let model = try await MLModel.load(contentsOf: url, configuration: configuration)
        return FixedPredictor(model: model)
    }

    /// What the model keeps from one prediction to the next, all zeros at first:
    /// - keyCache: float16 [2, 1, 16, 1, 96].
    /// - valueCache: float16 [2, 1, 16, 1, 96].
    /// `state.withMultiArray(for: "keyCache") { array in ... }` reads and sets it between predictions.
    func makeState() -> MLState { model.makeState() }

    // Predictions with the same state must not overlap.
    func prediction(
        _ input: Input, state: MLState, options: MLPredictionOptions = MLPredictionOptions()
    ) throws -> Output {
        Output(try model.prediction(from: input.features(), using: state, options: options))
    }

    func prediction(
        _ input: Input, state: MLState, options: MLPredictionOptions = MLPredictionOptions()
    ) async throws -> Output {
        Output(try await model.prediction(from: input.features(), using: state, options: options))
    }
}

#if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))  // no Float16
@available(iOS 18.0, macOS 15.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
extension FixedPredictor {
    /// The most tokens that the state holds: those of the prompt and of the answer.
    static let context = 96

    /// Continues a prompt and returns the new text: none if the prompt exceeds the context.
    ///
    /// - Parameters:
    ///   - prompt: Tokens, of tokenizer.encode(text:) or of a conversation:
    ///     tokenizer.applyChatTemplate(messages: [["role": "user", "content": "..."]])
    ///   - tokenizer: From the folder with tokenizer.json, tokenizer_config.json and config.json:
    ///     AutoTokenizer.from(modelFolder: folder)
    ///   - stops: Tokens that end the answer besides the tokenizer's own, such as
    ///     tokenizer.convertTokenToId("<|im_end|>").
    ///   - progress: Is given the new text so far after each token.
    func generate(
        _ prompt: [Int], tokenizer: any Tokenizer, limit: Int = 256, stops: Set<Int> = [],
        progress: (String) -> Void = { _ in }
    ) async throws -> String {
        let state = makeState()
        var seen = 0  // the tokens that the state holds
        var next = prompt
        var answer: [Int] = []
        while answer.count < limit, !next.isEmpty, seen + next.count <= Self.context {
            // A long prompt is read in parts; the scores after the last one count.
            var scores: [Float16] = []
            while !next.isEmpty {
                let part = Array(next.prefix(16))
                scores = try await self.scores(after: part, seen: seen, state: state)
                seen += part.count
                next.removeFirst(part.count)
                try Task.checkCancellation()
            }
            // The most probable token. For more variety, draw one from the softmax of the scores.
            let token = scores.indices.max { scores[$0] < scores[$1] }!
            if token == tokenizer.eosTokenId || stops.contains(token) { break }
            answer.append(token)
            next = [token]
            progress(tokenizer.decode(tokens: answer))
        }
        return tokenizer.decode(tokens: answer)
    }

    /// The scores of all 50 tokens of the vocabulary to come after `tokens`, which follow the `seen`
    /// ones that the state holds.
    private func scores(after tokens: [Int], seen: Int, state: MLState) async throws -> [Float16] {
        let size = [1, 16].first { $0 >= tokens.count }!
        // A token sees itself and what is before it; what it must not see has -40000. Tokens that
        // see nothing fill the call up.
        var mask = [Float16](repeating: -40_000, count: size * Self.context)
        for row in tokens.indices {
            for column in 0...(seen + row) { mask[row * Self.context + column] = 0 }
        }
        let ids = tokens.map { Int32($0) } + [Int32](repeating: 0, count: size - tokens.count)
        let input = Input(
            inputIds: MLShapedArray(scalars: ids, shape: [1, size]),
            causalMask: MLMultiArray(MLShapedArray<Float16>(scalars: mask, shape: [1, 1, size, Self.context])))
        let output = try await prediction(input, state: state)
        return MLShapedArray<Float16>(output.logits)[0][tokens.count - 1].scalars
    }
}
#endif
