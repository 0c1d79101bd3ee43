// Loads and calls counter.mlpackage. Made by mlc inspect --swift (mlc 0.1.0).
//
// Add counter.mlpackage and this file to the target of the app: Xcode compiles the package to
// counter.mlmodelc in the bundle.
//
//     let predictor = try await CounterPredictor.load()
//     let state = predictor.makeState()
//     let output = try await predictor.prediction(.init(x: x), state: state)
import CoreML
import Foundation

@available(iOS 18.0, macOS 15.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
final class CounterPredictor {
    struct Input {
        /// float16 [1, 4]. MLMultiArray(MLShapedArray<Float16>(scalars: ..., shape: ...)) makes
        /// one.
        var x: MLMultiArray

        func features() throws -> MLFeatureProvider {
            let values: [String: MLFeatureValue] = [
                "x": MLFeatureValue(multiArray: x),
            ]
            return try MLDictionaryFeatureProvider(dictionary: values)
        }
    }

    struct Output {
        /// float16 [1, 4]. MLShapedArray<Float>(converting: ...) reads it as Float.
        let y: MLMultiArray

        init(_ features: MLFeatureProvider) {
            y = features.featureValue(for: "y")!.multiArrayValue!
        }
    }

    let model: MLModel

    init(model: MLModel) { self.model = model }

    /// Loads a compiled model, by default counter.mlmodelc in the bundle of this class. The first time
    /// takes long for a large model, since the system prepares it for the device.
    static func load(
        contentsOf url: URL? = nil, configuration: MLModelConfiguration = MLModelConfiguration()
    ) async throws -> CounterPredictor {
        let bundled = Bundle(for: CounterPredictor.self).url(forResource: "counter", withExtension: "mlmodelc")
        guard let url = url ?? bundled else { throw CocoaError(.fileNoSuchFile) }
        let model = try await MLModel.load(contentsOf: url, configuration: configuration)
        return CounterPredictor(model: model)
    }

    /// What the model keeps from one prediction to the next, all zeros at first:
    /// - total: float16 [1, 4].
    /// `state.withMultiArray(for: "total") { array in ... }` reads and sets it between predictions.
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
