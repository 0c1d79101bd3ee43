// Loads and calls steps.mlpackage. Made by mlc inspect --swift (mlc 0.1.0).
//
// Add steps.mlpackage and this file to the target of the app: Xcode compiles the package to
// steps.mlmodelc in the bundle.
//
//     let predictor = try await StepsPredictor.load()
//     let output = try await predictor.prediction(.init(x: x))
import CoreML
import Foundation

/// The function "main", the default.
@available(iOS 18.0, macOS 15.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
final class StepsPredictor {
    struct Input {
        /// float32 [1, 4].
        var x: MLShapedArray<Float>

        func features() throws -> MLFeatureProvider {
            let values: [String: MLFeatureValue] = [
                "x": MLFeatureValue(shapedArray: x),
            ]
            return try MLDictionaryFeatureProvider(dictionary: values)
        }
    }

    struct Output {
        /// float32 [1, 4].
        let y: MLShapedArray<Float>

        init(_ features: MLFeatureProvider) {
            y = MLShapedArray<Float>(features.featureValue(for: "y")!.multiArrayValue!)
        }
    }

    let model: MLModel

    init(model: MLModel) { self.model = model }

    /// Loads a compiled model, by default steps.mlmodelc in the bundle of this class. The first time
    /// takes long for a large model, since the system prepares it for the device.
    static func load(
        contentsOf url: URL? = nil, configuration: MLModelConfiguration = MLModelConfiguration()
    ) async throws -> StepsPredictor {
        let bundled = Bundle(for: StepsPredictor.self).url(forResource: "steps", withExtension: "mlmodelc")
        guard let url = url ?? bundled else { throw CocoaError(.fileNoSuchFile) }
        let configuration = configuration.copy() as! MLModelConfiguration
        configuration.functionName = "main"
        let model = try await MLModel.load(contentsOf: url, configuration: configuration)
        return StepsPredictor(model: model)
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

/// The function "pre_fill".
@available(iOS 18.0, macOS 15.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)
final class StepsPreFillPredictor {
    struct Input {
        /// float32 [8, 4].
        var x: MLShapedArray<Float>
        /// int32 [1].
        var place: MLShapedArray<Int32>

        func features() throws -> MLFeatureProvider {
            let values: [String: MLFeatureValue] = [
                "x": MLFeatureValue(shapedArray: x),
                "place": MLFeatureValue(shapedArray: place),
            ]
            return try MLDictionaryFeatureProvider(dictionary: values)
        }
    }

    struct Output {
        /// float32 [8, 4].
        let y: MLShapedArray<Float>
        /// int32 [1].
        let next: MLShapedArray<Int32>

        init(_ features: MLFeatureProvider) {
            y = MLShapedArray<Float>(features.featureValue(for: "y")!.multiArrayValue!)
            next = MLShapedArray<Int32>(features.featureValue(for: "next")!.multiArrayValue!)
        }
    }

    let model: MLModel

    init(model: MLModel) { self.model = model }

    /// Loads a compiled model, by default steps.mlmodelc in the bundle of this class. The first time
    /// takes long for a large model, since the system prepares it for the device.
    static func load(
        contentsOf url: URL? = nil, configuration: MLModelConfiguration = MLModelConfiguration()
    ) async throws -> StepsPreFillPredictor {
        let bundled = Bundle(for: StepsPreFillPredictor.self).url(forResource: "steps", withExtension: "mlmodelc")
        guard let url = url ?? bundled else { throw CocoaError(.fileNoSuchFile) }
        let configuration = configuration.copy() as! MLModelConfiguration
        configuration.functionName = "pre_fill"
        let model = try await MLModel.load(contentsOf: url, configuration: configuration)
        return StepsPreFillPredictor(model: model)
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
