// Loads and calls tagger.mlpackage. Made by mlc inspect --swift (mlc 0.1.0).
//
// Add tagger.mlpackage and this file to the target of the app: Xcode compiles the package to
// tagger.mlmodelc in the bundle.
//
//     let predictor = try await TaggerPredictor.load()
//     let output = try await predictor.prediction(.init(tokens: tokens, `in`: `in`))
import CoreML
import Foundation

@available(iOS 18.0, macOS 15.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
final class TaggerPredictor {
    struct Input {
        /// int32 [batch, length]: batch in 1..8, length in 16|32.
        var tokens: MLShapedArray<Int32>
        /// float32 [length, 4]: one of [16, 4], [32, 4].
        var `in`: MLShapedArray<Float>

        func features() throws -> MLFeatureProvider {
            let values: [String: MLFeatureValue] = [
                "tokens": MLFeatureValue(shapedArray: tokens),
                "in": MLFeatureValue(shapedArray: `in`),
            ]
            return try MLDictionaryFeatureProvider(dictionary: values)
        }
    }

    struct Output {
        /// float32 [batch, length, 4]: batch in 1..8, length in 16|32.
        let h: MLShapedArray<Float>
        /// float32 [1, 1, 1].
        let score: MLShapedArray<Float>

        init(_ features: MLFeatureProvider) {
            h = MLShapedArray<Float>(features.featureValue(for: "h")!.multiArrayValue!)
            score = MLShapedArray<Float>(features.featureValue(for: "score")!.multiArrayValue!)
        }
    }

    let model: MLModel

    init(model: MLModel) { self.model = model }

    /// Loads a compiled model, by default tagger.mlmodelc in the bundle of this class. The first time
    /// takes long for a large model, since the system prepares it for the device.
    static func load(
        contentsOf url: URL? = nil, configuration: MLModelConfiguration = MLModelConfiguration()
    ) async throws -> TaggerPredictor {
        let bundled = Bundle(for: TaggerPredictor.self).url(forResource: "tagger", withExtension: "mlmodelc")
        guard let url = url ?? bundled else { throw CocoaError(.fileNoSuchFile) }
        let model = try await MLModel.load(contentsOf: url, configuration: configuration)
        return TaggerPredictor(model: model)
    }

    func prediction(
        _ input: Input, options: MLPredictionOptions = MLPredictionOptions()
    ) throws -> Output {
        Output(try model.prediction(from: input.features(), options: options))
    }

    func prediction(
        _ input: Input, options: MLPredictionOptions = MLPredictionOptions()
    ) async throws -> Output {
        Output(try await model.prediction(from: input.features(), options: options))
    }
}
