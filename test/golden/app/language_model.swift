// Loads and calls llama.mlpackage. Made by mlc inspect --swift (mlc 0.1.0).
//
// Add llama.mlpackage and this file to the target of the app: Xcode compiles the package to
// llama.mlmodelc in the bundle.
//
//     let predictor = try await LlamaPredictor.load()
//     let tokenizer = try await AutoTokenizer.from(modelFolder: folder)
//     let answer = try await predictor.generate(
//         tokenizer.encode(text: "Once upon a time"), tokenizer: tokenizer)
import CoreML
import Foundation
import Tokenizers  // product of https://github.com/huggingface/swift-transformers

@available(iOS 18.0, macOS 15.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
final class LlamaPredictor {
    struct Input {
        /// int32 [1, tokens]: tokens in 1..96.
        var inputIds: MLShapedArray<Int32>
        /// float16 [1, 1, tokens, end]: tokens in 1..96, end in 1..96.
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
        /// float16 [1, tokens, 50]: tokens in 1..96. MLShapedArray<Float>(converting: ...) reads it
        /// as Float.
        let logits: MLMultiArray

        init(_ features: MLFeatureProvider) {
            logits = features.featureValue(for: "logits")!.multiArrayValue!
        }
    }

    let model: MLModel

    init(model: MLModel) { self.model = model }

    /// Loads a compiled model, by default llama.mlmodelc in the bundle of this class. The first time
    /// takes long for a large model, since the system prepares it for the device.
    static func load(
        contentsOf url: URL? = nil, configuration: MLModelConfiguration = MLModelConfiguration()
    ) async throws -> LlamaPredictor {
        let bundled = Bundle(for: LlamaPredictor.self).url(forResource: "llama", withExtension: "mlmodelc")
        guard let url = url ?? bundled else { throw CocoaError(.fileNoSuchFile) }
        let model = try await MLModel.load(contentsOf: url, configuration: configuration)
        return LlamaPredictor(model: model)
    }

    /// What the model keeps from one prediction to the next, all zeros at first:
    /// - keyCache: float16 [2, 1, 2, 96, 8].
    /// - valueCache: float16 [2, 1, 2, 96, 8].
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
extension LlamaPredictor {
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
                let part = Array(next.prefix(96))
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
        // The model hides later tokens by itself, so the mask is 0 for all tokens so far.
        let all = seen + tokens.count
        let input = Input(
            inputIds: MLShapedArray(scalars: tokens.map { Int32($0) }, shape: [1, tokens.count]),
            causalMask: MLMultiArray(MLShapedArray<Float16>(repeating: 0, shape: [1, 1, tokens.count, all])))
        let output = try await prediction(input, state: state)
        return MLShapedArray<Float16>(output.logits)[0][tokens.count - 1].scalars
    }
}
#endif
