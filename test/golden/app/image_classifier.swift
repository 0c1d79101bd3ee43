// Loads and calls fruit-v2.mlpackage. Made by mlc inspect --swift (mlc 0.1.0).
//
// Add fruit-v2.mlpackage and this file to the target of the app: Xcode compiles the package to
// fruit-v2.mlmodelc in the bundle.
//
//     let predictor = try await FruitV2Predictor.load()
//     let output = try await predictor.prediction(.init(image: predictor.pixelBuffer(picture)))
import CoreGraphics
import CoreML
import CoreVideo
import Foundation

@available(iOS 16.0, macOS 13.0, tvOS 16.0, watchOS 9.0, *)
final class FruitV2Predictor {
    struct Input {
        /// Colour image, width 64, height 48. kCVPixelFormatType_32BGRA: Core ML puts the channels
        /// in the model's order (rgb).
        var image: CVPixelBuffer

        func features() throws -> MLFeatureProvider {
            let values: [String: MLFeatureValue] = [
                "image": MLFeatureValue(pixelBuffer: image),
            ]
            return try MLDictionaryFeatureProvider(dictionary: values)
        }
    }

    struct Output {
        /// The most probable class.
        let classLabel: String
        /// The probability of each of the 6 classes: "apple", "banana", "cherry", "grape",
        /// "orange", ...
        let classLabel_probs: [String: Double]

        init(_ features: MLFeatureProvider) {
            classLabel = features.featureValue(for: "classLabel")!.stringValue
            classLabel_probs = features.featureValue(for: "classLabel_probs")!.dictionaryValue as! [String: Double]
        }
    }

    let model: MLModel

    init(model: MLModel) { self.model = model }

    /// Loads a compiled model, by default fruit-v2.mlmodelc in the bundle of this class. The first time
    /// takes long for a large model, since the system prepares it for the device.
    static func load(
        contentsOf url: URL? = nil, configuration: MLModelConfiguration = MLModelConfiguration()
    ) async throws -> FruitV2Predictor {
        let bundled = Bundle(for: FruitV2Predictor.self).url(forResource: "fruit-v2", withExtension: "mlmodelc")
        guard let url = url ?? bundled else { throw CocoaError(.fileNoSuchFile) }
        let model = try await MLModel.load(contentsOf: url, configuration: configuration)
        return FruitV2Predictor(model: model)
    }

    func prediction(
        _ input: Input, options: MLPredictionOptions = MLPredictionOptions()
    ) throws -> Output {
        Output(try model.prediction(from: input.features(), options: options))
    }

    @available(iOS 17.0, macOS 14.0, tvOS 17.0, watchOS 10.0, visionOS 1.0, *)
    func prediction(
        _ input: Input, options: MLPredictionOptions = MLPredictionOptions()
    ) async throws -> Output {
        Output(try await model.prediction(from: input.features(), options: options))
    }

    /// Scales a picture to the size of an image input and converts it to its pixel format. To crop
    /// instead of stretching, pass [.cropAndScale: VNImageCropAndScaleOption.centerCrop.rawValue].
    func pixelBuffer(
        _ picture: CGImage, input: String = "image", options: [MLFeatureValue.ImageOption: Any]? = nil
    ) throws -> CVPixelBuffer {
        let constraint = model.modelDescription.inputDescriptionsByName[input]!.imageConstraint!
        return try MLFeatureValue(cgImage: picture, constraint: constraint, options: options)
            .imageBufferValue!
    }
}
