// swift-tools-version:5.5
import PackageDescription

let package = Package(
  name: "Mlc",
  products: [.library(name: "Mlc", targets: ["Mlc"])],
  targets: [
    .systemLibrary(name: "CMlc", pkgConfig: "mlc"),
    .target(name: "Mlc", dependencies: ["CMlc"]),
  ])
